"""The software of a row: its profile, and which attention kernel it ran."""

from __future__ import annotations

import re
from dataclasses import dataclass

from meshwright.cost.coefficients import MODERN, Coefficients
from meshwright.strategy import AttentionKernel
from meshwright.validation.inputs import Hardware, Software


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A software stack.

    Attributes:
        name: of the profile; what was captured or compiled stands behind a ``+``.
        attention: kernel that it ran.
        dropout: whether GPT- and BERT-like models trained with dropout on it.
    """

    name: str
    attention: AttentionKernel
    dropout: bool


_FUSED, _UNFUSED = AttentionKernel.FUSED, AttentionKernel.UNFUSED

#: Words of a framework's name to its profile, most special first. Unfused kernels and dropout
#: are those of 2019 to 2022, before FlashAttention (Dao et al. 2022) was taken up.
_STACKS: tuple[tuple[tuple[str, ...], Stack], ...] = (
    (("mindspeed", "modellink"), Stack(name="mindspeed", attention=_UNFUSED, dropout=False)),
    (("torchtitan",), Stack(name="torchtitan", attention=_FUSED, dropout=False)),
    (("llm-foundry", "fsdp"), Stack(name="fsdp-eager", attention=_FUSED, dropout=False)),
    (
        ("megatron-bridge", "nemo", "primus", "megatron core", "megatron-core"),
        Stack(name="megatron-core", attention=_FUSED, dropout=False),
    ),
    (("maxtext", "pax"), Stack(name="jax", attention=_FUSED, dropout=False)),
    (("internevo",), Stack(name="internevo", attention=_FUSED, dropout=False)),
    (("colossal",), Stack(name="deepspeed", attention=_FUSED, dropout=False)),
    (("deepspeed", "gpt-neox"), Stack(name="deepspeed", attention=_UNFUSED, dropout=True)),
    (("metaseq", "megatron"), Stack(name="megatron-2021", attention=_UNFUSED, dropout=True)),
    (("libai", "oneflow"), Stack(name="oneflow", attention=_UNFUSED, dropout=True)),
    (("alpa", "parax"), Stack(name="alpa", attention=_UNFUSED, dropout=False)),
    (("deeplearningexamples",), Stack(name="ddp", attention=_UNFUSED, dropout=True)),
)
_OTHER = Stack(name="modern", attention=_FUSED, dropout=False)

#: FlashAttention needs tensor cores of Ampere or later; Ascend has its own, behind a flag.
_NO_FLASH = ("v100", "t4", "p100")
_HOPPER_OR_LATER = ("h100", "h200", "h800", "h20", "b200", "b300")


def stack_of(software: Software, hardware: Hardware) -> Stack:
    """The stack that a framework's name and version stand for."""
    framework = software.framework.casefold()
    device = hardware.device_type.casefold()
    found = next(
        (stack for words, stack in _STACKS if any(word in framework for word in words)), _OTHER
    )
    if found.name == "megatron-2021" and any(word in device for word in _HOPPER_OR_LATER):
        found = Stack(name="megatron-core", attention=_FUSED, dropout=False)
    attention = found.attention
    if "flash" in software.overlap_flags.casefold():
        attention = _FUSED
    if any(word in device for word in _NO_FLASH):
        attention = _UNFUSED
    name = found.name + _captured(software.overlap_flags)
    return Stack(name=name, attention=attention, dropout=found.dropout)


def _captured(flags: str) -> str:
    """What relieves the host of launching kernels one by one.

    ``cuda_graph=IMPLEMENTATION/SCOPE`` is how Megatron-Bridge prints it; ``none`` captures
    nothing whatever the scope.
    """
    graph = re.search(r"cuda_graph=(\w+)", flags)
    if graph is not None and graph[1] != "none":
        return "+whole-graph" if graph[1] == "full_iteration" else "+graphs"
    return "+compile" if "torch.compile" in flags else ""


#: Profiles that have coefficients of their own.
PROFILES: dict[str, Coefficients] = {"modern": MODERN}


def coefficients_of(stack: str) -> Coefficients:
    """Coefficients of a profile, else of what stands before its ``+``, else a modern stack's."""
    return PROFILES.get(stack, PROFILES.get(stack.partition("+")[0], MODERN))
