"""Bugs planted into a broker, one for each case that must find it: on its frames, or on their bytes.

Strategy: coordwire's broker is right; a tap before it changes what it is asked or what it answers, and a
relay of bytes breaks frames and connections. Rules: a plant is a broker that somebody could write: an error
that is not there, a value that is wrong, a request that is not carried out.
"""

from __future__ import annotations

import asyncio
import itertools
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from coordwire import ErrorCode
from coordwire.codec import Struct
from coordwire.tap.script import Script, TappedExchange

Change = Callable[[TappedExchange], None]
Planted = tuple[Change | None, Change | None]
"""What is done to requests, and to responses."""

Plants = dict[str, Callable[[], Planted]]
"""By the addresses of the cases that find it: "offsets/fetch/1 3" are two."""


def on(api: str, change: Change) -> Change:
    """A change of one API's exchanges."""

    def only(exchange: TappedExchange) -> None:
        if exchange.api == api:
            change(exchange)

    return only


def swaps(api: str, names: str, to: str = "NONE") -> Planted:
    """Another error in place of these, wherever it is in the answers of an API."""
    codes = {ErrorCode[name].value for name in names.split()}

    def swap(value: Any) -> None:
        for each in value._layout_.fields:
            content = getattr(value, each.name)
            if each.name.endswith("error_code") and content in codes:
                setattr(value, each.name, ErrorCode[to].value)
            for part in content if isinstance(content, list) else [content]:
                if isinstance(part, Struct):
                    swap(part)

    return None, on(api, lambda exchange: swap(exchange.response))


def sets(api: str, path: str, value: object) -> Planted:
    """A value wherever the path leads in the answers of an API: "groups.group_state"."""

    def put(target: Any, names: list[str]) -> None:
        if len(names) == 1:
            setattr(target, names[0], value)
            return
        content = getattr(target, names[0])
        for part in content if isinstance(content, list) else [content] * (content is not None):
            put(part, names[1:])

    return None, on(api, lambda exchange: put(exchange.response, path.split(".")))


def asks(api: str, **values: object) -> Planted:
    """Requests that are carried out with other values."""

    def put(exchange: TappedExchange) -> None:
        for name, value in values.items():
            setattr(exchange.request, name, value)

    return on(api, put), None


def adds(api: str, name: str, *, when: Callable[[Any], bool] = lambda request: True) -> Planted:
    """A number in an API's answers that is greater by 0, by 1, by 2, …"""
    numbers = itertools.count()

    def add(exchange: TappedExchange) -> None:
        if when(exchange.request):
            setattr(exchange.response, name, getattr(exchange.response, name) + next(numbers))

    return None, on(api, add)


def together(*planted: Planted) -> Planted:
    def all_of(index: int) -> Change:
        def run(exchange: TappedExchange) -> None:
            for change in (changes[index] for changes in planted):
                if change is not None:
                    change(exchange)

        return run

    return all_of(0), all_of(1)


def _double_api(exchange: TappedExchange) -> None:
    exchange.response.api_keys.append(exchange.response.api_keys[0])


def _fewer_apis(exchange: TappedExchange) -> None:
    if exchange.version >= 3:
        exchange.response.api_keys.pop()


def _all_lead(exchange: TappedExchange) -> None:
    exchange.response.leader = exchange.response.member_id


def _fences_the_epoch_before(exchange: TappedExchange) -> None:
    if 0 < exchange.request.member_epoch < exchange.response.member_epoch:
        exchange.response.error_code = ErrorCode.FENCED_MEMBER_EPOCH.value


def _no_assignment_again() -> Change:
    numbers = itertools.count()

    def change(exchange: TappedExchange) -> None:
        if exchange.request.member_epoch > 0 or next(numbers):
            exchange.response.assignment = None

    return change


def _one_assignment_for_all() -> Change:
    """What the first member got, every other gets too."""
    first: list[Any] = []

    def change(exchange: TappedExchange) -> None:
        assignment = exchange.response.assignment
        if assignment is not None and assignment.topic_partitions and not first:
            first.extend([exchange.request.member_id, assignment])
        elif first and exchange.request.member_id != first[0]:
            exchange.response.assignment = first[1]

    return change


def _stays(exchange: TappedExchange) -> None:
    if exchange.request.member_epoch == -1:
        exchange.request.member_id = "another"


