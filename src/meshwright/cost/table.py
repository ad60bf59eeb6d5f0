"""The cost table: what every distinct block costs under every local configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from meshwright.cost.coefficients import Coefficients
from meshwright.cost.collectives import Network
from meshwright.cost.communication import (
    ContextCommunication,
    ExpertCommunication,
    PassSeconds,
    TensorCommunication,
    reduced_tensors,
)
from meshwright.cost.compute import ComputeModel, OpTime, tensor_bytes
from meshwright.cost.device_models import DeviceModel
from meshwright.cost.local import FloatArray, IntArray, LocalConfigs, LocalShapes, distinct
from meshwright.cost.memory import block_memory, local_parameters
from meshwright.graph import Block, BlockRole, OpKind
from meshwright.strategy import Recompute, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """R rows of the table: local configuration, recomputation, placement.

    Attributes:
        configs: R local configurations.
        recompute: shape (R,); index into ``list(Recompute)``.
        tensor_members, context_members, expert_members: shapes (R, L), from ``placement``.
    """

    configs: LocalConfigs
    recompute: IntArray
    tensor_members: IntArray
    context_members: IntArray
    expert_members: IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Distinct:
    """Rows that differ in something, and for every row of the table which of them it is."""

    first: IntArray
    inverse: IntArray

    @classmethod
    def of(cls, columns: Sequence[IntArray], members: IntArray | None = None) -> Distinct:
        """The distinct combinations of these columns (and of placements)."""
        first, inverse = distinct([*columns, *([] if members is None else members.T)])
        return cls(first=first, inverse=inverse)

    def spread(self, values: FloatArray) -> FloatArray:
        """One value per row of the table."""
        return values[self.inverse]


class RowIndex:
    """Which rows of a table differ in what, so that each thing is computed once.

    Attributes:
        compute: distinct configurations.
        tensor, context, expert: distinct in what each kind of communication varies with.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        c = rows.configs
        common = (c.micro_batch, c.tensor, c.sequence_parallel, c.context)
        experts = (c.expert, c.expert_tensor)
        self.compute = Distinct.of(c.columns())
        self.tensor = Distinct.of((*common, c.expert_tensor), rows.tensor_members)
        self.context = Distinct.of((*common, c.context_algorithm), rows.context_members)
        self.expert = Distinct.of((*common, *experts), rows.expert_members)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockCosts:
    """One block on one rank per micro-batch, every attribute of shape (R,).

    Communication is what compute does not hide; recomputation, and the communication it
    repeats, is part of the backward.
    """

    forward_compute_s: FloatArray
    backward_compute_s: FloatArray
    recompute_s: FloatArray
    forward_launch_s: FloatArray
    backward_launch_s: FloatArray
    forward_tensor_s: FloatArray
    backward_tensor_s: FloatArray
    forward_context_s: FloatArray
    backward_context_s: FloatArray
    forward_expert_s: FloatArray
    backward_expert_s: FloatArray
    activation_bytes: FloatArray
    transient_bytes: FloatArray
    dense_parameters: FloatArray
    expert_parameters: FloatArray
    tied_parameters: FloatArray
    output_bytes: FloatArray

    @property
    def forward_s(self) -> FloatArray:
        """Forward with its exposed communication."""
        return (
            self.forward_compute_s
            + self.forward_launch_s
            + self.forward_tensor_s
            + self.forward_context_s
            + self.forward_expert_s
        )

    @property
    def backward_s(self) -> FloatArray:
        """Backward with recomputation and exposed communication."""
        return (
            self.backward_compute_s
            + self.recompute_s
            + self.backward_launch_s
            + self.backward_tensor_s
            + self.backward_context_s
            + self.backward_expert_s
        )


