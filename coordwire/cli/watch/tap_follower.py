"""The events in a capture that `coordwire tap --save` is still writing.

Strategy: a thread reads the file, waits at its end for more, and hands on what happens to groups. Rules: the
events that wait are bounded; then the thread waits too, and the file keeps the rest. The thread ends with the
follower.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Empty, Full, Queue

from coordwire.capture.input_format import is_capture
from coordwire.capture.reader import MAGIC, Capture
from coordwire.errors import CoordwireError, Malformed
from coordwire.timeline.events import GroupEvent
from coordwire.timeline.from_wire.timeline import timeline

MOST_EVENTS = 10_000
_PAUSE = 0.1
"""Seconds between two looks at the file's end."""


class _GrowingFile(io.RawIOBase):
    """A file whose end is not reached before `ended` is set."""

    def __init__(self, file: io.FileIO, ended: threading.Event) -> None:
        self._file, self._ended = file, ended

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any writable buffer
        while not (count := self._file.readinto(buffer) or 0):
            if self._ended.wait(_PAUSE):
                break
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


class TapFollower:
    """Follows a capture until it is closed. Raises `OSError` where it cannot be opened."""

    def __init__(self, path: Path) -> None:
        self.failure: CoordwireError | OSError | None = None
        """Why nothing more is read, if so."""
        self.is_capture = False
        """Whether its first bytes are a capture's, as far as they are read."""
        self._path = path
        self._ended = threading.Event()
        self._events: Queue[GroupEvent] = Queue(MOST_EVENTS)
        self._file = _GrowingFile(path.open("rb", buffering=0), self._ended)
        self._thread = threading.Thread(target=self._read, name="tap follower", daemon=True)
        self._thread.start()

    def events(self) -> Iterator[GroupEvent]:
        """The events since the last call."""
        try:
            while True:
                yield self._events.get_nowait()
        except Empty:
            return

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        self._file.close()

    def _read(self) -> None:
        stream = io.BufferedReader(self._file)
        try:
            if not is_capture(stream.peek(MAGIC)[:MAGIC]):
                raise Malformed("expected a pcapng or pcap file, as coordwire tap --save writes it")
            self.is_capture = True
            entries = Capture(stream, str(self._path)).entries_and_ends()
            for event in timeline(entries, ends=True):
                if not self._put(event):
                    return
        except (CoordwireError, OSError) as error:
            self.failure = error

    def _put(self, event: GroupEvent) -> bool:
        """Hand an event on; False once the follower has ended."""
        while not self._ended.is_set():
            try:
                self._events.put(event, timeout=_PAUSE)
            except Full:
                continue
            return True
        return False
