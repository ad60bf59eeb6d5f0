"""``meshwright estimate``: what one given strategy would do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import click

from meshwright.cli.failures import EXIT_INFEASIBLE
from meshwright.cli.options import (
    CONTEXT_ALGORITHMS,
    OFFLOAD,
    RECOMPUTE,
    ZERO_STAGES,
    Options,
    apply,
    choice_option,
    json_option,
    workload_options,
)
from meshwright.cli.output import print_json
from meshwright.cli.plan import stack_from, workload_from
from meshwright.cli.sections import STRATEGY_NAMES, WORKLOAD_SECTION, SectionedCommand
from meshwright.cli.values import axis_orders, count
from meshwright.errors import FileError, UsageError

if TYPE_CHECKING:
    from meshwright.planning import Plan
    from meshwright.strategy import Strategy

_Command = TypeVar("_Command", bound=Callable[..., object])

_EPILOG = """\b
Examples:
  meshwright estimate gpt3-175b --cluster 128x8xA100-80GB \\
      --global-batch-size 1536 --seq-length 2048 --tp 8 --pp 8 --micro-batch-size 1
  meshwright estimate --plan my-plan/plan.json

\b
Exit code 3 says that the strategy does not fit; its numbers are printed all the same.
"""


def _degree(*names: str, help: str, default: str = "1") -> Callable[[_Command], _Command]:  # noqa: A002
    shown = f"{help}  [default: {default}]"
    return click.option(*names, callback=count, metavar="N", help=shown)


_STRATEGY = apply(
    _degree("--tp", "--tensor", help="Tensor degree."),
    _degree("--pp", "--pipeline", help="Pipeline degree."),
    _degree("--cp", "--context", help="Context degree."),
    _degree("--dp", "--data", help="Data degree.", default="what the others leave"),
    _degree("--data-shard", help="Data ranks that share states.", default="all under ZeRO"),
    _degree("--ep", "--expert", help="Expert degree."),
    _degree("--etp", "--expert-tensor", help="Degree inside one expert."),
    _degree("--vpp", "--virtual-stages", help="Stages per device."),
    _degree("--micro-batch-size", "--mbs", help="Sequences per replica and micro-batch."),
    choice_option(
        "--zero", "--zero-stage", known=ZERO_STAGES, default="1 where ranks can share states"
    ),
    choice_option("--recompute", known=RECOMPUTE, default="none"),
    click.option(
        "--sequence-parallel/--no-sequence-parallel",
        default=None,
        help="[default: on with a tensor group]",
    ),
    choice_option("--offload", known=OFFLOAD, default="none"),
    choice_option("--context-algorithm", known=CONTEXT_ALGORITHMS, default="ring"),
    click.option(
        "--axis-order",
        callback=axis_orders,
        metavar="ORDER",
        help="Mesh axes, innermost first.  [default: tensor-context-data-pipeline]",
    ),
)

#: Options that a plan.json takes the place of.
_REQUIRED = {
    "model": "MODEL",
    "cluster": "--cluster",
    "global_batch_size": "--global-batch-size",
    "seq_length": "--seq-length",
}


@click.command(
    "estimate",
    cls=SectionedCommand,
    epilog=_EPILOG,
    sections={**WORKLOAD_SECTION, "Strategy": STRATEGY_NAMES},
)
@click.argument("model", required=False)
@workload_options(required=False)
@_STRATEGY
@click.option(
    "--plan", "plan_path", metavar="FILE", help="Estimate the strategy of a plan.json instead."
)
@json_option
def command(plan_path: str | None, as_json: bool, **options: object) -> int:
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


def _from_file(path: str, options: Options) -> Plan:
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
    try:
        return estimate(
            saved.model, saved.cluster, saved.workload, saved.strategy, stack=saved.stack
        )
    except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as error:
        # Plans may be edited by hand; what they hold is checked as far as its types go.
        raise FileError(
            f"the plan does not hold together ({type(error).__name__})",
            where=path,
            allowed="a model, a cluster and a strategy that agree",
            fix="undo the last change, or write the plan again",
        ) from None


def _from_flags(options: Options) -> Plan:
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
    from meshwright.planning.uniform import uniform_strategy

    workload = workload_from(options)
    model, cluster = load_model(options["model"]), load_cluster(options["cluster"])
    strategy = uniform_strategy(model, cluster, workload, **_choices(options))
    plan = estimate(model, cluster, workload, strategy, stack=stack_from(options))
    return replace(plan, assumptions=(*_defaults(options, strategy), *plan.assumptions))


def _choices(options: Options) -> Options:
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
        "data_shard": options["data_shard"],
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


def _defaults(options: Options, strategy: Strategy) -> list[str]:
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
