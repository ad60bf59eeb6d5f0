"""What the tests of today's families share."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from meshwright.graph import Block, ModelGraph, OpKind, Role, Split
from meshwright.graph.sources.huggingface import load_huggingface

COUNTS = Path(__file__).parents[1] / "data" / "parameter_counts_modern.json"
#: Real configurations, when the checkout has them beside it.
SHARED = Path(__file__).parents[3] / "shared" / "inputs" / "hf"


@cache
def cases() -> dict[str, dict[str, Any]]:
    """Recorded cases by name: the configuration, and the count of the transformers library."""
    record = json.loads(COUNTS.read_text(encoding="utf-8"))
    return {case["name"]: case for case in record["cases"]}


@cache
def model(name: str) -> ModelGraph:
    """The graph of a recorded case."""
    return load_huggingface(cases()[name]["config"], name=name)


def flops(block: Block, op_name: str, *, batch: int, length: int) -> float:
    """Forward FLOPs of one op of a block."""
    op = next(op for op in block.ops if op.name == op_name)
    return op.flops(block.sizes(batch=batch, seq_length=length), length=length)


def block_named(graph: ModelGraph, name: str) -> Block:
    """The first block of that name."""
    return next(block for block in graph.blocks if block.name == name)


def lookup_only(graph: ModelGraph) -> int:
    """Parameters of tables of which a token meets one row, and that nothing else uses."""
    shared = {
        block.tensor(operand.tensor).tied_to
        for block in graph.blocks
        for op in block.ops
        if op.kind is not OpKind.EMBEDDING
        for operand in op.inputs
    }
    total = 0
    for block in graph.blocks:
        for op in block.ops:
            if op.kind is not OpKind.EMBEDDING:
                continue
            for operand in op.inputs:
                tensor = block.tensor(operand.tensor)
                name = f"{block.name}.{tensor.name}"
                if tensor.role is Role.PARAMETER and tensor.tied_to is None and name not in shared:
                    total += elements(block, tensor.name)
    return total


def elements(block: Block, tensor: str) -> int:
    """Scalars of a parameter."""
    count = 1
    for dim in block.tensor(tensor).dims:
        size = block.axis(dim).size
        assert size is not None
        count *= size
    return count


def expert_axis(block: Block) -> bool:
    """Whether the block has routed experts."""
    return any(axis.split is Split.EXPERT for axis in block.axes)
