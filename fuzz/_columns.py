"""What the Arrow kernel has filled, read back as rows without pyarrow.

Rules: Arrow's own layout, little-endian; a column's parts are where `coordwire.records.arrow.native` finds
them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

from coordwire.records.arrow import native

OFFSET, TIMESTAMP, MILLISECONDS, BATCH, KEY, VALUE, HEADERS = (1 << bit for bit in range(7))
EVERYTHING = 127

Row = tuple[Any, ...]


class Table:
    """One table as `Columns.take` gives it. sources: what views point into, by number; None where data is
    copied."""

    def __init__(
        self, rows: int, headers: int, memories: tuple[Any, ...], sources: list[bytes] | None
    ) -> None:
        self._count = rows
        self._headers = headers
        self._memories = [None if memory is None else memoryview(memory) for memory in memories]
        self._sources = sources

    def rows(self, wanted: int) -> list[Row]:
        """The same by row."""
        return list(zip(*self.columns(wanted), strict=True))

    def columns(self, wanted: int) -> list[list[Any]]:
        """The offset, time in microseconds and in milliseconds, batch's position, key, value and headers of
        each row: those of them that are `wanted`."""
        columns: list[list[Any]] = []
        if wanted & OFFSET:
            columns.append(self._numbers(native._OFFSETS, "q"))
        if wanted & TIMESTAMP:
            stamps = enumerate(self._numbers(native._TIMESTAMPS, "q"))
            columns.append([s if self._is_valid(native._TIMESTAMP_BITS, at) else None for at, s in stamps])
        if wanted & MILLISECONDS:
            columns.append(self._numbers(native._MILLISECONDS, "q"))
        if wanted & BATCH:
            memory = self._memories[native._BATCHES]
            positions = [] if memory is None else [batch.position for batch in native.noted_batches(memory)]
            columns.append([positions[at] for at in self._numbers(native._BATCH_INDEX, "i")])
        if wanted & KEY:
            columns.append(self._bytes(native._KEY_PLACES, native._KEY_DATA, native._KEY_BITS))
        if wanted & VALUE:
            columns.append(self._bytes(native._VALUE_PLACES, native._VALUE_DATA, native._VALUE_BITS))
        if wanted & HEADERS:
            columns.append(self._pairs())
        assert all(len(column) == self._count for column in columns)
        return columns

    def _numbers(self, role: int, form: Literal["i", "q"]) -> list[int]:
        memory = self._memories[role]
        return [] if memory is None else memory.cast(form).tolist()

    def _is_valid(self, role: int, at: int) -> bool:
        bits = self._memories[role]
        return bits is None or bool(bits[at >> 3] >> (at & 7) & 1)

    def _copies(self, places: int, data: int) -> list[bytes]:
        memory = self._memories[data]
        whole = b"" if memory is None else bytes(memory)
        return [whole[start:end] for start, end in pairwise(self._numbers(places, "i"))]

    def _bytes(self, places: int, data: int, bits: int) -> list[bytes | None]:
        result = self._copies(places, data) if self._sources is None else self._views(places)
        return [part if self._is_valid(bits, at) else None for at, part in enumerate(result)]

    def _views(self, role: int) -> list[bytes]:
        memory = self._memories[role]
        whole = b"" if memory is None else bytes(memory)
        return [self._viewed(whole[at : at + 16]) for at in range(0, len(whole), 16)]

    def _viewed(self, view: bytes) -> bytes:
        size = int.from_bytes(view[:4], "little")
        if size <= 12:
            assert not any(view[4 + size :])
            return view[4 : 4 + size]
        buffer, at = (int.from_bytes(view[start : start + 4], "little") for start in (8, 12))
        assert self._sources is not None
        assert view[4:8] == self._sources[buffer][at : at + 4]
        return self._sources[buffer][at : at + size]

    def _pairs(self) -> list[list[tuple[str, bytes | None]]]:
        names = self._copies(native._NAME_PLACES, native._NAME_DATA) if self._headers else []
        values = self._copies(native._CONTENT_PLACES, native._CONTENT_DATA) if self._headers else []
        pairs = [
            (str(name, "utf-8"), value if self._is_valid(native._CONTENT_BITS, at) else None)
            for at, (name, value) in enumerate(zip(names, values, strict=True))
        ]
        return [pairs[start:end] for start, end in pairwise(self._numbers(native._HEADER_PLACES, "i"))]
