"""Names of rotated captures: those that a clock gave are one capture, numbers of several aren't."""

from __future__ import annotations

import random
import time

import pytest

from coordwire.capture.rotated_names import FirstPacket, rotated

FORMATS = {
    "%H": 3600, "%d": 86_400, "%Y%m%d": 86_400, "%m-%d": 86_400, "%y%m%d%H": 3600, "%H%M": 60, "%s": 60,
    "%H-%M-%S": 10, "%Y-%m-%d_%H:%M:%S": 5, "%Y%m%d%H%M%S": 100,
}  # fmt: skip


def chains(times: dict[str, float], opened: list[str] | None = None) -> list[list[str]]:
    """The chains of files with their first packets at these times, in seconds."""

    def first(name: str) -> FirstPacket | None:
        if opened is not None:
            opened.append(name)
        return None if times[name] < 0 else FirstPacket(int(times[name] * 1e9), name)

    return rotated(times, str, first)


def written(text: str, start: float, count: int, zone: int, prefix: str = "x-") -> dict[str, float]:
    """What `tcpdump -G` writes: the first file is named at its start, the others at their first packets."""
    step = FORMATS[text]
    times = {}
    for number in range(count):
        moment = start + number * step
        name = prefix + time.strftime(text, time.gmtime(moment + zone)) + ".pcap"
        times[name] = moment + (min(40, step * 0.7) if number == 0 else 0.01)
    return times


@pytest.mark.parametrize("text", FORMATS)
def test_names_by_a_clock_are_one_capture(text: str) -> None:
    rng = random.Random(text)
    for _ in range(30):
        zone = 0 if text == "%s" else rng.randrange(-48, 57) * 900
        times = written(text, rng.uniform(1.6e9, 1.9e9), rng.randrange(2, 20), zone)
        names = list(times)
        shuffled = dict(sorted(times.items(), key=lambda _: rng.random()))
        assert chains(shuffled) == [names]


@pytest.mark.parametrize("width", [1, 2, 3, 4, 8])
def test_numbers_are_not_times(width: int) -> None:
    """Captures of some hosts, of one time or one after the other."""
    rng = random.Random(width)
    for step in (0, 7, 30_000):
        for _ in range(100):
            start = rng.uniform(1.6e9, 1.9e9)
            times = {f"x-{11 + n:0{width}}.pcap": start + n * step + rng.random() for n in range(4)}
            assert len(chains(times)) == 4


def test_each_host_has_its_own_capture() -> None:
    first = written("%H", 1.7e9, 20, 0, "a/host-01-")
    second = written("%H", 1.7e9, 20, 0, "a/host-02-")
    elsewhere = written("%H", 1.7e9, 20, 0, "b/host-01-")
    assert chains(first | second | elsewhere) == [list(first), list(second), list(elsewhere)]


def test_with_sizes_and_without_a_packet() -> None:
    times = {
        "x-08.pcap": 8.0 * 3600, "x-08.pcap1": 8.1 * 3600, "x-09.pcap.gz": 9.0 * 3600,
        "x-10.pcap": -1.0,
    }  # fmt: skip
    assert chains(times) == [["x-08.pcap", "x-08.pcap1", "x-09.pcap.gz"], ["x-10.pcap"]]


def test_no_time_is_too_late() -> None:
    assert len(chains({"x-08.pcap": 1e18, "x-09.pcap": 2e18})) == 2
    assert len(chains({"x-9912312359.pcap": 9e9, "x-9912312358.pcap": 1e12})) == 2


def test_few_files_are_opened_where_names_say_nothing() -> None:
    opened: list[str] = []
    assert len(chains({f"x-{number:04}.pcap": 1.7e9 for number in range(1000)}, opened)) == 1000
    assert opened == []
    assert len(chains({f"x-{number:06}.pcap": 1.7e9 for number in range(50)}, opened)) == 50
    assert len(opened) <= 4
