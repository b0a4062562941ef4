"""A disk that loses its power: the states that a folder may be in afterwards.

Strategy: while it is `recording`, calls of `os` on files below a root go through; it keeps what was synced of
each file, and the changes of names that no `fsync` of their folder has forced. Before each of these calls the
power may fail. A state then has all that was synced, and of the rest what a seed draws: of a file its old
bytes, a part of the new ones, or sectors of both, zeros and noise; of the names all changes up to one, as a
journal has them, or any of them. A rename is one change, whole or not at all. An `fsync` is only noted: what
is recorded need not last.

Rules: what is not written by `os` (`FileIO.write`) is seen at the next call. The sectors are small, so that
the small files of tests are torn too. Linux only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Generic, TypeVar

P = TypeVar("P")

SECTOR = 64
Tree = dict[str, bytes | None]
"""Files with their bytes by relative path; None for a folder."""

_WATCHED = (
    "open", "write", "pwrite", "ftruncate", "fsync", "rename", "replace", "link", "unlink", "mkdir", "rmdir",
)  # fmt: skip


@dataclass(frozen=True)
class _Change:
    """Names that come and go at once: folder, name, and what has the name then."""

    names: tuple[tuple[int, str, int | None], ...]


@dataclass
class _File:
    descriptor: int
    synced: bytes = b""

    def content(self) -> bytes:
        return os.pread(self.descriptor, os.fstat(self.descriptor).st_size, 0)


@dataclass(frozen=True)
class Loss(Generic[P]):
    """A state after a loss of power, and what had been promised before it."""

    tree: Tree
    promised: P
    place: str

    def write(self, root: Path) -> None:
        """Make the state in an empty folder."""
        for name, content in self.tree.items():
            if content is None:
                (root / name).mkdir()
            else:
                (root / name).write_bytes(content)


@dataclass
class LosingDisk(Generic[P]):
    """What is below a folder, all of it on the disk at the start.

    promised: gives what is promised at a time. rate: the part of the calls before which the power fails once.
    """

    root: Path
    promised: Callable[[], P]
    random: Random
    rate: float = 0.1
    losses: list[Loss[P]] = field(default_factory=list)
    _files: dict[int, _File] = field(default_factory=dict)
    _folders: dict[int, dict[str, int]] = field(default_factory=dict)
    _held: list[int] = field(default_factory=list)
    _changes: list[_Change] = field(default_factory=list)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Watch the calls of this process; all of them must be of one thread."""
        real = {name: getattr(os, name) for name in _WATCHED}
        self._real_open = real["open"]
        self._know(self.root)
        try:
            for name in _WATCHED:
                setattr(os, name, self._watched(name, real[name]))
            yield
        finally:
            for name in _WATCHED:
                setattr(os, name, real[name])
            for descriptor in self._held:
                os.close(descriptor)

    def _know(self, folder: Path) -> None:
        names = self._folders[self._hold(folder)] = {}
        for path in folder.iterdir():
            if path.is_dir():
                self._know(path)
                names[path.name] = path.stat().st_ino
            else:
                names[path.name] = self._hold(path)
                file = self._files[names[path.name]]
                file.synced = file.content()

    def _hold(self, path: Path) -> int:
        """Keep a file or folder open, so that its number is given to no other."""
        descriptor: int = self._real_open(path, os.O_RDONLY)
        number = os.fstat(descriptor).st_ino
        self._held.append(descriptor)
        if path.is_dir():
            self._folders.setdefault(number, {})
        else:
            self._files.setdefault(number, _File(descriptor))
        return number

    # --- calls ---

    def _watched(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        after = getattr(self, f"_after_{name}", None)

        def watched(*arguments: Any, **keywords: Any) -> Any:
            if not self._concerns(name, arguments, keywords):
                return call(*arguments, **keywords)
            self.fail(name)
            if after is None:
                return call(*arguments, **keywords)
            if name in ("unlink", "rmdir", "rename", "replace"):
                after(*arguments, **keywords)
                return call(*arguments, **keywords)
            if name == "fsync":
                return after(*arguments)
            result = call(*arguments, **keywords)
            after(*arguments, **keywords)
            return result

        return watched

    def _concerns(self, name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
        if name in ("write", "pwrite", "ftruncate", "fsync"):
            number = os.fstat(arguments[0]).st_ino
            return number in self._files or number in self._folders
        if name == "open" and not arguments[1] & os.O_CREAT:
            return False
        try:
            if name in ("rename", "replace"):
                return self._place(arguments[1], keywords.get("dst_dir_fd"))[0] in self._folders
            return (
                self._place(arguments[0], keywords.get("dir_fd", keywords.get("src_dir_fd")))[0]
                in self._folders
            )
        except FileNotFoundError:
            return False

    def _place(self, path: str | os.PathLike[str], folder: int | None = None) -> tuple[int, str]:
        """The folder of a path, and the last name."""
        text = os.fspath(path)
        above, name = os.path.split(text)
        if folder is not None and not os.path.isabs(text):
            above = f"/proc/self/fd/{folder}/{above}"
        return os.stat(above or ".").st_ino, name

    def _number(self, path: str | os.PathLike[str], folder: int | None = None) -> int:
        return os.stat(path, dir_fd=folder, follow_symlinks=False).st_ino

    def _change(self, *names: tuple[int, str, int | None]) -> None:
        self._changes.append(_Change(names))

    def _after_open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        number = self._number(path, dir_fd)
        if number not in self._files:
            above, name = self._place(path, dir_fd)
            self._hold(Path(path) if dir_fd is None else Path(f"/proc/self/fd/{dir_fd}") / path)
            self._change((above, name, number))

    def _after_mkdir(self, path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        above, name = self._place(path, dir_fd)
        number = self._hold(Path(path) if dir_fd is None else Path(f"/proc/self/fd/{dir_fd}") / path)
        self._change((above, name, number))

    def _after_link(
        self, source: Any, target: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None,
        follow_symlinks: bool = True,
    ) -> None:  # fmt: skip
        self._change((*self._place(target, dst_dir_fd), self._number(source, src_dir_fd)))

    def _after_unlink(self, path: Any, *, dir_fd: int | None = None) -> None:
        self._change((*self._place(path, dir_fd), None))

    _after_rmdir = _after_unlink

    def _after_rename(
        self, source: Any, target: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None
    ) -> None:
        number = self._number(source, src_dir_fd)
        self._change((*self._place(source, src_dir_fd), None), (*self._place(target, dst_dir_fd), number))

    _after_replace = _after_rename

    def _after_fsync(self, descriptor: int) -> None:
        number = os.fstat(descriptor).st_ino
        if number in self._files:
            self._files[number].synced = self._files[number].content()
            return
        waiting = []
        for change in self._changes:
            if any(folder == number for folder, _, _ in change.names):
                _apply(self._folders, change)
            else:
                waiting.append(change)
        self._changes = waiting

    # --- the loss ---

    def fail(self, place: str, *, always: bool = False) -> None:
        """The power may fail here."""
        if always or self.random.random() < self.rate:
            self.losses.append(Loss(self._drawn(), self.promised(), place))

    def _drawn(self) -> Tree:
        folders = {number: dict(names) for number, names in self._folders.items()}
        for change in self._chosen():
            _apply(folders, change)
        tree: Tree = {}
        self._walk(folders, self.root.stat().st_ino, "", tree)
        return tree

    def _chosen(self) -> list[_Change]:
        if self.random.random() < 0.5:
            return self._changes[: self.random.randint(0, len(self._changes))]
        part = self.random.random()
        return [change for change in self._changes if self.random.random() < part]

    def _walk(self, folders: dict[int, dict[str, int]], number: int, prefix: str, tree: Tree) -> None:
        for name, entry in folders[number].items():
            if entry in self._files:
                file = self._files[entry]
                tree[prefix + name] = torn(self.random, file.synced, file.content())
            else:
                tree[prefix + name] = None
                self._walk(folders, entry, f"{prefix}{name}/", tree)


def _apply(folders: dict[int, dict[str, int]], change: _Change) -> None:
    for folder, name, number in change.names:
        if number is None:
            folders[folder].pop(name, None)
        else:
            folders[folder][name] = number


def torn(random: Random, old: bytes, new: bytes) -> bytes:
    """What the disk may have of a file whose old bytes were synced, and whose new ones were not."""
    if old == new:
        return new
    if old.startswith(new):  # only its size has changed
        return random.choice((old, new))
    kind = random.randrange(5)
    if kind < 2:
        return (old, new)[kind]
    same = next(
        (at for at, (was, is_now) in enumerate(zip(old, new, strict=False)) if was != is_now), len(old)
    )
    size = random.randint(same, max(len(old), len(new)))
    longest = new.ljust(size, b"\0")[:size]
    if kind == 2:
        return longest
    noise = random.randbytes(SECTOR) if random.random() < 0.2 else bytes(SECTOR)
    parts = []
    for at in range(0, size, SECTOR):
        end = min(at + SECTOR, size)
        lost = old[at:end] + noise[: end - at][len(old[at:end]) :]
        parts.append(longest[at:end] if random.random() < 0.6 else lost)
    return b"".join(parts)
