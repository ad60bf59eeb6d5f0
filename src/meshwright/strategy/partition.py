"""Cutting the layers into pipeline chunks."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def balanced_chunks(num_layers: int, chunks: int) -> tuple[int, ...]:
    """Layers per chunk, as equal as can be; the ends get fewer, since they also embed and
    compute the loss.

    Llama 3 trained 126 layers on 16 stages this way (Dubey et al. 2024, section 3.3.2): 7 on
    the first and last stage, 8 on all others.

    >>> balanced_chunks(126, 16) == (7,) + (8,) * 14 + (7,)
    True
    >>> balanced_chunks(5, 2)
    (3, 2)
    """
    base, extra = divmod(num_layers, chunks)
    order = _middle_first(chunks)
    sizes = [base] * chunks
    for chunk in order[:extra]:
        sizes[chunk] += 1
    return tuple(sizes)


def _middle_first(chunks: int) -> list[int]:
    """Inner chunks in order, then the first, then the last."""
    return [*range(1, chunks - 1), 0, *([chunks - 1] if chunks > 1 else [])]


def weighted_chunks(num_layers: int, weights: Sequence[float]) -> tuple[int, ...]:
    """Layers per chunk in proportion to ``weights`` (speeds), each chunk at least one.

    Layers go one by one to the chunk that would finish its share first (the parametric
    bottleneck: the largest layers/weight is minimal).

    >>> weighted_chunks(12, [2.0, 1.0])
    (8, 4)
    """
    sizes = [1] * len(weights)
    shares = [Fraction(weight) for weight in weights]
    for _ in range(num_layers - len(weights)):
        chunk = min(range(len(weights)), key=lambda i: (Fraction(sizes[i] + 1) / shares[i], i))
        sizes[chunk] += 1
    return tuple(sizes)


def stage_ranges(
    chunk_layers: Sequence[int], *, pipeline: int
) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Layer ranges of every stage from layers per chunk, chunk ``j`` on stage ``j % pipeline``.

    >>> stage_ranges([1, 1, 1, 1], pipeline=2)
    (((0, 1), (2, 3)), ((1, 2), (3, 4)))
    """
    starts = [0]
    for count in chunk_layers:
        starts.append(starts[-1] + count)
    ranges = [(starts[j], starts[j + 1]) for j in range(len(chunk_layers))]
    return tuple(tuple(ranges[i::pipeline]) for i in range(pipeline))
