"""Which files are one rotated capture, and in which order.

Strategy: names that differ in a number are of one capture: those of tcpdump -C (`x.pcap`, `x.pcap1`, …) and
of dumpcap -b (`x_00001_20240131120000.pcapng`), compressed or not. Names that differ in a date or a time are
if these are what the clock read when each file's first packet came, as with `tcpdump -G`: captures of several
hosts may be numbered too, and are of the same time.

Rules: the order is that of the first packets, as `tcpdump -W` begins again with the first name; a file
without one follows the number before it. A date or time is the last digits of a name, in the order of their
sizes, with anything in between (`_LAYOUTS`), in any time zone, and at most `LATE` before the first packet. A
file is opened only where its name leaves open what it belongs to.
"""

from __future__ import annotations

import calendar
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from hashlib import blake2b
from itertools import pairwise
from typing import BinaryIO, Generic, NamedTuple, TypeVar

from coordwire.capture.formats.pcap import read_packets
from coordwire.capture.formats.source import Packet
from coordwire.errors import CoordwireError

T = TypeVar("T")

_COMPRESSED = r"(?:\.(?:gz|xz|zst))?"

_CAPTURE = re.compile(rf".*\.(?:pcap|pcapng|cap|hex)\d*{_COMPRESSED}", re.DOTALL)

# tcpdump -C: x.pcap, x.pcap1, x.pcap2; dumpcap: x_00001_20240131120000.pcapng
_TCPDUMP = re.compile(rf"(?P<stem>.+\.(?:pcap|pcapng|cap))(?P<number>\d*){_COMPRESSED}", re.DOTALL)

_DUMPCAP = re.compile(rf"(?P<stem>.+)_(?P<number>\d{{5}})_\d{{14}}(?P<end>\.\w+?){_COMPRESSED}", re.DOTALL)


def is_capture_name(name: str) -> bool:
    """Whether a file's name is that of a capture."""
    return _CAPTURE.fullmatch(name) is not None


class FirstPacket(NamedTuple):
    """What a capture's file is known by, whatever its name. digest: of the packet and its time."""

    time_ns: int
    digest: str


def first_packet(open_file: Callable[[str], BinaryIO], path: str) -> FirstPacket | None:
    """The first packet of a capture's file; None if it is not written yet or damaged. Raises `OSError`.

    open_file: opens it, decompressed.
    """
    try:
        with open_file(path) as stream:
            packet = next(read_packets(stream), None)
    except CoordwireError:
        return None
    if not isinstance(packet, Packet):
        return None
    text = f"{packet.time_ns} {packet.wire_length} ".encode() + packet.data
    return FirstPacket(packet.time_ns, blake2b(text, digest_size=8).hexdigest())


def rotated(
    files: Iterable[T], path: Callable[[T], str], first: Callable[[T], FirstPacket | None]
) -> list[list[T]]:
    """The files, those of one rotated capture together and in its order. path, first: of a file; the first
    packet is asked for where a capture has several files, or may have."""
    chains: dict[tuple[str, ...], list[tuple[int, str, T]]] = {}
    for file in files:
        name = path(file)
        match = _DUMPCAP.fullmatch(name) or _TCPDUMP.fullmatch(name)
        if match is None:
            chains[name, "", ""] = [(0, name, file)]
        else:
            key = (match["stem"], match.groupdict().get("end") or "", "rotated")
            chains.setdefault(key, []).append((int(match["number"] or 0), name, file))
    numbered = [
        _by_time([file for _, _, file in sorted(chain, key=lambda part: part[:2])], first)
        for chain in chains.values()
    ]
    return _dated(dict(zip(chains, numbered, strict=True)), first)


def _by_time(files: list[T], first: Callable[[T], FirstPacket | None]) -> list[T]:
    """The files of a capture, in the order of their numbers, by the times of their first packets."""
    if len(files) == 1:
        return files
    timed, time_ns = [], 0
    for number, file in enumerate(files):
        packet = first(file)
        time_ns = time_ns if packet is None else packet.time_ns
        timed.append((time_ns, number, file))
    return [file for _, _, file in sorted(timed, key=lambda part: part[:2])]


# --- dates and times in names ---


LATE = 60
"""Seconds that a file may have before its first packet."""

EARLY = 2
"""Seconds that a packet may wait before its file is opened and named."""

ZONE = 900
"""Seconds that offsets of time zones are multiples of."""

DAY = 86_400

_LAYOUTS = {
    2: ("H", "d"), 4: ("HM", "md"), 6: ("HMS", "ymd"), 8: ("Ymd", "ymdH"), 10: ("s", "YmdH", "ymdHM"),
    12: ("YmdHM", "ymdHMS"), 14: ("YmdHMS",),
}  # fmt: skip
"""What so many digits may be, in the letters of `strftime`."""

_DIGITS = re.compile(r"[0-9]+")
_SMALLEST = {"s": 1, "S": 1, "M": 60, "H": 3600, "d": DAY}


class _Chain(NamedTuple, Generic[T]):
    """The files of one date or time. numbers: those in their name."""

    numbers: tuple[str, ...]
    files: list[T]


