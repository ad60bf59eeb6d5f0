"""Tensors: what flows between ops, and what is learned."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What a tensor is for; decides who stores it and for how long."""

    ACTIVATION = "activation"
    PARAMETER = "parameter"


class Dtype(StrEnum):
    """Storage class of a tensor; ``COMPUTE`` follows the workload's precision."""

    COMPUTE = "compute"
    FP32 = "fp32"
    INT64 = "int64"
    BYTE = "byte"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """A named tensor of a block.

    Attributes:
        name: unique within its block.
        dims: the axis along which each dimension runs, outermost first.
        role: activation or parameter.
        dtype: storage class.
        tied_to: for a parameter that shares storage with one of another block, that
            parameter's ``"block.tensor"`` name; it then adds nothing to the count.
    """

    name: str
    dims: tuple[str, ...]
    role: Role = Role.ACTIVATION
    dtype: Dtype = Dtype.COMPUTE
    tied_to: str | None = None
