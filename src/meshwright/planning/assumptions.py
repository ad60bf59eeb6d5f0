"""What a prediction takes for granted, in sentences."""

from __future__ import annotations

from meshwright.cluster import Cluster
from meshwright.cost.coefficients import Coefficients
from meshwright.cost.stacks import Stack
from meshwright.cost.states import state_mode
from meshwright.graph import ModelGraph, Split
from meshwright.strategy import Offload, Strategy, Workload
from meshwright.units import format_bytes, format_flops, format_percent


def assumptions_of(
    model: ModelGraph,
    cluster: Cluster,
    workload: Workload,
    strategy: Strategy,
    *,
    stack: Stack,
) -> tuple[str, ...]:
    """Everything assumed for a plan, each a full sentence with its source."""
    recipe = workload.recipe
    found = [*model.assumptions, *cluster.assumptions]
    for group in cluster.groups:
        device = group.device
        precision = device.effective_precision(recipe.peak)
        peak = device.sources["peak_flops"]
        found.append(
            f"{device.name}: {format_flops(device.peak(recipe.peak))}/s in {precision} ({peak}); "
            f"{format_bytes(device.memory_bytes)} of memory ({device.sources['memory_bytes']})."
        )
        sustained = device.figure("sustained_efficiency")
        found.append(
            f"{device.name}: a training step keeps {format_percent(sustained.value)} of the speed "
            f"that kernels reach alone ({sustained.source})."
        )
        if recipe.peak not in (precision, "fp32"):
            found.append(f"{device.name} has no {recipe.peak}: it computes in {precision}.")
    found.append(_states(workload, strategy, stack.coefficients))
    found.append(f"Attention runs in a {workload.attention.value} kernel.")
    found += _padding(model, strategy) + _tower_padding(model, strategy)
    found.append(f"The software is {stack.title} (--stack {stack.name}).")
    return tuple(
        found + _stack(strategy, stack.coefficients) + _memory(workload, stack.coefficients)
    )


def _states(workload: Workload, strategy: Strategy, coefficients: Coefficients) -> str:
    """Bytes per parameter before anything is divided over ranks or moved to the host."""
    mode = state_mode(
        workload,
        zero_stage=strategy.stages[0].zero_stage,
        offload=Offload.NONE,
        coefficients=coefficients,
    )
    own = workload.precision in coefficients.gradient_bytes
    source = f" ({coefficients.sources['gradient_bytes']})" if own else ""
    return (
        f"{workload.precision} training with {workload.optimizer}: {mode.parameter_bytes:g} + "
        f"{mode.gradient_bytes:g} + {mode.optimizer_bytes:g} bytes per parameter for "
        f"weights, gradients and optimizer state{source}."
    )


def _memory(workload: Workload, coefficients: Coefficients) -> list[str]:
    """What the software holds more or less of than its tensors."""
    c = coefficients
    found = []
    if c.step_copy_bytes:
        text = f"The optimizer's step copies {c.step_copy_bytes:g} bytes per parameter of its part"
        found.append(f"{text} ({c.sources['step_copy_bytes']}).")
    if c.activation_scale != 1.0:
        text = f"Kept activations take {c.activation_scale:g} times their tensors"
        found.append(f"{text} ({c.sources['activation_scale']}).")
    if c.loss_extra_bytes:
        plain = 2 * workload.recipe.activation_bytes + 4  # logits, their gradient, an fp32 copy
        text = f"The loss peaks at {plain + c.loss_extra_bytes:g} bytes per logit"
        found.append(f"{text} ({c.sources['loss_extra_bytes']}).")
    return found


def _stack(strategy: Strategy, coefficients: Coefficients) -> list[str]:
    """What the software is taken to overlap and to lose, as far as the strategy feels it."""
    stages = strategy.stages
    c, overlap = coefficients, coefficients.overlap
    share = format_percent
    data = (
        f"Gradient and parameter traffic hides behind {share(overlap.scatter)} of a pass, all but "
        f"{share(overlap.tail)} of it; of messages between stages {share(overlap.p2p)} are hidden"
    )
    felt = [
        ("overlap", strategy.num_devices > stages[0].tensor, data),
        (
            "tensor_hidden",
            any(stage.tensor > 1 and stage.sequence_parallel for stage in stages),
            f"{share(c.tensor_hidden)} of sequence-parallel traffic is hidden",
        ),
        (
            "context_hidden",
            any(stage.context > 1 for stage in stages),
            f"Ring steps hide behind {share(c.context_hidden)} of attention",
        ),
        (
            "expert_hidden",
            any(stage.expert > 1 for stage in stages),
            f"{share(c.expert_hidden)} of the exchange between experts is hidden",
        ),
        (
            "expert_imbalance",
            any(stage.expert > 1 for stage in stages),
            f"The busiest expert rank gets {c.expert_imbalance:g} times the mean",
        ),
        (
            "memory_reserve",
            True,
            f"{share(c.memory_reserve)} of the memory is lost to fragmentation",
        ),
    ]
    return [f"{text} ({c.sources[name]})." for name, applies, text in felt if applies]


def _padding(model: ModelGraph, strategy: Strategy) -> list[str]:
    """Vocabularies that do not divide are padded, as every framework does."""
    tensor = max(stage.tensor for stage in strategy.stages)
    vocab = model.vocab_size
    splits = any(a.split is Split.TENSOR for block in model.blocks for a in block.axes)
    if vocab is None or not splits or vocab % tensor == 0:
        return []
    return [f"The vocabulary of {vocab:,} is padded to a multiple of {tensor}."]


def _tower_padding(model: ModelGraph, strategy: Strategy) -> list[str]:
    """Token counts that the workload does not set are padded to the ranks that split them."""
    splits = max(
        stage.context * (stage.tensor if stage.sequence_parallel else 1)
        for stage in strategy.stages
    )
    lengths = sorted(
        {
            axis.size
            for block in model.blocks
            for axis in block.axes
            if axis.split is Split.CONTEXT and axis.size is not None and axis.size % splits
        }
    )
    return [f"Sequences of {n:,} tokens are padded to a multiple of {splits}." for n in lengths]
