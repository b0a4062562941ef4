"""ZooKeeper's messages against Apache ZooKeeper's own records, in both directions, on fresh random values."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from coordwire.codec import Message
from coordwire.jsonform import to_json
from coordwire.messages import find_message
from coordwire.testing import strategies
from tests.interop.conftest import give_up
from tests.interop.maven import Unavailable, jars
from tests.interop.zookeeper_records import ALONE, REQUESTS, RESPONSES, message_of

pytestmark = pytest.mark.maven

RELEASES = ("3.4.14", "3.9.3")
SOURCE = Path(__file__).parent / "java" / "zookeeper" / "Vectors.java"
SURROGATES = b"\xed\xa0\xb5\xed\xb4\xa8"
"""How jute writes a character beyond the first 65,536, which is not UTF-8."""
NEW = {
    "AddWatchRequest", "CheckWatchesRequest", "Create2Response", "CreateTTLRequest",
    "GetAllChildrenNumberRequest", "GetAllChildrenNumberResponse", "GetEphemeralsRequest",
    "GetEphemeralsResponse", "ReconfigRequest", "RemoveWatchesRequest", "SetWatches2", "WhoAmIResponse",
}  # fmt: skip
"""Records that 3.4 does not have."""


def java(release: str, *words: str, lines: str = "") -> list[dict[str, Any]]:
    """What the program prints."""
    try:
        folder = jars(release, "zookeeper")
    except Unavailable as error:
        give_up(error)
    command = ["java", "-cp", f"{folder}/*", str(SOURCE), *words]
    run = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    return [json.loads(line) for line in run.stdout.splitlines()]


@pytest.mark.parametrize("release", RELEASES)
def test_what_apache_writes_is_read_and_written_again(release: str) -> None:
    compared = 0
    for vector in java(release, "write", str(random.randrange(1 << 30)), "60"):
        pair = message_of(vector["classes"], vector["fields"])
        data = bytes.fromhex(vector["hex"])
        if pair is None or SURROGATES in data:
            continue
        message, version = pair
        assert message.encode(version=version) == data, vector
        assert type(message).decode(data, version=version) == message, vector
        compared += 1
    assert compared > 1500


def values(release: str) -> list[tuple[str, Message, int]]:
    """Random messages, with Apache's classes and the version."""
    rows = [(f"RequestHeader,{name}", f"{request}Request", 0) for name, request in REQUESTS.items()]
    rows += [(f"ReplyHeader,{name}", f"{response}Response", 1) for name, response in RESPONSES.items()]
    rows += [(name, ours, int("Session" in ours and release != RELEASES[0])) for name, ours in ALONE.items()]
    rows.append(("ReplyHeader,WatcherEvent", "WatcherEvent", 0))
    if release == RELEASES[0]:
        rows = [row for row in rows if row[0].rpartition(",")[2] not in NEW]
    sample = [
        (classes, message, version)
        for classes, ours, version in rows
        for message in examples(find_message(f"ZooKeeper{ours}"), version)
    ]
    return [row for row in sample if not has_surrogates(row[1], row[2])]


def has_surrogates(message: Message, version: int) -> bool:
    """Whether Java has a character of a text as two: see SURROGATES."""
    text = json.dumps(to_json(message, version=version), ensure_ascii=False)
    return any(ord(char) > 0xFFFF for char in text)


def examples(cls: type[Message], version: int) -> list[Message]:
    """Random values of a message."""
    sample: list[Message] = []

    @settings(max_examples=25, database=None, suppress_health_check=list(HealthCheck))
    @given(strategies.messages(cls, version=version))
    def draw(message: Message) -> None:
        sample.append(message)

    draw()
    return sample


@pytest.mark.parametrize("release", RELEASES)
def test_what_we_write_is_read_and_written_again(release: str) -> None:
    rows = values(release)
    wire = [message.encode(version=version).hex() for _, message, version in rows]
    lines = "".join(f"{classes} {data}\n" for (classes, _, _), data in zip(rows, wire, strict=True))
    answers = java(release, "read", lines=lines)
    assert len(answers) == len(rows) > 600
    for (classes, message, version), data, answer in zip(rows, wire, answers, strict=True):
        assert not answer.get("refused"), (classes, message)
        assert answer["hex"] == data, (classes, message)
        assert message_of(answer["classes"], answer["fields"]) == (message, version), (classes, message)
