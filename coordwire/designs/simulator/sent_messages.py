"""What the processes of a world send each other, and when it arrives.

    world.sent = SentMessages(file)
    world.run(60_000)
    for sent in world.sent.read(find_dialect("draft-2"), find_alternative("draft-2")): ...

Strategy: everything is written into a capture when it is sent, also what never arrives; that is read as any
other, so that the dialects alone know the messages. Rules: the bytes of a link arrive in order, so the first
that is on its way is what arrives next. ZooKeeper's answers to pings and to the end of a session, which are
no messages of the simulation, are sent, and arrive, when their request does.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import BinaryIO

from coordwire.capture import Capture
from coordwire.capture.conversation import CaptureDialect
from coordwire.capture.entries import FrameEntry
from coordwire.designs.simulator.drafts.zookeeper_capture import ZooKeeperTap
from coordwire.designs.simulator.network import Link
from coordwire.designs.simulator.tap import PcapWriter, TapRecord

_NEVER = -1
_UNSEEN = -1
"""The number of what is sent after the end of what is kept."""


@dataclass(frozen=True, slots=True)
class SentMessage:
    """sent, arrived: in milliseconds; None for what did not arrive. entry: as it was read."""

    sent: int
    arrived: int | None
    sender: str
    receiver: str
    entry: FrameEntry


class SentMessages:
    """file: keeps the bytes, can be read and sought; until: the time of the last message that is kept."""

    def __init__(self, file: BinaryIO, until: int) -> None:
        self._file = file
        self._until = until
        self._writer = PcapWriter(file)
        self._tap = ZooKeeperTap(self._write)
        self._sent, self._arrived = array("q"), array("q")
        self._on_way: dict[Link, deque[int]] = {}
        self._names: dict[str, str] = {}
        self._sends_back = False
        self._ends, self._numbers = array("q"), array("q")
        """Of each record of the capture: its last packet, and whose bytes it has, or what they answer."""

    def send(self, link: Link, data: bytes) -> None:
        """One end of a link sends bytes."""
        now, peer = link.node.now, link.peer_address
        number = len(self._sent) if now <= self._until else _UNSEEN
        self._on_way.setdefault(link, deque()).append(number)
        if number == _UNSEEN:
            return
        self._sent.append(now)
        self._arrived.append(_NEVER)
        self._names[link.address.rpartition(":")[0]] = link.node.name
        self._names[peer.rpartition(":")[0]] = link.peer
        client, server = (peer, link.address) if link.is_listener else (link.address, peer)
        self._sends_back = link.is_listener
        self._tap(TapRecord(now, link.number, client, server, link.is_listener, "data", data))

    def arrive(self, link: Link) -> None:
        """What this end of a link sent first is there."""
        number = self._on_way[link].popleft()
        if number != _UNSEEN:
            self._arrived[number] = link.node.now

    def _write(self, record: TapRecord) -> None:
        self._writer(record)
        self._ends.append(self._writer.packets)
        number = len(self._sent) - 1
        self._numbers.append(number if record.to_client is self._sends_back else ~number)

    def read(
        self, dialect: CaptureDialect | None, alternative: CaptureDialect | None, begin: int = 0
    ) -> Iterator[SentMessage]:
        """The messages in the order in which they were sent: those that are on their way at some time from
        `begin` on, and what is made here as an answer within the time that is kept."""
        answers: list[tuple[int, int, SentMessage]] = []  # that come after what is sent before them
        for count, (message, is_answer) in enumerate(self._all(dialect, alternative)):
            last = message.sent if message.arrived is None else max(message.sent, message.arrived)
            if last < begin or message.sent > self._until:
                continue
            if is_answer:
                heappush(answers, (message.sent, count, message))
                continue
            while answers and answers[0][0] < message.sent:
                yield heappop(answers)[-1]
            yield message
        while answers:
            yield heappop(answers)[-1]

    def _all(
        self, dialect: CaptureDialect | None, alternative: CaptureDialect | None
    ) -> Iterator[tuple[SentMessage, bool]]:
        """All that is in the capture, in its order, and whether it is an answer that is made here."""
        self._file.seek(0)
        capture = Capture(self._file, "", dialect=dialect, alternative=alternative)
        for entry in capture.entries():
            assert isinstance(entry, FrameEntry)  # processes send whole frames of their dialect
            number = self._numbers[bisect_left(self._ends, entry.packet or 0)]
            is_answer, number = number < 0, max(number, ~number)
            sent, arrived = self._sent[number], self._arrived[number]
            if is_answer and arrived == _NEVER:
                continue
            source, _, target = entry.flow.partition(" > ")
            sender, receiver = (self._names[end.rpartition(":")[0]] for end in (source, target))
            time = arrived if is_answer else sent
            yield (
                SentMessage(time, None if arrived == _NEVER else arrived, sender, receiver, entry), is_answer
            )  # fmt: skip
