"""Apache Kafka's verdict on bytes: its own classes, of the release that a vector names.

Strategy: vectors are given to `JavaOracle` in batches; the newest of the house's releases that has a version
judges it.

Rules: `valid` is what Kafka reads whole and would write just so; `invalid` what it refuses; `acceptable` what
it reads with bytes left over, or would write in another way or not at all, and what it refuses for a limit of
its own: a reader may do either.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import Any

from conformance.flaws import FLAWS
from conformance.hostile import ALLOWANCE, Input
from coordwire.codec import Message
from coordwire.messages import find_message
from tests.interop.cells import java_name, judge
from tests.interop.java_oracle import Command, JavaOracle, Refused

BATCH = 500
LIMITS = {
    "count-limit": "Kafka 4.4 reads at most 1,000,000 elements; a reader without this limit may accept",
    "tags-limit": "Kafka 4.4 reads at most 10,000 tagged fields; a reader without this limit may accept",
}
ANSWERS = ("verdict", "kafka", "release", "reason", "json", "left", "same_bytes", "most_allocated", "notes")
"""The fields of a vector that are made here."""


def judged(inputs: Iterable[Input]) -> Iterator[dict[str, Any]]:
    """Each input with its answer, in order."""
    for message, some in groupby(inputs, key=lambda one: (message_of(one), one["version"])):
        kafka = judge(*message)
        assert kafka is not None, f"no release has {message}"
        while batch := list(islice(some, BATCH)):
            yield from _asked(kafka, message[0], batch)


def message_of(vector: Input) -> type[Message]:
    """The class of a vector's message."""
    if vector["direction"] in ("request", "response"):
        return find_message(vector["api_key"], vector["direction"])
    return find_message(vector["api"])


def _asked(kafka: JavaOracle, cls: type[Message], batch: list[Input]) -> Iterator[dict[str, Any]]:
    read, written = (
        kafka.ask([Command(what, java_name(cls), one["version"], bytes.fromhex(one["hex"])) for one in batch])
        for what in "RB"
    )
    for one, left, again in zip(batch, read, written, strict=True):
        plain = {name: value for name, value in one.items() if name not in ANSWERS}
        yield plain | _answer(plain, left, again) | {"release": kafka.release} | _facts(plain)


def _answer(one: Input, read: list[bytes] | Refused, written: list[bytes] | Refused) -> dict[str, Any]:
    """What Kafka reads it may yet refuse to write again."""
    if isinstance(read, Refused):
        verdict = "acceptable" if one["flaw"] in LIMITS else "invalid"
        return {"verdict": verdict, "kafka": "refuses", "reason": read.reason}
    left = int(read[0])
    if isinstance(written, Refused):
        return {
            "verdict": "acceptable", "kafka": "reads", "same_bytes": False, "left": left,
            "reason": written.reason,
        }  # fmt: skip
    form, again, _ = written
    same = again.hex() == one["hex"] and not left
    answer = {
        "verdict": "valid" if same else "acceptable",
        "kafka": "reads",
        "same_bytes": same,
        "left": left,
    }
    return answer | ({"json": json.loads(form)} if len(form) < 100_000 else {})


def _facts(one: Input) -> dict[str, Any]:
    """What follows from the input alone."""
    fixed, each = ALLOWANCE
    notes = [LIMITS[one["flaw"]]] if one["flaw"] in LIMITS else []
    return {
        "most_allocated": fixed + each * (len(one["hex"]) // 2),
        "notes": notes + list(FLAWS[one["flaw"]].reports),
    }
