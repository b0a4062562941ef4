"""Registrations of consumers with the coordinators of drafts 1 and 2, and when these give one up.

Strategy: a registration counts what its coordinator counts, by the requests that the consumer has not
answered. Rules: a ping says the coordinator's own count; a Start that is not answered in time counts like a
ping, and while Starts wait no pings are sent. Where a connection has ended nothing shows; the timers go on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from coordwire.capture.entries import ConnectionEnd, FrameEntry
from coordwire.timeline.consumer_data import owned
from coordwire.timeline.events import HowEnded, MemberEnding, TopicPartition
from coordwire.timeline.evidence import Seen, cited
from coordwire.timeline.members import Member, Owned

MS = 1_000_000
SOON_NS = 100 * MS
"""A coordinator's timers may be late by so much, and what follows from one comes within it."""


def partition_of(reported: Any) -> TopicPartition:
    """A partition that the drafts call "broker-partition", as text."""
    broker, _, number = (reported.partition or "").rpartition("-")
    if number.isascii() and number.isdecimal() and len(number) < 10:
        return TopicPartition(
            f"{reported.topic or ''}/{broker}" if broker else reported.topic or "", int(number)
        )
    return TopicPartition(f"{reported.topic or ''}/{reported.partition or ''}", -1)


def owned_parts(parts: Iterable[Any]) -> Owned:
    """The partitions of a Start or of a registration's answer."""
    return owned((partition.topic, [partition.partition]) for partition in map(partition_of, parts))


def ending_of(end: ConnectionEnd | None, last_place: Seen, at: Seen) -> MemberEnding:
    """How a member's connection ended, if it did, and its last message. at: when and where it was out."""
    last_sent = last_place.time_ns, cited(last_place, at)
    if end is None:
        return MemberEnding("open", None, (), *last_sent, None)
    ended: HowEnded = "closed" if end.sender == "client" else "closed_by_broker"
    ended = "reset" if end.kind == "rst" else ended
    packet = cited(Seen(end.time_ns, end.capture, 0, end.packet), at)
    return MemberEnding(ended, end.time_ns, () if packet is None else (packet,), *last_sent, None)


@dataclass(slots=True, eq=False)
class DraftRegistration:
    """A consumer's registration over one connection.

    broker: where; ping_ns, answer_ns: how often it is pinged, and how soon it must answer; retries: pings in
    vain that are allowed, None for a setting of the coordinator's. is_in: whether it is known to be accepted;
    is_served: whether its answer listed partitions. pinged: the last ping without an answer; pinged_ns: when
    the last one was sent; failures: those in vain before it; started: the last Start, without an answer;
    last_place: its last message; end: of its connection.
    """

    broker: str
    member: Member
    place: Seen
    ping_ns: int
    answer_ns: int
    retries: int | None
    is_in: bool = False
    is_served: bool = False
    pinged: Seen | None = None
    pinged_ns: int = 0
    failures: int = 0
    started: Seen | None = None
    last_place: Seen | None = None
    end: ConnectionEnd | None = None

    @classmethod
    def of(cls, entry: FrameEntry, message: Any, place: Seen) -> DraftRegistration:
        """The registration that a request asks for."""
        client, _, broker = entry.flow.partition(" > ")
        timeout = getattr(message, "session_timeout_ms", None)
        member = Member(
            message.consumer_id or "", host=client or None, topics=(message.topic_count or "",),
            session_timeout_ms=timeout,
        )  # fmt: skip
        if timeout is not None:
            third = max(timeout, 0) // 3 * MS
            return cls(broker, member, place, third, 2 * third, None)
        ping_ns = max(message.ping_interval_ms, 0) * MS
        return cls(broker, member, place, ping_ns, ping_ns, max(message.max_ping_retries, 0))

    @property
    def name(self) -> str:
        return self.member.member_id

    @property
    def deadline_ns(self) -> int:
        """When the coordinator of draft 1 gives the consumer up, if it never answers again."""
        allowed = max((self.retries or 0) + 1 - self.failures, 1)
        pinged_ns = None if self.pinged is None else self.pinged.time_ns or 0
        if self.started is not None:  # Starts follow each other meanwhile, and no pings
            started_ns = self.started.time_ns or 0
            if pinged_ns is not None and pinged_ns <= started_ns:
                return pinged_ns + self.ping_ns if allowed == 1 else started_ns + (allowed - 1) * self.ping_ns
            return started_ns + allowed * self.ping_ns
        if pinged_ns is not None:
            return pinged_ns + allowed * self.ping_ns
        last_ns = self.pinged_ns or self.place.time_ns or 0
        return last_ns + (1 + allowed) * self.ping_ns

    def deadline_among(self, began_ns: int | None) -> int:
        """The same where its connection has ended, and a rebalance began: what it can't answer are Starts."""
        deadline_ns = self.deadline_ns
        if began_ns is None or self.started is not None or not self.ping_ns:
            return deadline_ns
        allowed = -((began_ns - deadline_ns) // self.ping_ns)
        return began_ns + (allowed - 1) * self.ping_ns if allowed > 1 else deadline_ns

    def starts(self, place: Seen) -> None:
        """It gets a Start. What it has not answered until now counts as failures."""
        due_ns = (place.time_ns or 0) - self.answer_ns
        if self.pinged is not None and (self.pinged.time_ns or 0) <= due_ns:
            self.failures += 1
            self.pinged = None
        if self.started is not None and (self.started.time_ns or 0) <= due_ns:
            self.failures += 1
        self.started = place

    def is_overdue(self, time_ns: int) -> bool:
        """Whether the coordinator may have given it up by then, since it has not answered."""
        if self.retries is not None:
            return self.deadline_ns - SOON_NS <= time_ns
        return self.pinged is not None and time_ns - (self.pinged.time_ns or 0) >= self.answer_ns - SOON_NS
