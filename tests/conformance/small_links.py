"""Connections of a small client, and what it does about errors, as tables: plants change the tables.

Strategy: requests go one after another; `SmallLinks.call` finds the node, sends, and follows `Habits.errors`.
Rule: a bug is a name in `Habits.bugs`, asked where the right client does otherwise, or another entry in a
table; without any this is a right client.
"""

from __future__ import annotations

import asyncio
import itertools
import struct
from dataclasses import dataclass, field
from typing import Any

from coordwire.conformance.cases import API_KEYS, code_name, message_of
from coordwire.conformance.client.wire import structs_of
from coordwire.errors import CoordwireError
from coordwire.frames import decode_response, encode_request
from coordwire.messages import find_message

NEWEST = {
    "Produce": 11,
    "Fetch": 12,
    "Metadata": 12,
    "AddPartitionsToTxn": 3,
    "EndTxn": 4,
    "TxnOffsetCommit": 4,
}
"""Versions in which topics have names, and producers add partitions to transactions."""

AGAIN, FIND, REFRESH, REJOIN, ANEW, FAIL, FINE = [
    "again",
    "find",
    "refresh",
    "rejoin",
    "anew",
    "fail",
    "fine",
]
"""What to do: ask again; after the coordinator was found, or the leader; join again, with the member's id or
as a new one; give up; go on."""


def _table(**actions: str) -> dict[tuple[str, str], str]:
    return {
        (api, error): action.strip("_")
        for action, text in actions.items()
        for api, *errors in (line.split() for line in text.split(";"))
        for error in errors
    }


_LOST = "NOT_COORDINATOR COORDINATOR_NOT_AVAILABLE"
_COORDINATED = (
    "JoinGroup Heartbeat LeaveGroup OffsetFetch OffsetCommit ConsumerGroupHeartbeat "
    "InitProducerId AddPartitionsToTxn AddOffsetsToTxn EndTxn TxnOffsetCommit"
)
_LOADING = "COORDINATOR_LOAD_IN_PROGRESS"
ERRORS = _table(
    again=f"FindCoordinator COORDINATOR_NOT_AVAILABLE; JoinGroup {_LOADING} REBALANCE_IN_PROGRESS;"
    f"OffsetFetch {_LOADING} UNSTABLE_OFFSET_COMMIT STALE_MEMBER_EPOCH;"
    f"OffsetCommit {_LOADING} REQUEST_TIMED_OUT UNKNOWN_TOPIC_OR_PARTITION;"
    f"ConsumerGroupHeartbeat {_LOADING}; Metadata LEADER_NOT_AVAILABLE UNKNOWN_TOPIC_OR_PARTITION;"
    "Produce NOT_ENOUGH_REPLICAS NOT_ENOUGH_REPLICAS_AFTER_APPEND REQUEST_TIMED_OUT KAFKA_STORAGE_ERROR "
    "OUT_OF_ORDER_SEQUENCE_NUMBER;"
    f"InitProducerId {_LOADING} CONCURRENT_TRANSACTIONS;"
    f"AddPartitionsToTxn {_LOADING} CONCURRENT_TRANSACTIONS;"
    f"AddOffsetsToTxn {_LOADING} CONCURRENT_TRANSACTIONS; EndTxn {_LOADING} CONCURRENT_TRANSACTIONS;"
    f"TxnOffsetCommit {_LOADING} UNKNOWN_TOPIC_OR_PARTITION;"
    "Fetch UNKNOWN_LEADER_EPOCH OFFSET_NOT_AVAILABLE; ListOffsets OFFSET_NOT_AVAILABLE UNKNOWN_LEADER_EPOCH",
    find=";".join(f"{api} {_LOST}" for api in _COORDINATED.split()),
    refresh="Produce NOT_LEADER_OR_FOLLOWER UNKNOWN_TOPIC_OR_PARTITION LEADER_NOT_AVAILABLE;"
    "Fetch NOT_LEADER_OR_FOLLOWER UNKNOWN_TOPIC_OR_PARTITION UNKNOWN_TOPIC_ID FENCED_LEADER_EPOCH "
    "KAFKA_STORAGE_ERROR INCONSISTENT_TOPIC_ID; ListOffsets NOT_LEADER_OR_FOLLOWER LEADER_NOT_AVAILABLE",
    rejoin=f"SyncGroup REBALANCE_IN_PROGRESS ILLEGAL_GENERATION {_LOST};"
    "Heartbeat REBALANCE_IN_PROGRESS ILLEGAL_GENERATION",
    anew="JoinGroup UNKNOWN_MEMBER_ID; SyncGroup UNKNOWN_MEMBER_ID; Heartbeat UNKNOWN_MEMBER_ID;"
    "ConsumerGroupHeartbeat FENCED_MEMBER_EPOCH UNKNOWN_MEMBER_ID",
    fine="JoinGroup MEMBER_ID_REQUIRED; Produce DUPLICATE_SEQUENCE_NUMBER; Fetch OFFSET_OUT_OF_RANGE "
    "FETCH_SESSION_ID_NOT_FOUND INVALID_FETCH_SESSION_EPOCH",
)
"""What the right client does after an error; it gives up after others."""


