"""What a block communicates inside its layers, read off its axes.

Tensor groups: an op that sums over a split axis leaves a partial result, reduced in forward;
an unsplit activation that split ops read has a partial gradient, reduced in backward. With
sequence parallelism each reduction is a reduce-scatter and the other pass gathers
(Korthikanti et al. 2022, section 4.2.2; Shoeybi et al. 2019, section 3). Expert groups:
dispatch and combine are all-to-all. Context groups: attention reads keys and values along an
axis that no rank holds whole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meshwright.cost.coefficients import Coefficients
from meshwright.cost.collectives import Collective, Network
from meshwright.cost.compute import OpTime, tensor_bytes
from meshwright.cost.local import BoolArray, FloatArray, IntArray, LocalShapes, Region, region_of
from meshwright.graph import CHOICE, Block, Dtype, Op, OpKind, Role, Split
from meshwright.strategy import ContextAlgorithm, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class PassSeconds:
    """Forward and backward seconds per micro-batch: shapes (R,)."""

    forward_s: FloatArray
    backward_s: FloatArray


def reduced_tensors(block: Block) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Activations that tensor parallelism reduces: (in forward, in backward).

    >>> from meshwright.graph.builders import AttentionSpec, LayerSpec, transformer_layer
    >>> spec = AttentionSpec(heads=8, kv_heads=8, head_dim=16)
    >>> layer = transformer_layer(LayerSpec(hidden=128, attention=spec, ffn=512))
    >>> reduced_tensors(layer)
    (('attention_out', 'down'), ('attention_norm', 'mlp_norm'))
    """
    forward: dict[str, None] = {}
    backward: dict[str, None] = {}
    for op in block.ops:
        if region_of(block, op.axes) is not Region.TENSOR:
            continue
        if any(block.axis(name).split is Split.TENSOR for name in op.reductions):
            forward.update((operand.tensor, None) for operand in op.outputs)
        for operand in op.inputs:
            tensor = block.tensor(operand.tensor)
            differentiable = tensor.role is Role.ACTIVATION and tensor.dtype is not Dtype.INT64
            if differentiable and region_of(block, tensor.dims) is Region.PLAIN:
                backward[tensor.name] = None
    return tuple(forward), tuple(backward)


