"""An object of a store as a stream of bytes, all of the same object."""

from __future__ import annotations

__all__ = ["RemoteStream"]

import io
from typing import Any

from coordwire.tables.stores.schemes import store_of
from coordwire.tables.stores.store_errors import Replaced


class RemoteStream(io.RawIOBase):
    """An object from its start to its end. Each block is given on when it is seen, after it was fetched, that
    the object is still the one that was opened: no reader gets bytes of two. Raises `Replaced`."""

    BLOCK = 8 << 20

    def __init__(self, uri: str) -> None:
        super().__init__()
        self._uri = uri
        self._store, self._path = store_of(uri)
        self._file = self._store.open(self._path)
        self._identity = self._store.identity(self._path, self._file)
        self._at = 0
        self._block = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._block:
            size = min(self.BLOCK, self._identity.size - self._at)
            if not size:
                return 0
            self._block = memoryview(self._fetch(size))
            self._at += size
        with memoryview(buffer) as whole, whole.cast("B") as target:
            count = min(len(target), len(self._block))
            target[:count] = self._block[:count]
        self._block = self._block[count:]
        return count

    def _fetch(self, size: int) -> bytes:
        try:
            data = self._store.read(self._file, self._path, size, self._at)
        except OSError:
            data = b""
            if self._store.identity(self._path) == self._identity:
                raise
        if len(data) != size or self._store.identity(self._path) != self._identity:
            raise Replaced(self._uri)
        return data

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()
