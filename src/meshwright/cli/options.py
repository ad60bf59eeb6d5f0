"""Options that commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from meshwright.cli.values import Count, Word

_Command = TypeVar("_Command", bound=Callable[..., Any])

#: Words, as `meshwright.strategy` has them; a test holds the two together. Written out here
#: so that `--help` needs no numpy.
PRECISIONS = ("bf16", "fp16", "fp8", "fp32")
OPTIMIZERS = ("adam", "lion", "sgd-momentum", "sgd")
ATTENTION = ("fused", "unfused")
RECOMPUTE = ("none", "selective", "full")
OFFLOAD = ("none", "optimizer")
CONTEXT_ALGORITHMS = ("ring", "all_gather", "ulysses")


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
            type=Count(),
            required=required,
            help="Sequences per optimizer step, over all devices.",
        ),
        click.option(
            "--seq-length", "-s", type=Count(), required=required, help="Tokens per sequence."
        ),
        click.option(
            "--precision",
            type=Word(PRECISIONS),
            help=f"{', '.join(PRECISIONS)}. [default: bf16]",
        ),
        click.option(
            "--optimizer",
            type=Word(OPTIMIZERS),
            help=f"{', '.join(OPTIMIZERS)}. [default: adam]",
        ),
        click.option(
            "--attention",
            type=Word(ATTENTION),
            help="Fused (flash) or unfused kernel. [default: fused]",
        ),
    )


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object instead of text."
)
