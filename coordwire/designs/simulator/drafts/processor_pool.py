"""The socket server's processors of a broker: each reads and writes its connections' messages one by one.

Source: the first draft's fields ("an acceptor and a list of processors, and for each processor it contain a
request queue") and its second open problem: pools have a size that is given before, and more consumers are
more work for each thread. Strategy: a connection has one processor, in turn; a message is done when its
processor has had the time for all that came before. Rules: time is counted in microseconds, as a message
takes less than the simulation's millisecond.
"""

from __future__ import annotations

__all__ = ["ProcessorPool"]


class ProcessorPool:
    """size: how many processors. message_us: of each message. busy_us: the time that all have worked.
    longest_wait_ms: of a message for its processor."""

    def __init__(self, size: int, message_us: int) -> None:
        self.busy_us = 0
        self.longest_wait_ms = 0
        self._message_us = message_us
        self._free_us = [0] * max(size, 1)

    def finish(self, connection: int, now: int) -> int:
        """When a message of a connection that comes, or is to be sent, now is done; in milliseconds."""
        number = abs(connection) % len(self._free_us)
        begin = max(now * 1000, self._free_us[number])
        end = self._free_us[number] = begin + self._message_us
        self.busy_us += self._message_us
        self.longest_wait_ms = max(self.longest_wait_ms, begin // 1000 - now)
        return -(-end // 1000)
