"""Random steps of Java's and Kafka's tables: `python -m tests.coordinator.table_histories SEED COUNT`.

Strategy: of a table with snapshots keys are put and removed, epochs begin, are reverted to and committed; a
map and a set are made with a capacity, changed in every way that there is, and copied. After each step the
table's keys and values are listed in its order, which is that of Kafka's `TimelineHashMap`, and of Java's
`HashMap` and `HashSet`. `--keep FILE` stores the steps with a checksum of what Kafka's or Java's table had.

Rules: a history begins with the kind of its table, `table`, `map` or `set`. No more than seven keys
share a bucket, since larger ones may be trees in Java.
"""

from __future__ import annotations

import argparse
import lzma
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID
from zlib import crc32

from coordwire.coordinator.hash_tables import HashMap, HashSet
from coordwire.coordinator.snapshots import Snapshots, TimelineHashMap
from tests.coordinator.oracle import oracle

TABLES = Path(__file__).parents[1] / "data" / "coordinator" / "tables.xz"

_COLLIDING = ["AaAa", "BBBB", "AaBB", "BBAa", "AaAaAaAa", "AaAaBBBB", "BBBBAaAa", "BBBBBBBB"]
"""Strings with two hashes."""


class Number(NamedTuple):
    """A number as a key that has its own hash."""

    number: int

    @property
    def java_hash(self) -> int:
        return self.number & (1 << 32) - 1


def table_history(seed: int, count: int = 60) -> list[str]:
    chance = random.Random(seed)
    match seed % 4:
        case 0:
            return ["table", *_snapshot_steps(chance, count)]
        case 1 | 2:
            return ["map", *_map_steps(chance, count)]
        case _:
            return ["set", *_set_steps(chance, count)]


def _keys(chance: random.Random, kinds: str) -> list[str]:
    count = chance.choice([4, 8, 20, 40])
    match chance.choice(kinds):
        case "k":
            return [f"k{chance.randrange(1_000)}" for _ in range(count)]
        case "i":
            return [f"i{chance.choice([1, 1, 1_000_003, -77]) * chance.randrange(300)}" for _ in range(count)]
        case "u":
            return [f"u{chance.getrandbits(128):032x}" for _ in range(count)]
        case "p":
            return [f"p{chance.choice('abc')}.{chance.randrange(100)}" for _ in range(count)]
        case "c":
            return _COLLIDING[: chance.randint(2, 8)]
        case _:
            return [f"i{number * chance.choice([64, 1 << 16])}" for number in range(7)]


def _snapshot_steps(chance: random.Random, count: int) -> list[str]:
    keys = _keys(chance, "kkki")
    epochs, steps = [0], []
    for _ in range(count):
        choice = chance.random()
        if choice < 0.5:
            steps.append(f"put:{chance.choice(keys)}:{chance.randrange(100)}")
        elif choice < 0.7:
            steps.append(f"remove:{chance.choice(keys)}")
        elif choice < 0.85:
            epochs.append(epochs[-1] + chance.randint(1, 3))
            steps.append(f"begin:{epochs[-1]}")
        elif choice < 0.93:
            target = chance.choice(epochs)
            epochs = [epoch for epoch in epochs if epoch <= target]
            steps.append(f"revert:{target}")
        else:
            durable = chance.choice(epochs)
            epochs = [epoch for epoch in epochs if epoch >= durable]
            steps.append(f"commit:{durable}")
    return steps


def _map_steps(chance: random.Random, count: int) -> list[str]:
    keys = _keys(chance, "kiupcs")
    steps = [f"new:{chance.choice([0, 1, 2, 3, 8, 16, 16, 16, 40])}"]
    for _ in range(count):
        key, value = chance.choice(keys), chance.randrange(100)
        choice = chance.random()
        if choice < 0.35:
            steps.append(f"put:{key}:{value}")
        elif choice < 0.55:
            steps.append(f"absent:{key}:{value}")
        elif choice < 0.7:
            steps.append(f"compute:{key}:{value}")
        elif choice < 0.78:
            steps.append(f"compute:{key}:-")
        elif choice < 0.95:
            steps.append(f"remove:{key}")
        else:
            steps.append("copy")
    return steps


