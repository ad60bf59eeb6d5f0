"""What a model is made of, as data: one sequence on one device, nothing split."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from meshwright.cost.compute import tensor_bytes
from meshwright.cost.local import LocalConfigs, LocalShapes
from meshwright.cost.memory import block_memory
from meshwright.graph import MATRIX_KINDS, Block, BlockRole, ModelGraph
from meshwright.planning.check import check_workload
from meshwright.planning.flops import forward_flops
from meshwright.strategy import Recompute, Workload

#: The sequence that is shown when neither the user nor the model names one.
USUAL_SEQ_LENGTH = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class OpInfo:
    """One op of a block, forward, one sequence.

    Attributes:
        name, kind: as the block has them.
        flops: floating-point operations (0 for look-ups).
        moved_bytes: all operands once, read or written.
    """

    name: str
    kind: str
    flops: float
    moved_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockInfo:
    """One distinct block.

    Attributes:
        name, role: as the block has them.
        count: how many the model has.
        auxiliary: trained beside the model proper.
        parameters, active_parameters: learned scalars of one instance; those a token meets.
        forward_flops, backward_flops: matrix ops, one sequence.
        activation_bytes: kept for the backward of one sequence, by recomputation mode.
        ops: in execution order.
    """

    name: str
    role: str
    count: int
    auxiliary: bool
    parameters: int
    active_parameters: int
    forward_flops: float
    backward_flops: float
    activation_bytes: dict[str, float]
    ops: tuple[OpInfo, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """A model in numbers, at one sequence length.

    Attributes:
        model: the graph.
        seq_length: tokens of the sequence that FLOPs and bytes are for.
        layers: units that a pipeline may cut between.
        parameters, active_parameters: without auxiliary blocks, as authors count.
        auxiliary_parameters: of the blocks that are trained beside it.
        forward_flops_per_token, training_flops_per_token: matrix ops of all blocks; training
            is forward and backward.
        blocks: distinct blocks in order of first use.
    """

    model: ModelGraph
    seq_length: int
    layers: int
    parameters: int
    active_parameters: int
    auxiliary_parameters: int
    forward_flops_per_token: float
    training_flops_per_token: float
    blocks: tuple[BlockInfo, ...]


def model_info(model: ModelGraph, *, seq_length: int | None = None) -> ModelInfo:
    """Numbers of a model; bf16 activations and a fused attention kernel.

    Args:
        model: the graph.
        seq_length: tokens per sequence; by default the model's own, or 4,096.

    Raises:
        WorkloadError: the sequence is longer than the model has positions.
    """
    longest = model.max_seq_length or USUAL_SEQ_LENGTH
    length = seq_length or model.default_seq_length or min(longest, USUAL_SEQ_LENGTH)
    workload = Workload(global_batch_size=1, seq_length=length)
    check_workload(model, workload)
    counts: Counter[Block] = Counter()
    for run in model.runs:
        counts[run.block] += run.count
    blocks = tuple(_block_info(block, counts[block], workload) for block in model.blocks)
    forward = sum(block.count * block.forward_flops for block in blocks)
    backward = sum(block.count * block.backward_flops for block in blocks)
    parameters = model.parameter_count()
    return ModelInfo(
        model=model,
        seq_length=length,
        layers=model.num_layers,
        parameters=parameters,
        active_parameters=model.active_parameter_count(),
        auxiliary_parameters=model.parameter_count(include_auxiliary=True) - parameters,
        forward_flops_per_token=forward / length,
        training_flops_per_token=(forward + backward) / length,
        blocks=blocks,
    )


def _block_info(block: Block, count: int, workload: Workload) -> BlockInfo:
    one = np.ones(1, dtype=np.int64)
    configs = LocalConfigs(
        micro_batch=one,
        tensor=one,
        sequence_parallel=0 * one,
        context=one,
        context_algorithm=0 * one,
        expert=one,
        expert_tensor=one,
    )
    shapes = LocalShapes(block, configs, seq_length=workload.seq_length)
    forward, backward = forward_flops(block, seq_length=workload.seq_length)
    # Only layers keep activations and may recompute them; the ends count once per model.
    modes = tuple(Recompute) if block.role is BlockRole.LAYER else (Recompute.NONE,)
    kept = {mode.value: float(block_memory(shapes, workload, mode).kept_bytes[0]) for mode in modes}
    ops = tuple(
        OpInfo(
            name=op.name,
            kind=op.kind.value,
            flops=float(shapes.flops(op)[0]) if op.kind in MATRIX_KINDS else 0.0,
            moved_bytes=sum(
                float(tensor_bytes(shapes, name, workload)[0])
                for name in dict.fromkeys(o.tensor for o in op.inputs + op.outputs)
            ),
        )
        for op in block.ops
    )
    return BlockInfo(
        name=block.name,
        role=block.role.value,
        count=count,
        auxiliary=block.auxiliary,
        parameters=block.parameter_count(),
        active_parameters=block.active_parameter_count(),
        forward_flops=forward,
        backward_flops=backward,
        activation_bytes=kept,
        ops=ops,
    )
