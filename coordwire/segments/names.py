"""What the names of a broker's files and folders say: topic and partition, base offset, kind.

Rules: as Kafka reads them (`LocalLog.parseTopicPartitionName`, `LogFileUtils`, `Snapshots`): a partition's
folder is TOPIC-PARTITION, with ".UNIQUE-delete", "-future" or "-stray" after it while the broker moves it
away or in; a segment's files are named by its base offset, with ".deleted", ".cleaned" or ".swap" after
while they come or go. A name of another form says nothing, and is not an error.
"""

from __future__ import annotations

__all__ = ["FileKind", "FileName", "file_name", "log_name", "topic_partition"]

import re
from typing import Literal, NamedTuple, get_args

FileKind = Literal["log", "index", "timeindex", "txnindex", "snapshot", "checkpoint"]
"""What is in a file: record batches (log, checkpoint) or what a broker keeps beside them."""

_FOLDER = re.compile(r"(?P<topic>.+)-(?P<partition>[0-9]{1,10})", re.DOTALL)
_MOVED = re.compile(r"(\S+-\S+)\.\S+-(?:delete|future|stray)")
_KINDS = "|".join(get_args(FileKind)[:-1])
_FILE = re.compile(rf"([0-9]{{1,20}})\.({_KINDS})(?:\.(?:deleted|cleaned|swap))?")
_CHECKPOINT = re.compile(r"([0-9]{20})-([0-9]{10})(?:\.checkpoint(?:\.deleted)?|-.*\.checkpoint\.part)")
_BOOTSTRAP = "bootstrap.checkpoint"
_INT32, _INT64 = 1 << 31, 1 << 63


class FileName(NamedTuple):
    """What a file's name says.

    kind: what is in it. offset: the base offset of the segment; of a producer snapshot or a KRaft
    checkpoint the offset after the last one it covers; None for `bootstrap.checkpoint`. epoch: a
    checkpoint's.
    """

    kind: FileKind
    offset: int | None
    epoch: int | None = None


def topic_partition(folder: str) -> tuple[str, int] | None:
    """The topic and partition that a folder's name gives; None if it is of another form."""
    moved = _MOVED.fullmatch(folder)
    found = _FOLDER.fullmatch(moved[1] if moved else folder)
    if found is None or int(found["partition"]) >= _INT32:
        return None
    return found["topic"], int(found["partition"])


def file_name(name: str) -> FileName | None:
    """What the name of a segment's file says; None if it is of another form."""
    if found := _FILE.fullmatch(name):
        offset = int(found[1])
        return FileName(_kind(found[2]), offset) if offset < _INT64 else None
    if found := _CHECKPOINT.fullmatch(name):
        offset = int(found[1])
        return FileName("checkpoint", offset, int(found[2])) if offset < _INT64 else None
    return FileName("checkpoint", None) if name == _BOOTSTRAP else None


def _kind(word: str) -> FileKind:
    return next(kind for kind in get_args(FileKind) if kind == word)


def log_name(offset: int, kind: FileKind = "log") -> str:
    """The name that Kafka gives to the file of the segment with this base offset."""
    return f"{offset:020}.{kind}"
