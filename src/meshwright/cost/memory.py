"""What a block keeps for its backward, and what it needs while it runs.

A tensor that several ops save is kept once. With 2-byte activations, an unfused attention
kernel and dropout this sums to the closed form ``s b h (34 + 5 a s / h)`` per transformer
layer, ``s b h (10 + 24/t + 5 a s / (h t))`` on t tensor ranks, all of it over t with sequence
parallelism, without the last term under selective recomputation, and ``2 s b h`` under full
recomputation (Korthikanti et al. 2022, table 2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meshwright.cost.compute import tensor_bytes
from meshwright.cost.local import FloatArray, LocalShapes
from meshwright.graph import Block, BlockRole, Op, OpKind, Role, Split
from meshwright.strategy import AttentionKernel, Recompute, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockMemory:
    """Bytes on one rank per micro-batch: shapes (R,)."""

    kept_bytes: FloatArray
    transient_bytes: FloatArray


def kernel_saved(op: Op, kernel: AttentionKernel) -> tuple[str, ...]:
    """What an op saves because of the kernel that runs it."""
    return op.saved_fused if kernel is AttentionKernel.FUSED else op.saved_unfused


def saved_tensors(block: Block, kernel: AttentionKernel, recompute: Recompute) -> tuple[str, ...]:
    """Names of the tensors kept from forward to backward, each once."""
    if recompute is Recompute.FULL and block.role is BlockRole.LAYER:
        return block.inputs
    names: dict[str, None] = {}
    for op in block.ops:
        names.update((name, None) for name in op.saved)
        if op.kind is not OpKind.ATTENTION or recompute is not Recompute.SELECTIVE:
            names.update((name, None) for name in kernel_saved(op, kernel))
    return tuple(name for name in names if block.tensor(name).role is Role.ACTIVATION)


def _total(shapes: LocalShapes, names: tuple[str, ...], workload: Workload) -> FloatArray:
    total: FloatArray = np.zeros(len(shapes.configs))
    for name in names:
        total = total + tensor_bytes(shapes, name, workload)
    return total


def _working(shapes: LocalShapes, workload: Workload) -> FloatArray:
    """Gradients of the inputs and outputs of the op that needs most."""
    block = shapes.block
    largest: FloatArray = np.zeros(len(shapes.configs))
    for op in block.ops:
        names = dict.fromkeys(operand.tensor for operand in op.inputs + op.outputs)
        activations = tuple(n for n in names if block.tensor(n).role is Role.ACTIVATION)
        if op.kind is OpKind.ATTENTION and workload.attention is AttentionKernel.UNFUSED:
            activations += op.saved_unfused[:1]
        largest = np.maximum(largest, _total(shapes, activations, workload))
    return largest


def _logits(shapes: LocalShapes) -> FloatArray:
    """Elements that the losses of a block are taken over."""
    total: FloatArray = np.zeros(len(shapes.configs))
    for op in shapes.block.ops:
        if op.kind is OpKind.LOSS:
            total = total + shapes.elements(op.inputs[0].tensor)
    return total


def block_memory(
    shapes: LocalShapes,
    workload: Workload,
    recompute: Recompute,
    *,
    loss_extra_bytes: float = 0.0,
) -> BlockMemory:
    """Kept and transient bytes of one block under one recomputation mode.

    What a layer recomputes is alive while its backward runs: it is transient. The head runs
    its backward at once after its forward, so what it saves is transient as well, and so are
    ``loss_extra_bytes`` per logit that the stack's loss needs beyond logits, their gradient and
    one fp32 copy.
    """
    block, kernel = shapes.block, workload.attention
    everything = _total(shapes, saved_tensors(block, kernel, Recompute.NONE), workload)
    working = _working(shapes, workload)
    if block.role is BlockRole.HEAD:
        extra = loss_extra_bytes * _logits(shapes)
        return BlockMemory(
            kept_bytes=np.zeros_like(working), transient_bytes=everything + working + extra
        )
    kept = _total(shapes, saved_tensors(block, kernel, recompute), workload)
    return BlockMemory(kept_bytes=kept, transient_bytes=working + everything - kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalParameters:
    """Learned scalars of one block on one rank: shapes (R,).

    ``tied`` are those whose storage another block owns: a stage that does not hold that block
    needs a copy of them.
    """

    dense: FloatArray
    expert: FloatArray
    tied: FloatArray


def local_parameters(shapes: LocalShapes) -> LocalParameters:
    """Count the learned scalars of one block on one rank."""
    block = shapes.block
    totals: dict[str, FloatArray] = {
        name: np.zeros(len(shapes.configs)) for name in ("dense", "expert", "tied")
    }
    for tensor in block.parameters:
        splits = {block.axis(dim).split for dim in tensor.dims}
        if tensor.tied_to is not None:
            kind = "tied"
        else:
            kind = "expert" if splits & {Split.EXPERT, Split.EXPERT_TENSOR} else "dense"
        totals[kind] = totals[kind] + shapes.elements(tensor.name)
    return LocalParameters(**totals)
