"""``meshwright plan``: the best strategy for a model on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import click

from meshwright.cli.failures import EXIT_INTERRUPTED
from meshwright.cli.options import (
    CONTEXT_ALGORITHMS,
    OFFLOAD,
    RECOMPUTE,
    ZERO_STAGES,
    Options,
    apply,
    json_option,
    workload_options,
)
from meshwright.cli.output import print_json
from meshwright.cli.progress import SearchProgress
from meshwright.cli.sections import STRATEGY_NAMES, WORKLOAD_SECTION, SectionedCommand
from meshwright.cli.values import axis_orders, count, counts, seconds, words
from meshwright.errors import UsageError

if TYPE_CHECKING:
    from meshwright.cost.stacks import Stack
    from meshwright.planning import PlanResult
    from meshwright.strategy import Space, Workload

_EPILOG = """\b
Examples:
  meshwright plan llama-3.1-405b --cluster 2048x8xH100 \\
      --global-batch-size 2048 --seq-length 8192
  meshwright plan ./config.json --cluster my-cluster.toml \\
      --global-batch-size 1024 --seq-length 4096 --top 5 --json
  meshwright plan mixtral-8x22b --cluster 16x8xH100 -b 512 -s 4096 \\
      --tp 2,4,8 --zero 1 --target megatron -o my-plan
"""

_SPACE = apply(
    click.option(
        "--tp", "--tensor", callback=counts, metavar="N,…", help="Tensor degrees allowed."
    ),
    click.option("--pp", "--pipeline", callback=counts, metavar="N,…", help="Pipeline degrees."),
    click.option("--cp", "--context", callback=counts, metavar="N,…", help="Context degrees."),
    click.option("--dp", "--data", callback=counts, metavar="N,…", help="Data degrees."),
    click.option(
        "--data-shard", callback=counts, metavar="N,…", help="Data ranks that share states."
    ),
    click.option("--ep", "--expert", callback=counts, metavar="N,…", help="Expert degrees."),
    click.option(
        "--etp", "--expert-tensor", callback=counts, metavar="N,…", help="Degrees in one expert."
    ),
    click.option(
        "--vpp", "--virtual-stages", callback=counts, metavar="N,…", help="Stages per device."
    ),
    click.option(
        "--micro-batch-size", "--mbs", callback=counts, metavar="N,…", help="Micro-batch sizes."
    ),
    click.option(
        "--zero", "--zero-stage", callback=words(ZERO_STAGES), metavar="N,…", help="0, 1, 2, 3."
    ),
    click.option(
        "--recompute", callback=words(RECOMPUTE), metavar="WORD,…", help=f"{', '.join(RECOMPUTE)}."
    ),
    click.option(
        "--sequence-parallel/--no-sequence-parallel",
        default=None,
        help="Only with it, or only without.",
    ),
    click.option(
        "--offload",
        callback=words(OFFLOAD),
        metavar="WORD,…",
        help=f"State in host memory: {', '.join(OFFLOAD)}.  [default: none]",
    ),
    click.option(
        "--context-algorithm",
        callback=words(CONTEXT_ALGORITHMS),
        metavar="WORD,…",
        help=f"{', '.join(CONTEXT_ALGORITHMS)}.",
    ),
    click.option(
        "--axis-order",
        callback=axis_orders,
        metavar="ORDER,…",
        help="Mesh axes, innermost first: tensor-context-data-pipeline.",
    ),
)

#: More plans than anybody reads.
MAX_TOP = 100


@click.command(
    "plan",
    cls=SectionedCommand,
    epilog=_EPILOG,
    sections={
        **WORKLOAD_SECTION,
        "Space (each option fixes one dimension, or limits it to a list)": (
            *STRATEGY_NAMES,
            "target",
        ),
    },
)
@click.argument("model")
@workload_options()
@_SPACE
@click.option("--target", metavar="NAME", help="Only what this framework can run.")
@click.option(
    "--top", callback=count, default="5", metavar="N", show_default=True, help="Plans to show."
)
@click.option(
    "--time-limit", callback=seconds, metavar="S", help="Stop the search after so many seconds."
)
@click.option("--output", "-o", metavar="DIR", help="Write plan.json there.")
@json_option
def command(model: str, cluster: str, as_json: bool, **options: object) -> int:
    """Find the fastest way to train MODEL on a cluster.

    MODEL is a catalogue name, the path of a config.json, or its text.
    """
    with SearchProgress(cast(float | None, options["time_limit"])) as progress:
        result = _plan(model, cluster, options, progress=progress)
    written = None
    if options["output"] is not None:
        from meshwright.planning.serialize import save_plan

        written = save_plan(result.best, str(options["output"]))
    if as_json:
        from meshwright.explain.as_json import result_json

        print_json(result_json(result))
    else:
        from meshwright.explain.terminal import print_result

        print_result(result, model=model, cluster=cluster, written=written)
    return EXIT_INTERRUPTED if progress.interrupted else 0


def _plan(model: str, cluster: str, options: Options, *, progress: SearchProgress) -> PlanResult:
    from meshwright.planning import plan

    top = options["top"]
    if top > MAX_TOP:
        raise UsageError(
            f"{top:,} plans are more than anybody reads",
            where="--top",
            allowed=f"1 to {MAX_TOP}",
            fix="ask for fewer",
        )
    try:
        return plan(
            model,
            cluster,
            workload_from(options),
            space=space_from(options),
            target=options["target"],
            stack=stack_from(options),
            top=top,
            on_progress=progress,
        )
    except UsageError:
        if progress.interrupted:
            raise KeyboardInterrupt from None
        if progress.timed_out:
            raise UsageError(
                "the search found no plan that fits within the time limit",
                where="--time-limit",
                allowed="long enough for the first plan, which takes about a second",
                fix="raise the limit, or fix some dimensions of the space",
            ) from None
        raise


def stack_from(options: Options) -> Stack:
    """The software stack that the options name."""
    from meshwright.cost.stacks import DEFAULT_STACK, find_stack

    return find_stack(options["stack"] or DEFAULT_STACK)


def workload_from(options: Options) -> Workload:
    """The workload that the options describe."""
    from meshwright.strategy import AttentionKernel, Workload

    attention = options["attention"] or stack_from(options).attention

    return Workload(
        global_batch_size=options["global_batch_size"],
        seq_length=options["seq_length"],
        precision=options["precision"] or "bf16",
        optimizer=options["optimizer"] or "adam",
        attention=AttentionKernel(attention),
    )


def space_from(options: Options) -> Space:
    """The space that the options leave."""
    from meshwright.strategy import ContextAlgorithm, Offload, Recompute, Space

    flags = {
        "tensor": options["tp"],
        "pipeline": options["pp"],
        "context": options["cp"],
        "data": options["dp"],
        "data_shard": options["data_shard"],
        "expert": options["ep"],
        "expert_tensor": options["etp"],
        "virtual_stages": options["vpp"],
        "micro_batch_sizes": options["micro_batch_size"],
        "axis_orders": options["axis_order"],
        "zero_stages": _each(int, options["zero"]),
        "recompute": _each(Recompute, options["recompute"]),
        "offload": _each(Offload, options["offload"]),
        "context_algorithms": _each(ContextAlgorithm, options["context_algorithm"]),
    }
    if options["sequence_parallel"] is not None:
        flags["sequence_parallel"] = (options["sequence_parallel"],)
    return Space(**{name: value for name, value in flags.items() if value is not None})


def _each(
    kind: Callable[[str], object], given: tuple[str, ...] | None
) -> tuple[object, ...] | None:
    return None if given is None else tuple(kind(each) for each in given)
