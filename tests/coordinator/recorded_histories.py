"""Histories with what Kafka made of them, as one compressed text: a line a step, its checksum first.

    history 17 4.4.0
    0000 topics +AAAAAAAAAAEAAAAAAAAABw:3:orders
    9c1e request 1 11 4 …

Rules: a history of the oldest release names none. The checksum is of the outcome without the order of hash
tables (`Outcome.sorted`). It says that something differs; `python -m tests.coordinator.comparison SEED 1`
shows what, and needs Java. The histories that others read too are in the conformance archive, with all that
Kafka said: `archived_histories`.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from tests.coordinator.histories import Outcome
from tests.coordinator.oracle import RELEASE

_FOLDER = Path(__file__).parents[1] / "data" / "coordinator"
HISTORIES = _FOLDER / "histories.xz"
FURTHER = _FOLDER / "further.xz"
"""Wide and hostile histories, those that found a defect, and those that reach what is rare."""

FAILOVERS = _FOLDER / "failovers.xz"
"""Histories in which a shard goes on from the log of Kafka's coordinator, or from one that time changed."""

NEWER = _FOLDER / "newer.xz"
"""Histories of the releases after the oldest, with groups of all kinds."""

STREAMS = _FOLDER / "streams.xz"
"""Histories with streams groups beside groups of other kinds."""

FOREIGN = _FOLDER / "foreign.xz"
"""Logs that groups of all four kinds share, and requests that name the groups."""

_ALWAYS = 3


class RecordedHistory(NamedTuple):
    """seed: made it. steps: each after its outcome's checksum. release: of Kafka's coordinator."""

    seed: int
    steps: list[tuple[int, str]]
    release: str = RELEASE


def checksum(outcome: Outcome) -> int:
    """16 bits of what came out; 0 where nothing did."""
    parts: list[Any] = [
        outcome.answers, _records(outcome), outcome.failed, outcome.ended, outcome.other, outcome.created
    ]  # fmt: skip
    while parts and not parts[-1]:
        parts.pop()
    if not parts:
        return 0
    parts += [[]] * (_ALWAYS - len(parts))
    return crc32(repr(tuple(parts)).encode()) & 0xFFFF


def _records(outcome: Outcome) -> list[tuple[Any, ...]]:
    """The records as plain tuples; most belong to no transaction, and say nothing of one."""
    return [
        tuple(record) if record.producer_id != -1 else (record.key, record.value)
        for record in outcome.records
    ]


def write_histories(path: Path, histories: Iterable[RecordedHistory]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with lzma.open(path, "wt", preset=9) as file:
        for seed, steps, release in histories:
            file.write(f"history {seed}\n" if release == RELEASE else f"history {seed} {release}\n")
            file.writelines(f"{crc:04x} {step}\n" for crc, step in steps)


def read_histories(path: Path = HISTORIES) -> Iterator[RecordedHistory]:
    history: RecordedHistory | None = None
    with lzma.open(path, "rt") as file:
        for line in file:
            first, step = line.rstrip("\n").split(" ", 1)
            if first == "history":
                if history is not None:
                    yield history
                seed, _, release = step.partition(" ")
                history = RecordedHistory(int(seed), [], release or RELEASE)
            elif history is not None:
                history.steps.append((int(first, 16), step))
    if history is not None:
        yield history
