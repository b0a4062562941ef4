"""How many messages a run has, by the time: a tap, beside that of the capture.

Strategy: messages are counted by stretches of one session timeout, in which each ping and heartbeat comes as
often as in any other; what the median stretch has is what a quiet group costs. Rules: an operation of
ZooKeeper is a message, and so is its outcome, though the simulation sends several together; events, which
watches send, are counted beside too.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from coordwire.designs.simulator.drafts import ZOOKEEPER_PORT
from coordwire.designs.simulator.drafts.zookeeper_wire import operation_count
from coordwire.designs.simulator.tap import TapRecord

__all__ = ["TrafficCount"]

_ZOOKEEPER = f":{ZOOKEEPER_PORT}"
_WATCH, _ASK, _REPLY = b'["event"', b'["ask"', b'["reply"'


class TrafficCount:
    """A tap. messages, watches: all of them; watch_times: when each watch fired; stretches: messages in each
    stretch of the time."""

    def __init__(self, stretch_ms: int) -> None:
        self.messages = 0
        self.watches = 0
        self.watch_times: list[int] = []
        self.stretches: dict[int, int] = {}
        self._stretch_ms = stretch_ms

    def __call__(self, record: TapRecord) -> None:
        if record.kind != "data":
            return
        number = 1
        if record.server.endswith(_ZOOKEEPER):
            if record.data.startswith((_ASK, _REPLY)):
                number = operation_count(record.data)
            elif record.data.startswith(_WATCH):
                self.watches += 1
                self.watch_times.append(record.time)
        self.messages += number
        stretch = record.time // self._stretch_ms
        self.stretches[stretch] = self.stretches.get(stretch, 0) + number

    def between(self, begin: int, end: int) -> int:
        """Messages from one time to another, both of them multiples of a stretch."""
        numbers = range(begin // self._stretch_ms, end // self._stretch_ms)
        return sum(self.stretches.get(number, 0) for number in numbers)

    def is_mostly_quiet(self, until: int, changes: Iterable[int]) -> bool:
        """Whether `quiet` is that of a quiet stretch: more than half of them have no change."""
        stretches = until // self._stretch_ms
        busy = {time // self._stretch_ms for time in changes}
        return 2 * sum(number < stretches for number in busy) < stretches

    def quiet(self, until: int) -> float:
        """Messages in a quiet stretch: the median of those before a time."""
        stretches = until // self._stretch_ms
        return median(self.stretches.get(number, 0) for number in range(stretches)) if stretches else 0.0

    def beyond(self, until: int) -> float:
        """Messages beyond those of a group that is quiet all the time."""
        quiet, stretches = self.quiet(until), until // self._stretch_ms
        return sum(max(self.stretches.get(number, 0) - quiet, 0) for number in range(stretches))
