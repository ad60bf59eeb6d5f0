"""Whether a strategy agrees with model, cluster and workload: every refusal and its words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.cluster import load_cluster
from meshwright.cost.stacks import MODERN
from meshwright.errors import MeshwrightError, StrategyError, WorkloadError
from meshwright.graph.sources import load_model
from meshwright.planning.check import check_strategy, check_workload
from meshwright.planning.predict import predict
from meshwright.strategy import ContextAlgorithm, Workload

from ..strategies import (  # noqa: TID252 - importlib mode
    gpt2_config,
    llama_config,
    mixtral_config,
    uniform,
)

DENSE, SPARSE = load_model(llama_config()), load_model(mixtral_config())
WORK = Workload(global_batch_size=16, seq_length=512)


def refused(strategy, *, model=DENSE, cluster="1x8xH100", work=WORK):
    with pytest.raises(StrategyError) as caught:
        check_strategy(model, load_cluster(cluster), work, strategy)
    error = caught.value
    assert error.what
    assert error.where
    assert error.allowed
    return error


def accepted(strategy, *, model=DENSE, cluster="1x8xH100", work=WORK):
    check_strategy(model, load_cluster(cluster), work, strategy)


def test_devices_print_every_factor():
    error = refused(uniform(4, pipeline=2, tensor=2, context=2, data_shard=4, micro_batches=4))
    for part in ("tensor 2", "context 2", "data 4", "pipeline 2", "32 ranks", "8 devices"):
        assert part in error.what


def test_layers_are_those_of_the_model():
    error = refused(uniform(5, data_shard=8, micro_batches=2))
    assert "5 layers" in error.what
    assert "has 4" in error.what


def test_the_batch_prints_every_factor():
    error = refused(uniform(4, data_shard=8, micro_batch_size=2, micro_batches=3))
    for part in ("micro-batch 2", "3 micro-batches", "data 8", "48", "16"):
        assert part in error.what


def test_groups_are_those_of_the_cluster():
    error = refused(uniform(4, data_shard=8, micro_batches=2, groups=(1,)))
    assert "(1,)" in error.what
    assert "from 0 to 0" in error.allowed
    refused(uniform(4, data_shard=8, micro_batches=2, groups=()))


def test_tensor_divides_heads_and_widths():
    model = load_model(llama_config(num_attention_heads=6, num_key_value_heads=6, hidden_size=384))
    error = refused(uniform(4, tensor=4, data_shard=2, micro_batches=8), model=model)
    assert "tensor degree 4 does not divide 6" in error.what
    assert error.where == "strategy.stages[0].tensor"


def test_key_value_heads_may_be_replicated_but_not_torn():
    grouped = load_model(
        llama_config(
            num_attention_heads=24, num_key_value_heads=3, hidden_size=384, intermediate_size=768
        )
    )
    accepted(uniform(4, tensor=3, micro_batches=16), model=grouped, cluster="1x3xH100")
    accepted(uniform(4, tensor=6, micro_batches=16), model=grouped, cluster="1x6xH100")
    error = refused(uniform(4, tensor=8, micro_batches=16), model=grouped)
    assert "neither divides nor is a multiple of the 3 key-value heads" in error.what


def test_context_ranks_hold_two_chunks():
    work = Workload(global_batch_size=16, seq_length=500)
    accepted(uniform(4, context=2, data_shard=4, micro_batches=4), work=work)
    error = refused(uniform(4, context=8, micro_batches=16), work=work)
    assert "500 tokens do not divide over 8 context ranks" in error.what


def test_sequence_parallelism_divides_the_tokens_and_needs_a_group():
    work = Workload(global_batch_size=16, seq_length=510)
    split = {"tensor": 4, "sequence_parallel": True, "data_shard": 2, "micro_batches": 8}
    assert "510 tokens" in refused(uniform(4, **split), work=work).what
    alone = uniform(4, sequence_parallel=True, data_shard=8, micro_batches=2)
    assert "without a tensor group" in refused(alone).what


def test_ulysses_needs_heads():
    degrees = {"tensor": 4, "context": 4, "micro_batches": 16}
    strategy = uniform(4, context_algorithm=ContextAlgorithm.ULYSSES, **degrees)
    error = refused(strategy, cluster="2x8xH100")
    assert "Ulysses over context 4 × tensor 4" in error.what
    assert "there are 8" in error.what
    ring = uniform(4, context_algorithm=ContextAlgorithm.RING, **degrees)
    accepted(ring, cluster="2x8xH100")


@pytest.mark.parametrize("degrees", [{"expert": 2}, {"tensor": 2, "expert_tensor": 2}])
def test_experts_need_a_model_that_has_them(degrees):
    data = 8 // degrees.get("tensor", 1)
    strategy = uniform(4, data_shard=data, micro_batches=16 // data, **degrees)
    assert "without experts" in refused(strategy).what


def test_expert_degrees_divide():
    strategy = uniform(4, data_shard=16, expert=16, micro_batches=1)
    assert (
        "16 does not divide 8 experts" in refused(strategy, model=SPARSE, cluster="2x8xH100").what
    )


def test_experts_on_a_tensor_group_need_sequence_parallelism():
    strategy = uniform(4, tensor=2, data_shard=4, micro_batches=4)
    assert "need sequence parallelism" in refused(strategy, model=SPARSE).what


def test_positions_that_are_learned_end():
    model = load_model(gpt2_config(n_positions=256))
    check_workload(model, Workload(global_batch_size=1, seq_length=256))
    with pytest.raises(WorkloadError) as caught:
        check_workload(model, Workload(global_batch_size=1, seq_length=257))
    assert "256" in caught.value.allowed


degrees = st.sampled_from([1, 2, 3, 4, 8])


@given(
    st.sampled_from([DENSE, SPARSE]),
    st.sampled_from(["1x8xH100", "2x4xH100+1x4xA100-80GB", "1x1xH100"]),
    st.fixed_dictionaries(
        {
            "pipeline": st.integers(1, 5),
            "virtual_stages": st.integers(1, 3),
            "micro_batch_size": degrees,
            "micro_batches": degrees,
            "tensor": degrees,
            "sequence_parallel": st.booleans(),
            "context": degrees,
            "context_algorithm": st.sampled_from(list(ContextAlgorithm)),
            "expert": degrees,
            "expert_tensor": degrees,
            "data_replicate": degrees,
            "data_shard": degrees,
            "zero_stage": st.integers(0, 3),
        }
    ),
)
def test_anything_is_refused_in_words_or_predicted(model, machines, values):
    """No strategy ends in a traceback, and what passes the check has finite numbers."""
    cluster, refusal = load_cluster(machines), None
    try:
        strategy = uniform(4, **values)
        batch = strategy.global_batch_size
        work = Workload(global_batch_size=batch, seq_length=512)
        check_strategy(model, cluster, work, strategy)
    except MeshwrightError as error:
        refusal = error
    if refusal is not None:
        assert refusal.what
        assert refusal.where
        return
    found = predict(model, cluster, work, strategy, coefficients=MODERN)
    assert 0 < found.step_time_s < 1e6
    assert 0 < found.mfu < 1
    assert found.peak_memory_bytes > 0
