"""The workload of a row: batch, sequence, precision, optimizer."""

from __future__ import annotations

from meshwright.errors import WorkloadError
from meshwright.strategy import AttentionKernel, Workload
from meshwright.validation.inputs import RunInputs
from meshwright.validation.skips import RowSkippedError

#: Words of a precision to the recipe, first match. TF32 is how fp32 products run.
_PRECISIONS = (
    ("fp4", "fp4"),
    ("fp8", "fp8"),
    ("float8", "fp8"),
    ("bf16", "bf16"),
    ("fp16", "fp16"),
    ("fp32", "fp32"),
    ("tf32", "fp32"),
)

#: Words of an optimizer to its states. LAMB keeps the two moments of Adam; LARS and Muon one.
_OPTIMIZERS = (
    ("adam", "adam"),
    ("lamb", "adam"),
    ("muon", "sgd-momentum"),
    ("lars", "sgd-momentum"),
    ("lion", "lion"),
    ("sgd", "sgd-momentum"),
)


def workload_of(inputs: RunInputs, attention: AttentionKernel) -> Workload:
    """What one step of the row has to do.

    Raises:
        RowSkippedError: the batch or the sequence is not stated.
    """
    if not inputs.global_batch or not inputs.seq_len:
        missing = "sequence length" if inputs.global_batch else "global batch"
        raise RowSkippedError("batch_missing", f"the {missing} is not stated")
    try:
        return Workload(
            global_batch_size=inputs.global_batch,
            seq_length=inputs.seq_len,
            precision=_word(inputs.precision, _PRECISIONS, default="bf16"),
            optimizer=_word(inputs.optimizer, _OPTIMIZERS, default="adam"),
            attention=attention,
        )
    except WorkloadError as error:
        raise RowSkippedError("batch_missing", error.what) from None


def _word(text: str, known: tuple[tuple[str, str], ...], *, default: str) -> str:
    folded = text.casefold()
    return next((name for word, name in known if word in folded), default)