class BlockTable:
    """Costs of one block for many rows.

    Compute depends on the configuration alone, communication on the placement too; each is
    evaluated once per distinct combination and spread over the rows.
    """

    def __init__(
        self, block: Block, index: RowIndex, *, workload: Workload, model: DeviceModel
    ) -> None:
        self._block = block
        self._rows = index.rows
        self._index = index
        self._workload = workload
        self._model = model
        configs = index.rows.configs.take(index.compute.first)
        self._shapes = LocalShapes(block, configs, seq_length=workload.seq_length)
        compute = ComputeModel(self._shapes, model.device, workload, model.coefficients)
        self._times = {op.name: compute.time(op) for op in block.ops}

    def _spread(self, values: FloatArray) -> FloatArray:
        return self._index.compute.spread(values)

    def _sum(self, times: Sequence[FloatArray]) -> FloatArray:
        total: FloatArray = np.zeros(len(self._index.compute.first))
        for seconds in times:
            total = total + seconds
        return self._spread(total)

    def costs(self) -> BlockCosts:
        """The table of this block."""
        layer = self._block.role is BlockRole.LAYER
        full = (self._rows.recompute == list(Recompute).index(Recompute.FULL)) & layer
        selective = self._rows.recompute == list(Recompute).index(Recompute.SELECTIVE)
        forward = self._sum([t.forward_s for t in self._times.values()])
        backward = self._sum([t.backward_s for t in self._times.values()])
        core = self._sum([times.forward_s for times in self._attention_times().values()])
        again = np.where(full, forward, np.where(selective, core, 0.0))
        tensor, context, expert = self._communication()
        backward_tensor_s = tensor.backward_s + np.where(full, tensor.forward_s, 0.0)
        backward_context_s = context.backward_s + np.where(full | selective, context.forward_s, 0.0)
        backward_expert_s = expert.backward_s + np.where(full, expert.forward_s, 0.0)
        forward_host_s, backward_host_s = self._host_s()
        backward_host_s = backward_host_s + np.where(full, forward_host_s, 0.0)
        forward_device_s = forward + tensor.forward_s + context.forward_s + expert.forward_s
        backward_device_s = (
            backward + again + backward_tensor_s + backward_context_s + backward_expert_s
        )
        parameters = local_parameters(self._shapes)
        kept, transient = self._memory()
        return BlockCosts(
            forward_compute_s=forward,
            backward_compute_s=backward,
            recompute_s=again,
            forward_launch_s=np.maximum(forward_host_s - forward_device_s, 0.0),
            backward_launch_s=np.maximum(backward_host_s - backward_device_s, 0.0),
            forward_tensor_s=tensor.forward_s,
            backward_tensor_s=backward_tensor_s,
            forward_context_s=context.forward_s,
            backward_context_s=backward_context_s,
            forward_expert_s=expert.forward_s,
            backward_expert_s=backward_expert_s,
            activation_bytes=kept,
            transient_bytes=transient,
            dense_parameters=self._spread(parameters.dense),
            expert_parameters=self._spread(parameters.expert),
            tied_parameters=self._spread(parameters.tied),
            output_bytes=self._spread(
                tensor_bytes(self._shapes, self._block.output, self._workload)
            ),
        )

    def _host_s(self) -> tuple[FloatArray, FloatArray]:
        """Host time to launch the forward and the backward of the block: shapes (R,).

        The host runs ahead of the device; where it is the slower one, every tensor-parallel
        collective also waits for the latest of its hosts.
        """
        c = self._model.coefficients
        launches_s = sum(not op.fused for op in self._block.ops) * c.launch_s
        skew_s: FloatArray = c.skew_s * (self._rows.configs.tensor - 1).astype(np.float64)
        forward, backward = reduced_tensors(self._block)
        return launches_s + len(forward) * skew_s, 2.0 * launches_s + len(backward) * skew_s

    def _communication(self) -> tuple[PassSeconds, PassSeconds, PassSeconds]:
        """Tensor, context and expert groups, for every row."""
        rows, index = self._rows, self._index
        tensor = TensorCommunication(*self._group(index.tensor, rows.tensor_members)).passes()
        expert = ExpertCommunication(*self._group(index.expert, rows.expert_members)).passes()
        compute_row = index.compute.inverse[index.context.first]
        times = {
            name: OpTime(
                forward_s=found.forward_s[compute_row], backward_s=found.backward_s[compute_row]
            )
            for name, found in self._attention_times().items()
        }
        context = ContextCommunication(*self._group(index.context, rows.context_members))
        return (
            tensor.spread(index.tensor.inverse),
            context.passes(times).spread(index.context.inverse),
            expert.spread(index.expert.inverse),
        )

    def _group(
        self, rows: Distinct, members: IntArray
    ) -> tuple[LocalShapes, Network, IntArray, Workload, Coefficients]:
        """What a communication model needs for some rows of the table."""
        configs = self._rows.configs.take(rows.first)
        shapes = LocalShapes(self._block, configs, seq_length=self._workload.seq_length)
        model = self._model
        return shapes, model.network, members[rows.first], self._workload, model.coefficients

    def _attention_times(self) -> dict[str, OpTime]:
        return {
            op.name: self._times[op.name] for op in self._block.ops if op.kind is OpKind.ATTENTION
        }

    def _memory(self) -> tuple[FloatArray, FloatArray]:
        coefficients = self._model.coefficients
        extra = coefficients.loss_extra_bytes
        modes = [
            block_memory(self._shapes, self._workload, mode, loss_extra_bytes=extra)
            for mode in Recompute
        ]
        index = (self._rows.recompute, self._index.compute.inverse)
        kept = coefficients.activation_scale * np.stack([mode.kept_bytes for mode in modes])[index]
        transient = np.stack([mode.transient_bytes for mode in modes])[index]
        return kept, transient


def cost_table(
    blocks: Sequence[Block], rows: Rows, *, workload: Workload, model: DeviceModel
) -> tuple[BlockCosts, ...]:
    """Costs of every block for every row, on one device type.

    Args:
        blocks: distinct blocks.
        rows: R rows.
        workload: sequence length, precision, attention kernel.
        model: device, network and software stack.
    """
    index = RowIndex(rows)
    return tuple(
        BlockTable(block, index, workload=workload, model=model).costs() for block in blocks
    )
