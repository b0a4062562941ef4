"""Heartbeats that repeat the last one, most of a group's traffic: recognised by their bytes.

Strategy: the frames of a member whose group is steady differ in nothing but their correlation ids. A
heartbeat that asked for nothing new and an answer to it that gave nothing new are remembered by their bytes
without those; the same bytes have the same meaning, and nothing is decoded. The group judges each time what
they mean for it. Rules: only whole frames without deviations are remembered; memory is bounded,
and everything is forgotten at the bound.
"""

from __future__ import annotations

__all__ = ["Beat", "SteadyBeats"]

from dataclasses import dataclass
from typing import Any

from coordwire._speedups.rows import row_maker
from coordwire.capture.entries import FrameEntry
from coordwire.timeline.consumer_data import wanted_topics
from coordwire.timeline.events import Kind
from coordwire.timeline.evidence import MemberName
from coordwire.timeline.from_wire.connection_ends import LastRequests
from coordwire.versions import ApiKey

MOST = 20_000
"""So many heartbeats are remembered."""

_HEARTBEAT = int(ApiKey.HEARTBEAT)

SHORTEST, LONGEST = 9, 1024
"""Bytes of a heartbeat that is; one whose bytes were released has none."""


@dataclass(slots=True)
class Beat:
    """A member's heartbeat. name: the member's, with its member_id; group_key: of its group in the
    `GroupTable`; key: of its API; epoch: the generation or member epoch that it says.

    answer: the bytes after the correlation id of an answer that gave nothing new, None where none was seen;
    requests: the member's last ones; answered_epoch, interval_ms: what that answer says, of groups whose
    coordinator assigns; flow: the connection of the last such answer.
    """

    name: MemberName
    member_id: str
    group_key: tuple[str, Kind]
    key: int
    client_id: str | None
    epoch: int
    answer: bytes | None = None
    requests: LastRequests | None = None
    answered_epoch: int = 0
    interval_ms: int = 0
    flow: str = ""

    @property
    def asks(self) -> tuple[str, int, str | None, str | None]:
        """The request, as it waits for its answer."""
        return self.name.group, self.key, self.member_id, self.client_id


_beat = row_maker(Beat)
_new = tuple.__new__  # a named tuple's own goes through a function


class SteadyBeats:
    """All heartbeats that are remembered."""

    def __init__(self) -> None:
        self.known: dict[bytes, Beat] = {}

    def find(self, entry: FrameEntry) -> Beat | None:
        """The heartbeat that a request is, if its bytes are known."""
        body = entry.body
        return self.known.get(body[:4] + body[8:])

    def learn_request(self, entry: FrameEntry, message: Any, kept_as: Kind) -> Beat | None:
        """A heartbeat that was read whole, of a group that is kept as one of this kind; None where it asks
        for something."""
        body = entry.body
        if not SHORTEST <= len(body) <= LONGEST or entry.deviations or not message.member_id:
            return None
        if entry.api_key == _HEARTBEAT:
            epoch = message.generation_id
            asks = epoch < 0
        else:
            epoch = message.member_epoch
            asks = epoch <= 0 or _reports(message)
        if asks:
            return None
        if len(self.known) >= MOST:
            self.known.clear()
        group_id, member_id = message.group_id, message.member_id
        name = _new(MemberName, (group_id, member_id))
        beat = self.known[body[:4] + body[8:]] = _beat(
            name, member_id, (group_id, kept_as), entry.api_key, entry.client_id, epoch, None, None, 0, 0, ""
        )
        return beat

    @staticmethod
    def learn_answer(beat: Beat | None, entry: FrameEntry, message: Any) -> None:
        """The answer to a heartbeat, read whole, and without an error."""
        if beat is None or not SHORTEST <= len(entry.body) <= LONGEST or entry.deviations:
            return
        if beat.key != _HEARTBEAT:
            if _gives(message):
                return
            beat.answered_epoch, beat.interval_ms = message.member_epoch, message.heartbeat_interval_ms
        beat.answer = entry.body[4:]


def _reports(request: Any) -> bool:
    """Whether a member says what it owns, or what it subscribes to."""
    owned = request.active_tasks if hasattr(request, "active_tasks") else _partitions(request)
    return owned is not None or wanted_topics(request) is not None


def _gives(message: Any) -> bool:
    """Whether a member is given an assignment, or a status of its group."""
    if getattr(message, "status", None):
        return True
    assigned = message.active_tasks if hasattr(message, "active_tasks") else _partitions(message)
    return assigned is not None


def _partitions(message: Any) -> Any:
    assignment = getattr(message, "assignment", message)
    return None if assignment is None else getattr(assignment, "topic_partitions", None)