def _leaves_for_good(exchange: TappedExchange) -> None:
    if exchange.request.member_epoch == -2:
        exchange.request.member_epoch = -1


def _same_epoch(exchange: TappedExchange) -> None:
    exchange.response.producer_epoch = exchange.request.producer_epoch


def _offsets_grow() -> Change:
    numbers = itertools.count()

    def change(exchange: TappedExchange) -> None:
        exchange.response.responses[0].partition_responses[0].base_offset += next(numbers)

    return change


HEARTBEAT = "ConsumerGroupHeartbeat"
FENCED = "PRODUCER_FENCED INVALID_PRODUCER_EPOCH"
FETCHED = "topics.partitions.committed_offset"
NOT_DELETED = together(
    asks("DeleteGroups", groups_names=["another"]), swaps("DeleteGroups", "GROUP_ID_NOT_FOUND")
)

PLANTS: Plants = {
    "versions/answer/1": lambda: (None, on("ApiVersions", _double_api)),
    "versions/answer/2": lambda: (None, on("ApiVersions", _fewer_apis)),
    "versions/client/1": lambda: swaps("ApiVersions", "INVALID_REQUEST"),
    "groups/classic/join/1": lambda: swaps("JoinGroup", "MEMBER_ID_REQUIRED"),
    "groups/classic/join/2": lambda: sets("JoinGroup", "member_id", ""),
    "groups/classic/join/3": lambda: sets("JoinGroup", "members", []),
    "groups/classic/join/4": lambda: (None, on("JoinGroup", _all_lead)),
    "groups/classic/join/5": lambda: sets("JoinGroup", "protocol_name", "a"),
    "groups/classic/join/6": lambda: sets("JoinGroup", "generation_id", 1),
    "groups/classic/join/7": lambda: swaps("JoinGroup", "UNKNOWN_MEMBER_ID"),
    "groups/classic/join/8": lambda: swaps("JoinGroup", "INVALID_SESSION_TIMEOUT"),
    "groups/classic/join/9": lambda: swaps("JoinGroup", "INCONSISTENT_GROUP_PROTOCOL"),
    "groups/classic/join/10": lambda: swaps("JoinGroup", "INCONSISTENT_GROUP_PROTOCOL"),
    "groups/classic/join/11": lambda: swaps("JoinGroup", "INCONSISTENT_GROUP_PROTOCOL"),
    "groups/classic/sync/1": lambda: sets("SyncGroup", "assignment", b""),
    "groups/classic/sync/2": lambda: sets("SyncGroup", "assignment", b""),
    "groups/classic/sync/3": lambda: swaps("SyncGroup", "ILLEGAL_GENERATION"),
    "groups/classic/sync/4": lambda: swaps("SyncGroup", "UNKNOWN_MEMBER_ID"),
    "groups/classic/sync/5": lambda: swaps("SyncGroup", "INCONSISTENT_GROUP_PROTOCOL"),
    "groups/classic/heartbeat/1": lambda: swaps("Heartbeat", "NONE", "REBALANCE_IN_PROGRESS"),
    "groups/classic/heartbeat/2": lambda: swaps("Heartbeat", "REBALANCE_IN_PROGRESS"),
    "groups/classic/heartbeat/3": lambda: swaps("Heartbeat", "ILLEGAL_GENERATION"),
    "groups/classic/heartbeat/4": lambda: swaps("Heartbeat", "UNKNOWN_MEMBER_ID"),
    "groups/classic/leave/1": lambda: swaps("Heartbeat", "UNKNOWN_MEMBER_ID"),
    "groups/classic/leave/2": lambda: asks("LeaveGroup", members=[]),
    "groups/classic/leave/3": lambda: swaps("LeaveGroup", "UNKNOWN_MEMBER_ID"),
    "groups/classic/session/1": lambda: swaps("Heartbeat", "UNKNOWN_MEMBER_ID"),
    "groups/classic/static/1": lambda: adds(
        "JoinGroup", "generation_id", when=lambda request: not request.member_id
    ),
    "groups/classic/static/2": lambda: swaps("Heartbeat", "FENCED_INSTANCE_ID"),
    "groups/classic/static/3": lambda: swaps("LeaveGroup", "NONE", "UNKNOWN_MEMBER_ID"),
    "groups/classic/static/4": lambda: swaps("Heartbeat", "UNKNOWN_MEMBER_ID"),
    "groups/classic/describe/1": lambda: sets("DescribeGroups", "groups.group_state", "Empty"),
    "groups/classic/describe/2": lambda: swaps("DescribeGroups", "GROUP_ID_NOT_FOUND"),
    "groups/classic/list/1": lambda: sets("ListGroups", "groups.group_state", "Empty"),
    "groups/classic/list/2": lambda: asks("ListGroups", types_filter=[]),
    "groups/classic/delete/1": lambda: NOT_DELETED,
    "groups/classic/delete/2": lambda: swaps("DeleteGroups", "NON_EMPTY_GROUP"),
    "groups/classic/delete/3": lambda: swaps("DeleteGroups", "GROUP_ID_NOT_FOUND"),
    "groups/consumer/join/1": lambda: sets(HEARTBEAT, "assignment.topic_partitions", []),
    "groups/consumer/join/2": lambda: sets(HEARTBEAT, "heartbeat_interval_ms", 0),
    "groups/consumer/join/3": lambda: swaps(HEARTBEAT, "INVALID_REQUEST"),
    "groups/consumer/join/4": lambda: sets(HEARTBEAT, "member_id", None),
    "groups/consumer/join/5": lambda: swaps(HEARTBEAT, "INVALID_REQUEST"),
    "groups/consumer/join/6": lambda: swaps(HEARTBEAT, "INVALID_REQUEST"),
    "groups/consumer/join/7": lambda: swaps(HEARTBEAT, "INVALID_REQUEST"),
    "groups/consumer/join/8": lambda: swaps(HEARTBEAT, "UNSUPPORTED_ASSIGNOR"),
    "groups/consumer/join/9": lambda: swaps(HEARTBEAT, "INVALID_REQUEST"),
    "groups/consumer/join/10": lambda: swaps(HEARTBEAT, "INVALID_REGULAR_EXPRESSION"),
    "groups/consumer/epochs/1": lambda: swaps(HEARTBEAT, "UNKNOWN_MEMBER_ID"),
    "groups/consumer/epochs/2": lambda: swaps(HEARTBEAT, "FENCED_MEMBER_EPOCH"),
    "groups/consumer/epochs/3": lambda: (None, on(HEARTBEAT, _fences_the_epoch_before)),
    "groups/consumer/epochs/4": lambda: swaps(HEARTBEAT, "FENCED_MEMBER_EPOCH"),
    "groups/consumer/epochs/5": lambda: swaps(HEARTBEAT, "GROUP_ID_NOT_FOUND"),
    "groups/consumer/epochs/6": lambda: swaps(HEARTBEAT, "UNKNOWN_MEMBER_ID"),
    "groups/consumer/epochs/7": lambda: (None, on(HEARTBEAT, _no_assignment_again())),
    "groups/consumer/epochs/8": lambda: adds(
        HEARTBEAT, "member_epoch", when=lambda request: request.member_epoch == 0
    ),
    "groups/consumer/reconcile/1": lambda: (None, on(HEARTBEAT, _one_assignment_for_all())),
    "groups/consumer/reconcile/2": lambda: (None, on(HEARTBEAT, _one_assignment_for_all())),
    "groups/consumer/reconcile/3": lambda: (on(HEARTBEAT, _stays), None),
    "groups/consumer/static/1": lambda: swaps(HEARTBEAT, "UNRELEASED_INSTANCE_ID"),
    "groups/consumer/static/2": lambda: (on(HEARTBEAT, _leaves_for_good), None),
    "groups/consumer/static/3": lambda: swaps(HEARTBEAT, "FENCED_INSTANCE_ID"),
    "groups/consumer/describe/1": lambda: sets("ConsumerGroupDescribe", "groups.members.member_epoch", 0),
    "groups/consumer/describe/2": lambda: swaps("ConsumerGroupDescribe", "GROUP_ID_NOT_FOUND"),
    "groups/consumer/list/1": lambda: sets("ListGroups", "groups.group_type", "Classic"),
    "groups/consumer/delete/1": lambda: swaps("DeleteGroups", "NON_EMPTY_GROUP"),
    "offsets/commit/1": lambda: sets("OffsetFetch", "topics.partitions.metadata", ""),
    "offsets/commit/2": lambda: sets("OffsetFetch", FETCHED, 9),
    "offsets/commit/3": lambda: swaps("OffsetCommit", "ILLEGAL_GENERATION"),
    "offsets/commit/4": lambda: swaps("OffsetCommit", "UNKNOWN_MEMBER_ID"),
    "offsets/commit/5": lambda: swaps("OffsetCommit", "UNKNOWN_MEMBER_ID"),
    "offsets/commit/6": lambda: swaps("OffsetCommit", "ILLEGAL_GENERATION"),
    "offsets/commit/7": lambda: swaps("OffsetCommit", "OFFSET_METADATA_TOO_LARGE"),
    "offsets/commit/8": lambda: swaps("OffsetCommit", "UNKNOWN_TOPIC_OR_PARTITION"),
    "offsets/commit/9": lambda: swaps("OffsetCommit", "UNKNOWN_TOPIC_ID"),
    "offsets/commit/10": lambda: swaps("OffsetCommit", "STALE_MEMBER_EPOCH"),
    "offsets/commit/11": lambda: swaps("OffsetCommit", "REBALANCE_IN_PROGRESS"),
    "offsets/fetch/1": lambda: sets("OffsetFetch", FETCHED, 0),
    "offsets/fetch/2": lambda: sets("OffsetFetch", "topics", []),
    "offsets/fetch/3": lambda: sets("OffsetFetch", f"groups.{FETCHED}", 3),
    "offsets/fetch/4": lambda: swaps("OffsetFetch", "STALE_MEMBER_EPOCH"),
    "offsets/delete/1": lambda: asks("OffsetDelete", topics=[]),
    "offsets/delete/2": lambda: swaps("OffsetDelete", "GROUP_SUBSCRIBED_TO_TOPIC"),
    "offsets/delete/3": lambda: swaps("OffsetDelete", "GROUP_ID_NOT_FOUND"),
    "offsets/delete/4": lambda: NOT_DELETED,
    "transactions/init/1": lambda: sets("InitProducerId", "producer_id", 7),
    "transactions/init/2": lambda: sets("InitProducerId", "producer_epoch", 0),
    "transactions/init/3": lambda: swaps("InitProducerId", "INVALID_REQUEST"),
    "transactions/init/4": lambda: swaps("InitProducerId", "INVALID_TRANSACTION_TIMEOUT"),
    "transactions/init/5": lambda: sets("Fetch", "responses.partitions.aborted_transactions", None),
    "transactions/fence/1": lambda: swaps("AddPartitionsToTxn", FENCED),
    "transactions/fence/2": lambda: swaps("EndTxn", FENCED),
    "transactions/fence/3": lambda: swaps("AddPartitionsToTxn", "INVALID_PRODUCER_ID_MAPPING"),
    "transactions/end/1": lambda: swaps("EndTxn", "INVALID_TXN_STATE"),
    "transactions/end/2": lambda: swaps("EndTxn", "INVALID_TXN_STATE"),
    "transactions/end/3": lambda: (None, on("EndTxn", _same_epoch)),
    "transactions/isolation/1": lambda: asks("Fetch", isolation_level=0),
    "transactions/isolation/2": lambda: sets("Fetch", "responses.partitions.aborted_transactions", None),
    "transactions/isolation/3": lambda: asks("ListOffsets", isolation_level=0),
    "transactions/offsets/1": lambda: sets("OffsetFetch", FETCHED, 7),
    "transactions/offsets/2": lambda: sets("OffsetFetch", FETCHED, 7),
    "transactions/offsets/3": lambda: swaps("OffsetFetch", "UNSTABLE_OFFSET_COMMIT"),
    "transactions/offsets/4": lambda: swaps("TxnOffsetCommit", "ILLEGAL_GENERATION"),
    "transactions/describe/1": lambda: sets(
        "DescribeTransactions", "transaction_states.transaction_state", "Empty"
    ),
    "transactions/list/1": lambda: sets("ListTransactions", "transaction_states", []),
    "transactions/sequence/1": lambda: (None, on("Produce", _offsets_grow())),
    "transactions/sequence/2": lambda: swaps("Produce", "OUT_OF_ORDER_SEQUENCE_NUMBER"),
}


