"""The folder that the tables are in: on the local disk, or in a store that a URI names.

Strategy: `open_output` gives the folder of a path or URI; everything else uses its operations. `LocalFolder`
opens every folder on the way by its descriptor and with O_NOFOLLOW, so that whatever another process puts
there meanwhile, no operation leaves the root; `StoreFolder` does the same in a store
(`coordwire.tables.stores`), which has no links. Both take names below the root only.
Rules: a root that is a symbolic link itself is the user's choice; one below it is refused (`LinkError`); a
file that is written whole appears under its name when it is complete, and its bytes are on the disk
before its name: a loss of power leaves no file in part. `create` and `move` overwrite nothing.
"""

from __future__ import annotations

import errno
import os
import posixpath
import re
import stat as modes
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from secrets import token_hex
from typing import BinaryIO, NamedTuple, Protocol, cast

from coordwire.errors import CoordwireError
from coordwire.tables.storage.names import MANIFEST, WRITING
from coordwire.tables.stores import Store, is_uri, local_path, store_of

__all__ = ["LinkError", "LocalFolder", "Output", "Stat", "StoreFolder", "open_output"]

PART = ".part"
"""How the names of files end that are being written."""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""What link() fails with on file systems without hard links."""


class LinkError(CoordwireError):
    """A folder or file below the root is a symbolic link, or of another kind than its name says."""


class Stat(NamedTuple):
    """size: in bytes. stamp: numbers that change when the file does, and that cannot be set back."""

    size: int
    stamp: tuple[int, ...]


class Output(Protocol):
    """What the pipeline does with its folder. Names are relative, their components divided by slashes.

    place: as the user named it; root: its path; uri: as Spark reads it, which takes it for a glob; local:
    whether it is on the local disk.
    """

    local: bool
    place: str
    root: str
    uri: str

    def path(self, name: str) -> str:
        """The path of a file, for messages and for libraries that write themselves."""
        return posixpath.join(self.root, name)

    def names(self, folder: str) -> list[str]:
        """The files below a folder, in order."""
        return sorted(name for name, _ in self.files(folder))

    def read(self, name: str) -> bytes | None:
        """A small file; None if it is not there."""

    def write(self, name: str, data: bytes | memoryview) -> None:
        """A file, whole or not at all; replaces what is there."""

    def create(self, name: str, data: bytes | memoryview) -> bool:
        """The same where no file of this name is there; False if there is one."""

    def open(self, name: str) -> BinaryIO:
        """A file to read, with `seek`."""

    def stat(self, name: str) -> Stat | None:
        """A regular file's size and stamp; None for what is not there or is of another kind."""

    def files(self, *folders: str) -> Iterator[tuple[str, int]]:
        """The regular files below these folders with their sizes, in no order."""

    def entries(self, folder: str) -> list[str]:
        """The names in a folder, whatever they are; none if it is not there."""

    def check(self, folder: str) -> None:
        """Raises `LinkError` if a folder can't be entered without following a link."""

    def delete(self, name: str) -> None:
        """Remove a file, if it is there."""

    def remove_folder(self, name: str) -> None:
        """Remove a folder, if it is there and empty."""


def checked(name: str) -> list[str]:
    """A name's components. Raises `CoordwireError` for one that could leave the root."""
    parts = name.split("/")
    if not name or "\0" in name or any(part in ("", ".", "..") for part in parts):
        raise CoordwireError(f"expected a name below the output folder, got {name!r}")
    return parts


_GLOB = re.compile(r"([\\*?\[\]{}])")


def open_output(place: str) -> Output:
    """The folder of a path or URI. Raises as `store_of`."""
    path = place
    if is_uri(place):
        store, path = store_of(place)
        if not store.is_local:
            return StoreFolder(store, path, place)
    return LocalFolder(os.path.abspath(local_path(path)), place)


