"""Received bytes, from chunks of any size to whole frames.

Strategy: frames are read in place from one chunk at a time. New bytes are joined to an unread rest that is no
longer than they are, unless a frame that has begun needs more; else they gather in a bytearray, until a whole
frame needs them. So a chunk that holds whole frames is not copied, and joining costs at most twice the new
bytes. Rules: chunk boundaries never change a result; time is linear in the bytes; nothing is allocated for a
claimed size before its bytes are there; a chunk is released as soon as it is used up.
"""

from __future__ import annotations

import struct

from coordwire.codec.message import Buffer
from coordwire.frames import PREFIX, check_size

_SIZE = struct.Struct(">i").unpack_from


class ReceiveBuffer:
    """The bytes that were received and not read yet.

    chunk, position: the bytes from which frames are read, and where the next one begins; `skip` passes over a
    frame that was read in place. is_idle: whether the chunk is all there is. ended: whether the stream has
    ended, after which more bytes are ignored.
    """

    __slots__ = ("_gathered", "_needed", "chunk", "ended", "is_idle", "position")

    def __init__(self) -> None:
        self.chunk = b""
        self.position = 0
        self.ended = False
        self.is_idle = True
        self._gathered = bytearray()
        self._needed = 0  # unread bytes below which no frame is whole

    def __len__(self) -> int:
        """The number of unread bytes."""
        return len(self.chunk) - self.position + len(self._gathered)

    @property
    def buffered(self) -> int:
        """The bytes of memory that hold what was received."""
        return len(self.chunk) + len(self._gathered)

    @property
    def announced(self) -> int:
        """The size of the next frame with its prefix, whole or not; 0 while its prefix is not whole."""
        head = self.head(PREFIX)
        if len(head) < PREFIX:
            return 0
        size: int = _SIZE(head)[0]
        return PREFIX + max(size, 0)

    def head(self, most: int) -> bytes:
        """The first unread bytes, at most so many; they stay unread."""
        head = self.chunk[self.position : self.position + most]
        return head + self._gathered[: most - len(head)] if len(head) < most else head

    def append(self, data: Buffer) -> None:
        """Add received bytes; none at all end the stream."""
        if not self.chunk and self.is_idle and len(data) > 0:
            self.chunk = data if type(data) is bytes else bytes(data)
        elif len(data) == 0:
            self.ended = True
            self.is_idle = False
        elif self.is_idle and self._is_joined(len(data)):
            self.chunk = b"".join((memoryview(self.chunk)[self.position :], data))
            self.position = 0
            self._needed = 0  # it may now be read in place
        elif not self.ended:
            self._gathered += data
            self.is_idle = False

    def _is_joined(self, size: int) -> bool:
        """Whether so many new bytes are joined to the chunk's unread ones: not where a frame needs more."""
        unread = len(self.chunk) - self.position
        return unread <= size and unread + size >= self._needed

    def skip(self, size: int) -> None:
        """Pass over so many bytes of the chunk, which were read in place."""
        end = self.position + size
        if end == len(self.chunk):
            self.chunk = b""
            self.position = 0
        else:
            self.position = end

    def next_frame(self) -> bytes | None:
        """The next frame's bytes after its size prefix, None if they are incomplete.

        Raises `DecodeError` for a size that no frame can have or that exceeds the budget.
        """
        return self._next(PREFIX)

    def next_wire(self) -> bytes | None:
        """As `next_frame`, size prefix included: a chunk that is one frame is not copied."""
        return self._next(0)

    def next_piece(self, most: int) -> bytes:
        """The next unread bytes of one chunk, at most so many, whatever they are part of."""
        if self.position == len(self.chunk):
            self._provide(1)
        piece = self.chunk[self.position : self.position + most]
        self.skip(len(piece))
        self._needed = 0
        return piece

    def _next(self, start: int) -> bytes | None:
        """The next frame's bytes from so many after its beginning."""
        if self.is_idle and not self.chunk:
            return None
        if self._gathered:
            if len(self) < self._needed:
                return None
            self._provide(max(self._needed, PREFIX))
        chunk, first = self.chunk, self.position
        if first + PREFIX > len(chunk):
            self._release()
            return None
        (size,) = _SIZE(chunk, first)
        check_size(size)
        end = first + PREFIX + size
        if end > len(chunk):
            if end - first > len(self):
                self._needed = PREFIX + size
                self._release()
                return None
            self._provide(PREFIX + size)
            chunk, first, end = self.chunk, 0, PREFIX + size
        self._needed = 0
        if end == len(chunk):
            self.chunk = b""
            self.position = 0
        else:
            self.position = end
        return chunk[first + start : end]

    def _release(self) -> None:
        """Release what was read of the chunk, if that is more than what was not."""
        if 2 * self.position > len(self.chunk):
            self.chunk = self.chunk[self.position :]
            self.position = 0

    def _provide(self, size: int) -> None:
        """Have at least so many unread bytes in the chunk, if they were received."""
        if len(self.chunk) - self.position < size and self._gathered:
            self.chunk = b"".join((memoryview(self.chunk)[self.position :], self._gathered))
            self.position = 0
            self._gathered.clear()
            self.is_idle = not self.ended

    def close(self) -> bytes:
        """End the stream; the bytes that were not read."""
        self._provide(len(self))
        remainder = self.chunk[self.position :]
        self.chunk = b""
        self.position = 0
        self.ended = True
        self.is_idle = False
        return remainder
