"""The software of a row: its profile, and which attention kernel it ran."""

from __future__ import annotations

import re
from dataclasses import dataclass

from meshwright.cost.stacks import DEFAULT_STACK, Stack, find_stack, stack_names
from meshwright.strategy import AttentionKernel
from meshwright.validation.inputs import Hardware, Software


@dataclass(frozen=True, slots=True, kw_only=True)
class StackOfRow:
    """The software of a row.

    Attributes:
        name: of the profile in ``cost.stacks``; what was captured or compiled stands behind
            a ``+``.
        attention: kernel that it ran.
        dropout: whether GPT- and BERT-like models trained with dropout on it.
    """

    name: str
    attention: AttentionKernel
    dropout: bool


_FUSED, _UNFUSED = AttentionKernel.FUSED, AttentionKernel.UNFUSED

#: Words of a framework's name to its profile, most special first. Unfused kernels and dropout
#: are those of 2019 to 2022, before FlashAttention (Dao et al. 2022) was taken up.
_STACKS: tuple[tuple[tuple[str, ...], StackOfRow], ...] = (
    (("mindspeed", "modellink"), StackOfRow(name="mindspeed", attention=_UNFUSED, dropout=False)),
    (("torchtitan",), StackOfRow(name="torchtitan", attention=_FUSED, dropout=False)),
    (("llm-foundry", "fsdp"), StackOfRow(name="fsdp", attention=_FUSED, dropout=False)),
    (
        ("megatron-bridge", "nemo", "primus", "megatron core", "megatron-core"),
        StackOfRow(name="megatron-core", attention=_FUSED, dropout=False),
    ),
    (("maxtext", "pax"), StackOfRow(name="xla", attention=_FUSED, dropout=False)),
    (("internevo",), StackOfRow(name="internevo", attention=_FUSED, dropout=False)),
    (("colossal",), StackOfRow(name="deepspeed", attention=_FUSED, dropout=False)),
    (
        ("megatron-deepspeed", "gpt-neox"),
        StackOfRow(name="megatron-deepspeed", attention=_UNFUSED, dropout=True),
    ),
    (("megatron-lm",), StackOfRow(name="megatron-2021", attention=_UNFUSED, dropout=True)),
    (("deepspeed",), StackOfRow(name="deepspeed", attention=_UNFUSED, dropout=True)),
    (("metaseq", "megatron"), StackOfRow(name="megatron-2021", attention=_UNFUSED, dropout=True)),
    (("libai", "oneflow"), StackOfRow(name="eager-2021", attention=_UNFUSED, dropout=True)),
    (("alpa", "parax"), StackOfRow(name="alpa", attention=_UNFUSED, dropout=False)),
    (("deeplearningexamples",), StackOfRow(name="eager-2021", attention=_UNFUSED, dropout=True)),
)
_OTHER = StackOfRow(name=DEFAULT_STACK, attention=_FUSED, dropout=False)

#: FlashAttention needs tensor cores of Ampere or later; Ascend has its own, behind a flag.
_NO_FLASH = ("v100", "t4", "p100")
#: Years of torchtitan's versions, which are dates, before its loss was compiled.
_LOSS_NOT_COMPILED = ("2023", "2024")
_HOPPER_OR_LATER = ("h100", "h200", "h800", "h20", "b200", "b300")


def stack_of(software: Software, hardware: Hardware, *, fsdp: bool = False) -> StackOfRow:
    """The stack that a framework's name and version stand for.

    Where a framework has an optimizer of its own, ``fsdp`` says that PyTorch's was used.
    """
    framework = software.framework.casefold()
    device = hardware.device_type.casefold()
    found = next(
        (stack for words, stack in _STACKS if any(word in framework for word in words)), _OTHER
    )
    if found.name.startswith("megatron-") and any(word in device for word in _HOPPER_OR_LATER):
        found = StackOfRow(name="megatron-core", attention=_FUSED, dropout=False)
    if found.name == "internevo" and fsdp:
        found = StackOfRow(name="internevo-fsdp", attention=_FUSED, dropout=False)
    if found.name == "torchtitan" and software.framework_version[:4] in _LOSS_NOT_COMPILED:
        found = StackOfRow(name="torchtitan-2024", attention=_FUSED, dropout=False)
    attention = found.attention
    if "flash" in software.overlap_flags.casefold():
        attention = _FUSED
    if any(word in device for word in _NO_FLASH):
        attention = _UNFUSED
    name = found.name + _captured(software.overlap_flags)
    return StackOfRow(name=name, attention=attention, dropout=found.dropout)


def _captured(flags: str) -> str:
    """What relieves the host of launching kernels one by one.

    ``cuda_graph=IMPLEMENTATION/SCOPE`` is how Megatron-Bridge prints it; ``none`` captures
    nothing whatever the scope.
    """
    graph = re.search(r"cuda_graph=(\w+)", flags)
    if graph is not None and graph[1] != "none":
        return "+whole-graph" if graph[1] == "full_iteration" else "+graphs"
    return "+compile" if "torch.compile" in flags else ""


def profile_of(stack: str) -> Stack:
    """The profile of a row's stack, or of what stands before its ``+``."""
    return find_stack(stack if stack in stack_names() else stack.partition("+")[0])
