"""A broker's data folder: its identity, its lock, and the small files that it has once.

    meta.properties                    the cluster's id and the node's (KIP-631)
    .lock                              locked while a broker has the folder
    .kafka_cleanshutdown               present while no broker has the folder, if the last one ended in order
    log-start-offset-checkpoint, recovery-point-offset-checkpoint, replication-offset-checkpoint
                                       an offset for each partition

Rules: a folder with anything in it and without `meta.properties` is not a broker's, and is refused. Files are
replaced whole, by way of NAME.tmp, as Kafka does, so that Kafka and this broker recognise what the other
left; only the identity and the end in order are synced, the others may be lost with the machine's power. Only
files with names that Kafka gives are removed, in a folder of a partition. The lock is lockf's, as Kafka's is.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG
from uuid import uuid4

from coordwire.codec.primitives import uuid_text
from coordwire.errors import CoordwireError
from coordwire.segments.names import file_name, topic_partition
from coordwire.segments.state_files import EPOCHS, METADATA

META = "meta.properties"
LOCK = ".lock"
CLEAN = ".kafka_cleanshutdown"
STARTS, RECOVERY, REPLICATION = (
    "log-start-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
)
_FILES = (META, LOCK, CLEAN, STARTS, RECOVERY, REPLICATION)
_LINE = re.compile(r"(\S+) (\d{1,10}) (\d{1,19})")
_PROPERTY = re.compile(r"\s*([^#!=:\s][^=:\s]*)\s*[=:]\s*(.*?)\s*")


class DataFolderError(CoordwireError):
    """A data folder that this broker cannot use; the reason says what is wrong and what helps."""


def write_file(folder: Path, name: str, data: bytes, *, synced: bool = False) -> None:
    """Write a small file whole, in the place of what has its name, by way of NAME.tmp, as Kafka does.

    synced: it outlives a crash of the machine too, not only a killed process. A leftover NAME.tmp is
    overwritten: the folder is a broker's, and locked. Raises `OSError`.
    """
    path = folder / f"{name}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, 0o666), "wb", buffering=0) as file:
        file.write(data)
        if synced:
            os.fsync(file.fileno())
    os.replace(path, folder / name)
    if synced:
        sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Force the names of a folder's files to the disk. Raises `OSError`."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _make_folder(path: Path) -> None:
    """Make a folder and those above it, for certain, where they are missing. Raises `OSError`."""
    if not path.is_dir():
        _make_folder(path.parent)
        path.mkdir(exist_ok=True)
        sync_folder(path.parent)


def check_files(folder: Path, names: Iterable[str]) -> None:
    """Refuse links, pipes and folders where a broker has its files: opening one could block for ever, or
    write elsewhere. Raises `DataFolderError`, `OSError`."""
    for name in names:
        path = folder / name
        with suppress(FileNotFoundError):
            if not S_ISREG(os.lstat(path).st_mode):
                raise DataFolderError(f"{path} is not a regular file, as a broker's files are")


def check_partition(folder: Path) -> None:
    """As `check_files`, for all files of a partition's folder, and the folder. Raises as it does."""
    if folder.is_symlink() or not folder.is_dir():
        raise DataFolderError(f"{folder} is not a folder, as a partition's is")
    names = os.listdir(folder)
    check_files(folder, (name for name in names if _is_brokers(name.removesuffix(".tmp"))))


def _is_brokers(name: str) -> bool:
    """Whether a broker gives this name to a file of a partition."""
    return file_name(name) is not None or name in (EPOCHS, METADATA)


