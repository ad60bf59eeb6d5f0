"""What a measured memory means, and the prediction to compare it with.

Tools count different things. The device (``nvidia-smi``) sees everything: tensors, what the
allocator holds back, the context and the buffers of communicators. An allocator's reserve is
without the context; its peak of allocated bytes is tensors alone.
"""

from __future__ import annotations

from enum import StrEnum

from meshwright.units import GIB
from meshwright.validation.outcomes import Predicted
from meshwright.validation.runs import Run


class MemoryMeaning(StrEnum):
    """What a figure includes."""

    DEVICE = "device"
    """Everything on the device, as ``nvidia-smi`` shows it."""
    RESERVED = "reserved"
    """What the allocator took from the device: tensors and fragmentation."""
    ALLOCATED = "allocated"
    """Tensors alone: the peak that the allocator handed out."""


def memory_meaning(kind: str) -> MemoryMeaning:
    """What a text in ``mem_kind`` stands for; everything on the device when it does not say.

    >>> memory_meaning("peak GB per device (XLA/alpa allocator)").value
    'allocated'
    """
    text = kind.casefold()
    if "smi" in text:
        return MemoryMeaning.DEVICE
    if "reserved" in text:
        return MemoryMeaning.RESERVED
    if "allocat" in text or text.startswith("peak"):
        return MemoryMeaning.ALLOCATED
    return MemoryMeaning.DEVICE


def measured_bytes(run: Run) -> float | None:
    """Measured memory in bytes.

    Read as GiB, whatever is printed behind the number: ``nvidia-smi`` counts MiB, torchtitan
    logs GiB, and Alpa's ``GB`` is ``1 << 30`` (``alpa/util.py``).
    """
    return run.memory_gb * GIB if run.memory_gb else None


def predicted_bytes(predicted: Predicted, run: Run) -> float:
    """Peak memory of the fullest device, counted as the row's tool counts."""
    fullest = max(predicted.prediction.memory, key=lambda stage: stage.total_bytes)
    meaning = memory_meaning(run.measured.mem_kind)
    if meaning is MemoryMeaning.DEVICE:
        return fullest.total_bytes
    tensors = fullest.total_bytes - fullest.framework_bytes
    if meaning is MemoryMeaning.ALLOCATED:
        return tensors
    return tensors + min(predicted.reserve_bytes, fullest.framework_bytes)
