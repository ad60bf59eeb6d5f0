"""What a prediction takes for granted, in sentences."""

from __future__ import annotations

from meshwright.cluster import Cluster
from meshwright.graph import ModelGraph, Split
from meshwright.strategy import Strategy, Workload
from meshwright.units import format_bytes, format_flops


def assumptions_of(
    model: ModelGraph, cluster: Cluster, workload: Workload, strategy: Strategy
) -> tuple[str, ...]:
    """Everything assumed for a plan, each a full sentence with its source."""
    recipe = workload.recipe
    found = [*model.assumptions, *cluster.assumptions]
    for group in cluster.groups:
        device = group.device
        precision = device.effective_precision(recipe.peak)
        peak = device.figure("memory_bytes").source
        found.append(
            f"{device.name}: {format_flops(device.peak(recipe.peak))}/s in {precision}, "
            f"{format_bytes(device.memory_bytes)} of memory ({peak})."
        )
        if recipe.peak not in (precision, "fp32"):
            found.append(f"{device.name} has no {recipe.peak}: it computes in {precision}.")
    found.append(
        f"{workload.precision} training with {workload.optimizer}: {recipe.parameter_bytes:g} + "
        f"{recipe.gradient_bytes:g} + {workload.optimizer_bytes:g} bytes per parameter for "
        "weights, gradients and optimizer state."
    )
    found.append(f"Attention runs in a {workload.attention.value} kernel.")
    found += _padding(model, strategy)
    found.append(
        "A modern software stack: gradient reduction and parameter gathering overlap compute, "
        "as coefficients in meshwright.cost.coefficients say, each with its source."
    )
    return tuple(found)


def _padding(model: ModelGraph, strategy: Strategy) -> list[str]:
    """Vocabularies that do not divide are padded, as every framework does."""
    tensor = max(stage.tensor for stage in strategy.stages)
    vocab = model.vocab_size
    splits = any(a.split is Split.TENSOR for block in model.blocks for a in block.axes)
    if vocab is None or not splits or vocab % tensor == 0:
        return []
    return [f"The vocabulary of {vocab:,} is padded to a multiple of {tensor}."]
