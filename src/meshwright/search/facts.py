"""What the model asks of the degrees: lengths that must divide."""

from __future__ import annotations

from dataclasses import dataclass

from meshwright.graph import Block, BlockRole, ModelGraph, OpKind, Split, axis_length
from meshwright.strategy import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """Lengths of split axes, over all layers.

    Attributes:
        tensor_lengths: must be multiples of the tensor degree.
        replicable_lengths: heads of keys and values: multiples or divisors of it.
        head_lengths: query heads, which Ulysses also splits over the context ranks.
        expert_lengths, expert_widths: must be multiples of expert and expert-tensor degree.
        sequence_lengths: token counts of the sequences that the workload sets; of a model
            without any, such as a vision transformer, those of its own.
        layers: units that a pipeline may cut between.
    """

    tensor_lengths: tuple[int, ...]
    replicable_lengths: tuple[int, ...]
    head_lengths: tuple[int, ...]
    expert_lengths: tuple[int, ...]
    expert_widths: tuple[int, ...]
    sequence_lengths: tuple[int, ...]
    layers: int

    @property
    def has_experts(self) -> bool:
        """Whether any layer routes tokens."""
        return bool(self.expert_lengths)


def _grouped_axes(block: Block) -> set[str]:
    """Head axes along which only keys and values run."""
    found: set[str] = set()
    for op in block.ops:
        if op.kind is OpKind.ATTENTION:
            query = set(op.inputs[0].axes)
            found |= {a for operand in op.inputs[1:3] for a in operand.axes if a not in query}
    return found


def _head_axes(block: Block) -> set[str]:
    return {
        axis
        for op in block.ops
        if op.kind is OpKind.ATTENTION
        for axis in op.inputs[0].axes
        if block.axis(axis).split is Split.TENSOR
    }


def model_facts(model: ModelGraph, workload: Workload) -> ModelFacts:
    """Read the facts off the blocks of a model."""
    tensor: set[int] = set()
    replicable: set[int] = set()
    heads: set[int] = set()
    experts: set[int] = set()
    widths: set[int] = set()
    sequences: set[int] = set()
    fixed: set[int] = set()
    for block in model.blocks:
        grouped, head_axes = _grouped_axes(block), _head_axes(block)
        for axis in block.axes:
            length = round(axis_length(axis, batch=1.0, seq_length=float(workload.seq_length)))
            if axis.split is Split.CONTEXT:
                (sequences if axis.size is None else fixed).add(length)
            elif axis.split is Split.EXPERT:
                experts.add(length)
            elif axis.split is Split.EXPERT_TENSOR:
                widths.add(length)
            # Vocabularies are padded to a multiple, as every framework does.
            elif axis.split is Split.TENSOR and block.role is BlockRole.LAYER:
                (replicable if axis.name in grouped else tensor).add(length)
                if axis.name in head_axes:
                    heads.add(length)
    return ModelFacts(
        tensor_lengths=tuple(sorted(tensor)),
        replicable_lengths=tuple(sorted(replicable)),
        head_lengths=tuple(sorted(heads)),
        expert_lengths=tuple(sorted(experts)),
        expert_widths=tuple(sorted(widths)),
        # Beside a text, the tokens of a tower are padded, as a vocabulary is.
        sequence_lengths=tuple(sorted(sequences or fixed)),
        layers=model.num_layers,
    )
