"""Units: named constants and the formatting of bytes, seconds, FLOPs and counts.

Every physical quantity in Meshwright is a plain ``float`` or ``int`` in the SI base
unit, and its name says so: ``memory_bytes``, ``latency_s``, ``peak_flops`` (FLOP/s),
``bandwidth_bytes_per_s``. Datasheets use decimal prefixes (1 GB/s = 1e9 B/s) except for
device memory, which vendors print in decimal but build in binary: an "80GB" device holds
80 GiB, so catalogues write ``GIB`` there.
"""

from __future__ import annotations

import math

KILO = 10**3
MEGA = 10**6
GIGA = 10**9
TERA = 10**12
PETA = 10**15

KIB = 2**10
MIB = 2**20
GIB = 2**30
TIB = 2**40

MICROSECOND = 1e-6
MILLISECOND = 1e-3

_BINARY = ((TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"))
_DECIMAL = ((PETA, "P"), (TERA, "T"), (GIGA, "G"), (MEGA, "M"), (KILO, "k"))
_COUNT = ((TERA, "T"), (GIGA, "B"), (MEGA, "M"), (KILO, "K"))


def _scaled(value: float, steps: tuple[tuple[int, str], ...], digits: int) -> tuple[str, str]:
    for size, suffix in steps:
        if abs(value) >= size:
            return f"{value / size:.{digits}f}", suffix
    return f"{value:.{0 if float(value).is_integer() else digits}f}", ""


def format_bytes(value: float) -> str:
    """Binary prefixes, one decimal.

    >>> format_bytes(80 * GIB)
    '80.0 GiB'
    >>> format_bytes(512)
    '512 B'
    """
    number, suffix = _scaled(value, _BINARY, 1)
    return f"{number} {suffix or 'B'}"


def format_seconds(value: float) -> str:
    """Three significant digits in the unit a person would choose.

    >>> format_seconds(0.00123)
    '1.23 ms'
    >>> format_seconds(12.345)
    '12.3 s'
    """
    if not math.isfinite(value):
        return str(value)
    for size, suffix in ((1.0, "s"), (MILLISECOND, "ms"), (MICROSECOND, "µs")):
        if abs(value) >= size:
            scaled = value / size
            digits = 2 if abs(scaled) < 10 else 1 if abs(scaled) < 100 else 0
            return f"{scaled:.{digits}f} {suffix}"
    return f"{value / 1e-9:.0f} ns"


def format_flops(value: float) -> str:
    """An amount of floating-point operations.

    >>> format_flops(4.29e12)
    '4.29 TFLOP'
    """
    number, suffix = _scaled(value, _DECIMAL, 2)
    return f"{number} {suffix}FLOP"


def format_rate(value: float, unit: str) -> str:
    """A decimal rate, such as a bandwidth or a speed.

    >>> format_rate(450e9, "B/s")
    '450.0 GB/s'
    """
    number, suffix = _scaled(value, _DECIMAL, 1)
    return f"{number} {suffix}{unit}"


def format_count(value: float) -> str:
    """A count of parameters or tokens in the short scale of model names.

    >>> format_count(70_553_706_496)
    '70.55B'
    """
    number, suffix = _scaled(value, _COUNT, 2)
    return f"{number}{suffix}"


def format_percent(fraction: float) -> str:
    """A fraction as a percentage.

    >>> format_percent(0.413)
    '41.3 %'
    """
    return f"{100 * fraction:.1f} %"
