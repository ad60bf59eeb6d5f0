"""Blocks: a run of ops that repeats as one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import prod

from meshwright.errors import ModelError
from meshwright.graph.axis import BATCH, Axis, Split
from meshwright.graph.op import Op
from meshwright.graph.tensor import Role, Tensor


class BlockRole(StrEnum):
    """Where in the model a block stands; pipelines cut between layers only."""

    EMBEDDING = "embedding"
    """Before the first layer; always on the first stage."""
    LAYER = "layer"
    """A unit of the pipeline cut and of recomputation."""
    HEAD = "head"
    """After the last layer: final norm, logits, loss; always on the last stage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Ops in execution order over shared axes and tensors. Equal blocks fold to one.

    Attributes:
        name: describes the structure, e.g. ``"decoder"`` or ``"moe_decoder"``.
        role: embedding, layer or head.
        axes, tensors, ops: by value; ops are in an order in which they can run.
        inputs: activations that arrive from the block before.
        output: the activation handed to the next block.
        active_experts: experts that a token uses, for the count of active parameters.
        auxiliary: trained beside the model proper and left out of the published count of its
            parameters (the modules that predict further tokens).
    """

    name: str
    role: BlockRole
    axes: tuple[Axis, ...]
    tensors: tuple[Tensor, ...]
    ops: tuple[Op, ...]
    inputs: tuple[str, ...]
    output: str
    active_experts: int = 0
    auxiliary: bool = False

    def __post_init__(self) -> None:
        axes = {axis.name for axis in self.axes}
        tensors = {tensor.name: tensor for tensor in self.tensors}
        if len(axes) != len(self.axes) or len(tensors) != len(self.tensors):
            raise ModelError(
                f"block {self.name!r} names an axis or a tensor twice", where=self.name
            )
        for tensor in self.tensors:
            if unknown := set(tensor.dims) - axes:
                raise ModelError(
                    f"tensor {tensor.name!r} runs along unknown axes {sorted(unknown)}",
                    where=f"{self.name}.{tensor.name}",
                )
        made = set(self.inputs) | {t.name for t in self.tensors if t.role is Role.PARAMETER}
        for op in self.ops:
            for operand in op.inputs:
                if operand.tensor not in made:
                    raise ModelError(
                        f"op {op.name!r} reads {operand.tensor!r} before it is made",
                        where=f"{self.name}.{op.name}",
                    )
            for operand in op.inputs + op.outputs:
                if operand.tensor not in tensors:
                    raise ModelError(
                        f"op {op.name!r} names unknown tensor {operand.tensor!r}",
                        where=f"{self.name}.{op.name}",
                    )
                if len(operand.axes) != len(tensors[operand.tensor].dims):
                    raise ModelError(
                        f"op {op.name!r} gives {len(operand.axes)} axes to {operand.tensor!r}",
                        where=f"{self.name}.{op.name}",
                    )
            if unknown := set(op.axes) - axes:
                raise ModelError(
                    f"op {op.name!r} iterates over unknown axes {sorted(unknown)}",
                    where=f"{self.name}.{op.name}",
                )
            made.update(operand.tensor for operand in op.outputs)

    def axis(self, name: str) -> Axis:
        """The axis of that name."""
        return next(axis for axis in self.axes if axis.name == name)

    def tensor(self, name: str) -> Tensor:
        """The tensor of that name."""
        return next(tensor for tensor in self.tensors if tensor.name == name)

    @property
    def parameters(self) -> tuple[Tensor, ...]:
        """The learned tensors."""
        return tuple(tensor for tensor in self.tensors if tensor.role is Role.PARAMETER)

    def sizes(self, *, batch: float, seq_length: float) -> dict[str, float]:
        """Length of every axis for a micro-batch of ``batch`` whole sequences."""
        return {
            axis.name: axis_length(axis, batch=batch, seq_length=seq_length) for axis in self.axes
        }

    def parameter_count(self) -> int:
        """Learned scalars of one instance; tied ones count where they are stored."""
        return sum(self._elements(t) for t in self.parameters if t.tied_to is None)

    def active_parameter_count(self) -> int:
        """Learned scalars that one token meets: of the experts only those it is routed to."""
        total = 0
        for tensor in self.parameters:
            if tensor.tied_to is not None:
                continue
            elements = self._elements(tensor)
            experts = [self.axis(d) for d in tensor.dims if self.axis(d).split is Split.EXPERT]
            for axis in experts:
                assert axis.size is not None
                elements = elements // axis.size * self.active_experts
            total += elements
        return total

    def _elements(self, tensor: Tensor) -> int:
        sizes: Mapping[str, int | None] = {axis.name: axis.size for axis in self.axes}
        lengths = [sizes[dim] for dim in tensor.dims]
        if any(length is None for length in lengths):
            raise ModelError(
                f"parameter {tensor.name!r} has a dimension that the workload binds",
                where=f"{self.name}.{tensor.name}",
            )
        return prod(length for length in lengths if length is not None)


def axis_length(axis: Axis, *, batch: float, seq_length: float) -> float:
    """Length of an axis: its own, or what the workload gives it."""
    if axis.size is not None:
        return float(axis.size)
    if axis.name == BATCH:
        return batch
    return max(1.0, seq_length * axis.scale)
