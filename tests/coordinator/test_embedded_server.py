"""The server of the tutorial serves Kafka's own Java consumer, in both protocols."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from coordwire.records import Record, encode_batch
from tests.broker import suites
from tests.interop.broker import Java
from tests.interop.conftest import give_up
from tests.interop.maven import Unavailable

PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "server-with-groups.md"
MEMBER = Path(suites.__file__).parent / "java" / "Member.java"
SERVER = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)[:2]
VALUES = ["first", "second", "stop"]


@pytest.mark.maven
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_java_consumer_reads_through_it(protocol: str) -> None:
    try:
        command = Java(project="streams", flags=["-Xshare:auto"]).command(str(MEMBER))
    except Unavailable as error:
        give_up(error)
    names: dict[str, Any] = {}
    for text in SERVER:
        exec(compile(text, PAGE.name, "exec"), names)
    batch = encode_batch([Record(value=value.encode()) for value in VALUES], base_offset=0)
    names.update(COUNT=len(VALUES), RECORDS=[batch, batch])

    async def read() -> bytes:
        async with names["server"] as server:
            consumer = await asyncio.create_subprocess_exec(
                *command, "consume", protocol, server.bootstrap, names["NAME"], "tills", "read_uncommitted",
                "2", stdout=asyncio.subprocess.PIPE,
            )  # fmt: skip
            try:
                output, _ = await asyncio.wait_for(consumer.communicate(), 120)
            finally:
                if consumer.returncode is None:
                    consumer.kill()
        return output

    lines = asyncio.run(read()).decode().split("\n")
    assert sorted(filter(None, lines)) == [
        f"{partition} {offset} {value}" for partition in (0, 1) for offset, value in enumerate(VALUES)
    ]
    group = names["coordinator"].groups["tills"]
    assert (group.kind, group.is_empty) == (protocol, True)
