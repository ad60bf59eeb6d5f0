"""Software and workloads from the words of a row."""

from __future__ import annotations

import pytest

from meshwright.cost.stacks import DEFAULT_STACK, find_stack
from meshwright.validation.problem import problem_of
from meshwright.validation.skips import RowSkippedError
from meshwright.validation.stacks import profile_of


def problem(make_runs, **cells):
    (run,) = make_runs(cells)
    return problem_of(run.inputs)


@pytest.mark.parametrize(
    ("framework", "device", "flags", "stack", "attention"),
    [
        ("Megatron-LM", "A100", "", "megatron-2021", "unfused"),
        ("Megatron-LM", "H100", "", "megatron-core", "fused"),
        ("Megatron-DeepSpeed", "A100", "", "megatron-deepspeed", "unfused"),
        ("Megatron-Bridge", "GB200", "", "megatron-core", "fused"),
        ("NeMo", "H100", "", "megatron-core", "fused"),
        *(
            ("Megatron-Bridge", "GB200", f"cuda_graph={flag};x=1", f"megatron-core{more}", "fused")
            for flag, more in (
                ("none/full_iteration", ""),
                ("full_iteration/[]", "+whole-graph"),
                ("transformer_engine/['attn']", "+graphs"),
            )
        ),
        ("torchtitan", "H100", "torch.compile", "torchtitan+compile", "fused"),
        ("Composer/llm-foundry (PyTorch FSDP)", "A100", "", "fsdp", "fused"),
        ("MindSpeed-LLM/ModelLink (Megatron core)", "910B", "", "mindspeed", "unfused"),
        ("MindSpeed-LLM/ModelLink", "910B", "use-flash-attn", "mindspeed", "fused"),
        ("LiBai (OneFlow)", "V100", "", "eager-2021", "unfused"),
        ("Alpa intra-op: parax.zero_2", "V100", "", "alpa", "unfused"),
        ("something new", "H100", "", DEFAULT_STACK, "fused"),
        ("something new", "V100", "", DEFAULT_STACK, "unfused"),
        ("", "T4", "", DEFAULT_STACK, "unfused"),
    ],
)
def test_stacks(make_runs, framework, device, flags, stack, attention):
    found = problem(
        make_runs, framework=framework, device_type=device, device_mem_gb="", overlap_flags=flags
    )
    assert (found.stack, found.workload.attention.value) == (stack, attention)


def test_what_is_captured_without_a_profile_has_that_of_its_base():
    assert profile_of("torchtitan+compile") is profile_of("torchtitan") is find_stack("torchtitan")
    assert profile_of("megatron-core+graphs") is find_stack(DEFAULT_STACK)


@pytest.mark.parametrize(
    ("precision", "recipe"),
    [
        ("fp16", "fp16"),
        ("amp-fp16", "fp16"),
        ("bf16-amp", "bf16"),
        ("fp8-mx", "fp8"),
        ("fp8-tensorwise", "fp8"),
        ("nvfp4", "fp4"),
        ("tf32", "fp32"),
        ("fp32", "fp32"),
        ("", "bf16"),
    ],
)
def test_precisions(make_runs, precision, recipe):
    assert problem(make_runs, precision=precision).workload.precision == recipe


@pytest.mark.parametrize(
    ("optimizer", "states"),
    [
        ("Adam (FusedAdam)", "adam"),
        ("DecoupledLionW/AdamW (repo yaml)", "adam"),
        ("LAMB", "adam"),
        ("LARS/SGD", "sgd-momentum"),
        ("Lion", "lion"),
        ("Muon", "sgd-momentum"),
        ("", "adam"),
    ],
)
def test_optimizers(make_runs, optimizer, states):
    assert problem(make_runs, optimizer=optimizer).workload.optimizer == states


@pytest.mark.parametrize(
    ("cells", "key"),
    [
        ({"task": "lora"}, "fine_tuning"),
        ({"seq_len": ""}, "batch_missing"),
        ({"global_batch": ""}, "batch_missing"),
        ({"heads": 15, "kv_heads": 15}, "strategy_not_expressible"),
        ({"device_type": "Cray-1"}, "unknown_device"),
    ],
)
def test_a_problem_that_cannot_be_built_has_a_reason(make_runs, cells, key):
    with pytest.raises(RowSkippedError) as caught:
        problem(make_runs, **cells)
    assert caught.value.key == key


@pytest.mark.parametrize(
    ("version", "flags", "stack"),
    [
        ("2024-12-26", "", "torchtitan-2024"),
        ("2024-12-26", "torch.compile", "torchtitan-2024+compile"),
        ("2025-06-13", "torch.compile", "torchtitan+compile"),
        ("", "", "torchtitan"),
    ],
)
def test_a_loss_that_is_not_compiled_has_a_profile(make_runs, version, flags, stack):
    found = problem(
        make_runs, framework="torchtitan", framework_version=version, overlap_flags=flags
    )
    assert found.stack == stack


@pytest.mark.parametrize(("fsdp", "stack"), [("1.0", "internevo-fsdp"), ("0.0", "internevo")])
def test_the_wrapper_decides_what_internevo_keeps(make_runs, fsdp, stack):
    assert problem(make_runs, framework="InternEvo", fsdp=fsdp, zero_stage="1").stack == stack
