"""ZooKeeper's frames are read in time linear in their bytes, and its groups' stories in their frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coordwire.capture.entries import FrameEntry
from coordwire.dialects import ConnectionDialect, find_call
from coordwire.dialects.zookeeper_multi import MultiOperation, encode_operations, read_operations
from coordwire.messages.zookeeper_nodes import (
    ZooKeeperCreateRequest,
    ZooKeeperCreateResponse,
    ZooKeeperDeleteOperation,
    ZooKeeperDeleteRequest,
    ZooKeeperDeleteResponse,
    ZooKeeperGetChildrenRequest,
    ZooKeeperGetChildrenResponse,
    ZooKeeperMultiRequest,
    ZooKeeperMultiResponse,
    ZooKeeperSetDataRequest,
    ZooKeeperSetDataResponse,
)
from coordwire.timeline.from_wire.timeline import timeline
from tests.growth import assert_linear

SECOND = 1_000_000_000


class Script:
    """Frames of one connection, a second apart unless `pause` says otherwise."""

    def __init__(self) -> None:
        self.entries: list[FrameEntry] = []
        self.now = 0

    def call(self, name: str, request: Any, answer: Any, pause: int = SECOND // 1000) -> None:
        self.now += pause
        entry = self._entry(name, "request", request, None)
        self._entry(name, "response", answer, entry)

    def _entry(self, name: str, direction: Any, message: Any, request: FrameEntry | None) -> FrameEntry:
        ends = ("10.0.0.1:40000", "10.0.0.2:2181")
        call = find_call(name, "zookeeper")
        assert call is not None
        entry = FrameEntry(
            capture="x", number=len(self.entries) + 1, time_ns=self.now, direction=direction, body=b"",
            flow=" > ".join(ends if direction == "request" else ends[::-1]), message=message, call=call,
            api_key=call.type_id, api_version=0, body_version=0, dialect="zookeeper", request=request,
        )  # fmt: skip
        self.entries.append(entry)
        return entry

    def create(self, path: str, data: bytes, zxid: int, pause: int = SECOND // 1000) -> None:
        request = ZooKeeperCreateRequest(path=path, data=data)
        self.call("Create", request, ZooKeeperCreateResponse(zxid=zxid, path=path), pause)

    def delete(self, path: str, pause: int = SECOND // 1000) -> None:
        self.call("Delete", ZooKeeperDeleteRequest(path=path), ZooKeeperDeleteResponse(), pause)


def claims_far_apart(n: int) -> list[FrameEntry]:
    """Each claim is a rebalance of its own, which lists those before it."""
    script = Script()
    for number in range(n):
        script.create(f"/consumers/g/owners/t/{number}", b"c-0", number, 2 * SECOND)
    return script.entries


def lists_of_many_and_of_none(n: int) -> list[FrameEntry]:
    script = Script()
    for number in range(n):
        script.create(f"/consumers/g/ids/c{number}", b"", number)
    for number in range(n):
        request = ZooKeeperGetChildrenRequest(path="/consumers/g/ids")
        script.call("GetChildren", request, ZooKeeperGetChildrenResponse(zxid=n + number, children=[]))
    return script.entries


def claims_and_releases(n: int) -> list[FrameEntry]:
    script = Script()
    for number in range(n):
        script.create(f"/consumers/g/owners/t/{number}", b"c-0", number)
    for _ in range(n):
        script.delete("/consumers/g/owners/t/0", 2 * SECOND)
        script.create("/consumers/g/owners/t/0", b"c-0", n)
    return script.entries


def commits_of_many_groups(n: int) -> list[FrameEntry]:
    script = Script()
    for number in range(n):
        request = ZooKeeperSetDataRequest(path=f"/consumers/g{number}/offsets/t/0", data=b"7")
        script.call("SetData", request, ZooKeeperSetDataResponse(), 2 * SECOND)
        script.create(f"/consumers/g{number}/ids/c", b"", number)
    return script.entries


def one_large_multi(n: int) -> list[FrameEntry]:
    parts = [MultiOperation(2, -1, ZooKeeperDeleteOperation(path="/consumers/g/ids/c"))] * n
    script = Script()
    request = ZooKeeperMultiRequest(operations=encode_operations(parts))
    results = encode_operations([MultiOperation(2, 0, None)] * n)
    script.call("Multi", request, ZooKeeperMultiResponse(operations=results))
    return script.entries


@pytest.mark.parametrize(
    "script",
    [
        claims_far_apart, lists_of_many_and_of_none, claims_and_releases, commits_of_many_groups,
        one_large_multi,
    ],
)  # fmt: skip
def test_stories(script: Callable[[int], list[FrameEntry]]) -> None:
    dialect = ConnectionDialect("zookeeper")
    assert_linear(script, lambda entries: sum(1 for _ in timeline(entries, dialect=dialect)), n=300)


def test_operations() -> None:
    def made(n: int) -> bytes:
        return encode_operations([MultiOperation(2, 0, None)] * n)

    assert_linear(made, lambda data: read_operations(data, results=True), n=1_000)
