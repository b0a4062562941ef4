"""Paths, folders, globs and URIs to files; and files to bytes.

Strategy: a path without a scheme is the local disk's, everything else a store's (`stores`). Local files are
mapped into memory; others are copied to a temporary file first, as batches need their bytes in one piece.
Rules: a file or a glob is taken as named; a folder gives what its names tell to be ours, and everything else
as `other`; order is by path, so that plans repeat. What
isn't there is the user's mistake and raises `FileNotFoundError`; what can't be listed or read later is a row.
"""

from __future__ import annotations

__all__ = ["File", "find_files", "first_captured", "glob_pattern", "is_uri", "open_bytes", "open_stream"]

import errno
import glob
import io
import mmap
import os
import re
import shutil
import stat as modes
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, cast

from coordwire.capture.formats.compressed import MAGIC, decompressed, find_compression, is_decompressed
from coordwire.capture.input_format import HEAD, sniff
from coordwire.capture.rotated_names import FirstPacket, first_packet, is_capture_name
from coordwire.errors import CodecUnavailable
from coordwire.segments.names import file_name, kafka_07_offset, topic_partition
from coordwire.segments.remote_storage import remote_name, remote_place
from coordwire.tables.stores import RemoteStream, Store, StoreError, is_uri, local_path, store_of

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo

Kind = Literal["segment", "capture", "index", "other"]

_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class File:
    """A file, as it was listed. size in bytes; modified in nanoseconds since 1970, 0 if unknown.

    named: by the user, not found in a folder. trouble: why it couldn't be looked at, else "".
    """

    path: str
    size: int
    modified: int
    named: bool = False
    trouble: str = ""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def topic(self) -> str | None:
        return self._partition()[0]

    @property
    def partition(self) -> int | None:
        return self._partition()[1]

    def _partition(self) -> tuple[str | None, int | None]:
        parsed, folder = file_name(self.name), self.path.rpartition("/")[0]
        if parsed is not None and parsed.kind == "checkpoint" and parsed.offset is None:
            return None, None  # bootstrap.checkpoint is in a broker's log folder, not in a partition's
        if parsed is None and remote_name(self.name) is not None:
            place = remote_place(folder)
            return (place.topic, place.partition) if place and place.topic else (None, None)
        return topic_partition(folder.rpartition("/")[2]) or (None, None)

    @property
    def index(self) -> str | None:
        """The path that its offset index has; None for a file without a segment's name."""
        stem, suffix, state = self.path.rpartition(".log")
        return f"{stem}.index{state}" if suffix else None

    def kind(self) -> Kind:
        """The kind of the file: by its name, else by its first bytes (of a file that the user named)."""
        parsed = file_name(self.name)
        if parsed is not None:
            return "segment" if parsed.kind in ("log", "checkpoint") else "index"
        if (remote := remote_name(self.name)) is not None:
            return "segment" if remote.kind == "log" else "index"
        if kafka_07_offset(self.name) is not None:
            return "segment"
        if is_capture_name(self.name):
            return "capture"
        if not self.named:
            return "segment" if self.name.endswith(".log") and self._sniffed() == "segment" else "other"
        return "segment" if self._sniffed() == "segment" else "capture"

    def _sniffed(self) -> str | None:
        if self.trouble:
            return None
        try:
            with open_stream(self.path) as stream:
                head = stream.read(HEAD)
                # Segments are mapped and read in parts, as they are: a compressed one can't be.
                return None if is_decompressed(stream) else sniff(head)
        except (OSError, CodecUnavailable):  # the reader reports it
            return None


def find_files(paths: Iterable[str], *, recursive: bool = True) -> list[File]:
    """The files that these paths, folders, globs and URIs are or hold; each once, in order of path.

    Raises `FileNotFoundError` for a path that isn't there and a glob that fits nothing, `OSError` for a file
    system that can't be reached.
    """
    files: dict[str, File] = {}
    for path in paths:
        for file in _remote(path, recursive) if is_uri(path) else _local(local_path(path), recursive):
            if file.path not in files or file.named:
                files[file.path] = file
    return [files[path] for path in sorted(files)]


def _local(path: str, recursive: bool) -> Iterator[File]:
    if os.path.lexists(path) or not _WILD.search(path):
        names = [path]
    else:
        names = glob.glob(path, recursive=True)
        if not names:
            raise FileNotFoundError(f"no file fits {path}")
    for name in names:
        full = os.path.abspath(name)
        if not os.path.lexists(full):
            raise FileNotFoundError(f"there is no {name}")
        if os.path.isdir(full):
            yield from _below(full, recursive)
        else:
            yield _stat(full, named=True)


def _below(folder: str, recursive: bool) -> Iterator[File]:
    troubles: list[OSError] = []
    for place, folders, names in os.walk(folder, onerror=troubles.append):
        if not recursive:
            folders.clear()
        for name in names:
            yield _stat(os.path.join(place, name), named=False)
    for error in troubles:
        yield File(str(error.filename), 0, 0, trouble=str(error.strerror))


