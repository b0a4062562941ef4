"""Opens the files that the user names, decompressed, and reports how far they are read (`progress`).

Rules: "-" is standard input; a file that is compressed with gzip, xz or zstd is read as its content; an error
of the system becomes a `Failure` with the file's name. A caller that maps a file gets a temporary copy of a
compressed one.

Folders that a user names in place of files: the captures in them and below.

Rules: a capture is known by its name or its content; the files of a rotated capture are one; what is neither
is passed over, and a folder without any capture is refused.
"""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from coordwire.capture.formats.compressed import MAGIC, SUFFIXES, decompressed, fault_of, find_compression
from coordwire.capture.input_format import sniff
from coordwire.capture.printable import shown
from coordwire.capture.reader import read_head
from coordwire.capture.rotated_names import FirstPacket, first_packet, is_capture_name, rotated
from coordwire.cli import Failure, progress
from coordwire.cli.terminal import folded_text
from coordwire.errors import CodecUnavailable, counted

COPIED = 1 << 20
"""Bytes that are copied at a time."""


def collect_seldom() -> None:
    """Let the collector run seldom in a command that streams: entries come and go, and few are in cycles."""
    if hasattr(gc, "set_threshold"):  # PyPy's collector has none
        gc.set_threshold(50_000, 20, 50)


@contextmanager
def opened(name: str) -> Iterator[BinaryIO]:
    """The input's bytes, decompressed. `fault_of` reports where they end early."""
    with _raw(name) as stream:
        try:
            yield _plain(stream)
        except CodecUnavailable as error:
            raise Failure(f"{shown(name)}: {error}") from None


@contextmanager
def _raw(name: str) -> Iterator[BinaryIO]:
    if name == "-":
        if sys.stdin is None:
            raise Failure("-: standard input is closed")
        yield sys.stdin.buffer
        return
    try:
        stream = open(name, "rb", buffering=0)  # noqa: SIM115 -- closed below
    except (OSError, ValueError) as error:
        raise failure(name, error) from None
    with stream:
        yield io.BufferedReader(_Counted(stream, name), 1 << 18)


def is_piped() -> bool:
    """Whether standard input is a pipe or a file, which a command without names reads."""
    return sys.stdin is not None and not sys.stdin.isatty()


def open_file(path: str) -> BinaryIO:
    """A file to read forwards, decompressed; closed by its `close`. Raises `OSError`, `CodecUnavailable`."""
    stream = open(path, "rb", buffering=0)  # noqa: SIM115 -- closed with what is made of it
    return _plain(io.BufferedReader(_Counted(stream, path), 1 << 18), closes=True)


def _plain(stream: BinaryIO, *, closes: bool = False) -> BinaryIO:
    """The stream, decompressed if it is compressed."""
    read, head = getattr(stream, "read1", stream.read), b""
    try:
        if isinstance(stream, io.BufferedReader):
            peeked = stream.peek(MAGIC)
            if len(peeked) >= MAGIC and not find_compression(peeked):
                return stream
        while len(head) < MAGIC and (part := read(MAGIC - len(head))):
            head += part
    except OSError:  # the next read raises it again
        pass
    compression = find_compression(head)
    if compression is None:
        return io.BufferedReader(_Rest(head, stream), 1 << 18)
    return cast(BinaryIO, decompressed(stream, head, compression, closes=closes))


