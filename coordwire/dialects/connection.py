"""A dialect as an object, and one side of a connection in it: messages to bytes, frames to events.

Strategy: `Matching` decides what a frame is; `DraftConnection` turns that into an event, and remembers
each request that we send until its response comes. Rules: as `Connection`'s: nothing that a peer sends
raises; a caller's mistake raises `EncodeError` and changes nothing. Responses without a type id go out in the
order of their requests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import TYPE_CHECKING

from coordwire.codec import Message
from coordwire.codec.message import no_version
from coordwire.connection.dialect import Dialect, Side
from coordwire.connection.endpoint import Endpoint
from coordwire.connection.events import Event, FrameRefused, RequestReceived, ResponseReceived, SentRequest
from coordwire.connection.state import ConnectionState
from coordwire.dialects.frames import Call, DraftFrame, ZooKeeperCall, opposite
from coordwire.dialects.grammar import Grammar
from coordwire.dialects.matching import PendingRequest
from coordwire.dialects.matchings import MATCHINGS
from coordwire.errors import EncodeError, Malformed, NotInVersion

if TYPE_CHECKING:
    from coordwire.capture.pending_requests import PendingRequests
    from coordwire.dialects.conversation import DraftConversation
    from coordwire.timeline.from_wire.timeline import DialectGroups


UNNUMBERED = {Dialect.DRAFT_3: -1, Dialect.ZOOKEEPER: 0}
"""The number of a message that its sender has not numbered."""


def find_dialect(
    name: Dialect | str, *, type_ids: Mapping[str, int] | None = None, auto_commit: bool | None = None
) -> ConnectionDialect | None:
    """The dialect of this name, None for Kafka's own protocol. Raises `ValueError` for an unknown name, for
    type ids that are invalid, and for type ids or auto_commit of Kafka's protocol."""
    if Dialect(name) is not Dialect.KAFKA:
        return ConnectionDialect(name, type_ids=type_ids, auto_commit=auto_commit)
    if type_ids is not None or auto_commit is not None:
        raise ValueError("type ids and auto_commit apply to dialects other than Kafka's")
    return None


class ConnectionDialect:
    """A dialect, for a connection, a capture or a timeline.

    >>> from coordwire import Connection
    >>> from coordwire.dialects import ConnectionDialect
    >>> dialect = ConnectionDialect("draft-1")
    >>> dialect
    <ConnectionDialect draft-1>
    >>> client = Connection("client", dialect=dialect)

    In the drafts the server is the coordinator, which sends requests over the client's connection. type_ids:
    by the request's name ("Ping"), where they differ from the reconstructed ones. auto_commit: whether the
    consumer registered with it, until a registration is seen. Raises `ValueError` for an unknown dialect, for
    Kafka's own, and for type ids that are invalid.
    """

    def __init__(
        self,
        dialect: Dialect | str,
        *,
        type_ids: Mapping[str, int] | None = None,
        auto_commit: bool | None = None,
    ) -> None:
        self.grammar = Grammar(dialect, type_ids)
        self.auto_commit = auto_commit

    def __repr__(self) -> str:
        return f"<ConnectionDialect {self.name}>"

    @property
    def name(self) -> str:
        return self.grammar.dialect

    def endpoint(self, side: Side, *, client_id: str | None = None, strict: bool) -> Endpoint:
        """A new connection's endpoint."""
        return DraftConnection(self.grammar, side, self.auto_commit, client_id=client_id, strict=strict)

    # Only recordings need these modules, and what they import.

    def conversation(
        self, capture: str, number: Callable[[], int], *, strict: bool, waiting: PendingRequests
    ) -> DraftConversation:
        """A recorded connection's conversation."""
        from coordwire.dialects.conversation import DraftConversation
        from coordwire.dialects.zookeeper_conversation import ZooKeeperConversation

        is_zookeeper = self.grammar.dialect is Dialect.ZOOKEEPER
        opened = ZooKeeperConversation if is_zookeeper else DraftConversation
        return opened(
            capture, number, self.grammar, auto_commit=self.auto_commit, strict=strict, waiting=waiting
        )

    def groups(self) -> DialectGroups:
        """The groups of a timeline."""
        from coordwire.dialects.groups import DraftGroups
        from coordwire.dialects.zookeeper_groups import ZooKeeperGroups

        return ZooKeeperGroups() if self.grammar.dialect is Dialect.ZOOKEEPER else DraftGroups()


