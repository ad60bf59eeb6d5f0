"""``meshwright inspect``: what a model or a cluster is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from meshwright.cli.options import json_option
from meshwright.cli.output import print_json
from meshwright.cli.values import count, quoted
from meshwright.errors import ClusterError, ModelError, UnknownModelError, UsageError, nearest

if TYPE_CHECKING:
    from meshwright.cluster import Cluster
    from meshwright.graph import ModelGraph

_EPILOG = """\b
Examples:
  meshwright inspect llama-3.1-70b
  meshwright inspect ./config.json --seq-length 8192
  meshwright inspect 4x8xH100
"""


@click.command("inspect", epilog=_EPILOG)
@click.argument("subject", metavar="MODEL|CLUSTER")
@click.option(
    "--seq-length",
    "-s",
    callback=count,
    metavar="N",
    help="Tokens per sequence.  [default: the model's own, or 4096]",
)
@json_option
def command(subject: str, seq_length: int | None, as_json: bool) -> int:
    """Show what a model or a cluster is made of, and where each number comes from."""
    found = load_subject(subject)
    from meshwright.graph import ModelGraph

    if isinstance(found, ModelGraph):
        _show_model(found, seq_length, as_json=as_json)
    else:
        if seq_length is not None:
            raise UsageError(
                "a cluster has no sequence length",
                where="--seq-length",
                allowed="with a model only",
                fix="drop the option",
            )
        _show_cluster(found, as_json=as_json)
    return 0


def load_subject(subject: str) -> ModelGraph | Cluster:
    """The model or the cluster that a text describes, whichever it is.

    Raises:
        UsageError: it is neither.
    """
    from meshwright.cluster import load_cluster
    from meshwright.graph.sources import load_model

    text = subject.strip()
    looks_like_cluster = text.casefold().endswith(".toml") or (
        "\n" in text and not text.startswith(("{", "["))
    )
    if looks_like_cluster:
        return load_cluster(subject)
    try:
        return load_model(subject)
    except UnknownModelError as unknown_model:
        try:
            return load_cluster(subject)
        except ClusterError as error:
            if _is_shorthand(text):  # the form is that of a cluster: its message is the useful one
                raise error from None
            raise _neither(text, unknown_model) from None


def _is_shorthand(text: str) -> bool:
    """Whether a text begins as a cluster shorthand does: digits, then an x."""
    head, cross, _ = text.casefold().replace("×", "x").partition("x")
    return bool(cross) and head.strip().lstrip("+-").isdigit()


def _neither(text: str, error: ModelError) -> UsageError:
    from meshwright.cluster.catalog import device_names, load_device
    from meshwright.graph.catalog import catalog_names

    try:
        hint = f"say how many, for example 1x8x{load_device(text).name}"
    except ClusterError:
        close = nearest(text[:60], (*catalog_names(), *device_names()), count=4)
        hint = f"did you mean {', '.join(close)}?" if close else ""
    devices = f"devices: {', '.join(device_names())}"
    return UsageError(
        f"{quoted(text)} is neither a model nor a cluster",
        where="MODEL|CLUSTER",
        allowed=f"{error.allowed}; or a cluster: NODESxDEVICESxTYPE or the path of a .toml file",
        fix=f"{hint} {devices}" if hint.endswith("?") else hint or devices,
    )


def _show_model(model: ModelGraph, seq_length: int | None, *, as_json: bool) -> None:
    from meshwright.explain.model_info import model_info

    info = model_info(model, seq_length=seq_length)
    if as_json:
        from meshwright.explain.as_json import model_json

        print_json(model_json(info))
    else:
        from meshwright.explain.inspection import print_model

        print_model(info)


def _show_cluster(cluster: Cluster, *, as_json: bool) -> None:
    if as_json:
        from meshwright.explain.as_json import cluster_json

        print_json(cluster_json(cluster))
    else:
        from meshwright.explain.inspection import print_cluster

        print_cluster(cluster)