# --- bytes ---

CLIENT_ID = b"coordwire"
"""In every request with which a connection begins, and in none that a case sends as bytes."""

Bytes = Callable[[bytes], bytes | None]
"""What goes on in place of bytes; None ends the connection."""


@dataclass(frozen=True, slots=True)
class BytePlant:
    """What a relay does after the beginning of a connection. keeps_open: it doesn't end a client's connection
    when the broker does; ends_all: it ends all of them with one."""

    request: Bytes = field(default=bytes)
    response: Bytes = field(default=bytes)
    keeps_open: bool = False
    ends_all: bool = False


def _frames(data: bytes) -> list[bytes]:
    frames = []
    while data:
        end = 4 + struct.unpack_from(">i", data)[0]
        frames.append(data[:end])
        data = data[end:]
    return frames


def other_ids(data: bytes) -> bytes:
    """Another correlation id."""
    return data[:4] + struct.pack(">i", 5) + data[8:]


def _needs_whole_frames(data: bytes) -> bytes | None:
    return data if len(data) > 4 and len(data) == 4 + struct.unpack_from(">i", data)[0] else None


def _needs_client_ids(data: bytes) -> bytes | None:
    return None if data[12:14] == b"\xff\xff" else data


def _knows_all_tags(data: bytes) -> bytes | None:
    return None if b"\x8e\x4e" in data else data


