"""The files of a rotated capture: which belong together, by their names, and their bytes as one stream.

Rules: names are those of tcpdump -C (`x.pcap`, `x.pcap1`, …) and of dumpcap -b
(`x_00001_20240131120000.pcapng`), compressed or not; the order is that of their numbers. Of a later pcap the
header is left out if it says what the first one's says; pcapng sections may follow each other anyway. Files
are opened one at a time, as there may be thousands.
"""

from __future__ import annotations

__all__ = ["RotatedFiles", "is_capture_name", "rotated"]

import io
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, BinaryIO, TypeVar

from coordwire.capture.formats.compressed import fault_of
from coordwire.capture.formats.pcap import MAGICS
from coordwire.errors import DecodeError

T = TypeVar("T")
PCAP_HEADER = 24

_COMPRESSED = r"(?:\.(?:gz|xz|zst))?"
_CAPTURE = re.compile(rf".*\.(?:pcap|pcapng|cap|hex)\d*{_COMPRESSED}", re.DOTALL)
# tcpdump -C: x.pcap, x.pcap1, x.pcap2; dumpcap: x_00001_20240131120000.pcapng
_TCPDUMP = re.compile(rf"(?P<stem>.+\.(?:pcap|pcapng|cap))(?P<number>\d*){_COMPRESSED}", re.DOTALL)
_DUMPCAP = re.compile(rf"(?P<stem>.+)_(?P<number>\d{{5}})_\d{{14}}(?P<end>\.\w+?){_COMPRESSED}", re.DOTALL)


def is_capture_name(name: str) -> bool:
    """Whether a file's name is that of a capture."""
    return _CAPTURE.fullmatch(name) is not None


def rotated(files: Iterable[T], path: Callable[[T], str]) -> list[list[T]]:
    """The files, those of one rotated capture together and in its order. path: of a file."""
    chains: dict[tuple[str, ...], list[tuple[int, str, T]]] = {}
    for file in files:
        name = path(file)
        found = _DUMPCAP.fullmatch(name) or _TCPDUMP.fullmatch(name)
        if found is None:
            chains[name, "", ""] = [(0, name, file)]
        else:
            key = (found["stem"], found.groupdict().get("end") or "", "rotated")
            chains.setdefault(key, []).append((int(found["number"] or 0), name, file))
    return [[file for _, _, file in sorted(chain, key=lambda part: part[:2])] for chain in chains.values()]


class RotatedFiles(io.RawIOBase):
    """Several files, one after the other.

    open_file: opens one, decompressed. failed: is given those that can't be opened, and those whose
    compressed content ends early.
    """

    def __init__(
        self,
        paths: Sequence[str],
        open_file: Callable[[str], BinaryIO],
        failed: Callable[[str, OSError | DecodeError], None],
    ) -> None:
        self._paths = list(paths)
        self._open_file = open_file
        self._failed = failed
        self._path = ""
        self._stream: BinaryIO | None = None
        self._held = b""
        self._header = b""

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
        super().close()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with memoryview(buffer) as whole, whole.cast("B") as view:  # PyPy keeps views that aren't released
            taken = self._take(len(view))
            view[: len(taken)] = taken
        return len(taken)

    def _take(self, most: int) -> bytes:
        """The next bytes, of whichever file; none at the end."""
        while self._stream is not None or self._next():
            assert self._stream is not None
            data = self._held or self._stream.read(most)
            if data:
                taken = data[:most]
                self._held = data[len(taken) :]
                return taken
            if fault := fault_of(self._stream):
                self._failed(self._path, fault)
            self._stream.close()
            self._stream = None
        return b""

    def _next(self) -> bool:
        """Open the next file that can be opened; whether there is one."""
        while self._paths:
            self._path = self._paths.pop(0)
            try:
                self._stream = self._open_file(self._path)
                self._held = self._head(self._stream)
            except OSError as error:
                self._failed(self._path, error)
                continue
            return True
        return False

    def _head(self, stream: BinaryIO) -> bytes:
        """What is at a new file's start, without a header that says nothing new."""
        head = stream.read(PCAP_HEADER)
        if not self._header:
            self._header = head
            return head
        same = head[:4] == self._header[:4] and head[20:] == self._header[20:]  # byte order and link type
        return b"" if head[:4] in MAGICS and same else head
