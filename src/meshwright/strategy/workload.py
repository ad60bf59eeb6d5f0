"""The workload: what one training step has to do, whatever the strategy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from meshwright.errors import WorkloadError, nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionRecipe:
    """Bytes per value under a mixed-precision recipe.

    Attributes:
        peak: precision whose peak the dense contractions reach.
        activation_bytes, parameter_bytes, gradient_bytes: storage of one value.
        master_bytes: a copy in fp32 that the optimizer updates (0 when parameters are fp32).
    """

    peak: str
    activation_bytes: float
    parameter_bytes: float
    gradient_bytes: float
    master_bytes: float


#: Recipes by name. Mixed precision keeps fp32 gradients and master weights, as Megatron-LM
#: and Transformer Engine do (Micikevicius et al. 2018; Rajbhandari et al. 2020, section 3.1).
#: fp8 and fp4 recipes keep bf16 parameters and cast them for the contractions.
PRECISIONS: dict[str, PrecisionRecipe] = {
    "bf16": PrecisionRecipe(
        peak="bf16", activation_bytes=2, parameter_bytes=2, gradient_bytes=4, master_bytes=4
    ),
    "fp16": PrecisionRecipe(
        peak="fp16", activation_bytes=2, parameter_bytes=2, gradient_bytes=4, master_bytes=4
    ),
    "fp8": PrecisionRecipe(
        peak="fp8", activation_bytes=2, parameter_bytes=2, gradient_bytes=4, master_bytes=4
    ),
    "fp4": PrecisionRecipe(
        peak="fp4", activation_bytes=2, parameter_bytes=2, gradient_bytes=4, master_bytes=4
    ),
    "fp32": PrecisionRecipe(
        peak="fp32", activation_bytes=4, parameter_bytes=4, gradient_bytes=4, master_bytes=0
    ),
}

#: Bytes of optimizer state per parameter beyond the master copy, in fp32.
OPTIMIZERS: dict[str, float] = {"adam": 8.0, "lion": 4.0, "sgd-momentum": 4.0, "sgd": 0.0}


class AttentionKernel(StrEnum):
    """Whether the score matrices are materialised."""

    FUSED = "fused"
    UNFUSED = "unfused"


#: Largest values accepted; beyond them an input is a mistake, not a model.
MAX_GLOBAL_BATCH_SIZE = 10**7
MAX_SEQ_LENGTH = 10**8


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One training step.

    Attributes:
        global_batch_size: sequences per optimizer step over all replicas.
        seq_length: tokens per sequence.
        precision: a key of ``PRECISIONS``.
        optimizer: a key of ``OPTIMIZERS``.
        attention: fused (flash) or unfused kernel.

    Raises:
        WorkloadError: a field is out of range or unknown.

    Example:
        >>> Workload(global_batch_size=1024, seq_length=4096).tokens_per_step
        4194304
    """

    global_batch_size: int
    seq_length: int
    precision: str = "bf16"
    optimizer: str = "adam"
    attention: AttentionKernel = AttentionKernel.FUSED

    def __post_init__(self) -> None:
        for name, largest in (
            ("global_batch_size", MAX_GLOBAL_BATCH_SIZE),
            ("seq_length", MAX_SEQ_LENGTH),
        ):
            object.__setattr__(self, name, _count(name, getattr(self, name), largest))
        _check_choice("precision", self.precision, PRECISIONS)
        _check_choice("optimizer", self.optimizer, OPTIMIZERS)
        _check_choice("attention", self.attention, [kernel.value for kernel in AttentionKernel])
        object.__setattr__(self, "attention", AttentionKernel(self.attention))

    @property
    def recipe(self) -> PrecisionRecipe:
        """Bytes per value."""
        return PRECISIONS[self.precision]

    @property
    def optimizer_bytes(self) -> float:
        """Optimizer state and master copy, bytes per parameter."""
        return self.recipe.master_bytes + OPTIMIZERS[self.optimizer]

    @property
    def tokens_per_step(self) -> int:
        """Tokens of one step over all replicas."""
        return self.global_batch_size * self.seq_length


def _count(field: str, value: object, largest: int) -> int:
    """A whole number, also when it was written as 8.0."""
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= largest:
        raise WorkloadError(
            f"{field} is {value!r}",
            where=f"workload.{field}",
            allowed=f"a whole number from 1 to {largest:,}",
            fix=f"give a positive {field.replace('_', ' ')}",
        )
    return value


def _check_choice(field: str, value: object, known: object) -> None:
    names = list(known) if isinstance(known, dict | list) else []
    if value not in names:
        close = nearest(str(value), names, count=1)
        raise WorkloadError(
            f"unknown {field} {value!r}",
            where=f"workload.{field}",
            allowed=", ".join(names),
            fix=f"did you mean {close[0]!r}?" if close else f"choose one of the {field}s above",
        )
