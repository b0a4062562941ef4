"""One connection's conversation: which frame is a request, which answers it, and what each of them says.

Strategy: the client's frames name their API and version; they wait, by correlation id, for the server's
frames. Decoding never stops the conversation: what is refused becomes an entry with its error and what was
read before it. Rules: a correlation id may wait more than once and answers the oldest, though the answer may
be another's: then it is not shown if secrets may be in other places in it; Produce with acks=0 waits too,
since there are brokers that answer it; between a SaslHandshake v0 and the next real request there are bare
tokens; a request whose header may omit its client (KIP-1313) has that of the connection.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol

from coordwire.capture.body_text import NO_TEXT
from coordwire.capture.entries import FrameEntry
from coordwire.capture.flows import TcpConnection
from coordwire.capture.frame_decoding import lazy_entry, read_answer, refused_request, unquoted_deviations
from coordwire.capture.framing import HEAD, Effort, FrameBody, may_be_request, part_of
from coordwire.capture.pending_requests import AwaitedRequest, PendingRequests
from coordwire.capture.redaction.entry_secrets import AMBIGUOUS, may_differ
from coordwire.connection.dialect import Direction, Side
from coordwire.errors import DecodeError, Malformed
from coordwire.frames import PREFIX, answered_version, read_request, read_response
from coordwire.limits import current
from coordwire.messages.headers import RequestHeader
from coordwire.versions import API_VERSIONS, INSTANCE_ID, LASTING_CLIENT_KEYS, omits_client

PRODUCE, SASL_HANDSHAKE, SASL_AUTHENTICATE = 0, 17, 36
TELLING = frozenset((PRODUCE, SASL_HANDSHAKE, SASL_AUTHENTICATE))
"""APIs whose requests say something of the frames after them: whether they are answered, what tokens are."""

NAMING = TELLING | LASTING_CLIENT_KEYS | {API_VERSIONS} if LASTING_CLIENT_KEYS else frozenset[int]()
"""APIs by whose requests a connection's client is known."""

EAGER_ANSWERS = frozenset((SASL_HANDSHAKE, SASL_AUTHENTICATE))
"""APIs whose answers are read at once, for what they say of the frames after them."""

_ID = struct.Struct(">i").unpack_from
_SIZE_ID = struct.Struct(">ii").unpack_from
_REQUEST = struct.Struct(">hhi").unpack_from
_REQUEST_HEAD = 8
"""Bytes of a request's key, version and correlation id."""

CLIENT = _REQUEST_HEAD
"""Where a request has its client id."""

NO_CLIENT = b"\xff\xff\0"
"""No client id and no tagged field."""

_LENGTH = struct.Struct(">h")
_SIZE = struct.Struct(">i").unpack_from
_HEAD = struct.Struct(">ihhih").unpack_from

LATEST = 10_000
"""So many unanswered requests are remembered for one connection; the oldest are forgotten first. How much
those of all connections may take: `coordwire.capture.pending_requests`."""

MAX_KEY = 10_000
"""A stream that begins with an api key above this is not taken for Kafka's."""


class AnyConversation(Protocol):
    """What a reader of connections needs of a conversation in any protocol. `Conversation` is Kafka's,
    whose methods describe each."""

    connection: TcpConnection | None
    number: Callable[[], int]

    @property
    def head(self) -> int: ...
    def request(self, body: FrameBody, flow: str) -> FrameEntry: ...
    def response(self, body: FrameBody, flow: str) -> FrameEntry: ...
    def either(self, body: FrameBody) -> FrameEntry: ...
    def lazy_request(self, body: FrameBody, flow: str) -> FrameEntry | None: ...
    def lazy_response(self, body: FrameBody, flow: str) -> FrameEntry | None: ...
    def expects(self, body: bytes) -> bool: ...
    def opens(self, head: bytes) -> bool | None: ...
    def claims(self, buffer: bytearray, at: int) -> int: ...
    def sender(self, buffer: bytearray, at: int, end: int) -> Side | None: ...
    def fits_request(self, buffer: bytearray, at: int, effort: Effort | None = None) -> bool: ...
    def fits_response(self, buffer: bytearray, at: int, effort: Effort | None = None) -> bool: ...
    def may_answer(self, buffer: bytearray, at: int, stop: int) -> bool: ...
    def close(self) -> None: ...
    def resolve(self) -> AnyConversation: ...


