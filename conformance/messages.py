"""Messages in bytes and in Kafka's JSON, each in every version: at its fields' edges, with unknown tags.

Strategy: coordwire chooses values; Kafka's converter reads their JSON and writes bytes, and its class reads
these back to the same JSON. Rules: a value that Kafka doesn't give back the same stops the build; infinite
numbers are not there, which Kafka's JSON can't carry; in `json` records fields are base64, as Kafka reads
them, though its own JSON leaves them empty. Kafka has no JSON for unknown tagged fields: there its class
reads coordwire's bytes, and writes the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from conformance.bases import base
from conformance.hostile import Input, address, names
from conformance.judge import message_of
from coordwire.codec import Message
from coordwire.jsonform import from_json, to_json
from tests.interop.cells import CELLS, as_kafka, java_name, judge, without_tags
from tests.interop.edges import edge
from tests.interop.java_oracle import Command, Refused

VARIANTS = ("default", "null", "empty", "least", "sample", "unknown-tags")
TAGS = {1000: b"\x01", 100_000: b""}


def inputs() -> Iterator[Input]:
    """Values, in the order of the API keys."""
    for cls, version in CELLS:
        api, direction = names(cls)
        for variant in VARIANTS:
            if variant == "unknown-tags" and version not in cls.flexible_versions:
                continue
            one = {
                "id": f"{address(cls, version, 'messages')}/{variant}",
                "api_key": cls.api_key,
                "api": api,
                "direction": direction,
                "version": version,
                "json": json.loads(json.dumps(_form(_value(cls, version, variant), version))),
            }
            if variant == "unknown-tags":
                one["unknown_tags"] = [[tag, data.hex()] for tag, data in TAGS.items()]
            yield one


def _value(cls: type[Message], version: int, variant: str) -> Message:
    if variant == "default":
        return cls()
    if variant in ("sample", "unknown-tags"):
        return base(cls, version)
    return edge(cls, version, variant)


def _form(message: Message, version: int) -> dict[str, Any]:
    return without_tags(type(message), to_json(message, version=version))


def judged(some: Iterator[Input]) -> Iterator[dict[str, Any]]:
    """Each with Kafka's bytes."""
    for (cls, version), group in groupby(some, key=lambda one: (message_of(one), one["version"])):
        kafka = judge(cls, version)
        assert kafka is not None, f"no release has {cls.__name__} v{version}"
        ones, name = list(group), java_name(cls)
        wires = kafka.ask([_writing(cls, version, one) for one in ones])
        bodies = [wire[1] if len(wire) == 3 else wire[0] for wire in wires if not isinstance(wire, Refused)]
        again = kafka.ask([Command("B", name, version, body) for body in bodies])
        for one, body, read in zip(ones, bodies, again, strict=True):
            assert not isinstance(read, Refused), read
            assert json.loads(read[0]) == as_kafka(cls, one["json"]), one["id"]
            assert read[1:] == [body, b"0"], one["id"]
            yield one | {"hex": body.hex(), "release": kafka.release}


def _writing(cls: type[Message], version: int, one: Input) -> Command:
    """Kafka's writing of a value: from JSON, or from bytes that have tags which JSON has not."""
    if "unknown_tags" not in one:
        return Command("J", java_name(cls), version, json.dumps(one["json"]).encode())
    message: Any = from_json(cls, one["json"], version=version)
    message.tags = dict(TAGS)
    return Command("B", java_name(cls), version, message.encode(version=version))