def _set_steps(chance: random.Random, count: int) -> list[str]:
    keys = _keys(chance, "kiupcs")
    steps = [f"new:{chance.choice([0, 1, 2, 3, 8, 16, 16, 16, 40])}"]
    for _ in range(count):
        choice = chance.random()
        if choice < 0.95:
            steps.append(f"{'put' if choice < 0.65 else 'remove'}:{chance.choice(keys)}")
        else:
            steps.append("copy")
    return steps


def _key(text: str, numbers: type) -> Any:
    match text[0]:
        case "i":
            return numbers(int(text[1:]))
        case "u":
            return UUID(text[1:])
        case "p":
            first, second = text[1:].split(".")
            return first, int(second)
        case _:
            return text


def our_lines(history: Sequence[str]) -> list[str]:
    """The table after each step, as the oracle lists it."""
    kind, *steps = history
    return {"table": _our_table, "map": _our_map, "set": _our_set}[kind](steps)


def _our_table(steps: Sequence[str]) -> list[str]:
    snapshots = Snapshots()
    table: TimelineHashMap[Any, tuple[str, str]] = TimelineHashMap(snapshots)
    lines = []
    for step in steps:
        command, *words = step.split(":")
        if command == "put":
            table[_key(words[0], Number)] = words[0], words[1]
        elif command == "remove":
            table.pop(_key(words[0], Number))
        else:
            getattr(snapshots, command)(int(words[0]))
        lines.append("".join(f"{key}={value} " for key, value in table.values()))
    return lines


def _our_map(steps: Sequence[str]) -> list[str]:
    table: HashMap[Any, tuple[str, str]] = HashMap()
    lines = []
    for step in steps:
        command, *words = step.split(":")
        key = _key(words[0], int) if command not in ("new", "copy") else None
        match command:
            case "new":
                table = HashMap(int(words[0]))
            case "put":
                table[key] = words[0], words[1]
            case "absent":
                table.find_or_add(key, lambda words=words: (words[0], words[1]))  # type: ignore[misc]
            case "compute":
                table.compute(key, lambda _, words=words: None if words[1] == "-" else (words[0], words[1]))  # type: ignore[misc]
            case "remove":
                table.discard(key)
            case _:
                table = HashMap.copy_of(table)
        lines.append("".join(f"{key}={value} " for key, value in table.values()))
        assert table.first() == next(iter(table), None)
    return lines


def _our_set(steps: Sequence[str]) -> list[str]:
    table: HashSet[Any] = HashSet()
    names: dict[Any, str] = {}
    lines = []
    for step in steps:
        command, *words = step.split(":")
        if command == "new":
            table = HashSet(int(words[0]))
        elif command == "copy":
            table = HashSet.copy_of(table)
        else:
            key = _key(words[0], int)
            names[key] = words[0]
            (table.add if command == "put" else table.discard)(key)
        lines.append("".join(f"{names[key]} " for key in table))
    return lines


def kafka_lines(histories: Sequence[Sequence[str]]) -> list[list[str]]:
    """Kafka's and Java's tables after each step. Raises `Unavailable`."""
    return oracle().run(["new", *(" ".join(history) for history in histories)])[1:]


def table_checksum(lines: Sequence[str]) -> int:
    return crc32("\n".join(lines).encode())


def read_tables() -> Iterator[tuple[int, list[str]]]:
    """Kept histories, each after its checksum."""
    with lzma.open(TABLES, "rt") as file:
        for line in file:
            expected, *history = line.split()
            yield int(expected, 16), history


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    histories = [table_history(seed) for seed in range(options.seed, options.seed + options.count)]
    outputs = kafka_lines(histories)
    pairs = list(zip(histories, outputs, strict=True))
    differing = [history for history, lines in pairs if our_lines(history) != lines]
    for history in differing:
        print(" ".join(history))
    if options.keep:
        with lzma.open(options.keep, "wt", preset=9) as file:
            file.writelines(f"{table_checksum(lines):08x} {' '.join(history)}\n" for history, lines in pairs)
    print(f"{options.count} tables: {len(differing)} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
