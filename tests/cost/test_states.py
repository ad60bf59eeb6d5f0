"""Bytes per parameter of every ZeRO stage, and which collectives keep the states equal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from meshwright.cost.collectives import Network
from meshwright.cost.device_models import DeviceModel
from meshwright.cost.stacks import DEFAULT_STACK, MODERN, find_stack
from meshwright.cost.states import HOST_BYTES_PER_S, optimizer_s_per_parameter, state_mode
from meshwright.cost.step import stage_memory
from meshwright.strategy import OPTIMIZERS, PRECISIONS, Offload, Workload

from ..strategies import H100, group_cost, stage_terms  # noqa: TID252 - importlib mode


def device_model(device):
    """The device with the modern stack; the network plays no part."""
    return DeviceModel(device=device, network=Network((), launch_s=0.0), coefficients=MODERN)


def stage(*, dense, expert=0.0, shards=1, expert_shards=1):
    return stage_terms(
        blocks=2,
        dense_parameters=dense,
        expert_parameters=expert,
        largest_block_parameters=dense / 2,
        dense_group=group_cost(shards=shards),
        expert_group=group_cost(shards=expert_shards),
    )


def states(terms, *, zero_stage, offload=Offload.NONE, stack=DEFAULT_STACK, **work):
    coefficients = find_stack(stack).coefficients
    workload = Workload(global_batch_size=1, seq_length=1, **work)
    found = stage_memory(
        terms,
        state_mode(workload, zero_stage=zero_stage, offload=offload, coefficients=coefficients),
        stages=1,
        virtual_stages=1,
        micro_batches=1,
    )
    return found.parameters_bytes, found.gradients_bytes, found.optimizer_bytes


@pytest.mark.parametrize("n", [1, 8, 64])
def test_zero_by_hand(n):
    # Rajbhandari et al. 2020, figure 1, with fp32 gradients: per parameter on n ranks
    # 2 + 4 + 12, 2 + 4 + 12/n, 2 + (4 + 12)/n, (2 + 4 + 12)/n.
    psi = 7.5e9
    terms = stage(dense=psi, shards=n)
    assert states(terms, zero_stage=0) == (2 * psi, 4 * psi, 12 * psi)
    assert states(terms, zero_stage=1) == (2 * psi, 4 * psi, 12 * psi / n)
    assert states(terms, zero_stage=2) == (2 * psi, 4 * psi / n, 12 * psi / n)
    assert states(terms, zero_stage=3) == (2 * psi / n, 4 * psi / n, 12 * psi / n)


def test_figure_1_of_the_zero_paper():
    # 7.5B parameters on 64 ranks with fp16 gradients: 120, 31.4, 16.6, 1.9 GB. Ours keeps
    # gradients in fp32, which adds 2 bytes per parameter (2/64 from stage 2 on).
    psi, n, giga = 7.5e9, 64, 1e9
    terms = stage(dense=psi, shards=n)
    found = [sum(states(terms, zero_stage=z)) / giga for z in range(4)]
    extra = [2 * psi / giga, 2 * psi / giga, 2 * psi / n / giga, 2 * psi / n / giga]
    published = [120.0, 31.4, 16.6, 1.9]
    for ours, more, theirs in zip(found, extra, published, strict=True):
        assert ours - more == pytest.approx(theirs, abs=0.05)


@pytest.mark.parametrize("zero_stage", range(4))
def test_experts_are_sharded_over_their_own_ranks(zero_stage):
    # 64 data ranks, 8 of them hold the same experts.
    alone = states(stage(dense=0.0, expert=1e9, shards=64, expert_shards=8), zero_stage=zero_stage)
    as_dense = states(stage(dense=1e9, shards=8), zero_stage=zero_stage)
    assert alone == as_dense


@pytest.mark.parametrize("zero_stage", range(4))
def test_offload_frees_the_optimizer_state_and_nothing_else(zero_stage):
    terms = stage(dense=1e9, shards=4)
    here = states(terms, zero_stage=zero_stage)
    host = states(terms, zero_stage=zero_stage, offload=Offload.OPTIMIZER)
    assert host == (here[0], here[1], 0.0)


@pytest.mark.parametrize(
    ("precision", "optimizer", "expected"),
    [
        ("bf16", "adam", (2, 4, 12)),
        ("bf16", "lion", (2, 4, 8)),
        ("bf16", "sgd-momentum", (2, 4, 8)),
        ("bf16", "sgd", (2, 4, 4)),
        ("fp16", "adam", (2, 4, 12)),
        ("fp8", "adam", (2, 4, 12)),
        ("fp4", "adam", (2, 4, 12)),
        ("fp32", "adam", (4, 4, 8)),
        ("fp32", "sgd", (4, 4, 0)),
    ],
)
def test_bytes_per_parameter_by_precision_and_optimizer(precision, optimizer, expected):
    found = states(stage(dense=1.0), zero_stage=0, precision=precision, optimizer=optimizer)
    assert found == expected


def test_every_precision_and_optimizer_has_a_case_above():
    assert set(PRECISIONS) == {"bf16", "fp16", "fp8", "fp4", "fp32"}
    assert set(OPTIMIZERS) == {"adam", "lion", "sgd-momentum", "sgd"}


def test_which_collectives_each_stage_runs():
    work = Workload(global_batch_size=1, seq_length=1)
    names = (
        "reduce_at_step",
        "scatter_at_step",
        "gather_at_step",
        "scatter_per_micro_batch",
        "gather_per_micro_batch",
    )
    found = [
        {
            n
            for n in names
            if getattr(state_mode(work, zero_stage=z, offload=Offload.NONE, coefficients=MODERN), n)
        }
        for z in range(4)
    ]
    assert found == [
        {"reduce_at_step"},
        {"scatter_at_step", "gather_at_step"},
        {"scatter_per_micro_batch", "gather_at_step"},
        {"scatter_per_micro_batch", "gather_per_micro_batch"},
    ]


def test_full_sharding_needs_buffers_for_the_gathered_blocks():
    work = Workload(global_batch_size=1, seq_length=1)

    def buffers(zero_stage):
        mode = state_mode(work, zero_stage=zero_stage, offload=Offload.NONE, coefficients=MODERN)
        terms = stage(dense=1000.0, shards=8)  # the largest block has 500
        return stage_memory(terms, mode, stages=1, virtual_stages=1, micro_batches=1).buffers_bytes

    # Two gathered copies in 2 bytes, one gradient in 4.
    assert [buffers(z) for z in range(4)] == [0, 0, 500 * 4, 2 * 500 * 2 + 500 * 4]


def test_optimizer_time_by_hand():
    # Adam in mixed precision moves 4 (gradient) + 2 x 12 (states) + 2 (parameter) = 30 bytes.
    device = replace(H100, memory_bandwidth_bytes_per_s=3e12, memory_efficiency=0.5)
    work = Workload(global_batch_size=1, seq_length=1)
    found = optimizer_s_per_parameter(work, device_model(device), offload=Offload.NONE)
    assert found == pytest.approx(30 / 1.5e12)


def test_offloaded_optimizer_time_by_hand():
    device = replace(H100, host_bandwidth_bytes_per_s=50e9)
    work = Workload(global_batch_size=1, seq_length=1)
    found = optimizer_s_per_parameter(work, device_model(device), offload=Offload.OPTIMIZER)
    assert found == pytest.approx((4 + 2) / 50e9 + 30 / HOST_BYTES_PER_S)


@pytest.mark.parametrize(
    ("stack", "zero_stage", "precision", "whole", "divided"),
    [
        # DeepSpeed's fp16 optimizer: fp16 parameters and gradients; master, moments and an
        # fp32 gradient of the part.
        ("megatron-deepspeed", 1, "fp16", 2 + 2, 4 + 8 + 4),
        # Its bf16 optimizer of 2022: bf16 and fp32 gradients whole, and one byte unexplained.
        ("megatron-deepspeed", 1, "bf16", 2 + 2 + 4 + 1, 4 + 8),
        # PyTorch FSDP: fp32 shards are the parameters; no second master copy.
        ("fsdp", 3, "bf16", 0, 4 + 4 + 8),
        ("torchtitan", 3, "bf16", 0, 4 + 4 + 8),
        ("deepspeed", 3, "bf16", 0, 2 + 4 + 12),
        # Below ZeRO-3 there are no fp32 shards to train.
        ("fsdp", 2, "bf16", 2, 4 + 12),
        # Alpa: fp16 gradients stay whole under every stage.
        ("alpa", 2, "fp16", 2 + 2, 12),
        ("alpa", 3, "fp16", 2, 2 + 12),
        # InternEvo: the step adds a flat bf16 and an fp32 gradient and one fp32 temporary.
        ("internevo", 1, "bf16", 2 + 2, 12 + 2 + 4 + 4),
        ("internevo-fsdp", 3, "bf16", 0, 2 + 2 + 12 + 2 + 4 + 4),
    ],
)
def test_what_each_stack_keeps(stack, zero_stage, precision, whole, divided):
    psi, n = 1000.0, 8
    terms = stage(dense=psi, shards=n)
    found = states(terms, zero_stage=zero_stage, stack=stack, precision=precision)
    assert sum(found) == psi * (whole + divided / n)


def test_fp32_training_has_no_master_copy_to_shard():
    terms = stage(dense=1000.0, shards=8)
    found = states(terms, zero_stage=3, stack="fsdp", precision="fp32")
    assert found == states(terms, zero_stage=3, precision="fp32")


def test_offload_takes_the_copies_of_the_step_along():
    terms = stage(dense=1000.0, shards=8)
    found = states(terms, zero_stage=1, stack="internevo", offload=Offload.OPTIMIZER)
    assert found == (2000.0, 2000.0, 0.0)


@pytest.mark.parametrize(
    ("stack", "precision", "wire_bytes"),
    [
        ("megatron-core", "bf16", 4),
        ("megatron-deepspeed", "fp16", 2),
        ("megatron-deepspeed", "bf16", 4),
    ],
)
def test_a_gradient_travels_as_kept_but_no_wider_than_the_recipe(stack, precision, wire_bytes):
    work = Workload(global_batch_size=1, seq_length=1, precision=precision)
    coefficients = find_stack(stack).coefficients
    mode = state_mode(work, zero_stage=1, offload=Offload.NONE, coefficients=coefficients)
    assert mode.reduce_bytes == wire_bytes