def no_error(data: bytes) -> bytes:
    """No error, in an answer that begins with one."""
    return data[:8] + b"\0\0" + data[10:]


def _tagged_header(data: bytes) -> bytes:
    return struct.pack(">i", len(data) - 3) + data[4:8] + b"\0" + data[8:]


BYTE_PLANTS = {
    "framing/correlation/1": BytePlant(response=other_ids),
    "framing/order/1": BytePlant(response=lambda data: b"".join(reversed(_frames(data)))),
    "framing/split/1": BytePlant(request=_needs_whole_frames),
    "framing/size/1": BytePlant(keeps_open=True),
    "framing/size/2": BytePlant(keeps_open=True),
    "framing/size/3": BytePlant(keeps_open=True),
    "framing/size/4": BytePlant(keeps_open=True),
    **{f"framing/body/{number}": BytePlant(keeps_open=True) for number in range(1, 7)},
    **{f"framing/api/{number}": BytePlant(keeps_open=True) for number in range(3, 6)},
    "framing/size/5": BytePlant(keeps_open=True),
    "framing/order/2": BytePlant(response=other_ids),
    "framing/order/3": BytePlant(response=other_ids),
    "framing/order/4": BytePlant(response=other_ids),
    "framing/split/2": BytePlant(request=_needs_whole_frames),
    "framing/api/1": BytePlant(keeps_open=True),
    "framing/api/2": BytePlant(keeps_open=True),
    "framing/others/1": BytePlant(ends_all=True),
    "framing/header/1": BytePlant(request=_needs_client_ids),
    "framing/header/2": BytePlant(request=_knows_all_tags),
    "versions/answer/3": BytePlant(response=no_error),
    "versions/answer/4": BytePlant(response=_tagged_header),
}


