"""``meshwright estimate``: what one given strategy would do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from meshwright.cli.failures import EXIT_INFEASIBLE
from meshwright.cli.options import (
    CONTEXT_ALGORITHMS,
    OFFLOAD,
    RECOMPUTE,
    apply,
    json_option,
    workload_options,
)
from meshwright.cli.output import print_json
from meshwright.cli.plan import workload_from
from meshwright.cli.values import AxisOrders, Count, Word
from meshwright.errors import UsageError

if TYPE_CHECKING:
    from meshwright.planning import Plan
    from meshwright.strategy import Strategy

_EPILOG = """\b
Examples:
  meshwright estimate gpt3-175b --cluster 128x8xA100-80GB \\
      --global-batch-size 1536 --seq-length 2048 --tp 8 --pp 8 --micro-batch-size 1
  meshwright estimate --plan my-plan/plan.json

\b
Exit code 3 says that the strategy does not fit; its numbers are printed all the same.
"""

_STRATEGY = apply(
    click.option("--tp", "--tensor", type=Count(), help="Tensor degree. [default: 1]"),
    click.option("--pp", "--pipeline", type=Count(), help="Pipeline degree. [default: 1]"),
    click.option("--cp", "--context", type=Count(), help="Context degree. [default: 1]"),
    click.option("--dp", "--data", type=Count(), help="Data degree. [default: what is left]"),
    click.option("--ep", "--expert", type=Count(), help="Expert degree. [default: 1]"),
    click.option(
        "--etp", "--expert-tensor", type=Count(), help="Degree inside one expert. [default: 1]"
    ),
    click.option(
        "--vpp", "--virtual-stages", type=Count(), help="Virtual stages per device. [default: 1]"
    ),
    click.option(
        "--micro-batch-size",
        "--mbs",
        type=Count(),
        help="Sequences per replica and micro-batch. [default: 1]",
    ),
    click.option(
        "--zero",
        "--zero-stage",
        type=Word("0123"),
        help="ZeRO stage. [default: 1 where there is somebody to shard with]",
    ),
    click.option("--recompute", type=Word(RECOMPUTE), help="[default: none]"),
    click.option(
        "--sequence-parallel/--no-sequence-parallel",
        default=None,
        help="[default: on with a tensor group]",
    ),
    click.option("--offload", type=Word(OFFLOAD), help="[default: none]"),
    click.option("--context-algorithm", type=Word(CONTEXT_ALGORITHMS), help="[default: ring]"),
    click.option("--axis-order", type=AxisOrders(), help="Mesh axes, innermost first."),
)

#: Options that a plan.json takes the place of.
_REQUIRED = {"model": "MODEL", "cluster": "--cluster", "global_batch_size": "--global-batch-size"}
_REQUIRED["seq_length"] = "--seq-length"


@click.command("estimate", epilog=_EPILOG)
@click.argument("model", required=False)
@workload_options(required=False)
@_STRATEGY
@click.option(
    "--plan", "plan_path", metavar="FILE", help="Estimate the strategy of a plan.json instead."
)
@json_option
def command(plan_path: str | None, as_json: bool, **options: Any) -> int:
    """Predict the time and memory of one strategy for MODEL on a cluster.

    The data degree is what the other degrees leave of the devices.
    """
    plan = _from_file(plan_path, options) if plan_path is not None else _from_flags(options)
    if as_json:
        from meshwright.explain.as_json import estimate_json

        print_json(estimate_json(plan))
    else:
        from meshwright.explain.terminal import print_estimate

        print_estimate(plan)
    return 0 if plan.prediction.fits else EXIT_INFEASIBLE


def _from_file(path: str, options: dict[str, Any]) -> Plan:
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise UsageError(
            f"--plan and {_REQUIRED.get(given[0], '--' + given[0].replace('_', '-'))} together",
            where="--plan",
            allowed="--plan alone: it holds the model, the cluster, the workload and the strategy",
            fix="drop one of the two",
        )
    from meshwright.planning import estimate
    from meshwright.planning.serialize import load_plan

    saved = load_plan(path)
    return estimate(saved.model, saved.cluster, saved.workload, saved.strategy)


def _from_flags(options: dict[str, Any]) -> Plan:
    missing = [flag for name, flag in _REQUIRED.items() if options[name] is None]
    if missing:
        raise UsageError(
            f"missing: {', '.join(missing)}",
            where="meshwright estimate",
            allowed="a model, --cluster, --global-batch-size and --seq-length; or --plan alone",
            fix="see `meshwright estimate --help`",
        )
    from meshwright.cluster import load_cluster
    from meshwright.graph.sources import load_model
    from meshwright.planning import estimate
    from meshwright.planning.uniform_strategy import uniform_strategy

    workload = workload_from(options)
    model, cluster = load_model(options["model"]), load_cluster(options["cluster"])
    strategy = uniform_strategy(model, cluster, workload, **_choices(options))
    plan = estimate(model, cluster, workload, strategy)
    return replace(plan, assumptions=(*_defaults(options, strategy), *plan.assumptions))


def _choices(options: dict[str, Any]) -> dict[str, Any]:
    from meshwright.strategy import ContextAlgorithm, Offload, Recompute

    orders = options["axis_order"]
    if orders is not None and len(orders) > 1:
        raise UsageError(
            f"{len(orders)} axis orders for one strategy",
            where="--axis-order",
            allowed="one order",
            fix="give one; `meshwright plan` takes lists",
        )
    choices = {
        "tensor": options["tp"],
        "pipeline": options["pp"],
        "context": options["cp"],
        "data": options["dp"],
        "expert": options["ep"],
        "expert_tensor": options["etp"],
        "virtual_stages": options["vpp"],
        "micro_batch_size": options["micro_batch_size"],
        "sequence_parallel": options["sequence_parallel"],
        "zero_stage": None if options["zero"] is None else int(options["zero"]),
        "recompute": options["recompute"] and Recompute(options["recompute"]),
        "offload": options["offload"] and Offload(options["offload"]),
        "context_algorithm": options["context_algorithm"]
        and ContextAlgorithm(options["context_algorithm"]),
        "axis_order": orders and orders[0],
    }
    return {name: value for name, value in choices.items() if value is not None}


def _defaults(options: dict[str, Any], strategy: Strategy) -> list[str]:
    """What was decided because no flag said it."""
    stage = strategy.stages[0]
    decided = {
        "dp": f"data {strategy.data}",
        "zero": f"ZeRO stage {stage.zero_stage}",
        "sequence_parallel": f"sequence parallelism {'on' if stage.sequence_parallel else 'off'}",
        "recompute": "no recomputation",
        "micro_batch_size": "micro-batch 1",
    }
    found = [text for name, text in decided.items() if options[name] is None]
    return [f"Decided by default: {', '.join(found)}."] if found else []
