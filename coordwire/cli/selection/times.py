"""--since and --until: moments as the user writes them, and what lies between two of them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Literal

from coordwire.cli import Failure

SECOND = 1_000_000_000
DAY = 86_400 * SECOND
LATEST = 1 << 63
"""Seconds since 1970 beyond any real time."""

_RELATIVE = re.compile(r"([+-])(\d{1,15}(?:\.\d{1,9})?)(ns|us|µs|ms|s|min|h|d)")
_UNITS = {
    "ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": SECOND, "min": 60 * SECOND,
    "h": 3600 * SECOND, "d": DAY,
}  # fmt: skip
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?")
_FRACTION = re.compile(r"(.*:\d\d)\.(\d{1,9})(.*)")


def configure(parser: argparse._ActionsContainer) -> None:
    """--since and --until, for a `TimeRange`."""
    parser.add_argument(
        "--since",
        type=moment,
        metavar="TIME",
        help="first time (UTC): ISO 8601, epoch seconds, HH:MM[:SS] of the day on which the input begins; "
        "+30s: that long after the input's first frame, -10min: before its last (ms, s, min, h, d)",
    )
    parser.add_argument(
        "--until", type=moment, metavar="TIME", help="last time, as --since; both ends are included"
    )


class Moment(int):
    """Nanoseconds: since 1970 in UTC; if `clock`, since the midnight before the first entry; after the
    input's `beginning`, or before (less than 0) its `end`, if it is relative to one of them."""

    clock = False
    relative: Literal["beginning", "end"] | None = None


TimeSpan = tuple[int, int]
"""The times of an input's first and last entry."""


def moment(text: str) -> Moment:
    """A time as the user writes it."""
    from decimal import Decimal  # which most commands do without

    if match := _CLOCK.fullmatch(text):
        hours, minutes, seconds = (int(part or 0) for part in match.group(1, 2, 3))
        if hours > 24 or minutes > 59 or seconds > 60:
            raise argparse.ArgumentTypeError(f"expected a time of day, got {text!r}")
        result = Moment(((hours * 60 + minutes) * 60 + seconds) * SECOND + _nanoseconds(match[4]))
        result.clock = True
        return result
    if match := _RELATIVE.fullmatch(text):
        ns = int(Decimal(match[2]) * _UNITS[match[3]])
        result = Moment(ns if match[1] == "+" else -ns)
        result.relative = "beginning" if match[1] == "+" else "end"
        return result
    try:
        epoch = Decimal(text)
        if epoch.is_finite() and abs(epoch) < LATEST:
            return Moment(epoch * SECOND)
    except (ArithmeticError, ValueError):
        pass
    fraction = _FRACTION.fullmatch(text)
    plain, digits = (fraction[1] + fraction[3], fraction[2]) if fraction else (text, "")
    try:
        time = datetime.fromisoformat(plain)
        time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"expected a time (ISO 8601, HH:MM:SS, epoch seconds, +30s or -10min), got {text!r}"
        ) from None
    return Moment(
        (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000 + _nanoseconds(digits)
    )


def _nanoseconds(digits: str | None) -> int:
    return int((digits or "0").ljust(9, "0"))


class TimeRange:
    """From --since to --until. What has no time is in it only if it has no ends; a time of day is that of the
    first time asked about. Moments that are relative must have been made absolute (`absolute`)."""

    def __init__(self, since: Moment | None, until: Moment | None) -> None:
        self._since, self._until = since, until
        self._midnight: int | None = None

    def __bool__(self) -> bool:
        return self._since is not None or self._until is not None

    def __contains__(self, time_ns: int | None) -> bool:
        if not self:
            return True
        if time_ns is None:
            return False
        if self._midnight is None:
            self._midnight = time_ns - time_ns % DAY
        return (self._since is None or time_ns >= self._absolute(self._since)) and (
            self._until is None or time_ns <= self._absolute(self._until)
        )

    def _absolute(self, limit: Moment) -> int:
        return limit + (self._midnight or 0) if limit.clock else limit


def make_absolute(options: argparse.Namespace, find: Callable[[], TimeSpan | None] | None) -> None:
    """Make --since and --until absolute that are relative to the input. find: gives the input's span, by
    another reading; None where it can be read only once. Raises `Failure`."""
    relative_names = [
        name for name in ("since", "until") if getattr(getattr(options, name), "relative", None)
    ]
    if not relative_names:
        return
    if find is None:
        text = "standard input and live captures are read once: name a file, or give a time"
        raise Failure(f"--{relative_names[0]} relative to the input needs its first and last time; {text}")
    span = find()
    for name in relative_names:
        limit: Moment = getattr(options, name)
        moved = None if span is None else Moment(limit + span[limit.relative == "end"])
        setattr(options, name, moved)


def span_of(times: Iterable[int | None]) -> TimeSpan | None:
    """From the first to the last of all times; None where there are none."""
    first = last = None
    for time_ns in times:
        if time_ns is not None:
            first = time_ns if first is None or time_ns < first else first
            last = time_ns if last is None or time_ns > last else last
    return None if first is None or last is None else (first, last)
