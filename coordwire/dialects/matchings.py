"""The class of `Matching` that a dialect's connections have, by the headers of its frames; and that of frames
with a header of Kafka 0.8: the message in each, and the request it answers.

Strategy: a request's header says its type and its version, an answer's header the correlation id of its
request. Rules: either side asks, so a frame that begins as a request of its sender's is one; only if it
can't be read so, it is an answer. An answer's versions are those that `Matching` allows, since no field says
which of two layouts it has.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from coordwire.connection.dialect import Dialect, Side
from coordwire.dialects.frames import opposite
from coordwire.dialects.matching import Matching, Reading
from coordwire.dialects.zookeeper_matching import ZooKeeperMatching
from coordwire.errors import DecodeError, Truncated, UnknownApi, UnsupportedVersion

_CORRELATION_ID = struct.Struct(">i").unpack_from
_TYPE_AND_VERSION = struct.Struct(">hh").unpack_from
_LEAST = 4
"""Bytes of an answer's header, and of a request's type and version."""


class HeadedMatching(Matching):
    """One connection's conversation."""

    def readings(self, body: bytes, sender: Side) -> Iterator[Reading]:
        if len(body) < _LEAST:
            return
        kind, version = _TYPE_AND_VERSION(body)
        call = self.grammar.by_id.get(kind)
        if call is not None and call.asker == sender and version in call.message("request").versions:
            yield Reading(call, "request", version, None)
        pending = self.waiting[opposite(sender)].numbered(_CORRELATION_ID(body)[0])
        if pending is not None:
            yield from self._answers(pending.call, pending)

    def _no_reading(self, body: bytes, sender: Side) -> DecodeError:
        if len(body) < _LEAST:
            reason = f"a header needs {_LEAST} bytes, {len(body)} given"
            return Truncated(reason, len(body), "request_api_version")
        kind, version = _TYPE_AND_VERSION(body)
        call = self.grammar.by_id.get(kind)
        if call is None or call.asker != sender:
            number = _CORRELATION_ID(body)[0]
            reason = f"type id {kind} is unknown, and no request waits for the answer {number}"
            return UnknownApi(reason, 0, "request_api_key")
        return UnsupportedVersion(f"{call.name} has no version {version}", 2, "request_api_version")


MATCHINGS: dict[Dialect, type[Matching]] = {
    Dialect.KAFKA_07: Matching,
    Dialect.DRAFT_1: Matching,
    Dialect.DRAFT_2: Matching,
    Dialect.DRAFT_2_IN_08: HeadedMatching,
    Dialect.DRAFT_3: Matching,
    Dialect.ZOOKEEPER: ZooKeeperMatching,
}
