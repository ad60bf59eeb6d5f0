"""Released models by their main dimensions: the exact number of weights in their files."""

from __future__ import annotations

from typing import Any

import pytest

from meshwright.graph.sources.huggingface import load_huggingface


def llama(hidden: int, ffn: int, layers: int, heads: int, kv: int, vocab: int) -> dict[str, Any]:
    """Fields that most decoders spell alike."""
    return {
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": ffn,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "vocab_size": vocab,
    }


def of(model_type: str, config: dict[str, Any], **more: object) -> dict[str, Any]:
    return {**config, "model_type": model_type, **more}


def t5(width: int, ffn: int, layers: int, heads: int, d_kv: int = 64) -> dict[str, Any]:
    return {
        "model_type": "t5",
        "d_model": width,
        "d_ff": ffn,
        "d_kv": d_kv,
        "num_layers": layers,
        "num_heads": heads,
        "vocab_size": 32128,
    }


def neox(hidden: int, layers: int, heads: int, vocab: int) -> dict[str, Any]:
    return {
        "model_type": "gpt_neox",
        "hidden_size": hidden,
        "intermediate_size": 4 * hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "vocab_size": vocab,
        "tie_word_embeddings": False,
    }


def opt(hidden: int, layers: int, heads: int) -> dict[str, Any]:
    return {
        "model_type": "opt",
        "hidden_size": hidden,
        "ffn_dim": 4 * hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "vocab_size": 50272,
        "max_position_embeddings": 2048,
        "word_embed_proj_dim": hidden,
    }


def gpt2(hidden: int, layers: int, heads: int) -> dict[str, Any]:
    return {
        "model_type": "gpt2",
        "n_embd": hidden,
        "n_layer": layers,
        "n_head": heads,
        "n_positions": 1024,
        "vocab_size": 50257,
    }


RELEASED: dict[str, tuple[int, dict[str, Any]]] = {
    "huggyllama/llama-7b": (6_738_415_616, llama(4096, 11008, 32, 32, 32, 32000)),
    "huggyllama/llama-13b": (13_015_864_320, llama(5120, 13824, 40, 40, 40, 32000)),
    "huggyllama/llama-30b": (32_528_943_616, llama(6656, 17920, 60, 52, 52, 32000)),
    "huggyllama/llama-65b": (65_285_660_672, llama(8192, 22016, 80, 64, 64, 32000)),
    "codellama/CodeLlama-34b-hf": (33_743_970_304, llama(8192, 22016, 48, 64, 8, 32000)),
    "meta-llama/Llama-2-70b-hf": (68_976_648_192, llama(8192, 28672, 80, 64, 8, 32000)),
    "meta-llama/Llama-3.2-3B": (
        3_212_749_824,
        llama(3072, 8192, 28, 24, 8, 128256) | {"head_dim": 128, "tie_word_embeddings": True},
    ),
    "01-ai/Yi-34B": (34_388_917_248, llama(7168, 20480, 60, 56, 8, 64000)),
    "mistralai/Mistral-7B-v0.1": (
        7_241_732_096,
        of("mistral", llama(4096, 14336, 32, 32, 8, 32000), sliding_window=4096),
    ),
    "mistralai/Mistral-Nemo-Base-2407": (
        12_247_782_400,
        of("mistral", llama(5120, 14336, 40, 32, 8, 131072), head_dim=128),
    ),
    "Qwen/Qwen2.5-0.5B": (
        494_032_768,
        of("qwen2", llama(896, 4864, 24, 14, 2, 151936), tie_word_embeddings=True),
    ),
    "Qwen/Qwen2.5-72B": (72_706_203_648, of("qwen2", llama(8192, 29568, 80, 64, 8, 152064))),
    "google/gemma-2b": (
        2_506_172_416,
        of("gemma", llama(2048, 16384, 18, 8, 1, 256000), head_dim=256),
    ),
    "google/gemma-7b": (
        8_537_680_896,
        of("gemma", llama(3072, 24576, 28, 16, 16, 256000), head_dim=256),
    ),
    "google/gemma-2-2b": (
        2_614_341_888,
        of("gemma2", llama(2304, 9216, 26, 8, 4, 256000), head_dim=256),
    ),
    "google/gemma-2-9b": (
        9_241_705_984,
        of("gemma2", llama(3584, 14336, 42, 16, 8, 256000), head_dim=256),
    ),
    "microsoft/Phi-3-mini-4k-instruct": (
        3_821_079_552,
        of("phi3", llama(3072, 8192, 32, 32, 32, 32064)),
    ),
    "microsoft/phi-2": (2_779_683_840, of("phi", llama(2560, 10240, 32, 32, 32, 51200))),
    "stabilityai/stablelm-2-1_6b": (
        1_644_515_328,
        of("stablelm", llama(2048, 5632, 24, 32, 32, 100352), use_qkv_bias=True),
    ),
    "EleutherAI/pythia-6.9b": (6_857_302_016, neox(4096, 32, 32, 50432)),
    "EleutherAI/pythia-12b": (11_846_072_320, neox(5120, 36, 40, 50688)),
    "facebook/opt-1.3b": (1_315_758_080, opt(2048, 24, 32)),
    "facebook/opt-6.7b": (6_658_473_984, opt(4096, 32, 32)),
    "openai-community/gpt2": (124_439_808, gpt2(768, 12, 12)),
    "openai-community/gpt2-medium": (354_823_168, gpt2(1024, 24, 16)),
    "openai-community/gpt2-large": (774_030_080, gpt2(1280, 36, 20)),
    "openai-community/gpt2-xl": (1_557_611_200, gpt2(1600, 48, 25)),
    "bigscience/bloom-7b1": (
        7_069_016_064,
        {
            "model_type": "bloom",
            "n_embed": 4096,
            "hidden_size": 4096,
            "n_layer": 30,
            "num_attention_heads": 32,
            "vocab_size": 250880,
        },
    ),
    "google-t5/t5-small": (60_506_624, t5(512, 2048, 6, 8)),
    "google-t5/t5-large": (737_668_096, t5(1024, 4096, 24, 16)),
    "google-t5/t5-3b": (2_851_598_336, t5(1024, 16384, 24, 32, 128)),
    "google/flan-t5-xxl": (
        11_135_332_352,
        t5(4096, 10240, 24, 64) | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
    ),
}


@pytest.mark.parametrize("name", RELEASED)
def test_released_weights(name: str) -> None:
    count, config = RELEASED[name]
    assert load_huggingface(config, name=name).parameter_count() == count
