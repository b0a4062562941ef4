"""Files that appear whole or not at all, and never over another.

Strategy: each is written under a name of its own in the same folder, synced, and linked to its final name,
which fails where that is taken, by a symbolic link too; then the folder is synced. Rules: what isn't
committed leaves nothing, and where one file can't get its name, those that got theirs lose it again. An error
names the file that it is about.
"""

from __future__ import annotations

__all__ = ["Staged"]

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)


class Staged:
    """Files for one folder, made if need be; a context manager that drops what wasn't committed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._parts: list[tuple[Path, Path]] = []

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for part, _ in self._parts:
            part.unlink(missing_ok=True)

    @contextmanager
    def new(self, name: str) -> Iterator[BinaryIO]:
        """A file to write; it gets its name on `commit`."""
        final = self.folder / name
        with _about(final):
            descriptor, part = tempfile.mkstemp(prefix=f".{name[:100]}.", suffix=".part", dir=self.folder)
            self._parts.append((Path(part), final))
            with open(descriptor, "wb") as file:
                yield file
                file.flush()
                os.fchmod(file.fileno(), 0o666 & ~_umask())
                os.fsync(file.fileno())

    def path(self, name: str) -> Path:
        """Where a file that was written is until `commit`."""
        return next(part for part, final in self._parts if final.name == name)

    def commit(self, *, last: str = "", replace: bool = False) -> list[Path]:
        """Give the files their names; their paths, in that order.

        last: the name of the one that comes last, and says that the others are there. replace: whether they
        may take the place of others; else `FileExistsError`.
        """
        made: list[Path] = []
        self._parts.sort(key=lambda part: part[1].name == last)
        try:
            for part, final in self._parts:
                with _about(final):
                    if replace:
                        os.replace(part, final)
                    else:
                        _link(part, final)
                made.append(final)
            _sync(self.folder)
        except BaseException:
            if not replace:
                self._take_back(made)
            raise
        for part, _ in self._parts:
            part.unlink(missing_ok=True)
        self._parts.clear()
        return made

    def _take_back(self, made: list[Path]) -> None:
        """Take the names away again, also one that was just given."""
        for part, final in self._parts:
            if final in made or (part.exists() and final.exists() and os.path.samefile(part, final)):
                final.unlink(missing_ok=True)


@contextmanager
def _about(final: Path) -> Iterator[None]:
    """Let an error of the system name the file, not the one that it is written to at first."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = str(final), None
        raise


def _link(part: Path, final: Path) -> None:
    try:
        os.link(part, final)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(final):  # a file system without links: as near as it gets
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(final)) from None
        os.replace(part, final)


def _sync(folder: Path) -> None:
    with _about(folder):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
