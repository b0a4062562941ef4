"""A capture of the simulation's ZooKeeper in ZooKeeper's own protocol.

Strategy: a tap before that of the capture file; of each message between a process and ZooKeeper it makes the
frames that a client and a server of ZooKeeper would have sent at that time: a request for each operation, an
answer for each outcome. Rules: what has no message in the simulation is what a server does: a ping is
answered when it comes, and so is the end of a session. A session that is over is answered with the new one
that the simulation opens at once, where a real client connects again. Passwords are zeros, ACLs open.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from coordwire.codec import Message
from coordwire.designs.drafts.zookeeper_operations import (
    CheckVersion,
    CreateNode,
    DeleteNode,
    EventKind,
    GetChildren,
    GetData,
    NodeExists,
    NodeStat,
    Operation,
    OperationOutcome,
    SetData,
    Transaction,
)
from coordwire.designs.simulator.drafts.zookeeper_node import (
    ZOOKEEPER_PORT,
    asked_operations,
    event_from,
    from_wire,
    replied_outcomes,
)
from coordwire.designs.simulator.tap import EPOCH_MS, TapRecord
from coordwire.dialects import Dialect, Grammar
from coordwire.dialects.zookeeper_multi import MultiOperation, encode_operations
from coordwire.messages.zookeeper_nodes import (
    ZooKeeperAcl,
    ZooKeeperCheckOperation,
    ZooKeeperCheckRequest,
    ZooKeeperCheckResponse,
    ZooKeeperCreateOperation,
    ZooKeeperCreateRequest,
    ZooKeeperCreateResponse,
    ZooKeeperCreateResult,
    ZooKeeperDeleteOperation,
    ZooKeeperDeleteRequest,
    ZooKeeperDeleteResponse,
    ZooKeeperErrorResult,
    ZooKeeperExistsRequest,
    ZooKeeperExistsResponse,
    ZooKeeperGetChildren2Request,
    ZooKeeperGetChildren2Response,
    ZooKeeperGetDataRequest,
    ZooKeeperGetDataResponse,
    ZooKeeperMultiRequest,
    ZooKeeperMultiResponse,
    ZooKeeperSetDataOperation,
    ZooKeeperSetDataRequest,
    ZooKeeperSetDataResponse,
    ZooKeeperSetDataResult,
    ZooKeeperStat,
)
from coordwire.messages.zookeeper_sessions import (
    ZooKeeperCloseSessionRequest,
    ZooKeeperCloseSessionResponse,
    ZooKeeperCreateSessionRequest,
    ZooKeeperCreateSessionResponse,
    ZooKeeperPingRequest,
    ZooKeeperPingResponse,
)
from coordwire.messages.zookeeper_watches import ZooKeeperWatcherEvent

_ADDRESS = f":{ZOOKEEPER_PORT}"
_PASSWORD = bytes(16)
_OPEN = (31, "world", "anyone")
_CONNECTED = 3
_EVENTS = {
    EventKind.CREATED: 1, EventKind.DELETED: 2, EventKind.DATA_CHANGED: 3, EventKind.CHILDREN_CHANGED: 4,
}  # fmt: skip
_TYPES = {CreateNode: 1, DeleteNode: 2, SetData: 5, CheckVersion: 13}

ToClient = bool
"""Whether a frame goes to the client."""


@dataclass(slots=True)
class _Link:
    """A link to ZooKeeper. timeout_ms: of the session that it asked for; waiting: operations without their
    outcome, with the xids of their requests."""

    timeout_ms: int = 0
    xid: int = 0
    waiting: deque[tuple[int, Operation]] = field(default_factory=deque)


class ZooKeeperTap:
    """A tap that gives `tap` what it sees, ZooKeeper's links in ZooKeeper's own protocol."""

    def __init__(self, tap: Callable[[TapRecord], None]) -> None:
        self._tap = tap
        self._grammar = Grammar(Dialect.ZOOKEEPER)
        self._links: dict[int, _Link] = {}
        self._zxid = 0

    def __call__(self, record: TapRecord) -> None:
        if not record.server.endswith(_ADDRESS) or record.kind != "data":
            self._tap(record)
            return
        link = self._links.setdefault(record.link, _Link())
        for to_client, message, version in self._messages(link, record.data):
            data = self._grammar.encode(message, version=version)
            self._tap(record._replace(to_client=to_client, data=data))

    def _messages(self, link: _Link, data: bytes) -> Iterator[tuple[ToClient, Message, int]]:
        """The messages of a text of the simulation, with their versions."""
        kind, *words = from_wire(data)
        match kind:
            case "hello":
                session, link.timeout_ms = words
                request = ZooKeeperCreateSessionRequest(
                    last_zxid_seen=self._zxid, time_out=link.timeout_ms, session_id=session, passwd=_PASSWORD
                )
                yield False, request, 1
            case "session":
                answer = ZooKeeperCreateSessionResponse(
                    time_out=link.timeout_ms, session_id=words[0], passwd=_PASSWORD
                )
                yield True, answer, 1
            case "alive":
                yield False, ZooKeeperPingRequest(), 0
                yield True, ZooKeeperPingResponse(zxid=self._zxid), 0
            case "end":
                link.xid += 1
                yield False, ZooKeeperCloseSessionRequest(xid=link.xid), 0
                self._zxid += 1
                yield True, ZooKeeperCloseSessionResponse(xid=link.xid, zxid=self._zxid), 0
            case "event":
                event = event_from(words)
                yield True, ZooKeeperWatcherEvent(
                    type=_EVENTS[event.kind], state=_CONNECTED, path=event.path
                ), 0  # fmt: skip
            case "ask":
                for operation in asked_operations(data):
                    link.xid += 1
                    link.waiting.append((link.xid, operation))
                    yield False, _request(link.xid, operation), 0
            case _:
                for outcome in replied_outcomes(data):
                    xid, operation = link.waiting.popleft()
                    yield True, *self._response(xid, operation, outcome)

    def _response(self, xid: int, operation: Operation, outcome: OperationOutcome) -> tuple[Message, int]:
        if outcome.stat is not None:
            self._zxid = max(self._zxid, outcome.stat.czxid, outcome.stat.mzxid)
        if not outcome.error and isinstance(operation, (CreateNode, DeleteNode, SetData, Transaction)):
            self._zxid += 1
        header: dict[str, Any] = {"xid": xid, "zxid": self._zxid, "error_code": int(outcome.error)}
        stat = _stat(outcome.stat)
        match operation:
            case Transaction():
                results = [
                    _result(part, part_outcome)
                    for part, part_outcome in zip(operation.operations, outcome.outcomes, strict=True)
                ]
                header["error_code"] = 0
                return ZooKeeperMultiResponse(**header, operations=encode_operations(results)), 1
            case DeleteNode():
                return ZooKeeperDeleteResponse(**header), 0
            case CheckVersion():
                return ZooKeeperCheckResponse(**header), 0
        answer: Message
        match operation:
            case CreateNode():
                answer = ZooKeeperCreateResponse(**header, path=outcome.path)
            case SetData():
                answer = ZooKeeperSetDataResponse(**header, stat=stat)
            case GetData():
                answer = ZooKeeperGetDataResponse(**header, data=outcome.data, stat=stat)
            case NodeExists():
                answer = ZooKeeperExistsResponse(**header, stat=stat)
            case _:
                answer = ZooKeeperGetChildren2Response(**header, children=list(outcome.children), stat=stat)
        return (type(answer)(**header), 0) if outcome.error else (answer, 1)


def _request(xid: int, operation: Operation) -> Message:
    match operation:
        case Transaction():
            parts = [
                MultiOperation(_TYPES[type(part)], -1, _operation(part)) for part in operation.operations
            ]
            return ZooKeeperMultiRequest(xid=xid, operations=encode_operations(parts))
        case CreateNode():
            return ZooKeeperCreateRequest(xid=xid, **_create(operation))
        case DeleteNode():
            return ZooKeeperDeleteRequest(xid=xid, path=operation.path, version=operation.version)
        case SetData():
            return ZooKeeperSetDataRequest(
                xid=xid, path=operation.path, data=operation.data, version=operation.version
            )
        case CheckVersion():
            return ZooKeeperCheckRequest(xid=xid, path=operation.path, version=operation.version)
        case GetData():
            return ZooKeeperGetDataRequest(xid=xid, path=operation.path, watch=operation.watch)
        case NodeExists():
            return ZooKeeperExistsRequest(xid=xid, path=operation.path, watch=operation.watch)
        case GetChildren():
            return ZooKeeperGetChildren2Request(xid=xid, path=operation.path, watch=operation.watch)


def _operation(part: CreateNode | DeleteNode | SetData | CheckVersion) -> Message:
    match part:
        case CreateNode():
            return ZooKeeperCreateOperation(**_create(part))
        case DeleteNode():
            return ZooKeeperDeleteOperation(path=part.path, version=part.version)
        case SetData():
            return ZooKeeperSetDataOperation(path=part.path, data=part.data, version=part.version)
        case CheckVersion():
            return ZooKeeperCheckOperation(path=part.path, version=part.version)


def _result(
    part: CreateNode | DeleteNode | SetData | CheckVersion, outcome: OperationOutcome
) -> MultiOperation:
    if outcome.error:
        code = int(outcome.error)
        return MultiOperation(-1, code, ZooKeeperErrorResult(error_code=code))
    result: Message | None = None
    if isinstance(part, CreateNode):
        result = ZooKeeperCreateResult(path=outcome.path)
    elif isinstance(part, SetData):
        result = ZooKeeperSetDataResult(stat=_stat(outcome.stat))
    return MultiOperation(_TYPES[type(part)], 0, result)


def _create(operation: CreateNode) -> dict[str, Any]:
    perms, scheme, name = _OPEN
    return {
        "path": operation.path, "data": operation.data,
        "acl": [ZooKeeperAcl(perms=perms, scheme=scheme, id=name)],
        "flags": operation.ephemeral + 2 * operation.sequential,
    }  # fmt: skip


def _stat(stat: NodeStat | None) -> ZooKeeperStat:
    if stat is None:
        return ZooKeeperStat()
    fields = {name: getattr(stat, name) for name in NodeStat.__slots__}
    fields |= {name: EPOCH_MS + fields[name] for name in ("ctime", "mtime")}
    return ZooKeeperStat(**fields, pzxid=stat.czxid)
