"""Software stacks as data: every number has a source, and inheritance says so."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

import meshwright
from meshwright.cluster import load_cluster
from meshwright.cost.coefficients import Coefficients
from meshwright.cost.stacks import DEFAULT_STACK, MODERN, find_stack, stack_names
from meshwright.errors import WorkloadError
from meshwright.provenance import Provenance
from meshwright.strategy import AttentionKernel, Workload

from ..strategies import llama_config  # noqa: TID252 - importlib mode

WORK = Workload(global_batch_size=64, seq_length=2048)


@pytest.mark.parametrize("name", stack_names())
def test_every_number_has_a_source(name):
    coefficients = find_stack(name).coefficients
    for field in fields(Coefficients):
        if field.name in ("sources", "family_efficiency", "family_half_scale"):
            continue
        assert coefficients.sources[field.name].text


def test_the_default_is_the_modern_one():
    assert find_stack(DEFAULT_STACK).coefficients == MODERN


def test_what_is_inherited_says_so():
    titan, fsdp = find_stack("torchtitan").coefficients, find_stack("fsdp").coefficients
    assert titan.launch_s == fsdp.launch_s == pytest.approx(40e-6)
    assert titan.sources["launch_s"].kind is Provenance.ANALYTIC
    assert "as fsdp" in titan.sources["launch_s"].text
    assert titan.sources["matrix_efficiency"].kind is Provenance.FITTED


def test_old_stacks_materialise_scores():
    assert find_stack("megatron-2021").attention is AttentionKernel.UNFUSED
    assert find_stack("MEGATRON-CORE").attention is AttentionKernel.FUSED


def test_an_unknown_stack_is_refused_with_the_nearest():
    with pytest.raises(WorkloadError) as caught:
        find_stack("megatron-cor")
    assert "megatron-core" in caught.value.fix
    assert "torchtitan" in caught.value.allowed


def test_a_family_factor_counts_for_its_family_and_precision_alone():
    stack = find_stack(DEFAULT_STACK)
    half = replace(
        stack,
        coefficients=replace(
            stack.coefficients,
            family_efficiency={"H100:bf16": 0.46, "A100": 0.5},
            family_half_scale={},
            launch_s=0.0,
        ),
    )
    full = replace(
        half,
        coefficients=replace(half.coefficients, family_efficiency={"H100:bf16": 0.92, "A100": 0.5}),
    )
    space = meshwright.Space(tensor=(1,), pipeline=(1,), zero_stages=(3,), micro_batch_sizes=(1,))

    def compute_s(stack, work):
        found = meshwright.plan(
            "llama-3.1-8b", load_cluster("1x8xH100"), work, space=space, stack=stack
        )
        return found.best.prediction.time.compute_s

    assert 1.5 < compute_s(half, WORK) / compute_s(full, WORK) < 2.0
    narrow = replace(WORK, precision="fp8")
    assert compute_s(half, narrow) == pytest.approx(compute_s(full, narrow))


def test_a_plan_keeps_its_stack_through_a_file(tmp_path):
    plan = meshwright.plan("llama-3.1-8b", "1x8xH100", WORK, stack="torchtitan").best
    loaded = meshwright.load_plan(meshwright.save_plan(plan, tmp_path))
    assert loaded == plan
    assert loaded.stack.name == "torchtitan"
    again = meshwright.estimate(
        loaded.model, loaded.cluster, loaded.workload, loaded.strategy, stack=loaded.stack
    )
    assert again.prediction == plan.prediction


def launch_s(stack, *, tensor):
    """Wait for launches of one step, on a model so small that the host is the slower one."""
    model = meshwright.load_model(llama_config(num_hidden_layers=4))
    cluster, work = load_cluster(f"1x{tensor}xH100"), Workload(global_batch_size=4, seq_length=256)
    strategy = meshwright.uniform_strategy(
        model, cluster, work, tensor=tensor, sequence_parallel=False
    )
    return meshwright.estimate(model, cluster, work, strategy, stack=stack).prediction.time.launch_s


def test_slow_hosts_wait_for_each_other_at_every_collective():
    stack = find_stack("megatron-2021")

    def with_skew(skew_s):
        return replace(stack, coefficients=replace(stack.coefficients, skew_s=skew_s))

    # Of a layer two results are reduced forward and two gradients backward; of the embedding
    # one result, of the head one loss and one gradient. Four micro-batches, three more ranks.
    collectives = 4 * (2 + 2) + 1 + 2
    more_s = launch_s(with_skew(1e-3), tensor=4) - launch_s(with_skew(0.0), tensor=4)
    assert more_s == pytest.approx(4 * collectives * 3 * 1e-3)
    assert launch_s(with_skew(1e-3), tensor=1) == launch_s(with_skew(0.0), tensor=1)


def test_kept_activations_scale_and_the_working_set_does_not():
    stack = find_stack(DEFAULT_STACK)
    scaled = replace(
        stack, coefficients=replace(stack.coefficients, activation_scale=1.5, loss_extra_bytes=6.0)
    )
    strategy = meshwright.plan("llama-3.1-8b", "1x8xH100", WORK).best.strategy
    found, other = (
        meshwright.estimate("llama-3.1-8b", "1x8xH100", WORK, strategy, stack=s).prediction.memory
        for s in (stack, scaled)
    )
    # One stage holds the head, whose loss is the largest working set.
    last, more = found[-1], other[-1]
    assert more.activations_bytes == pytest.approx(1.5 * last.activations_bytes)
    logits = WORK.seq_length * strategy.micro_batch_size * 128256
    logits /= strategy.stages[-1].tensor * strategy.stages[-1].context
    assert more.temporaries_bytes - last.temporaries_bytes == pytest.approx(6.0 * logits)
    assert more.parameters_bytes == last.parameters_bytes


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (DEFAULT_STACK, ["2 + 4 + 12 bytes per parameter"]),
        ("internevo", ["2 + 2 + 22 bytes per parameter", "copies 10 bytes per parameter"]),
        ("megatron-deepspeed", ["2 + 7 + 12 bytes per parameter", "1.3 times their tensors"]),
        ("torchtitan", ["0.87 times their tensors", "4 bytes per logit"]),
        ("torchtitan-2024", ["14 bytes per logit"]),
    ],
)
def test_what_a_stack_holds_is_said(name, said):
    space = meshwright.Space(zero_stages=(1,))
    plan = meshwright.plan("llama-3.1-8b", "1x8xH100", WORK, space=space, stack=name).best
    text = " ".join(plan.assumptions)
    assert all(words in text for words in said), text
    assert ("Kept activations" in text) == (find_stack(name).coefficients.activation_scale != 1)
