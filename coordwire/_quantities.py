"""Lengths of time, sizes, counts and times of day as people read them.

Rules: a quantity has two or three significant digits, never more, and the unit that fits the number ("4.6 s",
"230 ms", "1.2 GB"); sizes are in powers of 1,000.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime

from coordwire import errors

_SIZES = ("kB", "MB", "GB", "TB", "PB")
_LARGE = ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))
_UNITS = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def duration(seconds: float) -> str:
    """A length of time: "12 µs", "230 ms", "4.6 s", "23.7 s", "3 min 20 s", "5 h 3 min", "2 d 4 h"."""
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if seconds < 0.0009995:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 0.9995:
        return f"{seconds * 1e3:.2g} ms" if seconds < 0.00995 else f"{seconds * 1e3:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    rounded = round(seconds)
    for large, unit, small, smaller in _LARGE:
        if rounded >= large:
            remainder = rounded % large // small
            text = f"{rounded // large:,} {unit}"
            return f"{text} {remainder} {smaller}" if remainder else text
    return f"{rounded} s"


def duration_range(low: float, high: float) -> str:
    """From one round length of time to another: "200 to 500 ms", "500 ms to 1 s"; from 0: "under 1 ms"."""
    (number, unit), (end, last) = _round(low), _round(high)
    if not low:
        return f"under {end} {last}"
    return f"{number} to {end} {last}" if unit == last else f"{number} {unit} to {end} {last}"


def _round(seconds: float) -> tuple[str, str]:
    factor, unit = next((pair for pair in _UNITS if seconds >= pair[0] * 0.999), _UNITS[-1])
    return f"{seconds / factor:,.3g}", unit


def size(count: int) -> str:
    """A number of bytes: "1 byte", "999 bytes", "1.2 MB"."""
    if count < 1000:
        return counted(count, "byte")
    value, units = count / 1000, iter(_SIZES)
    unit = next(units)
    while value >= 999.5 and (larger := next(units, None)) is not None:
        value, unit = value / 1000, larger
    return f"{value:,.3g} {unit}" if value < 999.5 else f"{value:,.0f} {unit}"


def counted(number: int, noun: str) -> str:
    """So many of something: "1 member", "1,200 members"."""
    return errors.counted(number, noun, ",")


def clock(seconds: float, decimals: int = 3) -> str:
    """A time of day in UTC, of seconds since 1970, cut to so many decimals: "08:16:52.062"."""
    whole_seconds = math.floor(seconds)
    fraction = f".{math.floor((seconds - whole_seconds) * 1_000_000):06}"[: decimals + 1] if decimals else ""
    minutes, second = divmod(whole_seconds % 86_400, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{second:02}{fraction}"


def day(seconds: float) -> str:
    """The date in UTC of seconds since 1970: "2026-11-21"; outside of the years 1 to 9999 its number."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}"
    except (OverflowError, OSError, ValueError):
        return f"day {seconds // 86_400:,.0f}"
