"""Files that appear whole or not at all, and never over another.

Strategy: each is written without a name in the folder that it is for, where the system can do that (Linux's
O_TMPFILE), so that whatever ends the process leaves nothing. Elsewhere it has a name of its own there, by
which `remove_stale` recognises what an ended process has left. It is synced, and linked to its final name,
which fails where that name exists, also as a symbolic link; then the folder is synced. Rules: what isn't
committed leaves nothing, and where one file can't get its name, those that got theirs lose it again. An error
names the file that was to be written.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from stat import S_ISREG
from types import TracebackType
from typing import BinaryIO, Self

from coordwire.files.lock import lock

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)
_UNNAMED: int = getattr(os, "O_TMPFILE", 0)
_NO_LINK: int = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_WINDOWS = os.name == "nt"
"""There an open file can be neither removed nor replaced, a folder can't be synced, and flock is missing."""
_OPEN_FILES = "/proc/self/fd"
_LONGEST = 100
"""The bytes of a file's name that the name of its part repeats."""

_PART = re.compile(r"\.(?P<name>.*)\.(?P<run>[0-9a-f]{16})(?P<proof>[0-9a-f]{16})\.part", re.DOTALL)


@dataclass(slots=True)
class _Part:
    """A file that is being written: open, so that it stays, and locked where it has a name."""

    descriptor: int
    final: Path
    named: Path | None

    @property
    def path(self) -> Path:
        return self.named or Path(_OPEN_FILES, str(self.descriptor))

    def close(self) -> None:
        """Close the file, and remove the name that it was written under."""
        if _WINDOWS:
            self.close_file()
        if self.named is not None:
            self.named.unlink(missing_ok=True)
        self.close_file()

    def close_file(self) -> None:
        """Close the file, if it is open."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


class Staged:
    """Files for one folder, made if need be; a context manager that drops what wasn't committed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._parts: list[_Part] = []

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._drop()

    def _drop(self) -> None:
        while self._parts:
            self._parts.pop().close()

    @contextmanager
    def new(self, name: str) -> Iterator[BinaryIO]:
        """A file to write; it gets its name on `commit`."""
        final = self.folder / name
        with _error_about(final):
            part = _unnamed(final) or _named(final)
            self._parts.append(part)
            with open(part.descriptor, "wb", closefd=False) as file:
                yield file
                file.flush()
                os.fsync(part.descriptor)

    def path(self, name: str) -> Path:
        """The path of a file that was written, until `commit`."""
        return next(part.path for part in self._parts if part.final.name == name)

    def commit(self, *, last: str = "", replace: bool = False) -> list[Path]:
        """Give the files their names; return their paths, in that order.

        last: the name that is given after all others. replace: whether files that exist are replaced; else
        `FileExistsError` is raised.
        """
        finals: list[Path] = []
        self._parts.sort(key=lambda part: part.final.name == last)
        try:
            for part in self._parts:
                with _error_about(part.final):
                    if replace:
                        _replace(part)
                    else:
                        _link(part)
                finals.append(part.final)
            _sync(self.folder)
        except BaseException:
            if not replace:
                self._take_back(finals)
            raise
        self._drop()
        return finals

    def _take_back(self, finals: list[Path]) -> None:
        """Remove the names again, also one that was just given."""
        for part in self._parts:
            if part.final in finals or _is_at(part.descriptor, part.final):
                if _WINDOWS:
                    part.close_file()
                part.final.unlink(missing_ok=True)


def remove_stale(folder: Path) -> None:
    """Remove the parts of files that a process left which was ended while it wrote them.

    Such a file has a name with a valid proof, is a regular file and not a link, and no process has it locked.
    """
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        match = _PART.fullmatch(name)
        if match is None or match["proof"] != _proof(match["name"], match["run"]):
            continue
        with suppress(OSError):  # it may not be removed, or is in use
            if _WINDOWS:
                os.unlink(folder / name)
                continue
            descriptor = os.open(folder / name, os.O_RDONLY | _NO_LINK)
            try:
                if (
                    lock(descriptor)
                    and S_ISREG(os.fstat(descriptor).st_mode)
                    and _is_at(descriptor, folder / name)
                ):
                    os.unlink(folder / name)
            finally:
                os.close(descriptor)


def _unnamed(final: Path) -> _Part | None:
    """A file without a name, in the folder that it is for; None where the system has no such files."""
    if not _UNNAMED or not os.path.isdir(_OPEN_FILES):
        return None
    try:
        return _Part(os.open(final.parent, _UNNAMED | os.O_RDWR, 0o666), final, None)
    except OSError as error:
        if error.errno in (errno.ENOTSUP, errno.EISDIR, errno.EINVAL, errno.ENOENT):
            return None
        raise


def _named(final: Path) -> _Part:
    """A file whose name marks it as a part of another, locked."""
    while True:
        name = os.fsdecode(os.fsencode(final.name)[:_LONGEST])
        run = secrets.token_hex(8)
        path = final.with_name(f".{name}.{run}{_proof(name, run)}.part")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        lock(descriptor)  # or not, on a file system without locks
        if _is_at(descriptor, path):
            return _Part(descriptor, final, path)
        os.close(descriptor)  # it was removed before it was locked


def _proof(name: str, run: str) -> str:
    """The part of a file's name that proves that this module gave it."""
    return blake2b(os.fsencode(name) + run.encode(), digest_size=8, person=b"coordwire part").hexdigest()


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether an open file is the one at that path; False for a closed one."""
    if descriptor < 0:
        return False
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


@contextmanager
def _error_about(final: Path) -> Iterator[None]:
    """Let an error of the system name the final file, not the unnamed or hidden one."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = str(final), None
        raise


def _link(part: _Part) -> None:
    try:
        _give_name(part, part.final)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(
            part.final
        ):  # a file system without links: check first, as well as that can be done
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(part.final)) from None
        _replace(part)


def _give_name(part: _Part, path: Path) -> None:
    """Link a file to a name that is free."""
    if part.named is not None:
        os.link(part.named, path)
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.link(part.path, path.name, dst_dir_fd=folder)  # with a folder it follows the link to the open file
    finally:
        os.close(folder)


def _replace(part: _Part) -> None:
    """Replace what has the final name. Only a file with a name can do that: one without is copied."""
    if part.named is None:
        copy = _named(part.final)
        try:
            with open(part.path, "rb") as source, open(copy.descriptor, "wb", closefd=False) as file:
                shutil.copyfileobj(source, file)
                file.flush()
                os.fsync(copy.descriptor)
        except BaseException:
            copy.close()
            raise
        os.close(part.descriptor)
        part.descriptor, part.named = copy.descriptor, copy.named
    if _WINDOWS:
        part.close_file()
    os.replace(part.path, part.final)


def _sync(folder: Path) -> None:
    if _WINDOWS:
        return
    with _error_about(folder):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
