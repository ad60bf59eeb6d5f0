"""What a block communicates inside its layers, read off its axes.

Tensor groups: an op that sums over a split axis leaves a partial result, reduced in forward;
an unsplit activation that split ops read has a partial gradient, reduced in backward. With
sequence parallelism each reduction is a reduce-scatter and the other pass gathers
(Korthikanti et al. 2022, section 4.2.2; Shoeybi et al. 2019, section 3). Expert groups:
dispatch and combine are all-to-all. Context groups: attention reads keys and values along an
axis that no rank holds whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from meshwright.cost.coefficients import Coefficients
from meshwright.cost.collectives import Collective, Network
from meshwright.cost.compute import OpTime, tensor_bytes
from meshwright.cost.local import FloatArray, IntArray, LocalShapes, Region, region_of
from meshwright.graph import CHOICE, Block, Dtype, Op, OpKind, Role, Split
from meshwright.strategy import ContextAlgorithm, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class PassSeconds:
    """Forward and backward seconds per micro-batch: shapes (R,)."""

    forward_s: FloatArray
    backward_s: FloatArray

    def spread(self, index: IntArray) -> PassSeconds:
        """The rows at ``index``."""
        return PassSeconds(forward_s=self.forward_s[index], backward_s=self.backward_s[index])


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


class _Passes:
    """What the three kinds of communication share.

    Args:
        shapes: local lengths for R configurations.
        network: levels under the device group.
        members: shape (R, L), of the group that communicates, from ``placement``.
        workload: precision.
        coefficients: what is hidden.
    """

    def __init__(
        self,
        shapes: LocalShapes,
        network: Network,
        members: IntArray,
        workload: Workload,
        coefficients: Coefficients,
    ) -> None:
        self.shapes = shapes
        self.network = network
        self.members = members
        self.workload = workload
        self.coefficients = coefficients

    def _zeros(self) -> FloatArray:
        return np.zeros(len(self.shapes.configs))

    def _bytes(self, name: str) -> FloatArray:
        return tensor_bytes(self.shapes, name, self.workload)


class TensorCommunication(_Passes):
    """Reductions and gathers of the tensor group.

    Varies with micro-batch, tensor, sequence-parallel, context and expert-tensor degree.
    """

    def passes(self) -> PassSeconds:
        """Forward and backward."""
        forward_names, backward_names = reduced_tensors(self.shapes.block)
        routed = self._routed()
        forward, backward = routed, routed
        times: dict[tuple[tuple[str, ...], Dtype], tuple[FloatArray, FloatArray]] = {}

        def reduction(name: str) -> tuple[FloatArray, FloatArray]:
            # Tensors that run along the same axes cost the same; each is timed once.
            tensor = self.shapes.block.tensor(name)
            key = (tensor.dims, tensor.dtype)
            if key not in times:
                times[key] = self._reduction(name)
            return times[key]

        for name in forward_names:
            reduce, gather = reduction(name)
            forward, backward = forward + reduce, backward + gather
        for name in backward_names:
            reduce, gather = reduction(name)
            # The input is gathered again for the gradient of the weight.
            forward, backward = forward + gather, backward + reduce + gather
        return PassSeconds(forward_s=forward, backward_s=backward)

    def _reduction(self, name: str) -> tuple[FloatArray, FloatArray]:
        """Time to reduce a tensor over its group, and to gather it in the other pass."""
        whole = self._bytes(name) * self.shapes.token_split(Region.PLAIN)
        all_reduce = self.network.time(Collective.ALL_REDUCE, whole, self.members)
        half = self.network.time(Collective.REDUCE_SCATTER, whole, self.members)
        scale = self.coefficients.tensor_scale
        all_reduce, half = (
            scale * all_reduce,
            scale * (1.0 - self.coefficients.tensor_hidden) * half,
        )
        split = self.shapes.configs.sequence_parallel > 0
        return np.where(split, half, all_reduce), np.where(split, half, 0.0)

    def _routed(self) -> FloatArray:
        """Routed tokens gathered before and scattered after experts that are split inside."""
        members = np.minimum(self.members, self.shapes.configs.expert_tensor[:, None])
        total = self._zeros()
        for op in self.shapes.block.ops:
            if op.kind is OpKind.DISPATCH:
                gathered = self._bytes(op.outputs[0].tensor)
                total = total + 2.0 * self.network.time(Collective.ALL_GATHER, gathered, members)
        return total


class ExpertCommunication(_Passes):
    """All-to-all before and after the experts.

    Varies with micro-batch and all degrees but the context algorithm.
    """

    def passes(self) -> PassSeconds:
        """Forward and backward are alike."""
        configs = self.shapes.configs
        total = self._zeros()
        for op in self.shapes.block.ops:
            if op.kind in (OpKind.DISPATCH, OpKind.COMBINE):
                routed = op.outputs[0] if op.kind is OpKind.DISPATCH else op.inputs[0]
                own = self._bytes(routed.tensor) / configs.expert_tensor
                copies = self.shapes.block.axis(CHOICE).size or 1
                total = total + self.network.exchange(own, self.members, copies=copies)
        busiest = np.where(configs.expert > 1, self.coefficients.expert_imbalance, 1.0)
        seconds = total * busiest * (1.0 - self.coefficients.expert_hidden)
        return PassSeconds(forward_s=seconds, backward_s=seconds)


class ContextCommunication(_Passes):
    """Keys and values that attention reads from other context ranks.

    Varies with micro-batch, tensor, sequence-parallel and context degree and algorithm.
    """

    def passes(self, attention: Mapping[str, OpTime]) -> PassSeconds:
        """Forward and backward.

        Args:
            attention: time of every op by name; ring steps hide behind attention.
        """
        forward, backward = self._zeros(), self._zeros()
        for op in self.shapes.block.ops:
            if op.kind is OpKind.ATTENTION and self._gathered(op):
                seconds = self._attention(op, attention[op.name])
                forward, backward = forward + seconds.forward_s, backward + seconds.backward_s
            elif op.kind is OpKind.SCAN:  # the state passes from rank to rank
                hops = (self.shapes.configs.context - 1) * self.network.latency_s[-1]
                forward, backward = forward + hops, backward + hops
        return PassSeconds(forward_s=forward, backward_s=backward)

    def _gathered(self, op: Op) -> list[str]:
        """Operands that are made along the split sequence and read along a whole axis."""
        tensor = self.shapes.block.tensor
        return sorted({i.tensor for i in op.inputs if tensor(i.tensor).dims != i.axes})

    def _attention(self, op: Op, times: OpTime) -> PassSeconds:
        configs, hidden = self.shapes.configs, self.coefficients.context_hidden
        shard = sum((self._bytes(name) for name in self._gathered(op)), self._zeros())
        gather = self.network.time(Collective.ALL_GATHER, shard * configs.context, self.members)
        least = self.coefficients.overlap.tail * gather
        ring_forward = np.maximum(least, gather - hidden * times.forward_s)
        # Keys and values travel again, their gradients travel with them.
        ring_backward = np.maximum(2.0 * least, 2.0 * gather - hidden * times.backward_s)
        query = self._bytes(op.inputs[0].tensor) + self._bytes(op.outputs[0].tensor)
        exchange = self.network.time(Collective.ALL_TO_ALL, shard + query, self.members)
        passes = {
            ContextAlgorithm.RING: (ring_forward, ring_backward),
            ContextAlgorithm.ALL_GATHER: (gather, 2.0 * gather),
            ContextAlgorithm.ULYSSES: (exchange, exchange),
        }
        forward, backward = zip(*(passes[a] for a in ContextAlgorithm), strict=True)
        return PassSeconds(
            forward_s=np.choose(configs.context_algorithm, forward),
            backward_s=np.choose(configs.context_algorithm, backward),
        )
