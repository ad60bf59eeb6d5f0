"""Where the ranks of a group lie: how many of them share each level of the network."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meshwright.cluster import Level
from meshwright.cost.local import IntArray


def members(size: IntArray, stride: IntArray, levels: Sequence[Level]) -> IntArray:
    """Members of a strided rank group inside one domain of each level.

    Args:
        size: shape (R,); ranks of the group.
        stride: shape (R,); distance between neighbours, in ranks.
        levels: of the network, innermost first.

    Returns:
        Shape (R, L), non-decreasing along levels; the last column is ``size``.
    """
    columns = [np.clip(level.size // np.maximum(stride, 1), 1, size) for level in levels[:-1]]
    return np.stack([*columns, size], axis=1)


def expert_members(
    size: IntArray,
    stride: IntArray,
    *,
    inner: IntArray,
    pipeline: IntArray,
    levels: Sequence[Level],
) -> IntArray:
    """As ``members``, for groups laid over the ranks of one stage only.

    Expert groups run through the tensor × context × data ranks of a stage in order. When the
    pipeline axis lies inside that order, a stage's ranks come in pieces of ``inner``
    neighbours, one every ``inner * pipeline`` ranks.

    Args:
        size: shape (R,); ranks of the group.
        stride: shape (R,); distance between neighbours, counted in ranks of the stage.
        inner: shape (R,); ranks of the stage that are neighbours.
        pipeline: shape (R,); stages.
        levels: of the network, innermost first.
    """
    columns = []
    for level in levels[:-1]:
        pieces = level.size // (inner * pipeline)
        rest = np.minimum(level.size % (inner * pipeline), inner)
        in_domain = pieces * inner + rest
        columns.append(np.clip(in_domain // np.maximum(stride, 1), 1, size))
    return np.stack([*columns, size], axis=1)
