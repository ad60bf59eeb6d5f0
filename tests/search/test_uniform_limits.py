"""Rules on state modes, from a space down to the strategies that are found."""

from __future__ import annotations

import pytest

from meshwright.cluster import load_cluster
from meshwright.cost.stacks import MODERN
from meshwright.graph.sources import load_model
from meshwright.search import search_uniform
from meshwright.search.rules import RULE_INDEX
from meshwright.search.uniform import UniformSpace
from meshwright.strategy import Recompute, Space, Workload


def searched(space, *, cluster="8xH100"):
    """A small space, every fitting candidate in it as a strategy, and the counts."""
    uniform = UniformSpace(
        load_model("llama-3.2-1b"),
        load_cluster(cluster),
        Workload(global_batch_size=64, seq_length=1024),
        space,
        MODERN,
    )
    tables = uniform.tables()
    result = search_uniform(tables, top_k=tables.candidates)
    assert result.evaluated + sum(result.excluded) + sum(uniform.excluded) == uniform.candidates
    return [uniform.strategy(candidate) for candidate in result.best], result.excluded


NARROW = {
    "context": (1,),
    "micro_batch_sizes": (1,),
    "virtual_stages": (1,),
    "recompute": (Recompute.NONE,),
    "sequence_parallel": (False,),
}


@pytest.mark.parametrize("limit", [0, 1, 2, 3])
def test_zero_stages_above_the_limit_go_without_a_pipeline(limit):
    space = Space(**NARROW, tensor=(1,), pipeline=(1, 2), zero_with_pipeline=limit)
    strategies, excluded = searched(space)
    found = {(s.pipeline, s.stages[0].zero_stage) for s in strategies}
    assert found == {(1, stage) for stage in range(4)} | {(2, stage) for stage in range(limit + 1)}
    assert bool(excluded[RULE_INDEX["zero_pipeline"]]) is (limit < 3)


def test_without_data_ranks_a_dense_model_shards_nothing():
    strategies, excluded = searched(Space(**NARROW, tensor=(8,), pipeline=(1,)))
    assert {s.stages[0].zero_stage for s in strategies} == {0}
    assert excluded[RULE_INDEX["unsharded"]] == 3 * len(strategies)
