"""Random steps of a table with snapshots: `python -m tests.coordinator.table_histories SEED COUNT`.

Strategy: keys are put and removed, epochs begin, are reverted to and committed. After each step the table's
keys and values are listed in its order, which is that of Kafka's `TimelineHashMap`. `--keep FILE` stores the
steps with a checksum of what Kafka's table had.
"""

from __future__ import annotations

import argparse
import lzma
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from zlib import crc32

from coordwire.coordinator.snapshots import Snapshots, TimelineHashMap
from tests.coordinator.oracle import oracle

__all__ = ["kafka_lines", "our_lines", "read_tables", "table_checksum", "table_history"]

TABLES = Path(__file__).parents[1] / "data" / "coordinator" / "tables.xz"


def table_history(seed: int, count: int = 60) -> list[str]:
    chance = random.Random(seed)
    keys = [f"k{chance.randrange(1_000)}" for _ in range(chance.choice([4, 8, 20]))]
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


def our_lines(steps: Sequence[str]) -> list[str]:
    """The table after each step, as the oracle lists it."""
    snapshots = Snapshots()
    table: TimelineHashMap[str, str] = TimelineHashMap(snapshots)
    lines = []
    for step in steps:
        command, *words = step.split(":")
        if command == "put":
            table[words[0]] = words[1]
        elif command == "remove":
            table.pop(words[0])
        else:
            getattr(snapshots, command)(int(words[0]))
        lines.append("".join(f"{key}={table[key]} " for key in table))
    return lines


def kafka_lines(histories: Sequence[Sequence[str]]) -> list[list[str]]:
    """Kafka's tables after each step. Raises `Unavailable`."""
    return oracle().run(["new", *(f"table {' '.join(steps)}" for steps in histories)])[1:]


def table_checksum(lines: Sequence[str]) -> int:
    return crc32("\n".join(lines).encode())


def read_tables() -> Iterator[tuple[int, list[str]]]:
    """Kept steps, each history after its checksum."""
    with lzma.open(TABLES, "rt") as file:
        for line in file:
            expected, *steps = line.split()
            yield int(expected, 16), steps


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    histories = [table_history(seed) for seed in range(options.seed, options.seed + options.count)]
    outputs = kafka_lines(histories)
    pairs = list(zip(histories, outputs, strict=True))
    differing = [steps for steps, lines in pairs if our_lines(steps) != lines]
    for steps in differing:
        print(" ".join(steps))
    if options.keep:
        with lzma.open(options.keep, "wt", preset=9) as file:
            file.writelines(f"{table_checksum(lines):08x} {' '.join(steps)}\n" for steps, lines in pairs)
    print(f"{options.count} tables: {len(differing)} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
