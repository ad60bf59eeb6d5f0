"""Options that commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from meshwright.cli.values import count, word

_Command = TypeVar("_Command", bound=Callable[..., object])

# Words as `meshwright.strategy` has them; a test holds the two together. They are written out
# here so that `--help` needs no numpy.
PRECISIONS = ("bf16", "fp16", "fp8", "fp4", "fp32")
OPTIMIZERS = ("adam", "lion", "sgd-momentum", "sgd")
ATTENTION = ("fused", "unfused")
RECOMPUTE = ("none", "selective", "full")
OFFLOAD = ("none", "optimizer")
CONTEXT_ALGORITHMS = ("ring", "all_gather", "ulysses")
ZERO_STAGES = ("0", "1", "2", "3")

Options = dict[str, Any]


def apply(*decorators: Callable[[_Command], _Command]) -> Callable[[_Command], _Command]:
    """Several decorators as one, listed from top to bottom."""

    def decorate(command: _Command) -> _Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def workload_options(*, required: bool = True) -> Callable[[_Command], _Command]:
    """Cluster and workload."""
    return apply(
        click.option(
            "--cluster",
            "-c",
            required=required,
            metavar="CLUSTER",
            help="NODESxDEVICESxTYPE, groups joined with +, or the path of a .toml file.",
        ),
        click.option(
            "--global-batch-size",
            "-b",
            callback=count,
            required=required,
            metavar="N",
            help="Sequences per optimizer step, over all devices.",
        ),
        click.option(
            "--seq-length",
            "-s",
            callback=count,
            required=required,
            metavar="N",
            help="Tokens per sequence.",
        ),
        choice_option("--precision", known=PRECISIONS, default="bf16"),
        choice_option("--optimizer", known=OPTIMIZERS, default="adam"),
        choice_option(
            "--attention", known=ATTENTION, default="what the stack has", help="Kernel: "
        ),
        click.option(
            "--stack",
            metavar="NAME",
            help="Software that trains, such as megatron-core or torchtitan; an unknown name "
            "lists them all. Or the path of a .toml file.  [default: megatron-core]",
        ),
    )


def choice_option(
    *names: str,
    known: tuple[str, ...],
    default: str,
    help: str = "",  # noqa: A002 - click's word
) -> Callable[[_Command], _Command]:
    """An option that takes one word of a few."""
    shown = f"{help}{', '.join(known)}.  [default: {default}]"
    return click.option(*names, callback=word(known), metavar="WORD", help=shown)


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object instead of text."
)