class LocalFolder(Output):
    """A folder of the local disk, or of what is mounted there."""

    local = True

    def __init__(self, root: str, place: str = "") -> None:
        self.root = root
        self.place = place or root
        self.uri = "file://" + _GLOB.sub(r"\\\1", root)

    @contextmanager
    def at(self, name: str, create: bool = False) -> Iterator[tuple[int, str]]:
        """The descriptor of the folder that holds a file, and the file's own name."""
        *folders, last = checked(name)
        try:
            current = os.open(self.root, _DIRECTORY)
        except FileNotFoundError:
            if not create:
                raise
            os.makedirs(self.root, exist_ok=True)
            current = os.open(self.root, _DIRECTORY)
        try:
            for depth, folder in enumerate(folders):
                below = self._enter(current, folder, "/".join(folders[: depth + 1]), create)
                os.close(current)
                current = below
            yield current, last
        finally:
            os.close(current)

    def _enter(self, current: int, folder: str, path: str, create: bool) -> int:
        try:
            return os.open(folder, _DIRECTORY | os.O_NOFOLLOW, dir_fd=current)
        except OSError as error:
            if create and error.errno == errno.ENOENT:
                with suppress(FileExistsError):
                    os.mkdir(folder, dir_fd=current)
                return self._enter(current, folder, path, create=False)
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise LinkError(
                    f"{posixpath.join(self.root, path)} is a symbolic link or a file, expected a folder: "
                    "the pipeline follows no link below its output folder; remove it, or choose another --out"
                ) from None
            raise

    def open(self, name: str) -> BinaryIO:
        with self.at(name) as (folder, last):
            return os.fdopen(self._open_regular(folder, last, name), "rb")

    def _open_regular(self, folder: int, last: str, name: str) -> int:
        """Opens a regular file. O_NONBLOCK: opening a FIFO would wait for its writer."""
        try:
            file = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise LinkError(
                    f"{posixpath.join(self.root, name)} is a symbolic link; expected a file"
                ) from None
            raise
        if not modes.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise LinkError(f"{posixpath.join(self.root, name)} is not a regular file")
        return file

    def read(self, name: str) -> bytes | None:
        try:
            with self.open(name) as file:
                return file.read()
        except FileNotFoundError:
            return None

    def open_new(self, name: str) -> BinaryIO:
        """A new file to write."""
        with self.at(name, create=True) as (folder, last):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            return os.fdopen(os.open(last, flags, 0o666, dir_fd=folder), "wb", buffering=0)

    @contextmanager
    def _hidden(self, name: str, data: bytes | memoryview) -> Iterator[str]:
        """A file under another name, to be moved; removed unless it is."""
        hidden = f"{WRITING}/{posixpath.basename(name)}.{token_hex(16)}{PART}"
        try:
            with self.open_new(hidden) as file:
                view = memoryview(data)
                while view:
                    view = view[file.write(view) :]
                os.fsync(file.fileno())
            yield hidden
        except BaseException:
            with suppress(OSError, LinkError):
                self.delete(hidden)
            raise

    def write(self, name: str, data: bytes | memoryview) -> None:
        with (
            self._hidden(name, data) as hidden,
            self.at(hidden) as (source, old),
            self.at(name, create=True) as (target, new),
        ):
            os.rename(old, new, src_dir_fd=source, dst_dir_fd=target)
            if name == MANIFEST:  # names that go before it may go with it: their units are read again
                os.fsync(target)

    def create(self, name: str, data: bytes | memoryview) -> bool:
        try:
            with self._hidden(name, data) as hidden:
                self.move(hidden, name)
        except FileExistsError:
            return False
        return True

    def move(self, name: str, to: str) -> None:
        """Give a file another name, which must be free."""
        with self.open(name) as file:
            os.fsync(file.fileno())
        with self.at(name) as (source, old), self.at(to, create=True) as (target, new):
            try:
                os.link(old, new, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                if os.access(new, os.F_OK, dir_fd=target, follow_symlinks=False):
                    raise FileExistsError(errno.EEXIST, "File exists", to) from None
                os.rename(old, new, src_dir_fd=source, dst_dir_fd=target)
            else:
                os.unlink(old, dir_fd=source)

    def stat(self, name: str) -> Stat | None:
        try:
            with self.at(name) as (folder, last):
                status = os.stat(last, dir_fd=folder, follow_symlinks=False)
        except (FileNotFoundError, LinkError):
            return None
        if not modes.S_ISREG(status.st_mode):
            return None
        return Stat(status.st_size, (status.st_ino, status.st_ctime_ns, status.st_mtime_ns))

    def files(self, *folders: str) -> Iterator[tuple[str, int]]:
        waiting = [*folders]
        while waiting:
            current = waiting.pop()
            for name, mode, size in self._scan(current):
                if modes.S_ISDIR(mode):
                    waiting.append(f"{current}/{name}")
                elif modes.S_ISREG(mode):
                    yield f"{current}/{name}", size

    def entries(self, folder: str) -> list[str]:
        return [name for name, _, _ in self._scan(folder)]

    def _scan(self, folder: str) -> list[tuple[str, int, int]]:
        """Names, modes and sizes of what is in a folder, of links as such.

        Nothing where the way to the folder leads through a link.
        """
        rows = []
        try:
            with self.at(f"{folder}/x".removeprefix("/")) as (current, _), os.scandir(current) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):  # it went meanwhile
                        status = entry.stat(follow_symlinks=False)
                        rows.append((entry.name, status.st_mode, status.st_size))
        except (FileNotFoundError, LinkError):
            return []
        return rows

    def check(self, folder: str) -> None:
        with self.at(f"{folder}/x"):
            return

    def delete(self, name: str) -> None:
        with suppress(FileNotFoundError), self.at(name) as (folder, last):
            os.unlink(last, dir_fd=folder)

    def remove_folder(self, name: str) -> None:
        with suppress(FileNotFoundError), self.at(name) as (folder, last):
            try:
                os.rmdir(last, dir_fd=folder)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                    raise


