"""Type, shape and least value of every array in ``UniformTables``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class _Array(NamedTuple):
    dtype: type[np.generic]
    dimensions: str  # one letter each; "P+" is P + 1
    least: int


_F, _I = np.float64, np.int32

LAYOUT: Mapping[str, _Array] = {
    "forward_s": _Array(_F, "TBR", 0),
    "backward_s": _Array(_F, "TBR", 0),
    "micro_batch": _Array(_I, "R", 1),
    "row_rule": _Array(_I, "R", -1),
    "activation_bytes": _Array(_F, "BR", 0),
    "transient_bytes": _Array(_F, "BR", 0),
    "boundary_bytes": _Array(_F, "R", 0),
    "dense_parameters": _Array(_F, "BQ", 0),
    "expert_parameters": _Array(_F, "BQ", 0),
    "base": _Array(_I, "S", 0),
    "pipeline": _Array(_I, "S", 1),
    "data": _Array(_I, "S", 1),
    "dense_link": _Array(_I, "S", 0),
    "expert_link": _Array(_I, "S", 0),
    "hop_link": _Array(_I, "S", 0),
    "dense_shards": _Array(_I, "S", 1),
    "expert_shards": _Array(_I, "S", 1),
    "dense_ranks": _Array(_I, "S", 1),
    "expert_ranks": _Array(_I, "S", 1),
    "gather_latency_s": _Array(_F, "G", 0),
    "gather_s_per_byte": _Array(_F, "G", 0),
    "scatter_latency_s": _Array(_F, "G", 0),
    "scatter_s_per_byte": _Array(_F, "G", 0),
    "reduce_latency_s": _Array(_F, "G", 0),
    "reduce_s_per_byte": _Array(_F, "G", 0),
    "hop_latency_s": _Array(_F, "G", 0),
    "hop_s_per_byte": _Array(_F, "G", 0),
    "partition_pipeline": _Array(_I, "P", 1),
    "partition_virtual": _Array(_I, "P", 1),
    "partition_classes": _Array(_I, "P+", 0),
    "class_blocks": _Array(_F, "CB", 0),
    "class_first": _Array(_I, "C", 0),
    "class_multiplicity": _Array(_I, "C", 1),
    "class_devices": _Array(np.uint32, "C", 1),
    "mode_needs_shards": _Array(np.uint8, "Z", 0),
    "mode_max_pipeline": _Array(_I, "Z", 1),
    "optimizer_s_per_parameter": _Array(_F, "TZ", 0),
    "capacity_bytes": _Array(_F, "T", 0),
    "framework_bytes": _Array(_F, "T", 0),
}


def require(name: str, condition: bool | np.bool_, message: str) -> None:
    """Raise ``ValueError`` that names the field unless the condition holds."""
    if not condition:
        raise ValueError(f"UniformTables.{name} {message}")


def check_layout(values: Mapping[str, Any], *, modes: int) -> dict[str, npt.NDArray[Any]]:
    """Read-only arrays of the right type, order and shape for every name in ``LAYOUT``.

    Args:
        values: field values by name.
        modes: Z, which no array defines.

    Raises:
        ValueError: a value cannot be one, or two arrays disagree on a dimension.
    """
    sizes = {"Z": modes}
    arrays = {}
    for name, spec in LAYOUT.items():
        array = _converted(name, values[name], spec)
        _measure(name, array, spec, sizes)
        arrays[name] = array
    require("modes", modes >= 1, "is empty")
    require(
        "forward_s",
        sizes["R"] % sizes["Q"] == 0,
        f"has {sizes['R']} rows, which {sizes['Q']} bases do not divide",
    )
    require("capacity_bytes", sizes["T"] <= 32, "has more device types than a mask has bits")
    return arrays


def _converted(name: str, value: object, spec: _Array) -> npt.NDArray[Any]:
    given = np.asarray(value)
    require(name, given.dtype.kind in "biuf", f"holds {given.dtype}, not numbers")
    require(name, given.size > 0, "is empty")
    require(name, np.isfinite(given).all(), "must be finite")
    require(name, (given >= spec.least).all(), f"must be at least {spec.least}")
    with np.errstate(invalid="ignore"):  # a cast out of range is found just below
        array = np.ascontiguousarray(given, dtype=spec.dtype).view()
    require(name, (array == given).all(), f"does not fit in {np.dtype(spec.dtype)}")
    array.flags.writeable = False
    return array


def _measure(name: str, array: npt.NDArray[Any], spec: _Array, sizes: dict[str, int]) -> None:
    letters = spec.dimensions.rstrip("+")
    require(name, array.ndim == len(letters), f"must have dimensions {spec.dimensions}")
    for letter, size in zip(letters, array.shape, strict=True):
        wanted = size - 1 if spec.dimensions.endswith("+") else size
        known = sizes.setdefault(letter, wanted)
        require(name, known == wanted, f"has {letter} = {wanted}, other fields {known}")