def _stat(path: str, named: bool) -> File:
    try:
        status = os.stat(path)
    except OSError as error:
        return File(path, 0, 0, named, str(error.strerror))
    if not modes.S_ISREG(status.st_mode):
        return File(path, 0, status.st_mtime_ns, named, _not_regular(status.st_mode))
    return File(path, status.st_size, status.st_mtime_ns, named)


def _not_regular(mode: int) -> str:
    kinds = {
        modes.S_IFIFO: "a FIFO", modes.S_IFSOCK: "a socket", modes.S_IFDIR: "a folder",
        modes.S_IFCHR: "a device", modes.S_IFBLK: "a device",
    }  # fmt: skip
    return f"it is {kinds.get(modes.S_IFMT(mode), 'something else')}, expected a regular file"


# --- what isn't on the local disk ---


def _remote(uri: str, recursive: bool) -> Iterator[File]:
    store, path = store_of(uri)
    info = store.info(path) if path != "/" else None
    if info is not None and info.is_file:
        yield _store_file(store, info, named=True)
    elif info is not None or path == "/":
        for info in store.below(path, recursive=recursive):
            if info.is_file:
                yield _store_file(store, info, named=False)
    else:
        _check_bucket(store, path)
        if not _WILD.search(uri.partition("://")[2]):
            raise FileNotFoundError(f"there is no {uri}")
        yield from _matching(store, uri, path)


def _check_bucket(store: Store, path: str) -> None:
    """Raises `StoreError` if a path's bucket isn't there. Where it may not be asked for, as by credentials of
    one folder, it counts as there."""
    try:
        store.check_bucket(path)
    except StoreError as error:
        if error.errno == errno.ENOENT and not _WILD.search(path.strip("/").partition("/")[0]):
            raise


def _matching(store: Store, uri: str, path: str) -> Iterator[File]:
    """The files that a glob fits, and those below the folders that it fits."""
    wild = _WILD.search(path)
    assert wild is not None
    base = path[: wild.start()].rpartition("/")[0]
    if not base:
        raise FileNotFoundError(f"{uri}: expected a bucket without wildcards")
    pattern = re.compile(re.escape(base) + "/" + glob_pattern(path[len(base) :].strip("/")))
    count = 0
    for info in store.below(base, recursive=True, missing=True):
        if info.is_file and pattern.match(info.path):
            count += 1
            yield _store_file(store, info, bool(pattern.fullmatch(info.path)))
    if not count:
        raise FileNotFoundError(f"no file fits {uri}")


def glob_pattern(text: str) -> str:
    """A regular expression for a glob below a folder, and for all that is below what it fits."""
    parts = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
    words = re.split(r"(\*\*|\*|\?|\[!?\]?[^\]]*\])", text)
    pattern = "".join(
        parts.get(word) or (_set(word) if word[:1] == "[" and word[-1:] == "]" else re.escape(word))
        for word in words
    )
    return f"{pattern}(?=/|$)"


def _set(word: str) -> str:
    """A regular expression for a set of characters, which begins with ! if it means all others."""
    inner = re.sub(r"([\\\[\]&~|^])", r"\\\1", word[1:-1].removeprefix("!"))
    return f"[{'^/' if word[1] == '!' else ''}{inner}]"


def _store_file(store: Store, info: FileInfo, named: bool) -> File:
    return File(store.uri(info.path), info.size or 0, info.mtime_ns or 0, named)


# --- bytes ---


def _open_regular(path: str) -> BinaryIO:
    """A local file. Raises `OSError`, also for what is not a regular file: opening a FIFO waits for a writer,
    reading a device may never end."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    status = os.fstat(file)
    if not modes.S_ISREG(status.st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, _not_regular(status.st_mode), path)
    return os.fdopen(file, "rb")


def open_stream(path: str) -> BinaryIO:
    """A file to read forwards, decompressed (`fault_of` says whether its content ended early). Raises
    `OSError`, and `CodecUnavailable` for want of a library."""
    if not is_uri(path):
        stream = _open_regular(local_path(path))
    else:
        stream = cast(BinaryIO, io.BufferedReader(RemoteStream(path), RemoteStream.BLOCK))
    head = cast(io.BufferedReader, stream).peek(MAGIC)[:MAGIC]
    compression = find_compression(head)
    return (
        stream if compression is None else cast(BinaryIO, decompressed(stream, b"", compression, closes=True))
    )


def first_captured(file: File) -> FirstPacket | None:
    """The first packet of a capture; None if it can't be read. Raises `StoreError` where a store doesn't
    answer."""
    try:
        return first_packet(open_stream, file.path)
    except OSError as error:
        if isinstance(error, StoreError) and not error.lasting:
            raise
        return None


def open_bytes(path: str) -> memoryview:
    """All bytes of a file, mapped; unmapped when the last view of it is gone. Raises `OSError`."""
    if not is_uri(path):
        with _open_regular(local_path(path)) as file:
            return _mapped(file)
    with tempfile.NamedTemporaryFile() as copy:
        with RemoteStream(path) as stream:
            shutil.copyfileobj(stream, copy, RemoteStream.BLOCK)
        copy.flush()
        return _mapped(copy)


def _mapped(file: Any) -> memoryview:
    size = os.fstat(file.fileno()).st_size
    return memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) if size else b"")