def _dated(chains: dict[tuple[str, ...], list[T]], first: Callable[[T], FirstPacket | None]) -> list[list[T]]:
    """The chains, those together that differ in a date or time alone."""
    alike: dict[str, list[_Chain[T]]] = {}
    for key, files in chains.items():
        stem, number, kind = key
        folder, slash, name = stem.rpartition("/")
        can_be_dated = kind == "rotated" and not number
        numbers = tuple(_DIGITS.findall(name)) if can_be_dated else ()
        form = folder + slash + _DIGITS.sub(lambda run: "#" * len(run[0]), name) if numbers else repr(key)
        alike.setdefault(form, []).append(_Chain(numbers, files))
    return [files for group in alike.values() for files in _together(group, 0, first)]


def _together(
    chains: list[_Chain[T]], literal: int, first: Callable[[T], FirstPacket | None]
) -> Iterator[list[T]]:
    """The files of chains whose names are of one form. literal: so many of its first numbers are the same,
    and no part of a date or time."""
    if len(chains) == 1:
        yield chains[0].files
        return
    texts = ["".join(chain.numbers[literal:]) for chain in chains]
    for layout in _LAYOUTS.get(len(texts[0]), ()):
        if dated := _by_clock(chains, texts, layout, first):
            yield from dated
            return
    by_number: dict[str, list[_Chain[T]]] = {}
    for chain in chains:
        by_number.setdefault(chain.numbers[literal], []).append(chain)
    for numbered in by_number.values():
        yield from _together(numbered, literal + 1, first)


def _by_clock(
    chains: Sequence[_Chain[T]], texts: Sequence[str], layout: str, first: Callable[[T], FirstPacket | None]
) -> list[list[T]]:
    """The files of all chains in the order of time, if their names are what the clock read; else nothing.
    Those that have no packet, as one that is being written, are apart."""
    if not all(_is_possible(text, layout) for text in texts):
        return []
    timed: list[tuple[int, str, list[T]]] = []
    apart: list[list[T]] = []
    for text, chain in sorted(zip(texts, chains, strict=True), key=lambda pair: pair[0]):
        packet = first(chain.files[0])
        if packet is None:
            apart.append(chain.files)
            continue
        timed.append((packet.time_ns, text, chain.files))
        if len(timed) == 2 and not _is_clock(timed, layout):
            return []
    if len(timed) < 2 or not _is_clock(timed, layout):
        return []
    timed.sort(key=lambda item: item[:2])
    return [[file for _, _, files in timed for file in files], *apart]


def _is_possible(text: str, layout: str) -> bool:
    return layout == "s" or _moment(text, layout, datetime(2000, 1, 15)) is not None


def _is_clock(timed: Sequence[tuple[int, str, list[T]]], layout: str) -> bool:
    """Whether one clock, in one time zone, has given these names at these times."""
    smallest = _SMALLEST[layout[-1]]
    times, offsets = list[float](), list[float]()
    for time_ns, text, _ in sorted(timed, key=lambda item: item[0]):
        offset = _offset(text, layout, time_ns / 1e9)
        if offset is None:
            return False
        if offsets and "d" not in layout and layout != "s":  # the day isn't known: that near to the first
            offset = offsets[0] + (offset - offsets[0] + DAY / 2) % DAY - DAY / 2
        times.append(time_ns / 1e9)
        offsets.append(offset)
    names = list(map(operator.add, times, offsets))
    for (time, name), (later, next_name) in pairwise(zip(times, names, strict=True)):
        if later - time < smallest / 4 or next_name - name < smallest / 2:  # numbers of captures of one time
            return False
    low, high = max(offsets) - EARLY, min(offsets) + smallest + LATE
    step = 2 * DAY if layout == "s" else ZONE
    zone = -(-low // step) * step
    return zone < high and abs(zone) <= 2 * DAY


def _offset(text: str, layout: str, time: float) -> float | None:
    """The seconds from a packet's time to that of the name, if this is in UTC."""
    if layout == "s":
        return int(text) - time
    try:
        near = datetime(1970, 1, 1) + timedelta(seconds=time)
        days = [near + timedelta(days=days) for days in (-15, -1, 0, 1, 15)]
    except OverflowError:  # after the year 9999
        return None
    moments = [_moment(text, layout, day) for day in days]
    return min((moment - time for moment in moments if moment is not None), key=abs, default=None)


def _moment(text: str, layout: str, near: datetime) -> int | None:
    """Seconds since 1970 of a date and time, with what it leaves out as of a time near to it."""
    values = {"Y": near.year, "m": near.month, "d": near.day, "H": 0, "M": 0, "S": 0}
    at = 0
    for letter in layout:
        size = 4 if letter == "Y" else 2
        number = int(text[at : at + size])
        values["Y" if letter == "y" else letter] = 2000 + number if letter == "y" else number
        at += size
    try:
        moment = datetime(values["Y"], values["m"], values["d"], values["H"], values["M"], values["S"])
    except ValueError:
        return None
    return calendar.timegm(moment.timetuple())
