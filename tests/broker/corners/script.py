"""A case: a short script of requests. Each step whose outcome counts is answered the same way by all brokers.

Rules: texts that begin with "$" are names of the case's own: `$t`, `$t2` topics, `$g` a group, `$x` a
transactional id; `$t#id` is the id of a topic; what a step keeps of its answer has the name that it gives.
Each case has names of its own, so that the cases can share a broker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request and its answer. link: which of the case's connections. keep: names for values of the answer,
    by their paths. again: error codes on which it is sent again for a while; until: so it is while this part
    of the answer is empty. counts: the outcome is compared.
    waits: the answer is received by a later step. patience: seconds without an answer that are an outcome."""

    api: str
    version: int
    fields: Mapping[str, Any]
    link: str = "a"
    keep: Mapping[str, str] = field(default_factory=dict)
    again: Sequence[int] = ()
    until: str | None = None
    counts: bool = True
    waits: bool = False
    patience: float = 5.0


@dataclass(frozen=True, slots=True)
class Receive:
    """An answer to a request that was sent before."""

    link: str
    keep: Mapping[str, str]
    patience: float = 5.0


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes as they are, and what the next answer is read as; None for one that is not read."""

    data: bytes
    link: str
    answer: tuple[int, int] | None
    patience: float


Step = Ask | Receive | Raw


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    steps: Sequence[Step]


CASES: dict[str, Case] = {}


def case(name: str, *steps: Step | Sequence[Step]) -> None:
    """Add a case."""
    if name in CASES:
        raise ValueError(f"two cases {name!r}")
    flat = [one for step in steps for one in (step if isinstance(step, Sequence) else [step])]
    CASES[name] = Case(name, flat)


def ask(
    api: str,
    version: int,
    *,
    link: str = "a",
    keep: Mapping[str, str] | None = None,
    again: Sequence[int] = (),
    waits: bool = False,
    patience: float = 5.0,
    **fields: Any,
) -> Ask:
    """A request whose outcome counts."""
    return Ask(
        api=api, version=version, fields=fields, link=link, keep=keep or {}, again=again, waits=waits,
        patience=patience,
    )  # fmt: skip


def quiet(
    api: str,
    version: int,
    *,
    link: str = "a",
    keep: Mapping[str, str] | None = None,
    again: Sequence[int] = (),
    until: str | None = None,
    **fields: Any,
) -> Ask:
    """A request that prepares others."""
    return Ask(
        api=api,
        version=version,
        fields=fields,
        link=link,
        keep=keep or {},
        again=again,
        until=until,
        counts=False,
    )


def receive(link: str = "a", *, patience: float = 5.0, **keep: str) -> Receive:
    return Receive(link, keep, patience)


def raw(data: bytes, *, link: str = "a", answer: tuple[int, int] | None = None, patience: float = 1.0) -> Raw:
    return Raw(data, link, answer, patience)


def only_if(condition: object, **fields: Any) -> dict[str, Any]:
    """Fields of a request that not every version has."""
    return fields if condition else {}


_NOT_YET = (3, 5, 6, 100)
"""Errors of a topic that not every part of a broker knows yet."""


def topic(name: str = "$t", partitions: int = 1, **settings: str) -> list[Step]:
    """A topic, and the wait until it has leaders."""
    configs = [{"name": key.replace("_", "."), "value": value} for key, value in settings.items()]
    made = {"name": name, "num_partitions": partitions, "replication_factor": 1, "configs": configs}
    return [
        quiet("CreateTopics", 7, topics=[made], timeout_ms=5000),
        quiet(
            "Metadata", 12, again=_NOT_YET, topics=[{"name": name}], keep={f"{name}#id": "topics.0.topic_id"}
        ),
        quiet(
            "ListOffsets", 7, again=_NOT_YET, replica_id=-1,
            topics=[{"name": name, "partitions": [
                {"partition_index": index, "timestamp": -1} for index in range(partitions)
            ]}],
        ),
    ]  # fmt: skip


def write(name: str, partition: int, data: bytes) -> Step:
    """A batch for a partition."""
    return quiet(
        "Produce", 9, acks=-1, timeout_ms=5000,
        topic_data=[{"name": name, "partition_data": [{"index": partition, "records": data}]}],
    )  # fmt: skip