@dataclass
class Habits:
    """What a client does. bugs: names of what it does wrongly; errors: as `ERRORS`, where it differs."""

    bugs: frozenset[str] = frozenset()
    errors: dict[tuple[str, str], str] = field(default_factory=dict)

    def action(self, api: str, error: str) -> str:
        return self.errors.get((api, error), ERRORS.get((api, error), FAIL))


class GaveUp(Exception):
    """The client reports an error."""


class Ended(Exception):
    """The connection has ended."""


class JoinAgain(Exception):
    """The member has lost its generation. anew: its id too."""

    def __init__(self, *, anew: bool) -> None:
        super().__init__()
        self.anew = anew


def errors_of(response: Any) -> list[str]:
    return [
        code_name(getattr(value, part.name))
        for value in structs_of(response)
        for part in value._layout_.fields
        if part.name.endswith("error_code") and getattr(value, part.name)
    ]


class Link:
    """A connection to a node."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, habits: Habits) -> None:
        self._reader, self._writer, self._habits = reader, writer, habits
        self._numbers = itertools.count(1)
        self.versions: dict[int, tuple[int, int]] = {}
        self._silent_until = 0.0

    async def open(self) -> None:
        """Ask for the versions."""
        last = 4
        while True:
            response = await self.exchange(
                "ApiVersions",
                last,
                {"client_software_name": "small", "client_software_version": "1"} if last >= 3 else {},
            )
            if not response.error_code:
                break
            if "no fallback" in self._habits.bugs:
                raise GaveUp("UNSUPPORTED_VERSION")
            named = {key.api_key: key.max_version for key in response.api_keys}
            last = min(named.get(18, 0), last - 1)
        if "known APIs alone" in self._habits.bugs and any(key.api_key > 900 for key in response.api_keys):
            raise GaveUp("an unknown API")
        self.versions = {key.api_key: (key.min_version, key.max_version) for key in response.api_keys}

    async def exchange(self, api: str, version: int, values: dict[str, Any]) -> Any:
        """The answer to a request. Raises `Ended`."""
        habits = self._habits.bugs
        delay = self._silent_until - asyncio.get_running_loop().time()
        if delay > 0 and "no throttling" not in habits:
            await asyncio.sleep(delay)
        number = 1 if "one correlation id" in habits else next(self._numbers)
        message: Any = message_of(find_message(API_KEYS[api], "request"), values)
        try:
            self._writer.write(
                encode_request(message, version=version, correlation_id=number, client_id="small")
            )
            await self._writer.drain()
            prefix = await self._reader.readexactly(4)
            (size,) = struct.unpack(">i", prefix)
            if size < 4:
                raise GaveUp("a wrong size") if "no wrong sizes" in habits else Ended
            frame = prefix + await self._read(size)
            if size > 100_000 and "no large answers" in habits:
                raise GaveUp("a large answer")
            if size == 0 or (
                int.from_bytes(frame[4:8], "big") != number and "any correlation id" not in habits
            ):
                raise Ended
            read = decode_response(frame, api_key=API_KEYS[api], version=version, strict=False)
            answer: Any = read.message
            parts: list[Any] = [read.header, *structs_of(answer)]
            if "no unknown tags" in habits and any(part.tags for part in parts):
                raise GaveUp("unknown tags")
        except (OSError, asyncio.IncompleteReadError, CoordwireError, Ended):
            self.close()
            raise Ended from None
        wait = getattr(answer, "throttle_time_ms", 0)
        self._silent_until = asyncio.get_running_loop().time() + wait / 1000
        return answer

    async def _read(self, size: int) -> bytes:
        if "whole answers" not in self._habits.bugs:
            return await self._reader.readexactly(size)
        data = await self._reader.read(size)
        if len(data) < size:
            raise GaveUp("half an answer")
        return data

    def close(self) -> None:
        self._writer.close()


class SmallLinks:
    """All connections of a client. bootstrap: its addresses; topic: the only one."""

    def __init__(self, settings: dict[str, Any], topic: str, habits: Habits) -> None:
        self.settings, self.topic, self.habits = settings, topic, habits
        self._bootstrap = [tuple(place.rsplit(":", 1)) for place in settings["bootstrap.servers"].split(",")]
        self._turn = 0
        self._links: dict[object, Link] = {}
        self._addresses: dict[int, tuple[str, int]] = {}
        self.coordinators: dict[int, int] = {}
        self.leaders: dict[int, int] = {}
        self.epochs: dict[int, int] = {}
        self.topic_id: Any = None
        self._waits: dict[str, int] = {}

    def has(self, bug: str) -> bool:
        return bug in self.habits.bugs

    def close(self) -> None:
        for link in self._links.values():
            link.close()

    async def _link(self, node: int | None, use: str) -> Link:
        link = self._links.get((node, use))
        if link is None:
            if node is None:
                host, port = self._bootstrap[
                    0 if self.has("one bootstrap") else self._turn % len(self._bootstrap)
                ]
            elif node in self._addresses:
                host, port = self._addresses[node]
            else:
                raise Ended
            try:
                reader, writer = await asyncio.open_connection(host, int(port))
            except OSError:
                raise Ended from None
            link = Link(reader, writer, self.habits)
            self._links[node, use] = link
            try:
                await link.open()
            except Ended:
                del self._links[node, use]
                raise
            if self.has("first versions"):
                self._versions = getattr(self, "_versions", link.versions)
                link.versions = self._versions
        return link

    async def _once(self, node: int | None, use: str, api: str, values: Any) -> tuple[Any, int]:
        link = await self._link(node, use)
        own = find_message(API_KEYS[api], "request").versions
        first, last = link.versions.get(API_KEYS[api], (0, -1))
        newest = last if self.has("the broker's newest") else min(NEWEST.get(api, own[-1]), last)
        if self.has(f"newest {api}"):
            first, newest = 0, NEWEST.get(api, own[-1])
        if newest < max(first, own[0]):
            if not self.has("any version"):
                raise GaveUp(f"no version of {api} in common")
            newest = NEWEST.get(api, own[-1])
        try:
            return await link.exchange(api, newest, values(newest)), newest
        except Ended:
            self._links.pop((node, use), None)
            raise

    async def call(
        self,
        api: str,
        values: Any,
        *,
        key_type: int | None = None,
        partition: int | None = None,
        use: str = "",
    ) -> Any:
        """The answer to a request, sent to a coordinator (key_type), a partition's leader, or any node.
        values: the fields by version."""
        while True:
            node: int | None = None
            try:
                if key_type is not None:
                    node = await self._coordinator(key_type)
                elif partition is not None and not self.has("one node"):
                    while (node := self.leaders.get(partition, -1)) < 0:
                        await self.refresh()
                answer, _ = await self._once(node, use, api, values)
            except Ended:
                if self.has("no new connection"):
                    raise GaveUp("the connection ended") from None
                self._turn += 1
                await asyncio.sleep(0.05)
                if key_type is not None and not self.has("no search after the end"):
                    self.coordinators.pop(key_type, None)
                if partition is not None and api != "Metadata":
                    await self.refresh()
                continue
            errors = errors_of(answer)
            if not errors:
                return answer
            action = self.habits.action(api, errors[0])
            if action == FINE:
                return answer
            if action in (REJOIN, ANEW):
                if errors[0] in _LOST:
                    self.coordinators.pop(0, None)
                raise JoinAgain(anew=action == ANEW)
            if action == FAIL:
                raise GaveUp(f"{api}: {errors[0]}")
            await asyncio.sleep(0.05)
            if action == FIND and key_type is not None:
                self.coordinators.pop(key_type, None)
            if action == REFRESH:
                await self.refresh()

    async def _coordinator(self, key_type: int) -> int:
        if key_type not in self.coordinators:
            key = self.settings["group.id" if key_type == 0 else "transactional.id"]

            def values(version: int) -> dict[str, Any]:
                keys = {"coordinator_keys": [key]} if version >= 4 else {"key": key}
                return {**keys, **({"key_type": key_type} if version else {})}

            answer = await self.call("FindCoordinator", values)
            place = answer.coordinators[0] if answer.coordinators else answer
            self._addresses[place.node_id] = (place.host, place.port)
            self.coordinators[key_type] = place.node_id
        return self.coordinators[key_type]

    async def refresh(self) -> None:
        """Ask for the leaders."""
        answer = await self.call("Metadata", lambda version: {"topics": [{"name": self.topic}]})
        self._addresses |= {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        (topic,) = answer.topics
        self.topic_id = topic.topic_id
        if self.has("no refresh") and self.leaders:
            return
        self.leaders = {part.partition_index: part.leader_id for part in topic.partitions}
