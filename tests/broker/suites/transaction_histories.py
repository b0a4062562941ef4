"""Random histories of transactional requests: this broker's answers and logs beside a Kafka 4.3 broker's.

Strategy: the same requests go to both, one after the other: producers of a few ids that begin, write, add
offsets, end, are fenced, come with older, newer and foreign epochs, in the versions of old clients and new
ones. What says that it may be repeated is repeated, as markers are written at once here and later there.
Rules: answers are equal, producer ids by the order in which they were given; at the end what readers of
committed records get is, and the groups' offsets, the described transactions, and all records of
`__transaction_state` but their times. COORDWIRE_TRANSACTION_HISTORIES and COORDWIRE_TRANSACTION_SEED say how
many and which.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from coordwire.broker import Broker
from coordwire.enums import ErrorCode
from tests.broker.suites.checks import Checks
from tests.broker.suites.transaction_side import GROUP, PARTITIONS, Producer, TransactionSide
from tests.interop.broker import Broker as KafkaBroker
from tests.interop.broker import Java

_HISTORIES, _LENGTH = 40, 60
_SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
Step = tuple[str, dict[str, Any]]


def run(checks: Checks, only: tuple[str, ...] = ()) -> None:
    """`only`: seeds."""
    java = Java()
    count = int(os.environ.get("COORDWIRE_TRANSACTION_HISTORIES", _HISTORIES))
    first = int(os.environ.get("COORDWIRE_TRANSACTION_SEED", 1))
    seeds = [int(one) for one in only] or list(range(first, first + count))
    with (
        tempfile.TemporaryDirectory() as work,
        KafkaBroker(java, Path(work) / "data", _SETTINGS) as kafka,
        Broker.in_thread() as ours,
        TransactionSide(kafka.address) as transaction_side,
        TransactionSide(ours.bootstrap) as right,
    ):
        checks.run("histories", lambda: _histories(seeds, transaction_side, right))


def _histories(seeds: list[int], kafka: TransactionSide, ours: TransactionSide) -> None:
    steps = 0
    counts: Counter[str] = Counter()
    for seed in seeds:
        history = _History(seed, kafka, ours)
        history.run()
        steps += len(history.steps)
        counts += history.errors
    names = ", ".join(f"{name} {count}" for name, count in counts.most_common())
    print(f"    {len(seeds)} histories, {steps} requests; errors in the answers: {names}")


class _History:
    """One history, on both sides."""

    def __init__(self, seed: int, kafka: TransactionSide, ours: TransactionSide) -> None:
        self._source = random.Random(seed)
        self._seed = seed
        self._sides = kafka, ours
        self._topic = f"topic-{seed}"
        self._ids = [f"id-{seed}-{number}" for number in range(2)]
        self._group = f"{GROUP}-{seed}"
        self._known: dict[str, list[Producer]] = {name: [] for name in self._ids}
        self._sequences: Counter[tuple[Producer, int]] = Counter()
        self._values = 0
        self._new_client = self._source.random() < 0.6
        self._mixed = self._source.random() < 0.25
        self.steps: list[Step] = []
        self.errors: Counter[str] = Counter()

    def run(self) -> None:
        about: dict[str, Any] = {"topic": self._topic, "ids": self._ids, "group": self._group}
        for side in self._sides:
            side.begin(**about)
        for _ in range(_LENGTH):
            self._step()
        for text in ("transactions", "values", "offsets", "states"):
            self._same(text, about)

    def _same(self, name: str, arguments: dict[str, Any]) -> Any:
        """Do a step on both sides; what both give."""
        kafka, ours = (getattr(side, name)(**arguments) for side in self._sides)
        if kafka != ours:
            told = "\n".join(f"  {step} {given}" for step, given in self.steps[-15:])
            raise AssertionError(
                f"seed {self._seed}, step {len(self.steps)}: {name} {arguments}\nKafka {kafka}\nours  {ours}"
                f"\nafter\n{told}"
            )
        return kafka

    def _step(self) -> None:
        source = self._source
        name = source.choice(self._ids)
        kinds = ["init", "produce", "produce", "offsets", "end", "end", "add", "commit"]
        kind = source.choice(kinds) if self._known[name] else "init"
        step, arguments = getattr(self, f"_{kind}")(name)
        result = self._same(step, arguments)
        self.steps.append((step, arguments | {"gave": result}))
        self.errors.update(ErrorCode(code).name for code in result["errors"] if code)
        producer = result.get("producer")
        if producer is not None and not any(result["errors"]) and producer not in self._known[name]:
            self._known[name].append(producer)
        if step == "produce" and not any(result["errors"]):
            who, partition = arguments["who"], arguments["partition"]
            self._sequences[who, partition] = max(self._sequences[who, partition], arguments["sequence"] + 1)

    # --- what a client does ---

    @property
    def _new(self) -> bool:
        """Whether the client of this request knows transaction version 2."""
        return self._source.random() < 0.5 if self._mixed else self._new_client

    def _who(self, name: str) -> Producer:
        """Mostly the id's present producer; else an older one, a newer epoch, or another id's."""
        source, known = self._source, self._known[name]
        sample = source.random()
        if sample < 0.8:
            return known[-1]
        if sample < 0.88:
            return source.choice(known)
        if sample < 0.93:
            return Producer(known[-1].number, known[-1].epoch + source.choice((1, 2)))
        if sample < 0.96:
            return Producer(known[-1].number, max(known[-1].epoch - 1, 0))
        others = self._known[source.choice(self._ids)]
        return source.choice(others) if others else known[0]

    def _init(self, name: str) -> Step:
        source = self._source
        version = source.choice((2, 3, 4, 5)) if self._mixed else 5 if self._new_client else 4
        producer = Producer(-1, -1)
        if version >= 3 and self._known[name] and source.random() < 0.35:
            producer = self._who(name)
        timeout = 60_000 if source.random() < 0.95 else source.choice((0, 10_000_000))
        return "init", {"name": name, "who": producer, "timeout_ms": timeout, "version": version}

    def _produce(self, name: str) -> Step:
        source, who = self._source, self._who(name)
        partition = source.randrange(PARTITIONS)
        sequence = self._sequences[who, partition]
        if source.random() < 0.05:
            sequence += source.choice((1, 3))
        self._values += 1
        return "produce", {
            "name": name, "who": who, "topic": self._topic, "partition": partition, "sequence": sequence,
            "value": b"%d" % self._values, "version": 12 if self._new else source.choice((7, 9, 11)),
        }  # fmt: skip

    def _add(self, name: str) -> Step:
        source = self._source
        places = sorted(source.sample(range(PARTITIONS), source.choice((1, 2))))
        if source.random() < 0.05:
            places.append(PARTITIONS + 3)
        version = source.choice((0, 1, 2, 3))
        return "add", {
            "name": name, "who": self._who(name), "topic": self._topic, "partitions": places,
            "version": version,
        }  # fmt: skip

    def _offsets(self, name: str) -> Step:
        version = self._source.choice((1, 3, 4)) if self._mixed else 4 if self._new_client else 3
        arguments = {"name": name, "who": self._who(name), "group": self._group, "version": version}
        return "add_offsets", arguments

    def _commit(self, name: str) -> Step:
        source = self._source
        return "commit", {
            "name": name, "who": self._who(name), "group": self._group, "topic": self._topic,
            "partition": source.randrange(PARTITIONS), "offset": source.randrange(1000),
            "version": 5 if self._new else source.choice((2, 3, 4)),
        }  # fmt: skip

    def _end(self, name: str) -> Step:
        source = self._source
        version = 5 if self._new else source.choice((1, 2, 3, 4))
        committed = source.random() < 0.6
        return "end", {"name": name, "who": self._who(name), "committed": committed, "version": version}
