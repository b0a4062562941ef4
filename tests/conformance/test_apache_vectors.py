"""Apache Kafka's own bytes: its values and its JSON; `test_archive` has hostile bytes.

Strategy: the vectors in tests/data/vectors, one test an API and direction. Rules: Kafka is right; the one
exception is named where it is made. The names that 4.4 gave to fields of older versions are put into what
older releases wrote.
"""

from __future__ import annotations

import functools
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from coordwire import find_message, from_json, to_json
from coordwire.codec import Message
from coordwire.errors import DecodeError, EncodeError

DATA = Path(__file__).parent.parent / "data" / "vectors"

Vector = dict[str, Any]

RENAMED = {
    "TxnOffsetCommitRequest": {"generationId": "generationIdOrMemberEpoch"},
    "StreamsGroupHeartbeatResponse": {"acceptableRecoveryLag": "acceptableRecoveryLagLegacy"},
}
"""What Kafka 4.4 calls fields of older versions; both messages have them at the top."""


@functools.cache
def vectors(name: str) -> dict[str, list[Vector]]:
    """By message."""
    result: dict[str, list[Vector]] = {}
    for path in sorted(DATA.glob(f"{name}*.jsonl.gz")):
        for line in gzip.decompress(path.read_bytes()).splitlines():
            vector = json.loads(line)
            of = message_of(vector).__name__
            if vector.get("made_by") != "4.4.0" and vector.get("json"):
                names = RENAMED.get(of, {})
                vector["json"] = {names.get(key, key): value for key, value in vector["json"].items()}
            result.setdefault(of, []).append(vector)
    return result


def message_of(vector: Vector) -> type[Message]:
    if vector["direction"] in ("request", "response"):
        return find_message(vector["api_key"], vector["direction"])
    return find_message(vector["api"])


def form_of(message: Message, version: int) -> object:
    """The JSON form as Kafka has it: unknown tagged fields are in its bytes only."""
    return without_tags(json.loads(json.dumps(to_json(message, version=version), allow_nan=False)))


def without_tags(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_tags(element) for name, element in value.items() if name != "_tags"}
    return [without_tags(element) for element in value] if isinstance(value, list) else value


def test_nothing_is_missing() -> None:
    assert len(vectors("vectors")) >= 190
    assert sum(map(len, vectors("vectors").values())) == 1390 + 95
    assert sum(map(len, vectors("outside_version").values())) == 324


@pytest.mark.parametrize("name", vectors("vectors"))
def test_values(name: str) -> None:
    cls = find_message(name)
    for vector in vectors("vectors")[name]:
        wire, version = bytes.fromhex(vector["hex"]), vector["version"]
        message = cls.decode(wire, version=version)
        form = to_json(message, version=version)
        assert form_of(message, version) == vector["json"]
        assert message.encode(version=version) == wire
        assert from_json(cls, form, version=version) == message
        for tag, data in vector.get("unknown_tags", ()):
            assert message.tags is not None
            assert message.tags[tag] == bytes.fromhex(data)
        if vector["variant"] == "default" and not cls._layout_.at(version).absent:
            assert message == cls()
        if vector["variant"] != "unknown_tags":  # Kafka's fields are in Kafka's order
            known = [field.json_name for field in cls._layout_.fields]
            assert list(form) == [key for key in known if key in form]
            assert from_json(cls, vector["json"], version=version).encode(version=version) == wire


@pytest.mark.parametrize("name", vectors("outside_version"))
def test_fields_outside_the_version(name: str) -> None:
    cls = find_message(name)
    for vector in vectors("outside_version")[name]:
        message = from_json(cls, vector["json"], version=vector["json_version"])
        version = vector["version"]
        if vector["ignorable"]:
            assert message.encode(version=version) is not None
            assert to_json(message, version=version) is not None
            continue
        with pytest.raises(EncodeError) as encoding:
            message.encode(version=version)
        with pytest.raises(EncodeError) as writing:
            to_json(message, version=version)
        assert encoding.value.path == writing.value.path


PREFIXED = [(name, vector[-1]) for name, vector in vectors("vectors").items()]


@pytest.mark.parametrize(("name", "vector"), PREFIXED, ids=[name for name, _ in PREFIXED])
def test_every_prefix_and_extension_is_refused(name: str, vector: Vector) -> None:
    cls, version = find_message(name), vector["version"]
    wire = bytes.fromhex(vector["hex"])[:500]
    short = wire if len(vector["hex"]) <= 1000 else wire + b"?"  # a long one's first bytes will do
    for cut in range(len(short)):
        with pytest.raises(DecodeError) as error_info:
            cls.decode(short[:cut], version=version)
        assert 0 <= error_info.value.position <= cut
        assert error_info.value.reason
    for more in (b"\0", b"\xff" * 3):
        with pytest.raises(DecodeError, match="trailing"):
            cls.decode(bytes.fromhex(vector["hex"]) + more, version=version)
