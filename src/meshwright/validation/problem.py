"""From the inputs of a row to a planning problem: all that a prediction may depend on."""

from __future__ import annotations

from dataclasses import dataclass

from meshwright.cluster import Cluster
from meshwright.errors import StrategyError, WorkloadError
from meshwright.graph import ModelGraph
from meshwright.planning.check import check_strategy, check_workload
from meshwright.strategy import Strategy, Workload
from meshwright.validation.clusters import cluster_of
from meshwright.validation.inputs import RunInputs
from meshwright.validation.models import model_of
from meshwright.validation.skips import RowSkippedError
from meshwright.validation.stacks import stack_of
from meshwright.validation.strategies import strategy_of
from meshwright.validation.workloads import workload_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What was run, in our own terms.

    Attributes:
        model, cluster, workload, strategy: as ``estimate`` takes them.
        stack: name of the profile of the software.
    """

    model: ModelGraph
    cluster: Cluster
    workload: Workload
    strategy: Strategy
    stack: str


def problem_of(inputs: RunInputs) -> Problem:
    """The problem that a row's inputs describe; no result is at hand here.

    Raises:
        RowSkippedError: they do not describe one that can be predicted; says why.
    """
    if inputs.task == "lora":
        raise RowSkippedError("fine_tuning")
    stack = stack_of(inputs.software, inputs.hardware, fsdp=bool(inputs.parallel.fsdp))
    model = model_of(inputs.architecture, seq_length=inputs.seq_len or 1, dropout=stack.dropout)
    workload = workload_of(inputs, stack.attention)
    cluster = cluster_of(inputs.hardware)
    strategy = strategy_of(inputs, num_layers=model.num_layers)
    try:
        check_workload(model, workload)
        check_strategy(model, cluster, workload, strategy)
    except (StrategyError, WorkloadError) as error:
        raise RowSkippedError("strategy_not_expressible", error.what) from None
    return Problem(
        model=model, cluster=cluster, workload=workload, strategy=strategy, stack=stack.name
    )
