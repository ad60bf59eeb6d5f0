"""The best plan against every strategy of a tiny space, built without the search's help."""

from __future__ import annotations

from itertools import product

import pytest

import meshwright
from meshwright.cluster import load_cluster
from meshwright.cost.stacks import MODERN
from meshwright.errors import StrategyError
from meshwright.graph.sources import load_model
from meshwright.planning import uniform_strategy
from meshwright.planning.check import check_strategy
from meshwright.planning.predict import predict
from meshwright.strategy import AXIS_ORDERS, ContextAlgorithm, Recompute, Space, Workload
from meshwright.units import MIB

from ..strategies import llama_config, mixtral_config, with_memory  # noqa: TID252 - importlib mode

ORDERS = (AXIS_ORDERS[0], ("data", "tensor", "context", "pipeline"))


def tiny(**values):
    """A space of a few hundred strategies; ``values`` widen it."""
    few = {
        "tensor": (1, 2),
        "context": (1,),
        "pipeline": (1, 2),
        "data": None,
        "expert": (1,),
        "expert_tensor": (1,),
        "virtual_stages": (1,),
        "micro_batch_sizes": (1, 4),
        "zero_stages": (0, 1),
        "recompute": (Recompute.NONE,),
        "context_algorithms": (ContextAlgorithm.RING,),
        "axis_orders": ORDERS[:1],
    }
    return Space(**{**few, **values})


# Model, cluster, memory beyond the framework's (None: the device's own), space.
CASES = [
    (
        llama_config(),
        "1x4xH100",
        None,
        tiny(virtual_stages=(1, 2), zero_stages=(1, 3), context=(1, 2)),
    ),
    (
        llama_config(num_hidden_layers=5),
        "2x2xA100-80GB",
        60 * MIB,
        tiny(zero_stages=(1, 2, 3), recompute=tuple(Recompute), axis_orders=ORDERS),
    ),
    (mixtral_config(num_hidden_layers=2), "1x4xH100", None, tiny(expert=(1, 2, 4))),
    (llama_config(num_hidden_layers=3), "1x2xH100+1x2xA100-80GB", None, tiny()),
]


def everything(model, cluster, workload, space):
    """Every valid uniform strategy of the space, by brute force."""
    names = {
        "tensor": space.tensor,
        "context": space.context,
        "pipeline": space.pipeline,
        "expert": space.expert,
        "virtual_stages": space.virtual_stages,
        "micro_batch_size": space.micro_batch_sizes,
        "zero_stage": space.zero_stages,
        "recompute": space.recompute,
        "sequence_parallel": space.sequence_parallel,
        "axis_order": space.axis_orders,
    }
    for values in product(*names.values()):
        chosen = dict(zip(names, values, strict=True))
        try:
            strategy = uniform_strategy(model, cluster, workload, **chosen)
            check_strategy(model, cluster, workload, strategy)
        except StrategyError:
            continue
        yield strategy


@pytest.mark.parametrize(("config", "machines", "memory", "space"), CASES)
def test_nothing_is_better_than_the_best(config, machines, memory, space):
    model, cluster = load_model(config), load_cluster(machines)
    if memory:
        free = cluster.groups[0].device.framework_bytes + memory
        cluster = with_memory(cluster, free / (1 - MODERN.memory_reserve))
    workload = Workload(global_batch_size=8, seq_length=512)
    best = meshwright.plan(model, cluster, workload, space=space).best
    predictions = [
        predict(model, cluster, workload, strategy, coefficients=MODERN)
        for strategy in everything(model, cluster, workload, space)
    ]
    fitting = [p.step_time_s for p in predictions if p.fits]
    assert len(predictions) >= 16
    assert best.prediction.fits
    if memory:
        assert 0 < len(fitting) < len(predictions)
    # Mixed clusters: the search also cuts by speed, and may be faster for it.
    assert best.prediction.step_time_s <= min(fitting) * (1 + 1e-9)
    if cluster.is_uniform:
        assert best.prediction.step_time_s == pytest.approx(min(fitting), rel=1e-9)