class _Rest(io.RawIOBase):
    """A stream of which the first bytes have been read."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head = head
        self._read = getattr(stream, "read1", stream.read)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._head or self._read(len(buffer)) or b""
        chunk = data[: len(buffer)]
        self._head = data[len(chunk) :]
        buffer[: len(chunk)] = chunk
        return len(chunk)


class PlainFile(NamedTuple):
    """A file whose bytes are not compressed: the one that was named, or a copy. fault: why the copy's content
    ends early, else "". Of a copy, folder and file have the names of the original."""

    path: Path
    fault: str = ""


def is_compressed(path: str | os.PathLike[str]) -> bool:
    """Whether a file is compressed. Raises `OSError`."""
    with open(path, "rb") as file:
        return find_compression(file.read(MAGIC)) is not None


@contextmanager
def plain_file(path: Path) -> Iterator[PlainFile]:
    """A file as it is, or a temporary copy of its content where it is compressed. Raises `OSError`."""
    if not is_compressed(path):
        yield PlainFile(path)
        return
    name = path.name
    if path.suffix in SUFFIXES:
        name = name.removesuffix(path.suffix)
    with opened(str(path)) as stream, copied(stream, b"", Path(path.absolute().parent.name, name)) as copy:
        yield copy


@contextmanager
def copied(stream: BinaryIO, head: bytes, name: Path = Path("copy")) -> Iterator[PlainFile]:
    """A temporary file with `head` and the rest of a stream; `name`: its folder's and its own, as two
    parts."""
    import shutil  # which most commands do without
    import tempfile

    with tempfile.TemporaryDirectory(prefix="coordwire-") as folder:
        path = Path(folder, name)
        path.parent.mkdir(exist_ok=True)
        with path.open("wb") as file:
            file.write(head)
            shutil.copyfileobj(stream, file, COPIED)
        fault = fault_of(stream)
        yield PlainFile(path, "" if fault is None else fault.reason)


def note(text: str) -> None:
    """Write a line to standard error, after the output so far."""
    sys.stdout.flush()
    progress.clear()
    print(folded_text(f"coordwire: {text}", sys.stderr), file=sys.stderr)


def failure(name: str, error: OSError | ValueError) -> Failure:
    """An error of the system about a file, in one line."""
    return Failure(f"{shown(name)}: {getattr(error, 'strerror', None) or error}")


class _Counted(io.RawIOBase):
    """A file that reports how much of it was read."""

    def __init__(self, stream: io.FileIO, name: str) -> None:
        self._stream = stream
        self._name = os.path.basename(name)
        self._size = os.fstat(stream.fileno()).st_size
        self._read_bytes = 0

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._stream.fileno()

    def readinto(self, buffer: memoryview) -> int | None:  # type: ignore[override]
        count = self._stream.readinto(buffer)
        self._read_bytes += count or 0
        progress.report(self._name, self._read_bytes, self._size)
        return count

    def close(self) -> None:
        self._stream.close()
        super().close()


# --- folders ---


def captures_below(folder: str) -> list[list[str]]:
    """The captures in a folder and below, by name, each as the files that it is in. Raises `Failure`."""
    try:
        files = list(files_below(folder))
    except OSError as error:
        raise failure(folder, error) from None
    captures = [path for path in files if is_capture_name(path) or content_kind(path) in ("pcap", "pcapng")]
    if not captures:
        raise Failure(
            f"{shown(folder)}: no capture in {counted(len(files), 'file', ',')}; coordwire segment dump and "
            "coordwire offsets read the logs of a broker"
        )
    return capture_chains(captures)


def capture_chains(names: Iterable[str]) -> list[list[str]]:
    """The captures, with the files of a rotated one together, in the order of time."""
    return rotated(names, str, first_captured)


def first_captured(name: str) -> FirstPacket | None:
    """The first packet of a capture's file; None if it can't be read."""
    try:
        return first_packet(open_file, name)
    except OSError:
        return None


def files_below(folder: str) -> Iterator[str]:
    """The files in a folder and below, by name. Raises `OSError`."""

    def refuse(error: OSError) -> None:
        raise error

    for place, folders, names in os.walk(folder, onerror=refuse):
        folders.sort()
        yield from (path for name in sorted(names) if os.path.isfile(path := os.path.join(place, name)))


def content_kind(path: str) -> str | None:
    """The kind of a file's content; None where it can't be read."""
    try:
        with opened(path) as stream:
            return sniff(read_head(stream))
    except (Failure, OSError):
        return None