class CaptureDialect(Protocol):
    """A protocol that a capture is read in instead of Kafka's."""

    @property
    def name(self) -> str: ...
    def conversation(
        self, capture: str, number: Callable[[], int], *, strict: bool, waiting: PendingRequests
    ) -> AnyConversation:
        """A new connection's conversation; the arguments are those of `Conversation`."""


class Conversation:
    """The requests of one connection that wait, and the entries that its frames become.

    number: gives each entry its place in the capture. strict: as for `Capture`.
    waiting: where the requests of all connections of the capture wait.
    connection: whose conversation it is, where the input has connections.
    """

    __slots__ = (
        "_ambiguous",
        "_client_id",
        "_count",
        "_mechanism",
        "_naming",
        "_oldest",
        "_owed_tokens",
        "_repeats",
        "_tokens",
        "_waiting",
        "capture",
        "connection",
        "number",
        "strict",
        "waiting",
    )

    def __init__(
        self,
        capture: str,
        number: Callable[[], int],
        *,
        strict: bool = False,
        waiting: PendingRequests | None = None,
    ) -> None:
        self.connection: TcpConnection | None = None
        self.capture = capture
        self.number = number
        self.strict = strict
        self.waiting = PendingRequests() if waiting is None else waiting
        self._waiting: dict[int, AwaitedRequest] = {}
        self._repeats: dict[int, deque[AwaitedRequest]] = {}  # those that wait after them under the same id
        self._ambiguous: set[int] = set()  # the ids under which requests waited whose answers may differ
        self._client_id: str | None = None
        self._naming: bytes | None = None  # the client id as the header had it that named it
        self._count = 0
        self._oldest: list[int] = []  # serials, the first at the end
        self._tokens = False
        self._owed_tokens = 0
        self._mechanism: str | None = None

    # --- the client's side ---

    def request(self, body: FrameBody, flow: str) -> FrameEntry:
        """The entry of a frame from the client."""
        return self._request(body, flow, self.number())

    def lazy_request(self, body: FrameBody, flow: str) -> FrameEntry | None:
        """The lazy entry of a frame from the client; None, and nothing is done, if it can't be lazy."""
        data = body.data
        if self._tokens or len(data) < _REQUEST_HEAD:
            return None
        head = _REQUEST(data)
        if head[0] in TELLING:
            return None
        is_lasting = head[0] in LASTING_CLIENT_KEYS
        is_known = head[0] not in NAMING or (is_lasting and self._is_of_client(data, *head[:2]))
        if not is_known and not self._learn_client(data):
            return None
        entry = lazy_entry(
            self.capture, self.number(), flow, "request", body, head, None, self.connection, self.strict
        )
        if is_lasting:
            entry.client_id = self._client_id
            self.waiting.unnamed += self._client_id is None
        self._wait(head[2], AwaitedRequest(entry, self._forget))
        return entry

    def _request(self, body: FrameBody, flow: str, number: int) -> FrameEntry:
        entry = self._decode_request(body, flow, number)
        if self._tokens:
            if entry.error is not None and not may_be_request(struct.pack(">i", len(body.data)) + body.data):
                self._owed_tokens += 1
                return self._entry(body, flow, "request", number, token=True, mechanism=self._mechanism)
            self._tokens = False
        if entry.api_key in TELLING:
            self._note_mechanism(entry)
        if entry.api_key in NAMING:
            self._note_client(entry)
        if entry.correlation_id is not None:
            self._wait(entry.correlation_id, AwaitedRequest(entry, self._forget))
        return entry

    def _decode_request(self, body: FrameBody, flow: str, number: int) -> FrameEntry:
        try:
            frame = read_request(body.data, strict=self.strict)
        except DecodeError as error:
            entry = self._entry(body, flow, "request", number)
            refused_request(entry, error)
            return entry
        header = frame.header
        return FrameEntry(
            capture=self.capture,
            number=number,
            flow=flow,
            time_ns=body.time_ns,
            direction="request",
            body=body.data,
            api_key=frame.api_key,
            api_version=frame.api_version,
            body_version=frame.api_version,
            correlation_id=header.correlation_id,
            client_id=header.client_id,
            header=header,
            message=frame.message,
            deviations=unquoted_deviations(frame.deviations),
            packet=body.packet,
            first_packet=body.first_packet,
            connection=self.connection,
        )

    def _note_mechanism(self, entry: FrameEntry) -> None:
        """SaslHandshake names it; SaslAuthenticate goes by it."""
        if entry.error is not None:
            return
        if entry.api_key == SASL_HANDSHAKE:
            self._mechanism = getattr(entry.message, "mechanism", None)
        elif entry.api_key == SASL_AUTHENTICATE:
            entry.mechanism = self._mechanism

    def _note_client(self, entry: FrameEntry) -> None:
        """Remember whose the connection is; and name the client of a request that comes without."""
        header = entry.header
        if not isinstance(header, RequestHeader) or self._learn_client(entry.body):
            return
        if header.client_id is None and omits_client(entry.api_key, entry.api_version):
            if entry.error is None and INSTANCE_ID in (header.tags or ()):  # the connection's first
                self._client_id, self._naming = "", None
            entry.client_id = self._client_id
            self.waiting.unnamed += entry.client_id is None

    def _learn_client(self, data: bytes) -> bool:
        """Remember the client that a request's header names, if it names one."""
        size = _LENGTH.unpack_from(data, CLIENT)[0] if len(data) >= CLIENT + _LENGTH.size else -1
        naming = data[CLIENT : CLIENT + _LENGTH.size + max(size, 0)]
        if size < 0 or len(naming) < _LENGTH.size + size:
            return False
        try:
            client_id = str(naming[_LENGTH.size :], "utf-8")
        except UnicodeDecodeError:
            return False
        self._client_id, self._naming = client_id, bytes(naming)
        return True

    def _is_of_client(self, data: bytes, key: int, version: int) -> bool:
        """Whether a request's header names the connection's client, or leaves it out. `find_client` in
        _speedups/capture/frame_walk.c does the same."""
        if self._naming is not None and data.startswith(self._naming, CLIENT):
            return True
        return data.startswith(NO_CLIENT, CLIENT) and omits_client(key, version)

    def _wait(self, correlation_id: int, pending_request: AwaitedRequest) -> None:
        if correlation_id not in self._waiting:
            self._waiting[correlation_id] = pending_request
        else:
            if may_differ(self._waiting[correlation_id].entry, pending_request.entry):
                self._ambiguous.add(correlation_id)
            self._repeats.setdefault(correlation_id, deque()).append(pending_request)
        self._count += 1
        self.waiting.add(pending_request)
        if self._count > LATEST:
            self._forget_oldest()

    def _take(self, correlation_id: int) -> AwaitedRequest | None:
        pending_request = self._waiting.get(correlation_id)
        if pending_request is not None:
            self._forget(pending_request)
            self.waiting.remove(pending_request)
        return pending_request

    def _forget(self, pending_request: AwaitedRequest) -> None:
        """Take a request out of the index. It is the first under its correlation id: either its answer came,
        or it is the oldest of all."""
        correlation_id = pending_request.correlation_id
        assert correlation_id is not None
        self._count -= 1
        if self._repeats and correlation_id in self._repeats:
            later = self._repeats[correlation_id]
            self._waiting[correlation_id] = later.popleft()
            if not later:
                del self._repeats[correlation_id]
        else:
            del self._waiting[correlation_id]
            self._ambiguous.discard(correlation_id)

    def _forget_oldest(self) -> None:
        """Forget one request. The order of those that wait now is made when the first must be forgotten, and
        serves until all of them are gone."""
        oldest = None
        while oldest is None:
            if not self._oldest:
                self._oldest = sorted((request.serial for request in self._all_waiting()), reverse=True)
            oldest = self.waiting.get(self._oldest.pop())
        self.waiting.forget(oldest)

    def _all_waiting(self) -> Iterator[AwaitedRequest]:
        yield from self._waiting.values()
        for later in self._repeats.values():
            yield from later

    def resolve(self) -> AnyConversation:
        """The conversation of a connection that is in this protocol, where it may have been in another."""
        return self

    def close(self) -> None:
        """The connection is over: nothing waits any longer."""
        for pending_request in self._all_waiting():
            self.waiting.remove(pending_request)
        self._waiting.clear()
        self._repeats.clear()
        self._ambiguous.clear()
        self._oldest.clear()
        self._count = 0

    # --- the server's side ---

    def expects(self, body: bytes) -> bool:
        """Whether a request waits for this frame from the server."""
        return self._owed_tokens > 0 or (len(body) >= 4 and _ID(body)[0] in self._waiting)

    def response(self, body: FrameBody, flow: str) -> FrameEntry:
        """The entry of a frame from the server."""
        return self._response(body, flow, self.number())

    def lazy_response(self, body: FrameBody, flow: str) -> FrameEntry | None:
        """The lazy entry of a frame from the server; None, and nothing is done, if it can't be lazy."""
        data = body.data
        if self._owed_tokens or len(data) < PREFIX:
            return None
        pending_request = self._waiting.get(_ID(data)[0])
        if pending_request is None or pending_request.api_key in EAGER_ANSWERS:
            return None
        if pending_request.correlation_id in self._ambiguous:
            return None
        request = pending_request.entry
        if request.api_version is None:
            return None
        self._forget(pending_request)
        self.waiting.remove(pending_request)
        head = request.api_key, request.api_version, pending_request.correlation_id
        entry = lazy_entry(
            self.capture, self.number(), flow, "response", body, head, request, self.connection, self.strict
        )
        if request.api_key == API_VERSIONS:
            entry.body_version = answered_version(data, request.api_version)
        return entry

    def _response(self, body: FrameBody, flow: str, number: int) -> FrameEntry:
        entry = self._entry(body, flow, "response", number)
        if self._owed_tokens:
            self._owed_tokens -= 1
            entry.token = True
            entry.mechanism = self._mechanism
            return entry
        if len(body.data) < 4:
            reason = f"a response header needs at least 4 bytes, {len(body.data)} given"
            entry.error = Malformed(reason, len(body.data), "correlation_id")
            return entry
        (entry.correlation_id,) = _ID(body.data)
        if entry.correlation_id in self._ambiguous:
            entry.text, entry.hidden = NO_TEXT, AMBIGUOUS
        pending_request = self._take(entry.correlation_id)
        request = None if pending_request is None else pending_request.entry
        if request is None or request.api_key is None or request.api_version is None:
            entry.error = Malformed(self._unseen(), 0, "correlation_id")
            return entry
        read_answer(entry, request, strict=self.strict)
        if request.api_key == SASL_HANDSHAKE and entry.error is None and request.api_version == 0:
            self._tokens = getattr(entry.message, "error_code", 1) == 0
        return entry

    def _unseen(self) -> str:
        reason = "no request of this correlation id was seen"
        if forgotten := self.waiting.forgotten:
            return f"{reason}, or it was dropped with the {forgotten} oldest of too many pending requests"
        return reason

    def either(self, body: FrameBody) -> FrameEntry:
        """The entry of a frame whose sender is unknown: an answer if a request waits for its id and
        it decodes as one; else a request if it looks like one or begins with a key that no correlation id
        begins with; else an answer."""
        data = body.data
        prefixed = bytearray(struct.pack(">i", len(data)) + data)
        if self.fits_response(prefixed, 0):
            return self.response(body, "")
        if may_be_request(prefixed):
            return self.request(body, "")
        if not self.expects(data) and len(data) >= 8 and 0 < _REQUEST(data)[0] < MAX_KEY:
            return self.request(body, "")
        return self.response(body, "")

    # --- where frames may begin ---

    head = HEAD

    def opens(self, head: bytes) -> bool | None:
        """Whether a stream that begins so is a client's; None if more of it decides that."""
        return _opens_conversation(head)

    def claims(self, buffer: bytearray, at: int) -> int:
        """Where a whole frame ends that shows who sent it, if one may begin here; else -1."""
        return at + PREFIX + _SIZE(buffer, at)[0] if may_be_request(buffer, at) else -1

    def sender(self, buffer: bytearray, at: int, end: int) -> Side | None:
        """Who sent the frame that is there from `at` to `end`: a request that decodes is the client's."""
        if not may_be_request(buffer, at):  # more follows it by now
            return None
        try:
            read_request(bytes(buffer[at + PREFIX : end]), strict=False)
        except DecodeError:
            return None
        return "client"

    def fits_request(self, buffer: bytearray, at: int, effort: Effort | None = None) -> bool:
        return may_be_request(buffer, at)

    def fits_response(self, buffer: bytearray, at: int, effort: Effort | None = None) -> bool:
        """Whether a response begins here: a size, the correlation id of a request that waits, and a body that
        decodes as its answer."""
        if len(buffer) - at < 8:
            return False
        size, correlation_id = _SIZE_ID(buffer, at)
        pending_request = self._waiting.get(correlation_id)
        if pending_request is None or not 4 <= size <= current().frame:
            return False
        request = pending_request.entry
        if len(buffer) - at < PREFIX + size or request.api_key is None or request.api_version is None:
            return True
        if effort is not None and not effort.spend(size):
            return False
        body = part_of(buffer, at + PREFIX, at + PREFIX + size)
        try:
            read_response(body, request.api_key, request.api_version, strict=False)
        except DecodeError:
            return False
        if effort is not None:
            effort.succeeded(size)
        return True

    def may_answer(self, buffer: bytearray, at: int, stop: int) -> bool:
        """Whether `fits_response` may agree to an index of this range, after each of which are eight bytes:
        the id of a request that waits is there."""
        if not self._waiting:
            return False
        ids, words = self._waiting.keys(), part_of(buffer, at + PREFIX, stop + 7)
        for first in range(PREFIX):
            count = (len(words) - first) // PREFIX
            if not ids.isdisjoint(struct.unpack_from(f">{count}i", words, first)):
                return True
        return False

    def _entry(
        self,
        body: FrameBody,
        flow: str,
        direction: Direction,
        number: int,
        *,
        token: bool = False,
        mechanism: str | None = None,
    ) -> FrameEntry:
        return FrameEntry(
            capture=self.capture,
            number=number,
            flow=flow,
            time_ns=body.time_ns,
            direction=direction,
            body=body.data,
            token=token,
            mechanism=mechanism,
            packet=body.packet,
            first_packet=body.first_packet,
            connection=self.connection,
        )


def _opens_conversation(head: bytes) -> bool:
    """Whether a stream that begins here is a Kafka client's, perhaps of an API that we don't know."""
    size, key, version, correlation_id, client = _HEAD(head)
    return bool(
        HEAD - PREFIX <= size <= current().frame
        and 0 <= key < MAX_KEY
        and 0 <= version < 100
        and correlation_id >= 0
        and -1 <= client <= size - (HEAD - PREFIX)
    )