class Relay:
    """A listener before a broker, with a plant; an async context manager."""

    def __init__(self, port: int, plant: BytePlant) -> None:
        self._port = port
        self._plant = plant
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: list[asyncio.Task[Any]] = []

    async def __aenter__(self) -> Relay:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *error: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        self._close_all()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _close_all(self) -> None:
        for writer in self._writers:
            writer.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        broker_reader, broker_writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers += [writer, broker_writer]
        opened = asyncio.Event()
        self._tasks += [
            asyncio.create_task(self._pass(reader, broker_writer, self._plant.request, opened, False)),
            asyncio.create_task(self._pass(broker_reader, writer, self._plant.response, opened, True)),
        ]

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        change: Bytes,
        opened: asyncio.Event,
        is_answer: bool,
    ) -> None:
        while data := await reader.read(1 << 16):
            if not is_answer and CLIENT_ID not in data:  # the case's own bytes
                opened.set()
            changed = change(data) if opened.is_set() else data
            if changed is None:
                self._close_all()
                return
            writer.write(changed)
        if is_answer and self._plant.ends_all:
            self._close_all()
        elif not (is_answer and self._plant.keeps_open):
            writer.close()


def script(planted: Planted) -> Script:
    """The tap's script that plants a bug."""
    return Script(*planted)