class CommunicationModel:
    """Exposed communication of one block inside its layers.

    Args:
        shapes: local lengths for R configurations.
        network: levels under the device group.
        workload: precision.
        coefficients: what is hidden.
        tensor_members, context_members, expert_members: shapes (R, L), from ``placement``.
    """

    def __init__(
        self,
        shapes: LocalShapes,
        network: Network,
        workload: Workload,
        coefficients: Coefficients,
        *,
        tensor_members: IntArray,
        context_members: IntArray,
        expert_members: IntArray,
    ) -> None:
        self.shapes = shapes
        self.network = network
        self.workload = workload
        self.coefficients = coefficients
        self.tensor_members = tensor_members
        self.context_members = context_members
        self.expert_members = expert_members
        self._reductions: dict[tuple[tuple[str, ...], Dtype], tuple[FloatArray, FloatArray]] = {}

    def _zeros(self) -> FloatArray:
        return np.zeros(len(self.shapes.configs))

    def _bytes(self, name: str) -> FloatArray:
        return tensor_bytes(self.shapes, name, self.workload)

    def tensor(self) -> PassSeconds:
        """Reductions and gathers of the tensor group."""
        block, split = self.shapes.block, self.shapes.configs.sequence_parallel > 0
        forward_names, backward_names = reduced_tensors(block)
        forward, backward = self._zeros(), self._zeros()
        visible = 1.0 - self.coefficients.tensor_hidden
        for names, reduces_forward in ((forward_names, True), (backward_names, False)):
            for name in names:
                whole = self._bytes(name) * self.shapes.token_split(Region.PLAIN)
                all_reduce = self._time(Collective.ALL_REDUCE, whole, self.tensor_members)
                half = visible * self._time(Collective.REDUCE_SCATTER, whole, self.tensor_members)
                reduction = np.where(split, half, all_reduce)
                gather = np.where(split, half, 0.0)
                forward = forward + (reduction if reduces_forward else gather)
                backward = backward + (gather if reduces_forward else reduction)
                if not reduces_forward:  # the input is gathered again for the weight's gradient
                    backward = backward + gather
        extra_forward, extra_backward = self._expert_tensor()
        return PassSeconds(forward_s=forward + extra_forward, backward_s=backward + extra_backward)

    def _reduction(self, name: str, split: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Time to reduce a tensor over its group, and to gather it in the other pass.

        Tensors that run along the same axes cost the same; each is timed once.
        """
        tensor = self.shapes.block.tensor(name)
        key = (tensor.dims, tensor.dtype)
        if key not in self._reductions:
            whole = self._bytes(name) * self.shapes.token_split(Region.PLAIN)
            all_reduce = self._time(Collective.ALL_REDUCE, whole, self.tensor_members)
            half = self._time(Collective.REDUCE_SCATTER, whole, self.tensor_members)
            half = (1.0 - self.coefficients.tensor_hidden) * half
            self._reductions[key] = (
                np.where(split, half, all_reduce),
                np.where(split, half, 0.0),
            )
        return self._reductions[key]

    def _expert_tensor(self) -> tuple[FloatArray, FloatArray]:
        """Routed tokens gathered before and scattered after split experts."""
        block = self.shapes.block
        routed = [op.outputs[0].tensor for op in block.ops if op.kind is OpKind.DISPATCH]
        members = np.minimum(self.tensor_members, self.shapes.configs.expert_tensor[:, None])
        total = self._zeros()
        for name in routed:
            gathered = self._bytes(name)
            total = total + 2.0 * self._time(Collective.ALL_GATHER, gathered, members)
        return total, total

    def expert(self) -> PassSeconds:
        """All-to-all before and after the experts."""
        visible = 1.0 - self.coefficients.expert_hidden
        total = self._zeros()
        for op in self.shapes.block.ops:
            if op.kind is OpKind.DISPATCH:
                name = op.outputs[0].tensor
            elif op.kind is OpKind.COMBINE:
                name = op.inputs[0].tensor
            else:
                continue
            own = self._bytes(name) / self.shapes.configs.expert_tensor
            seconds = self.network.exchange(own, self.expert_members, copies=self._choices())
            total = total + visible * seconds
        imbalance = np.where(
            self.shapes.configs.expert > 1, self.coefficients.expert_imbalance, 1.0
        )
        return PassSeconds(forward_s=total * imbalance, backward_s=total * imbalance)

    def _choices(self) -> int:
        """Experts that one token visits."""
        return self.shapes.block.axis(CHOICE).size or 1

    def context(self, attention: dict[str, OpTime]) -> PassSeconds:
        """Keys and values that attention reads from other context ranks.

        Args:
            attention: time of each attention op, behind which ring steps hide.
        """
        forward, backward = self._zeros(), self._zeros()
        for op in self.shapes.block.ops:
            if op.kind is OpKind.ATTENTION and self._gathers(op):
                times = attention[op.name]
                seconds = self._attention_context(op, times)
                forward, backward = forward + seconds.forward_s, backward + seconds.backward_s
            elif op.kind is OpKind.SCAN:  # the state passes from rank to rank
                hops = (self.shapes.configs.context - 1) * self.network.latency_s[-1]
                forward, backward = forward + hops, backward + hops
        return PassSeconds(forward_s=forward, backward_s=backward)

    def _gathers(self, op: Op) -> bool:
        """Whether an operand made along the split sequence is read along a whole axis."""
        return any(self._dims(operand.tensor) != operand.axes for operand in op.inputs)

    def _attention_context(self, op: Op, times: OpTime) -> PassSeconds:
        configs, members = self.shapes.configs, self.context_members
        keys = {i.tensor for i in op.inputs if self._dims(i.tensor) != i.axes}
        shard = sum((self._bytes(name) for name in sorted(keys)), self._zeros())
        whole = shard * configs.context
        gather = self._time(Collective.ALL_GATHER, whole, members)
        hidden = self.coefficients.context_hidden
        ring_forward = np.maximum(0.05 * gather, gather - hidden * times.forward_s)
        # Keys and values travel again, their gradients travel with them.
        ring_backward = np.maximum(0.1 * gather, 2.0 * gather - hidden * times.backward_s)
        query = self._bytes(op.inputs[0].tensor) + self._bytes(op.outputs[0].tensor)
        exchange = self._time(Collective.ALL_TO_ALL, shard + query, members)
        algorithms = list(ContextAlgorithm)
        choices = {
            ContextAlgorithm.RING: (ring_forward, ring_backward),
            ContextAlgorithm.ALL_GATHER: (gather, 2.0 * gather),
            ContextAlgorithm.ULYSSES: (exchange, exchange),
        }
        index = configs.context_algorithm
        return PassSeconds(
            forward_s=np.choose(index, [choices[a][0] for a in algorithms]),
            backward_s=np.choose(index, [choices[a][1] for a in algorithms]),
        )

    def _dims(self, name: str) -> tuple[str, ...]:
        return self.shapes.block.tensor(name).dims

    def _time(self, kind: Collective, volume: FloatArray, members: IntArray) -> FloatArray:
        return self.network.time(kind, volume, members)
