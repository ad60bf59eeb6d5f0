"""Models as folded graphs of ops on named axes."""

from __future__ import annotations

from meshwright.graph.axis import BATCH, CHOICE, SEQ, Axis, Split, batch_axis, seq_axis
from meshwright.graph.block import Block, BlockRole, axis_length
from meshwright.graph.model import ModelGraph, Run, fold
from meshwright.graph.op import MATRIX_KINDS, Mask, Op, Operand, OpKind, Term, backward_factor
from meshwright.graph.tensor import Dtype, Role, Tensor

__all__ = [
    "BATCH",
    "CHOICE",
    "MATRIX_KINDS",
    "SEQ",
    "Axis",
    "Block",
    "BlockRole",
    "Dtype",
    "Mask",
    "ModelGraph",
    "Op",
    "OpKind",
    "Operand",
    "Role",
    "Run",
    "Split",
    "Tensor",
    "Term",
    "axis_length",
    "backward_factor",
    "batch_axis",
    "fold",
    "seq_axis",
]
