"""Histories of a group coordinator on a clock: what happens to it, step by step, and what Kafka's own does.

Strategy: the steps are those that are kept, or of files that the generators of tests/coordinator wrote; each
history runs on the coordinator of the release that it names (`tests/coordinator/oracle`: Kafka's
`GroupCoordinatorService` on a mock clock), and what requests, answers and writes say in JSON is what Kafka's
classes read from the bytes. Rules: a message that Kafka doesn't write again byte by byte, or that coordwire
doesn't make of the JSON byte by byte, stops the build, so that the JSON is enough;
what Kafka has in the order of hash tables, which differs from run to run, is sorted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from conformance.steps import Former, text
from coordwire.codec import Message
from tests.coordinator import rule_histories
from tests.coordinator.histories import kafka_outcome
from tests.coordinator.oracle import RELEASES, oracle
from tests.coordinator.recorded_histories import RecordedHistory, read_histories
from tests.coordinator.release_histories import CHANGES
from tests.coordinator.settings import kafka_settings
from tests.interop.cells import java_name, judge
from tests.interop.java_oracle import Command, Refused

BATCH = 500
KINDS = ("rules", "changes", "random")
"""In the order of the file."""


class Given(NamedTuple):
    """A history without answers. seed: of its settings."""

    id: str
    release: str
    seed: int
    steps: list[str]


def kept(vectors: Iterable[dict[str, Any]]) -> Iterator[Given]:
    """The histories of vectors."""
    for one in vectors:
        yield Given(one["id"], one["release"], one["seed"], [text(step) for step in one["steps"]])


def recorded(kind: str, path: Path) -> Iterator[Given]:
    """Those of a file of steps, with addresses of this kind: rules, changes or random."""
    seen: Counter[tuple[str, str]] = Counter()
    histories = list(read_histories(path))
    for history, name in zip(histories, _names(kind, histories), strict=True):
        stem = f"histories/{kind}/{name}"
        seen[stem, history.release] += 1
        number = seen[stem, history.release]
        address = f"{stem}{f'-{number}' if number > 1 else ''}/{history.release}"
        yield Given(address, history.release, history.seed, [step for _, step in history.steps])


def _names(kind: str, histories: list[RecordedHistory]) -> list[str]:
    if kind == "rules":
        rules = [*rule_histories.RULES, *(rule for _, rule in rule_histories.LATER)]
        names = [rule.__name__.strip("_") for rule in rules]
    elif kind == "changes":
        names = [change.rule for change in CHANGES for _ in RELEASES]
    else:
        names = [str(history.seed) for history in histories]
    return [name.replace("_", "-") for name in names]


def judged(some: Iterable[Given]) -> Iterator[dict[str, Any]]:
    """Each with what Kafka's coordinator made of it."""
    ran = [(one, oracle(one.release).run([kafka_settings(one.seed), *one.steps])[1:]) for one in some]
    wanted: dict[tuple[type[Message], int], dict[bytes, Any]] = {}

    def want(cls: type[Message], version: int, body: bytes) -> None:
        wanted.setdefault((cls, version), {})[body] = None

    def shown(cls: type[Message], version: int, body: bytes) -> Any:
        return wanted[cls, version][body]

    for look in (want, shown):
        for one, outputs in ran:
            former = Former(look)
            pairs = zip(one.steps, map(kafka_outcome, outputs), strict=True)
            steps = [former.form(step, outcome) for step, outcome in pairs]
            if look is shown:
                for step, line in zip(steps, one.steps, strict=True):
                    assert text(step) == line, f"{one.id}: {line}"
                yield {
                    "id": one.id, "release": one.release, "seed": one.seed, "settings": pairs_of(one.seed),
                    "steps": steps,
                }  # fmt: skip
        if look is want:
            for (cls, version), bodies in wanted.items():
                _fill(cls, version, bodies)


def _fill(cls: type[Message], version: int, bodies: dict[bytes, Any]) -> None:
    kafka = judge(cls, version)
    assert kafka is not None, f"no release has {cls.__name__} v{version}"
    everything = list(bodies)
    for at in range(0, len(everything), BATCH):
        some = everything[at : at + BATCH]
        read = kafka.ask([Command("B", java_name(cls), version, body) for body in some])
        for body, said in zip(some, read, strict=True):
            assert not isinstance(said, Refused), said
            assert said[1:] == [body, b"0"], f"{cls.__name__} v{version}: {body.hex()}"
            bodies[body] = json.loads(said[0])


def pairs_of(seed: int) -> dict[str, str]:
    """The settings of a history, by Kafka's names."""
    return dict(pair.split("=", 1) for pair in kafka_settings(seed).split(" ")[1:])
