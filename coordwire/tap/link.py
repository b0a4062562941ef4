"""`TapLink`: one client's connection, and the connection to the broker that belongs to it.

Strategy: each side is a `LinkSide`, which gives whole frames. A frame that does not have to be read is sent
on as it came, by its first bytes alone, and a large one in the pieces in which it comes. A frame is read
where its API may name brokers, where a rule or a script may take it, or where it decides how the frames after
it are read (Produce: whether there is an answer; SaslHandshake: whether bare tokens follow). It is encoded
again only where it was changed. A recording without secrets reads all frames for itself. Rules: responses
keep the order of their requests. A request that a rule takes, or that the tap answers, waits until those
before it are answered, and those after it wait for it, as in a broker. What cannot be read passes as it is.
The requests that wait for answers are bounded; with too many of them, the client is not read. A broker that
does not answer is waited for as long as its client stays, as without a tap.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

from coordwire.broker.cluster.promise import HandlerRun, Promise
from coordwire.broker.connections.recorded_connection import RecordedConnection, Recording
from coordwire.broker.connections.version_fit import fit
from coordwire.broker.handlers.produce_api import has_error
from coordwire.broker.injection.faulted_call import FaultedCall, Timer, handles_of
from coordwire.capture.pending_requests import PendingRequests
from coordwire.client.settings import Address, shown_address
from coordwire.codec import Message
from coordwire.connection.kafka import is_fire_and_forget, starts_handshake
from coordwire.errors import CoordwireError, NotInVersion
from coordwire.frames import PREFIX, RequestFrame, ResponseFrame, encode_response
from coordwire.messages import FetchRequest, FetchResponse, ProduceResponse
from coordwire.tap.addresses import BrokerAddresses, names_brokers, narrowed
from coordwire.tap.frame_reading import (
    FrameReading,
    ReadingHub,
    UnansweredRequest,
    UnansweredRequests,
    is_token,
    memory_cost,
    produce_has_answer,
)
from coordwire.tap.link_side import PATIENCE, LinkSide, LinkSideHub
from coordwire.tap.script import (
    ClosedByScript,
    TappedExchange,
    read_again,
    request_wire,
    response_wire,
    scripted_request,
    scripted_response,
)
from coordwire.tap.tapped_call import TappedCall, UnreadableResponse, carried_out
from coordwire.tap.topic_ids import SessionPartitions, TopicIds, names_topics
from coordwire.versions import ApiKey

log = logging.getLogger("coordwire.tap")

_PAUSE = 0.1
"""Seconds until a renewal is tried again that has met a request which is held."""

_HEAD = struct.Struct(">hhi")
_ID = struct.Struct(">i")


class TapHub(LinkSideHub, ReadingHub, Protocol):
    """The part of the tap that a link needs."""

    @property
    def addresses(self) -> BrokerAddresses: ...

    @property
    def topics(self) -> TopicIds: ...

    @property
    def traffic(self) -> Recording | None: ...

    @property
    def recorded_requests(self) -> PendingRequests | None:
        """Where requests wait whose answers are recorded without secrets; None if all is recorded."""

    @property
    def sessions(self) -> SessionPartitions: ...

    def connect(self, link: TapLink) -> asyncio.Task[None]:
        """Begin to connect a link's side to its broker."""

    def join(self, link: TapLink) -> None:
        """A client has connected."""

    def leave(self, link: TapLink) -> None:
        """A link has ended."""


