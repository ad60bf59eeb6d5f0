"""Compare predictions with a table of public training runs.

Usage: ``python scripts/check_runs.py TRAINING_RUNS.csv [--every N]``. Reads the columns that
``truth/README.md`` documents, predicts every row that is usable for time, and prints per
source and device family: rows, the ratio predicted/measured (median, 5 % and 95 % quantile),
mean absolute error; and the factor on predicted compute that fits a family best, from which
``sustained_efficiency`` in the device catalogue comes. No result column reaches the predictor.
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import numpy as np

from meshwright.cluster import Cluster, load_cluster
from meshwright.cost.coefficients import MODERN
from meshwright.errors import MeshwrightError
from meshwright.graph import ModelGraph, fold
from meshwright.graph.builders import (
    AttentionSpec,
    LayerSpec,
    MoeSpec,
    embedding_block,
    head_block,
    transformer_layer,
)
from meshwright.graph.op import Mask
from meshwright.planning.check import check_strategy
from meshwright.planning.plan_types import Prediction
from meshwright.planning.predict import predict
from meshwright.strategy import (
    Recompute,
    RecomputeRun,
    Schedule,
    Stage,
    Strategy,
    Workload,
    balanced_chunks,
    stage_ranges,
)

Row = dict[str, str]
USABLE = ("ok", "ok_time_only", "plausible")
#: Frameworks that still materialised the scores of attention.
UNFUSED = ("Megatron-DeepSpeed", "Megatron-LM", "LiBai", "Alpa", "AMP")


def number(row: Row, key: str, default: float = 0.0) -> float:
    """A cell as a number; the leading digit of cells such as ``3 (FSDP axis)``."""
    text = row[key].strip().split(" ")[0].split("(")[0]
    try:
        return float(text)
    except ValueError:
        return default


def whole(row: Row, key: str, default: int = 1) -> int:
    """A cell as a count."""
    return round(number(row, key, default))


def model_of(row: Row) -> ModelGraph:
    """The transformer that the architecture columns describe."""
    hidden, heads, layers = whole(row, "hidden"), whole(row, "heads"), whole(row, "layers")
    kv_heads = whole(row, "kv_heads", heads)
    classic = any(word in row["arch"] for word in ("gpt", "bert", "bloom", "opt"))
    attention = AttentionSpec(
        heads=heads,
        kv_heads=kv_heads,
        head_dim=whole(row, "head_dim", hidden // heads),
        rotary=not classic,
        qkv_bias=classic,
        out_bias=classic,
        mask=Mask(causal="bert" not in row["arch"]),
        dropout=classic,
    )
    experts, gated = whole(row, "moe_experts", 0), number(row, "gated_mlp") > 0
    ffn = whole(row, "ffn_hidden", 4 * hidden)
    mixture = MoeSpec(
        experts=max(experts, 1),
        top_k=whole(row, "moe_topk", 1),
        width=whole(row, "moe_ffn_hidden", ffn),
        gated=gated,
        shared_width=whole(row, "moe_shared_ffn", 0),
    )
    spec = {"hidden": hidden, "attention": attention, "norm_bias": classic, "dropout": classic}
    dense = transformer_layer(LayerSpec(**spec, ffn=ffn, gated=gated, mlp_bias=classic))
    sparse = transformer_layer(LayerSpec(**spec, moe=mixture)) if experts else dense
    num_dense = whole(row, "moe_dense_layers", 0) if experts else layers
    vocab = whole(row, "vocab")
    blocks = [
        embedding_block(vocab=vocab, hidden=hidden),
        *[dense] * num_dense,
        *[sparse] * (layers - num_dense),
        head_block(vocab=vocab, hidden=hidden, tied=number(row, "tied_embeddings") > 0),
    ]
    return ModelGraph(name=row["model"], family=row["arch"], runs=fold(blocks))


@cache
def cluster_of(shorthand: str) -> Cluster:
    """A cluster, read once."""
    return load_cluster(shorthand)


def device_name(row: Row) -> str:
    """The catalogue's name of the row's device."""
    name = row["device_type"]
    for known in ("GB200", "GB300", "B200", "B300", "H100", "H200", "H800", "A100-40GB", "T4"):
        if known in name.replace("SXM4-", ""):
            return known
    for part, known in (("A100", "A100-80GB"), ("V100", "V100-32GB"), ("910B", "Ascend910B")):
        if part in name:
            return known
    return name


def precision_of(row: Row) -> str:
    """The recipe of the row."""
    text = row["precision"].lower()
    for part, recipe in (("fp4", "fp4"), ("fp8", "fp8"), ("fp16", "fp16"), ("fp32", "fp32")):
        if part in text:
            return recipe
    return "bf16"


def strategy_of(row: Row, layers: int) -> Strategy:
    """The strategy that the parallel columns describe."""
    tensor, pipeline, context = (whole(row, key) for key in ("tp", "pp", "cp"))
    virtual, data = whole(row, "vpp"), whole(row, "num_devices") // (tensor * pipeline * context)
    zero = 3 if number(row, "fsdp") > 0 else min(3, whole(row, "zero_stage", 0))
    text = row["recompute"].lower()
    mode = next((m for m in (Recompute.FULL, Recompute.SELECTIVE) if m.value in text), None)
    split = tensor > 1 and (number(row, "sequence_parallel") > 0 or number(row, "moe_experts") > 0)
    expert_tensor = whole(row, "etp")
    stages = tuple(
        Stage(
            layers=ranges,
            tensor=tensor,
            sequence_parallel=split,
            context=context,
            expert=whole(row, "ep"),
            expert_tensor=expert_tensor if tensor % expert_tensor == 0 else 1,
            data_replicate=1 if zero else data,
            data_shard=data if zero else 1,
            zero_stage=zero,
            recompute=(
                RecomputeRun(
                    count=sum(stop - start for start, stop in ranges), mode=mode or Recompute.NONE
                ),
            ),
        )
        for ranges in stage_ranges(balanced_chunks(layers, pipeline * virtual), pipeline=pipeline)
    )
    micro_batch = whole(row, "micro_batch")
    return Strategy(
        stages=stages,
        micro_batch_size=micro_batch,
        micro_batches=max(1, whole(row, "global_batch") // (data * micro_batch)),
        schedule=Schedule.INTERLEAVED if virtual > 1 else Schedule.ONE_F_ONE_B,
    )


def predict_row(row: Row) -> tuple[Prediction, Workload, Cluster]:
    """Predict one row from its inputs alone."""
    model = model_of(row)
    devices = whole(row, "num_devices")
    per_node = min(whole(row, "devices_per_node", 8), devices)
    cluster = cluster_of(f"{devices // per_node}x{per_node}x{device_name(row)}")
    workload = Workload(
        global_batch_size=whole(row, "global_batch"),
        seq_length=whole(row, "seq_len"),
        precision=precision_of(row),
        attention="unfused" if row["framework"].startswith(UNFUSED) else "fused",
    )
    strategy = strategy_of(row, model.num_layers)
    check_strategy(model, cluster, workload, strategy)
    return predict(model, cluster, workload, strategy, coefficients=MODERN), workload, cluster


def measured_s(row: Row, workload: Workload, cluster: Cluster) -> float:
    """The measured step time of a row."""
    tokens = number(row, "tokens_per_s_per_device", 1.0)
    return number(row, "iter_time_s") or workload.tokens_per_step / tokens / cluster.num_devices


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--every", type=int, default=1, help="use every N-th row")
    options = parser.parse_args()
    with options.runs.open(encoding="utf-8", newline="") as file:
        rows = [r for r in csv.DictReader(file) if "time" in r["fit_ready"]]
    groups: dict[tuple[str, str, str], list[tuple[float, float, float]]] = defaultdict(list)
    skipped: Counter[str] = Counter()
    for row in rows[:: options.every]:
        if row["check"] not in USABLE or "resnet" in row["model"].lower() or not row["hidden"]:
            skipped["not a usable transformer row"] += 1
            continue
        try:
            prediction, workload, cluster = predict_row(row)
        except MeshwrightError as error:
            skipped[error.what[:90]] += 1
            continue
        seconds, time = measured_s(row, workload, cluster), prediction.time
        compute_s = time.compute_s + time.recompute_s + time.bubble_s
        key = (row["source"][:32], row["device_family"], workload.precision)
        groups[key].append((time.step_s / seconds, compute_s / seconds, whole(row, "num_devices")))
    report(groups)
    for reason, count in skipped.most_common():
        print(f"skipped {count:5d}  {reason}")


def report(groups: dict[tuple[str, str, str], list[tuple[float, float, float]]]) -> None:
    """One line per group, then all rows together."""
    head = ("source", "family", "prec", "rows", "median", "5 %", "95 %", "error", "factor")
    print("{:32} {:10} {:5} {:>5} {:>7} {:>7} {:>7} {:>7} {:>7}".format(*head))
    everything = np.array([entry for found in groups.values() for entry in found])
    parts = {key: np.array(found) for key, found in sorted(groups.items())}
    parts[("all", "", "")] = everything
    parts[("64 devices or more", "", "")] = everything[everything[:, 2] >= 64]
    for (source, family, precision), found in parts.items():
        ratio, compute = found[:, 0], found[:, 1]
        # Least squares on the share that is not compute: 1 = f compute + (ratio - compute).
        factor = float(compute @ (1.0 - ratio + compute) / (compute @ compute))
        low, high = np.quantile(ratio, [0.05, 0.95])
        print(
            f"{source:32} {family:10} {precision:5} {len(found):5d} {np.median(ratio):7.3f} "
            f"{low:7.3f} {high:7.3f} {np.abs(ratio - 1).mean():7.1%} {factor:7.3f}"
        )


if __name__ == "__main__":
    main()