class StoreFolder(Output):
    """A folder in a store: of objects, HDFS, or what fsspec knows.

    A put of one object is atomic there; where files are written in place, one is written under another name
    and then moved. `create` looks first whether the name is taken: stores give nothing better to all alike.
    Names that two writers could share are given to one of them only.
    """

    local = False

    def __init__(self, store: Store, root: str, place: str) -> None:
        self.store = store
        self.root = root.rstrip("/")
        self.place = place
        self.uri = _GLOB.sub(r"\\\1", place.rstrip("/"))

    def _path(self, name: str) -> str:
        return f"{self.root}/{'/'.join(checked(name))}"

    def read(self, name: str) -> bytes | None:
        try:
            with self.store.open(self._path(name)) as stream:
                data: bytes = stream.read()
        except FileNotFoundError:
            return None
        return data

    def write(self, name: str, data: bytes | memoryview) -> None:
        if self.store.puts:
            self.store.put(self._path(name), data)
            return
        hidden = self._path(f"{WRITING}/{posixpath.basename(name)}.{token_hex(16)}{PART}")
        self.store.put(hidden, data)
        self.store.move(hidden, self._path(name))

    def create(self, name: str, data: bytes | memoryview) -> bool:
        if self.stat(name) is not None:
            return False
        self.write(name, data)
        return True

    def open(self, name: str) -> BinaryIO:
        return cast(BinaryIO, self.store.open(self._path(name)))

    def stat(self, name: str) -> Stat | None:
        info = self.store.info(self._path(name))
        if info is None or not info.is_file:
            return None
        return Stat(info.size or 0, (info.mtime_ns,) if info.mtime_ns else ())

    def files(self, *folders: str) -> Iterator[tuple[str, int]]:
        """Of several folders by one list of all that is below the root: what a store counts are requests."""
        place = self._path(folders[0]) if len(folders) == 1 else self.root
        for info in self.store.below(place, recursive=True, missing=True):
            name = info.path[len(self.root) + 1 :]
            if info.is_file and name.startswith(tuple(f"{folder}/" for folder in folders)):
                yield name, info.size or 0

    def entries(self, folder: str) -> list[str]:
        path = self._path(folder) if folder else self.root
        entries = list(self.store.below(path, recursive=False, missing=True))
        if not folder and not entries:
            self.store.check_bucket(path)
        return [posixpath.basename(info.path.rstrip("/")) for info in entries]

    def check(self, folder: str) -> None:
        """Do nothing: a store has no links."""

    def delete(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self.store.delete(self._path(name))

    def remove_folder(self, name: str) -> None:
        path = self._path(name)
        # pyarrow puts an object of no bytes in the place of a folder whose last file goes.
        if self.store.puts and not any(self.store.below(path, recursive=False, missing=True)):
            with suppress(FileNotFoundError):
                self.store.delete_folder(path)
