"""The message in each frame of a ZooKeeper connection, and the request it answers.

Strategy: a request says its type; an answer has its request's xid, an event has -1. What connects has no
header at all: it is each side's first frame, and is recognised by its layout. Rules: an answer is read as its
request's, with the record where anything is after the header; one whose request wasn't seen stays bytes. Of
several requests with one xid (pings, parts of setWatches) the oldest is answered.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from coordwire.codec import Message
from coordwire.connection.dialect import Side
from coordwire.dialects.frames import Call, opposite
from coordwire.dialects.grammar import CREATE_SESSION, NOTIFICATION
from coordwire.dialects.matching import Matching, PendingRequest, Reading
from coordwire.dialects.zookeeper_opening import connect_version
from coordwire.errors import DecodeError, Malformed, Truncated, UnknownApi

REQUEST_HEADER, REPLY_HEADER = 8, 16
"""Bytes of a request's xid and type, and of an answer's xid, zxid and error."""

_INT = struct.Struct(">i").unpack_from
_HEADER = struct.Struct(">ii").unpack_from


class ZooKeeperMatching(Matching):
    """One connection's conversation."""

    is_connected = False
    """Whether its first frame was seen."""

    def ask(self, call: Call, message: Message, number: int | None = None) -> PendingRequest:
        if call.type_id == CREATE_SESSION:
            self.is_connected = True
        return super().ask(call, message, number)

    def readings(self, body: bytes, sender: Side) -> Iterator[Reading]:
        return self.readings_of(body, len(body), sender)

    def readings_of(self, body: bytes, size: int, sender: Side) -> Iterator[Reading]:
        """What a frame of this size may be that begins so."""
        calls = self.grammar.by_id
        if sender == "client":
            version = None if self.is_connected else connect_version(body, size)
            if version is not None:
                yield Reading(calls[CREATE_SESSION], "request", version, None)
            elif len(body) >= REQUEST_HEADER:
                call = calls.get(_HEADER(body)[1])
                if call is not None and call.asker == "client" and call.type_id != CREATE_SESSION:
                    yield Reading(call, "request", 0, None)
            return
        queue = self.waiting[opposite(sender)]
        connecting = queue.first(calls[CREATE_SESSION])
        if connecting is not None:
            version = connect_version(body, size, answer=True)
            if version is not None:
                yield Reading(connecting.call, "response", version, connecting)
                return
        if len(body) < 4:
            return
        xid = _INT(body)[0]
        if xid == NOTIFICATION:
            yield Reading(calls[NOTIFICATION], "request", 0, None)
            return
        pending = queue.numbered(xid)
        if pending is not None and pending is not connecting:
            yield Reading(pending.call, "response", self._version(pending.call, size), pending)

    def _version(self, call: Call, size: int) -> int:
        """The version of an answer of this size."""
        return 0 if size <= REPLY_HEADER else call.message("response").versions[-1]

    def versions(self, call: Call) -> tuple[int, ...]:
        return tuple(call.message("response").versions)

    def _no_reading(self, body: bytes, sender: Side) -> DecodeError:
        if sender == "server":
            if len(body) < REPLY_HEADER:
                return Truncated(f"a reply header needs {REPLY_HEADER} bytes, {len(body)} given", len(body))
            return Malformed(f"no request with the xid {_INT(body)[0]} waits for this answer", 0)
        if len(body) < REQUEST_HEADER:
            return Truncated(f"a request header needs {REQUEST_HEADER} bytes, {len(body)} given", len(body))
        return UnknownApi(f"type {_HEADER(body)[1]} is unknown", 4, "type")
