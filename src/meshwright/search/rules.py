"""Rules: why a strategy is out of the question, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass

#: Fewest tokens of a context rank's chunk; below it latency decides and nobody goes there.
MIN_CONTEXT_CHUNK = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A reason to exclude.

    Attributes:
        name: short, stable; the key under which exclusions are counted.
        reason: a sentence for the user.
    """

    name: str
    reason: str


RULES: tuple[Rule, ...] = (
    Rule(name="target", reason="the target framework cannot express it"),
    Rule(name="tensor_divides", reason="heads and widths must be multiples of the tensor degree"),
    Rule(name="tensor_span", reason="the tensor group would leave the scale-up domain"),
    Rule(
        name="sequence_divides",
        reason="sequences must divide over the context ranks in two chunks each, and over the "
        "tensor ranks under sequence parallelism",
    ),
    Rule(name="context_chunk", reason=f"a context chunk would be below {MIN_CONTEXT_CHUNK} tokens"),
    Rule(name="context_heads", reason="Ulysses needs heads for every tensor and context rank"),
    Rule(name="expert_divides", reason="experts must be a multiple of the expert degree"),
    Rule(name="expert_ranks", reason="the expert degrees must divide the ranks of a stage"),
    Rule(name="mixed_order", reason="device groups of different kinds meet on pipeline edges"),
    Rule(name="equivalent_order", reason="the same placement as another axis order"),
    Rule(name="batch_divides", reason="the batch must be a multiple of replicas × micro-batch"),
    Rule(
        name="sequence_parallel",
        reason="sequence parallelism needs a tensor group, and experts on one need it",
    ),
    Rule(name="interleave", reason="interleaving needs a pipeline and a multiple of its stages"),
    Rule(name="unsharded", reason="there is nobody to shard states with"),
    Rule(name="zero_pipeline", reason="the target shards less under a pipeline"),
    Rule(name="memory", reason="it does not fit in device memory"),
)

RULE_INDEX: dict[str, int] = {rule.name: index for index, rule in enumerate(RULES)}