class TapLink:
    """A client's connection. address: of the broker that it is meant for."""

    def __init__(self, hub: TapHub, address: Address) -> None:
        self._hub = hub
        self.address = address
        self.client = LinkSide(hub, self)
        self.broker = LinkSide(hub, self)
        self._is_coupled = self._is_over = False
        self._arrival: asyncio.Future[bytes] | None = None
        """Of the broker's answer to the tap's own request, before frames pass."""
        self._renewal: Promise[None] | None = None
        """Fulfilled when the tap has authenticated again."""
        self._connecting: asyncio.Task[None] | None = None
        self._patience: asyncio.TimerHandle | None = None
        """Ends the connection some time after one side has."""
        self._renewing: asyncio.TimerHandle | None = None
        """Authenticates again, before the session's end."""
        self._unanswered = UnansweredRequests()
        self._run: HandlerRun[bool] | None = None
        """What is done with a request that a rule is for, or that is answered here."""
        self._turn: Promise[None] | None = None
        """Fulfilled when the requests before that one are answered."""
        self._faulted: RequestFrame | None = None
        self._arrived: tuple[bytes, ResponseFrame[Any]] | None = None
        """The broker's answer to it, as it came and as it was read."""
        self._is_silent = False
        """A rule has lost an answer: the client gets nothing any more."""
        self._tokens_follow = False
        """A SaslHandshake v0 was answered: the client's frames are bare tokens, until one is a request."""
        self._handshake = False
        """One waits for its answer; what comes after it is not read until then."""
        self._owed_tokens = 0
        self._record: RecordedConnection | None = None
        self._first_ended: LinkSide | None = None
        self._reading = FrameReading(hub)
        self.peer = "a client"

    # --- the beginning ---

    def connected(self, side: LinkSide) -> bool:
        if side is self.broker:
            return not self._is_over
        transport = side.transport
        assert transport is not None
        peer, own = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        self._hub.join(self)
        if isinstance(peer, tuple) and isinstance(own, tuple):
            self.peer = f"{peer[0]}:{peer[1]}"
            hub = self._hub
            if hub.traffic is not None:
                self._record = RecordedConnection(hub.traffic, peer[:2], own[:2], hub.recorded_requests)
        self._connecting = self._hub.connect(self)
        return True

    @property
    def is_connected(self) -> bool:
        """Whether the broker's side has its socket."""
        return self.broker.transport is not None

    async def answer(self, data: bytes) -> bytes:
        """Send bytes of the tap's own to the broker, and give the frame that comes next; b"" at the end."""
        if not self.is_connected:
            return b""
        arrival: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._arrival = arrival
        self.broker.send(data)
        self.broker.flush()
        self.broker.go_on()
        return await arrival

    def coupled(self, lifetime_s: float = 0.0) -> None:
        """The broker's side is there, and knows who the client is: frames may pass.

        lifetime_s: seconds after which the tap must authenticate again, 0 for never.
        """
        if self._is_over:
            return
        self._connecting = self._arrival = None
        if lifetime_s:
            self._renewing = self._hub.call_later(lifetime_s, self.renew)
        self._is_coupled = True
        renewal, self._renewal = self._renewal, None
        if renewal is not None:
            renewal.fulfil(None)
        self.client.go_on()
        self.broker.go_on()

    def renew(self) -> None:
        """Authenticate again, between two requests."""
        if self._is_over or self._renewal is not None:
            return
        if self._run is not None or self.client.is_passing:
            self._renewing = self._hub.call_later(_PAUSE, self.renew)
            return

        async def steps() -> None:
            self._renewal = Promise()
            self._is_coupled = False
            self._connecting = self._hub.connect(self)
            await self._renewal

        self._start(steps)

    # --- for the sides ---

    def can_take(self, side: LinkSide) -> bool:
        if side is self.broker:
            return not self.client.is_full if self._is_coupled else self._arrival is not None
        if side.is_passing:
            return not self.broker.is_full
        return (
            self._is_coupled
            and not self.broker.is_full
            and self._run is None
            and not self._handshake
            and not self._unanswered.is_full
        )

    def take(self, side: LinkSide, wire: bytes) -> None:
        with self._guarded():
            if side is self.client:
                self._hub.counts.requests_in += 1
                self._request(wire)
            elif not self._is_coupled:
                self._arrive(wire)
            else:
                self._hub.counts.responses_in += 1
                if not self._is_silent:
                    self._response(wire)

    def passes(self, side: LinkSide, head: bytes) -> bool:
        return self._passes_request(head) if side is self.client else self._passes_response(head)

    def take_piece(self, side: LinkSide, piece: bytes, *, is_last: bool) -> None:
        is_response = side is self.broker
        self._add_record(piece, to_client=is_response)
        (self.client if is_response else self.broker).send(piece)
        if not is_last:
            return
        if is_response:
            self._hub.counts.responses_out += 1
            self._is_answered()
        else:
            self._hub.counts.requests_out += 1

    def _arrive(self, data: bytes) -> None:
        """Give the broker's answer to the tap's own request."""
        arrival, self._arrival = self._arrival, None
        if arrival is not None and not arrival.done():
            arrival.set_result(data)

    def drained(self, side: LinkSide) -> None:
        (self.client if side is self.broker else self.broker).go_on()

    def turn_ended(self) -> None:
        self.client.flush()
        self.broker.flush()
        self.client.go_on()

    def request_handled(self) -> None:
        self.turn_ended()

    def peer_ended(self, side: LinkSide) -> None:
        if self._is_over:
            return
        self._first_ended = self._first_ended or side
        if side is self.client and self._run is not None:
            self._end()
        elif self._patience is None:
            self._patience = self._hub.call_later(PATIENCE, self.abort)

    def ended(self, side: LinkSide, remainder: bytes) -> None:
        if side is self.broker and not self._is_coupled:
            self._arrive(b"")  # the error of what awaits it says why
            return
        if remainder and self._is_coupled:
            if side is self.client:
                self._add_record(remainder, to_client=False)
                self.broker.send(remainder)
            elif not self._is_silent:
                self._add_record(remainder, to_client=True)
                self.client.send(remainder)
        self._end()

    def failed(self, side: LinkSide, reason: str) -> None:
        peer = "client" if side is self.client else f"broker {shown_address(self.address)}"
        self.refuse(f"{reason}, from the {peer}")

    def _add_record(self, data: bytes, *, to_client: bool) -> None:
        """Record bytes that pass."""
        if self._record is not None and not self._is_over:
            self._record.add(data, to_client=to_client)

    @property
    def _needs_frames(self) -> bool:
        """Whether the recording needs whole frames."""
        return self._record is not None and self._record.needs_frames

    # --- the end ---

    def refuse(self, reason: str) -> None:
        """End the connection, and report why."""
        if not self._is_over:
            self._hub.counts.refused += 1
            log.info("ended the connection of %s: %s", self.peer, reason)
            self._end()

    def _end(self, *, tap_stops: bool = False) -> None:
        """End both sides, after what was written. tap_stops: no side has a part in it."""
        if self._is_over:
            return
        self._is_over = True
        if self._connecting is not None:
            self._connecting.cancel()
        for timer in (self._patience, self._renewing):
            if timer is not None:
                timer.cancel()
        run, self._run = self._run, None
        if run is not None:
            run.close()
        self._unanswered.clear()
        if self._record is not None:
            first = self._first_ended
            reset = first is not None and first.was_reset
            self._record.close(by_broker=None if tap_stops else first is not self.client, aborted=reset)
        self.client.close()
        self.broker.close()
        self._hub.leave(self)

    def abort(self) -> None:
        """End both sides at once: since one has ended long ago, or since the tap stops."""
        self._end(tap_stops=self._first_ended is None)
        self.client.abort()
        self.broker.abort()

    # --- requests ---

    def _passes_request(self, head: bytes) -> bool:
        """Begin to pass a large request in pieces, if it does not have to be read, or if its first bytes are
        enough: those of a Produce that show whether it has an answer."""
        key, version, number = _HEAD.unpack_from(head, PREFIX)
        if self._tokens_follow or self._needs_frames or self._reading.is_read_whole(key):
            return False
        has_answer = produce_has_answer(head) if self._reading.is_read(key) else True
        if has_answer is None:
            return False
        self._hub.counts.requests_in += 1
        if has_answer:
            self._unanswered.add(number, UnansweredRequest(key, version))
        return True

    def _request(self, wire: bytes) -> None:
        if self._tokens_follow:
            if is_token(wire):
                self._owed_tokens += 1
                self._add_record(wire, to_client=False)
                self._send_on(wire)
                return
            self._tokens_follow = False
        if len(wire) < PREFIX + _HEAD.size:
            self._add_record(wire, to_client=False)
            self._send_on(wire)
            return
        key, version, number = _HEAD.unpack_from(wire, PREFIX)
        frame = self._reading.request(wire, key)
        self._add_record(wire, to_client=False)
        if frame is None:
            self._unanswered.add(number, UnansweredRequest(key, version))
            self._send_on(wire)
            return
        exchange, changed = None, None
        if self._hub.script.is_there:
            exchange = self._exchange(frame)
            changed = scripted_request(self._hub.script, exchange, frame, wire)
            if exchange.reply is not None:
                self._start(partial(self._reply, frame, exchange.reply))
                return
        if isinstance(frame.message, FetchRequest):
            self._hub.sessions.continued(self.address, frame.message)
        if self._hub.faults.active and self._is_faulted(frame, exchange, wire):
            return
        if not is_fire_and_forget(frame.message):
            unanswered = UnansweredRequest(key, version)
            if exchange is not None or isinstance(frame.message, FetchRequest):
                unanswered.request, unanswered.exchange = frame.message, exchange
                unanswered.size = memory_cost(frame.size)
            self._handshake = starts_handshake(key, version)
            self._unanswered.add(number, unanswered)
        if changed is not None:
            self._hub.counts.changed["script"] += 1
        self._send_on(wire if changed is None else changed)

    def _send_on(self, wire: bytes) -> None:
        """Send a request to the broker."""
        self.broker.send(wire)
        self._hub.counts.requests_out += 1

    def _exchange(self, frame: RequestFrame) -> TappedExchange:
        node = self._hub.addresses.node(self.address)
        api = frame.api_name or str(frame.api_key)
        return TappedExchange(
            api, frame.api_key, frame.api_version, self._reading.client_of(frame), node, frame.message
        )

    async def _reply(self, frame: RequestFrame, reply: Message) -> None:
        """Answer a request with the script's answer."""
        self._hub.counts.answered["script"] += 1
        if not is_fire_and_forget(frame.message):
            self._answer(frame, reply)

    # --- faults ---

    def _is_faulted(self, frame: RequestFrame, exchange: TappedExchange | None, wire: bytes) -> bool:
        """Begin what rules do with a request, if any is for it."""
        hub = self._hub
        tapped = TappedCall(
            frame.message,
            frame.api_version,
            hub.addresses.node(self.address),
            self._reading.client_of(frame),
            hub.topics,
            partial(hub.sessions.of, self.address),
            partial(self._carry, frame, exchange, wire),
        )
        handles = handles_of(hub.faults, tapped, frame.api_key)
        if not handles:
            return False
        steps = FaultedCall(tapped, frame.api_key, carried_out, handles, self).run
        self._start(partial(self._fault, frame, steps))
        return True

    async def _fault(
        self, frame: RequestFrame, steps: Callable[[], Coroutine[Any, None, Message | None]]
    ) -> None:
        """Carry out a request that rules are for, and answer it by them."""
        counts = self._hub.counts
        self._faulted, self._arrived = frame, None
        before = counts.requests_out
        try:
            response = await steps()
        except UnreadableResponse:
            return
        finally:
            self._faulted = None
        if counts.requests_out == before and not self._is_over:
            counts.answered["fault"] += 1
        if self._is_over:
            return
        if response is None:
            counts.dropped["fault"] += 1
            self._is_silent = True
        elif not is_fire_and_forget(frame.message):
            self._answer(frame, response)
        elif isinstance(response, ProduceResponse) and has_error(response):
            self._end()

    def _carry(
        self, frame: RequestFrame, exchange: TappedExchange | None, wire: bytes, request: Message
    ) -> Promise[Message | None] | None:
        """Send a request on that rules are for; its answer, None if it has none."""
        sent = request_wire(frame, request)
        if sent != wire:
            self._hub.counts.changed["fault"] += 1
        promise: Promise[Message | None] | None = None
        if not is_fire_and_forget(request):
            promise = Promise()
            unanswered = UnansweredRequest(
                frame.api_key, frame.api_version, request, exchange, promise, memory_cost(frame.size)
            )
            self._unanswered.add(frame.correlation_id, unanswered)
        self._send_on(sent)
        self.broker.flush()
        return promise

    def hang_up(self) -> None:
        """Close the connection; what was answered before is sent."""
        self._hub.counts.dropped["fault"] += 1
        self._end()

    def send_half(self, response: Message) -> None:
        """Send the first half of an answer, and close the connection."""
        frame = self._faulted
        if frame is not None and not is_fire_and_forget(frame.message):
            wire = self._own_wire(frame, response)
            half = wire[: len(wire) // 2]
            self._add_record(half, to_client=True)
            self.client.send(half)
        self.hang_up()

    def call_later(self, seconds: float, action: Callable[[], None]) -> Timer:
        return self._hub.call_later(seconds, action)

    # --- requests that wait for their turn ---

    def _start(self, steps: Callable[[], Coroutine[Any, None, None]]) -> None:
        """Run what is to be done with a request, once those before it are answered."""

        async def in_turn() -> bool:
            if len(self._unanswered) or self.broker.is_passing:
                self._turn = Promise()
                await self._turn
            await steps()
            return True

        self._run = HandlerRun(in_turn(), self._resume)
        self._resume()

    def _resume(self) -> None:
        run = self._run
        if run is None:
            return
        with self._guarded():
            if run.advance() and not self._is_silent and self._run is run:
                self._run = None
        self.turn_ended()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Let no error of what is done with frames leave: it ends the connection."""
        try:
            yield
        except ClosedByScript:
            self._hub.counts.dropped["script"] += 1
            self._end()
        except (CoordwireError, OSError) as error:
            self.refuse(f"{error}")
        except Exception:
            log.exception("a frame of %s failed", self.peer)
            self.refuse("a fault of the tap")

    def _answer(self, frame: RequestFrame, response: Message) -> None:
        """Answer a request in place of the broker."""
        wire = self._own_wire(frame, response)
        arrived, self._arrived = self._arrived, None
        if arrived is not None and response_wire(arrived[1], read_again(arrived[1], arrived[0])) != wire:
            self._hub.counts.changed["fault"] += 1
        elif arrived is not None:
            wire = arrived[0]
        self._add_record(wire, to_client=True)
        self._pass_back(wire)

    def _own_wire(self, frame: RequestFrame, response: Message) -> bytes:
        """A response that is sent in place of the broker's."""
        number, version = frame.correlation_id, frame.api_version
        tags = None if self._arrived is None else self._arrived[1].header.tags
        try:
            return encode_response(response, version=version, correlation_id=number, header_tags=tags)
        except NotInVersion:
            fit(response, version)
            return encode_response(response, version=version, correlation_id=number, header_tags=tags)

    # --- responses ---

    def _passes_response(self, head: bytes) -> bool:
        """Begin to pass a large response in pieces, if it does not have to be read."""
        if not self._is_coupled or self._is_silent or self._owed_tokens or self._needs_frames:
            return False
        (number,) = _ID.unpack_from(head, PREFIX)
        unanswered = self._unanswered.get(number)
        if unanswered is None or not self._reading.answer_passes(unanswered, head):
            return False
        self._unanswered.pop(number)
        self._hub.counts.responses_in += 1
        return True

    def _response(self, wire: bytes) -> None:
        if self._owed_tokens:
            self._owed_tokens -= 1
            self._add_record(wire, to_client=True)
            self._pass_back(wire)
            return
        is_numbered = len(wire) >= PREFIX + _ID.size
        unanswered = self._unanswered.pop(_ID.unpack_from(wire, PREFIX)[0]) if is_numbered else None
        if unanswered is None:
            self._hub.counts.unmatched += 1
            self._add_record(wire, to_client=True)
            self._pass_back(wire)
            return
        key, frame = unanswered.api_key, self._reading.response(wire, unanswered)
        if key == ApiKey.SASL_HANDSHAKE and unanswered.version == 0:
            self._handshake = False
            self._tokens_follow = frame is not None and not getattr(frame.message, "error_code", 1)
        if frame is not None:
            wire = self._changed(wire, frame, unanswered)
        if frame is None or unanswered.promise is None:
            self._add_record(wire, to_client=True)
            self._pass_back(wire)
        else:
            self._arrived = wire, frame
        if unanswered.promise is not None:
            unanswered.promise.fulfil(None if frame is None else frame.message)
        self._is_answered()

    def _is_answered(self) -> None:
        """Let a request take its turn if all before it are answered."""
        if not len(self._unanswered) and self._turn is not None:
            turn, self._turn = self._turn, None
            turn.fulfil(None)

    def _pass_back(self, wire: bytes) -> None:
        """Send a response to the client."""
        self._hub.counts.responses_out += 1
        self.client.send(wire)

    def _changed(self, wire: bytes, frame: ResponseFrame[Any], unanswered: UnansweredRequest) -> bytes:
        """What is sent in place of a response; what it says of topics and sessions is remembered."""
        hub, key, version, message = self._hub, frame.api_key, frame.body_version, frame.message
        reasons = []
        if key == ApiKey.API_VERSIONS and narrowed(message, self._reading.must_be_known):
            reasons.append("versions")
        if names_brokers(key, version) and hub.addresses.rewrite(message, version):
            reasons.append("addresses")
        if names_topics(key, version):
            hub.topics.learn(message, version)
        if isinstance(message, FetchResponse) and isinstance(unanswered.request, FetchRequest):
            hub.sessions.answered(self.address, unanswered.request, message)
        if reasons:
            wire = response_wire(frame, message)
            hub.counts.changed.update(reasons)
        if unanswered.exchange is not None:
            wire = scripted_response(hub.script, hub.counts, unanswered.exchange, frame, wire)
        return wire