class DataFolder:
    """A folder that this broker has until `close`; it is made where it is missing.

    cluster_id, node_id: those of a new folder; an existing one keeps its own, and another node's is refused.
    was_clean: whether the last broker ended in order. starts: where logs begin, by topic and partition;
    recovery: the offset before which they were on the disk for certain at the last end in order.
    Raises `DataFolderError`, `OSError`.
    """

    def __init__(self, path: Path, *, cluster_id: str, node_id: int) -> None:
        self.path = path
        _make_folder(path)
        check_files(path, (*_FILES, *(f"{name}.tmp" for name in _FILES)))
        self._lock = _locked(path)
        try:
            properties = _properties(path)
            if properties is None:
                foreign = sorted(set(os.listdir(path)) - {LOCK, f"{META}.tmp"})
                if foreign:
                    raise DataFolderError(
                        f"{path} has no {META} and is not empty ({foreign[0]}): it is not a broker's folder"
                    )
                properties = {
                    "version": "1",
                    "cluster.id": cluster_id,
                    "node.id": str(node_id),
                    "directory.id": uuid_text(uuid4()),
                }
                lines = ["#", *(f"{name}={value}" for name, value in properties.items()), ""]
                write_file(path, META, "\n".join(lines).encode(), synced=True)
            if properties.get("node.id", str(node_id)) != str(node_id):
                raise DataFolderError(
                    f"{path} is the folder of node {properties['node.id']}, expected node {node_id}"
                )
            self.cluster_id = properties.get("cluster.id", cluster_id)
            self.starts = _read_offsets(path / STARTS)
            self.recovery = _read_offsets(path / RECOVERY)
            self.was_clean = _is_file(path / CLEAN)
            if self.was_clean:
                (path / CLEAN).unlink()
                sync_folder(path)
        except BaseException:
            os.close(self._lock)
            raise

    def partitions(self) -> list[tuple[str, int, Path]]:
        """The partitions that have a folder here."""
        folders = []
        for name in sorted(os.listdir(self.path)):
            place = topic_partition(name)
            folder = self.path / name
            if place and name == f"{place[0]}-{place[1]}" and folder.is_dir() and not folder.is_symlink():
                folders.append((*place, folder))
        return folders

    def write_starts(self, starts: Mapping[tuple[str, int], int]) -> None:
        """Write where logs begin. Raises `OSError`."""
        self._write_offsets(STARTS, {place: start for place, start in starts.items() if start})

    def lower_recovery(self, place: tuple[str, int], end: int) -> None:
        """A log ends here: what is written to it from now on may not be on the disk. Raises `OSError`."""
        if self.recovery.get(place, 0) > end:
            self._write_offsets(RECOVERY, {**self.recovery, place: end}, synced=True)
            self.recovery[place] = end

    def close(self, ends: Mapping[tuple[str, int], int]) -> None:
        """Record that all logs are closed and on the disk, with their ends, and unlock the folder. Raises
        `OSError`."""
        try:
            self._write_offsets(RECOVERY, ends, synced=True)
            self._write_offsets(REPLICATION, ends)
            self._write_clean()
        finally:
            os.close(self._lock)

    def _write_clean(self) -> None:
        write_file(self.path, CLEAN, b'{"version":0,"brokerEpoch":-1}', synced=True)

    def refuse(self) -> None:
        """Unlock the folder as it was: the next start must not take its damage for a loss of power."""
        with suppress(OSError):
            if self.was_clean:
                self._write_clean()
        os.close(self._lock)

    def abandon(self) -> None:
        """Unlock the folder as if the process had ended."""
        os.close(self._lock)

    def _write_offsets(
        self, name: str, offsets: Mapping[tuple[str, int], int], *, synced: bool = False
    ) -> None:
        lines = [f"{topic} {number} {offset}" for (topic, number), offset in sorted(offsets.items())]
        data = "\n".join(["0", str(len(lines)), *lines, ""]).encode()
        write_file(self.path, name, data, synced=synced)


def _locked(path: Path) -> int:
    """The folder's lock, as an open file."""
    descriptor = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        import fcntl  # not on every system

        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        pass
    except OSError as error:
        os.close(descriptor)
        if error.errno in (errno.EACCES, errno.EAGAIN):
            raise DataFolderError(f"{path} is in use by another broker") from None
        raise
    return descriptor


def _properties(path: Path) -> dict[str, str] | None:
    try:
        text = (path / META).read_text("utf-8", "replace")
    except FileNotFoundError:
        return None
    return {match[1]: match[2] for line in text.splitlines() if (match := _PROPERTY.fullmatch(line))}


def _read_offsets(path: Path) -> dict[tuple[str, int], int]:
    """A checkpoint's offsets; lines that are not understood are ignored."""
    try:
        lines = path.read_text("utf-8", "replace").splitlines()[2:]
    except FileNotFoundError:
        return {}
    matches = (_LINE.fullmatch(line) for line in lines)
    return {(subject[1], int(subject[2])): int(subject[3]) for subject in matches if subject}


def _is_file(path: Path) -> bool:
    try:
        return S_ISREG(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False


def remove_partition(folder: Path) -> None:
    """Remove a partition's folder as Kafka does: rename it, then remove its files and the folder.

    Only regular files with names that Kafka gives are removed; with anything else in it the folder stays,
    under its new name. Raises `OSError` if it cannot be renamed.
    """
    renamed = folder.with_name(f"{folder.name}.{uuid4().hex}-delete")
    os.rename(folder, renamed)
    with suppress(OSError):
        for name in os.listdir(renamed):
            if _is_brokers(name) and _is_file(renamed / name):
                (renamed / name).unlink()
        renamed.rmdir()
