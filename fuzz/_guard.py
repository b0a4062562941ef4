"""Bytes that end where memory ends: after them is a page that may not be touched, so that any code that reads
one byte too many is killed at once."""

from __future__ import annotations

import ctypes
import mmap

PAGE = mmap.PAGESIZE
ROOM = 256 * PAGE
_PROT_NONE = 0


class Guard:
    """A stretch of memory before a forbidden page."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, ROOM + PAGE)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory)) + ROOM
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(PAGE), _PROT_NONE):
            raise OSError(ctypes.get_errno(), "mprotect")

    def place(self, data: bytes) -> memoryview | bytes:
        """The same bytes, the last of them before the page; as they are where they don't fit."""
        if len(data) > ROOM:
            return data
        view = memoryview(self._memory)[ROOM - len(data) : ROOM]
        view[:] = data
        return view
