"""`FrameReading`: which frames of a connection have to be read, and their messages; the requests that wait
for their answers, by their correlation ids.

Strategy: a request is read where a rule or a script may take it, where it decides how the frames after it
are read, or where it names the client of those; a response where its request was read for a rule or a
script, and where its API may name brokers or topics with their ids. Rules: what cannot be read passes as it
is, and is counted; the first bytes of a large frame suffice to know whether it has to be read.

Of a request as little is kept as its answer needs; what a script or a rule keeps of it is counted.
There is a bound of requests and one of bytes; of two requests with one number, the later one counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from coordwire import versions
from coordwire.broker.cluster.promise import Promise
from coordwire.broker.injection.fault_registry import Faults
from coordwire.capture.framing import may_be_request
from coordwire.codec import Message
from coordwire.connection.kafka import LastingClient, is_fire_and_forget
from coordwire.errors import DecodeError
from coordwire.frames import (
    PREFIX,
    RequestFrame,
    ResponseFrame,
    decode_request,
    decode_response,
    read_request,
)
from coordwire.messages import FetchRequest, ProduceRequest
from coordwire.tap.addresses import names_brokers, shows_no_address
from coordwire.tap.counts import TapCounts
from coordwire.tap.script import Script, TappedExchange
from coordwire.tap.topic_ids import names_topics
from coordwire.versions import ApiKey, known_versions, omits_client

_FOLLOWED = frozenset({ApiKey.PRODUCE, ApiKey.SASL_HANDSHAKE, ApiKey.FETCH})
"""APIs whose requests are always read: Produce, whether there is an answer; SaslHandshake, whether bare
tokens follow; Fetch, whose sessions are known."""


class ReadingHub(Protocol):
    """The part of the tap that decides what is read."""

    @property
    def faults(self) -> Faults: ...

    @property
    def script(self) -> Script: ...

    @property
    def counts(self) -> TapCounts: ...


class FrameReading:
    """The frames of one connection."""

    def __init__(self, hub: ReadingHub) -> None:
        self._hub = hub
        self._client = LastingClient()
        self._knows_client = False
        """A request was read whose client is that of later ones, too."""

    def is_read(self, key: int) -> bool:
        """Whether requests of an API have to be read."""
        return key in _FOLLOWED or self.is_read_whole(key)

    def is_read_whole(self, key: int) -> bool:
        """Whether all of them have to be read, whatever their first bytes are."""
        names_client = not self._knows_client and key in versions.LASTING_CLIENT_KEYS
        return names_client or self._hub.script.is_there or self._may_fault(key)

    def must_be_known(self, key: int) -> bool:
        """Whether the versions of an API must be those that can be read here."""
        return (
            key in _FOLLOWED
            or self._hub.script.is_there
            or any(names_brokers(key, version) for version in known_versions(key))
            or self._may_fault(key)
        )

    def is_answer_read(self, unanswered: UnansweredRequest) -> bool:
        """Whether the response to a request has to be read."""
        key, version = unanswered.api_key, unanswered.version
        return names_brokers(key, version) or self._is_answer_read_whole(unanswered)

    def answer_passes(self, unanswered: UnansweredRequest, head: bytes) -> bool:
        """Whether the first bytes of the response to a request show that it does not have to be read."""
        key, version = unanswered.api_key, unanswered.version
        if self._is_answer_read_whole(unanswered):
            return False
        return not names_brokers(key, version) or shows_no_address(head, key, version)

    def _is_answer_read_whole(self, unanswered: UnansweredRequest) -> bool:
        """Whether it has to be read, whatever its first bytes are."""
        key, version, request = unanswered.api_key, unanswered.version, unanswered.request
        return (
            unanswered.promise is not None
            or unanswered.exchange is not None
            or key in (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE)
            or names_topics(key, version)
            or (isinstance(request, FetchRequest) and request.session_epoch == 0)
        )

    def request(self, wire: bytes, key: int) -> RequestFrame | None:
        """A request, if it has to be read and can be."""
        if not self.is_read(key):
            return None
        try:
            frame = decode_request(wire, strict=False)
        except DecodeError:
            self._hub.counts.unread += 1
            return None
        if omits_client(frame.api_key, frame.api_version):
            self._client.of(frame)
            self._knows_client = True
        return frame

    def client_of(self, frame: RequestFrame) -> str | None:
        """The client of a request, also where only an earlier one names it."""
        return self._client.of(frame) or frame.client_id

    def response(self, wire: bytes, unanswered: UnansweredRequest) -> ResponseFrame[Any] | None:
        """A response, if it has to be read and can be."""
        if not self.is_answer_read(unanswered):
            return None
        try:
            return decode_response(wire, api_key=unanswered.api_key, version=unanswered.version, strict=False)
        except DecodeError:
            self._hub.counts.unread += 1
            return None

    def _may_fault(self, key: int) -> bool:
        """Whether a rule may be for requests of an API."""
        return any(not handle.rule.keys or key in handle.rule.keys for handle in self._hub.faults.active)


def is_token(wire: bytes) -> bool:
    """Whether a frame after a SaslHandshake v0 is a bare token, not a request."""
    try:
        decode_request(wire, strict=False)
    except DecodeError:
        return not may_be_request(wire)
    return False


def produce_has_answer(head: bytes) -> bool | None:
    """Whether a Produce has an answer, by its first bytes; None where they do not say so."""
    try:
        read_request(head[PREFIX:], strict=False)
    except DecodeError as error:
        if isinstance(error.partial, ProduceRequest) and error.path.startswith("topic_data"):  # acks is read
            return not is_fire_and_forget(error.partial)
    return None


# --- unanswered requests ---


MOST_REQUESTS = 10_000

MOST_BYTES = 4 << 20
"""Bytes of memory of requests that a script or a rule keeps, unless there is but one."""


def memory_cost(size: int) -> int:
    """The bytes of memory, about, that a message with a frame of this size takes when it is decoded."""
    return 1_000 + 10 * size


@dataclass(slots=True)
class UnansweredRequest:
    """A request that waits for its answer. request: where that is needed then. promise: of the answer, for a
    rule that took the request. size: bytes of memory of what is kept of the request."""

    api_key: int
    version: int
    request: Message | None = None
    exchange: TappedExchange | None = None
    promise: Promise[Message | None] | None = None
    size: int = 0


class UnansweredRequests:
    """The requests of a connection."""

    def __init__(self) -> None:
        self._requests: dict[int, UnansweredRequest] = {}
        self._size = 0

    def __len__(self) -> int:
        return len(self._requests)

    @property
    def is_full(self) -> bool:
        """Whether no other request may wait."""
        return len(self._requests) >= MOST_REQUESTS or self._size >= MOST_BYTES

    def add(self, number: int, request: UnansweredRequest) -> None:
        """Keep a request until its answer comes."""
        self.pop(number)
        self._requests[number] = request
        self._size += request.size

    def get(self, number: int) -> UnansweredRequest | None:
        return self._requests.get(number)

    def pop(self, number: int) -> UnansweredRequest | None:
        """The request that an answer belongs to, which waits no more."""
        request = self._requests.pop(number, None)
        if request is not None:
            self._size -= request.size
        return request

    def clear(self) -> None:
        self._requests.clear()
        self._size = 0