class DraftConnection(Endpoint):
    """One side of a connection in a dialect. side: which one is ours; client_id: what its
    requests carry, where they carry one; the other arguments are `Matching`'s."""

    def __init__(
        self,
        grammar: Grammar,
        side: Side,
        auto_commit: bool | None,
        *,
        client_id: str | None = None,
        strict: bool,
    ) -> None:
        super().__init__(strict=strict)
        self.grammar = grammar
        self.side = side
        self._client_id = client_id
        self.matching = MATCHINGS[grammar.dialect](grammar, auto_commit, strict)
        self._next_id = 0

    def unanswered(self) -> list[SentRequest]:
        return [pending.context for pending in self.matching.waiting[self.side]]

    def read(self, body: bytes) -> Event:
        match = self.matching.match(body, opposite(self.side))
        pending = match.pending
        sent = pending.context if pending is not None and isinstance(pending.context, SentRequest) else None
        number = None if pending is None else pending.number
        if match.frame is None:
            assert match.error is not None
            return FrameRefused(body=body, error=match.error, request=sent, correlation_id=number)
        if match.frame.direction == "request":
            return RequestReceived(match.frame, match.frame.call.response is not None)
        if sent is None:
            error = Malformed(f"no {match.frame.call.name} request waits for this answer", 0)
            return FrameRefused(body=body, error=error, correlation_id=number)
        return ResponseReceived(sent, match.frame)

    def send(
        self, message: Message, version: int | None, request: RequestReceived | FrameRefused | None
    ) -> bytes:
        self.expect("send", ConnectionState.OPEN)
        call, direction = self.grammar.find(message)
        name = type(message).__name__
        if direction == "request":
            if request is not None:
                raise EncodeError(f"{name} is a request: expected no request to answer")
            if call.asker != self.side:
                raise EncodeError(f"{name} is sent by the {call.asker}, this is the {self.side}")
            return self._ask(call, message, self._asked_version(call, version))
        if request is None:
            raise EncodeError(f"{name} is a response: expected the request to answer")
        if isinstance(request, FrameRefused):
            raise EncodeError(f"{name} is a response: a refused frame has no answer in this dialect")
        return self._answer(call, message, version, request)

    def _ask(self, call: Call, message: Message, version: int) -> bytes:
        message = self._numbered(message)
        data = self.grammar.encode(
            message, version=version, correlation_id=self.matching.next_number(self.side),
            client_id=self._client_id,
        )  # fmt: skip
        pending = self.matching.ask(call, message)
        pending.context = SentRequest(message, call.type_id, version, pending.number)
        return data

    def _asked_version(self, call: Call, version: int | None) -> int:
        """The version of a request: the caller's, else 0, and of ZooKeeper's the newest."""
        if version is None and isinstance(call, ZooKeeperCall):
            return call.message("request").versions[-1]
        return version or 0

    def _numbered(self, message: Message) -> Message:
        """The message with a number, where the dialect has them and the caller gave none. ZooKeeper's numbers
        below 0 belong to kinds of requests, which may wait more than once."""
        field = self.grammar.number_field
        if field is None or not hasattr(message, field):
            return message
        pending_of = self.matching.waiting[self.side].numbered
        number = getattr(message, field)
        if number != UNNUMBERED[self.grammar.dialect]:
            if number >= 0 and pending_of(number) is not None:
                raise EncodeError(f"another request with the number {number} waits for its answer", field)
            return message
        self._next_id = max(self._next_id, number + 1)
        while pending_of(self._next_id) is not None:
            self._next_id += 1
        self._next_id += 1
        return _with_number(message, field, self._next_id - 1)

    def _answer(self, call: Call, message: Message, version: int | None, request: RequestReceived) -> bytes:
        pending = self._owed(call, message, request)
        field = self.grammar.number_field
        if field is not None and hasattr(message, field):
            number = getattr(message, field)
            if number == UNNUMBERED[self.grammar.dialect]:
                message = _with_number(message, field, pending.number)
            elif number != pending.number:
                raise EncodeError(f"expected the request's, {pending.number}, got {number}", field)
        data = self.grammar.encode(
            message, version=self._version(call, message, version), correlation_id=pending.number
        )
        self.matching.answer(pending)
        return data

    def _owed(self, call: Call, message: Message, request: RequestReceived) -> PendingRequest:
        """The request that waits for this answer."""
        frame = request.frame
        if not isinstance(frame, DraftFrame) or frame.dialect is not self.grammar.dialect:
            raise EncodeError(f"expected a request in {self.grammar.dialect}, got one of another dialect")
        if frame.call != call:
            raise EncodeError(f"{type(message).__name__} doesn't answer {type(frame.message).__name__}")
        queue = self.matching.waiting[opposite(self.side)]
        pending = queue.numbered(frame.correlation_id, call)
        if pending is None:
            raise EncodeError("this request waits for no answer")
        if call.known_by == "order" and queue.firsts()[0] is not pending:
            raise EncodeError("another request waits for its answer before this one")
        return pending

    def _version(self, call: Call, message: Message, version: int | None) -> int:
        allowed = self.matching.versions(call)
        if isinstance(call, ZooKeeperCall):
            if version is None:  # an error has no record after its header
                return allowed[0 if getattr(message, "error_code", 0) else -1]
            if version not in allowed:
                raise NotInVersion(no_version(type(message), version))
            return version
        if version is None:
            if not call.auto_commit:
                return 0
            if len(allowed) > 1:
                raise EncodeError(
                    f"no registration has decided whether {type(message).__name__} has offsets: "
                    "expected version 1 (with them) or 0 (without)"
                )
            return allowed[0]
        if version not in allowed and not call.auto_commit:
            raise NotInVersion(f"{type(message).__name__} has no version {version}")
        if version not in allowed:
            name, preposition = type(message).__name__, "with" if allowed[0] else "without"
            raise NotInVersion(
                f"the consumer registered {preposition} auto_commit: {name} has version {allowed[0]}"
            )
        return version


def _with_number(message: Message, field: str, number: int) -> Message:
    """A copy of the message with this number."""
    message = copy(message)
    setattr(message, field, number)
    return message
