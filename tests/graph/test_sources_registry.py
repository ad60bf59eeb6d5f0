"""The registry: which model types are known, and what is imported to read one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from meshwright.graph.sources.huggingface import (
    ConfigReader,
    load_huggingface,
    register,
    registered,
)
from meshwright.graph.sources.huggingface.registry import Architecture, reader_of

#: Families that the documentation promises.
PROMISED = {
    *("llama", "llama4", "mistral", "mixtral", "qwen", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe"),
    *("qwen3_5", "qwen3_5_moe", "qwen3_next", "qwen2_vl", "qwen2_5_vl", "qwen3_vl"),
    *("gemma", "gemma2", "gemma3", "gemma3_text", "gemma4", "phi", "phi3", "phimoe"),
    *("gpt2", "gpt_neox", "gpt_neo", "gptj", "gpt_bigcode", "gpt_oss", "opt", "bloom", "falcon"),
    *("mpt", "stablelm", "starcoder2", "olmo", "olmo2", "granite", "cohere", "internlm2"),
    *("baichuan", "chatglm", "glm4", "bert", "roberta", "t5", "vit"),
    *("deepseek_v2", "deepseek_v3", "deepseek_v32", "deepseek_v4", "kimi_k2", "glm4_moe"),
    *("glm_moe_dsa", "minimax_m2", "mimo", "nemotron_h", "nemotron-nas"),
}


def test_promised_families_are_registered() -> None:
    assert set(registered()) >= PROMISED


def test_every_registered_type_has_its_reader() -> None:
    assert all(reader_of(model_type) is not None for model_type in registered())
    assert reader_of("nobody") is None
    assert reader_of("") is None


def test_a_type_has_one_reader() -> None:
    with pytest.raises(AssertionError, match="llama has two readers"):

        @register("llama")
        def second(r: ConfigReader) -> Architecture:
            raise NotImplementedError(r)


@pytest.mark.parametrize("model_type", ["llama", "qwen3_moe", "gpt_oss", "deepseek_v3"])
def test_only_the_family_in_question_is_imported(model_type: str) -> None:
    program = (
        "import sys\n"
        "from meshwright.graph.sources.huggingface.registry import reader_of\n"
        f"assert reader_of({model_type!r}) is not None\n"
        "print('meshwright.graph.sources.huggingface.falcon' in sys.modules)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "False"


def test_the_documented_example_of_a_family_works(repository: Path) -> None:
    page = (repository / "docs" / "how_to" / "add_a_model_family.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```py\n(.*?)```", page, re.DOTALL)
    exec(compile(code, "add_a_model_family.md", "exec"), {})
    config = {
        "model_type": "arctic2",
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "vocab_size": 100,
    }
    graph = load_huggingface(config, name="example")
    # Two tables, per layer four projections, three matrices and two norms, a last norm.
    assert graph.parameter_count() == 2 * 6400 + 2 * (4 * 4096 + 3 * 6144 + 128) + 64
