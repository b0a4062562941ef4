"""The names of a broker's files and folders: topic and partition, base offset, kind; and how a log
is read by its name: as record batches, or as the messages of Kafka 0.7.

Rules: as Kafka reads them (`LocalLog.parseTopicPartitionName`, `LogFileUtils`, `Snapshots`): a partition's
folder is TOPIC-PARTITION, with ".UNIQUE-delete", "-future" or "-stray" after it while the broker moves it
away or in; a segment's files are named by its base offset, with ".deleted", ".cleaned" or ".swap" after while
they come or go. Kafka 0.7's logs end in ".kafka", and their name is the offset, which is the byte where they
begin in the partition's log. A name of another form gives None, and is not an error.

Segments and tables read a log through its format, and know nothing else of releases. In Kafka 0.7
(`NAME.kafka`) a message's offset is the byte where it begins in the partition's log: such a log is read from
its beginning, nothing is kept beside it, and what follows a bad message can't be kept under other offsets.
"""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple, get_args

from coordwire.records import Batches, batches, kafka_07
from coordwire.records.batch_reader import Buffer, OnError

FileKind = Literal["log", "index", "timeindex", "txnindex", "snapshot", "checkpoint"]
"""What is in a file: record batches (log, checkpoint) or what a broker keeps beside them."""

FileState = Literal["live", "deleted", "cleaned", "swap", "future", "stray", "checkpoint"]
"""What a broker does with a file of records: it is read from and appended to (live), about to be removed
(deleted), being written by the cleaner (cleaned), about to take its place (swap), being moved to another of
the broker's folders (future), of a partition that the broker no longer has (stray), or of a snapshot of the
cluster's metadata (checkpoint)."""

_FOLDER = re.compile(r"(?P<topic>.+)-(?P<partition>[0-9]{1,10})", re.DOTALL)
_MOVED = re.compile(r"(?P<folder>\S+-\S+)\.\S+-(?P<state>delete|future|stray)")
_KINDS = "|".join(get_args(FileKind)[:-1])
_FILE = re.compile(rf"([0-9]{{1,20}})\.({_KINDS})(?:\.(?:deleted|cleaned|swap))?")
_SUFFIX = re.compile(rf"(?P<name>[0-9]{{1,20}}\.(?:{_KINDS}))\.(?P<state>deleted|cleaned|swap)")
_CHECKPOINT = re.compile(r"([0-9]{20})-([0-9]{10})(?:\.checkpoint(?:\.deleted)?|-.*\.checkpoint\.part)")
_KAFKA_07 = re.compile(r"([0-9]{1,20})\.kafka")
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
    match = _FOLDER.fullmatch(moved[1] if moved else folder)
    if match is None or int(match["partition"]) >= _INT32:
        return None
    return match["topic"], int(match["partition"])


def file_name(name: str) -> FileName | None:
    """The parts of the name of a segment's file; None if it is of another form."""
    if match := _FILE.fullmatch(name):
        offset = int(match[1])
        return FileName(_kind(match[2]), offset) if offset < _INT64 else None
    if match := _CHECKPOINT.fullmatch(name):
        offset = int(match[1])
        return FileName("checkpoint", offset, int(match[2])) if offset < _INT64 else None
    return FileName("checkpoint", None) if name == _BOOTSTRAP else None


def kafka_07_offset(name: str) -> int | None:
    """The offset that the name of a log of Kafka 0.7 gives; None for another name."""
    match = _KAFKA_07.fullmatch(name)
    return int(match[1]) if match is not None and int(match[1]) < _INT64 else None


def _kind(word: str) -> FileKind:
    return next(kind for kind in get_args(FileKind) if kind == word)


def file_state(path: str) -> FileState | None:
    """What a file's name and its folder's say that the broker does with it; None for a name of another form.

    The file's own suffix counts for more than the folder's.
    """
    folder, _, name = path.rpartition("/")
    parsed = file_name(name)
    if parsed is None:
        return None
    if parsed.kind == "checkpoint":
        return "checkpoint"
    if match := _SUFFIX.fullmatch(name):
        return _state(match["state"])
    moved = _MOVED.fullmatch(folder.rpartition("/")[2])
    return _state(moved["state"]) if moved else "live"


def live_path(path: str) -> str:
    """The path that a segment's file has while it is live: without the suffixes of `file_state`."""
    folder, slash, name = path.rpartition("/")
    if match := _SUFFIX.fullmatch(name):
        name = match["name"]
    above, topic_name, last = folder.rpartition("/")
    if file_name(name) is not None and (moved := _MOVED.fullmatch(last)):
        folder = f"{above}{topic_name}{moved['folder']}"
    return f"{folder}{slash}{name}"


def _state(word: str) -> FileState:
    return next(state for state in get_args(FileState) if state.startswith(word))


def log_name(offset: int, kind: FileKind = "log") -> str:
    """The name that Kafka gives to the file of the segment with this base offset."""
    return f"{offset:020}.{kind}"


# --- log format ---


class LogFormat:
    """Record batches. unit: the word for one; is_kafka_07: whether offsets are places in the log."""

    unit = "batch"
    is_kafka_07 = False

    def batches(self, view: memoryview, *, on_error: OnError, check_records: bool = True) -> Batches[Any]:
        """The batches of a log from its first byte on; the arguments as for `coordwire.records.batches`."""
        return batches(view, on_error=on_error, check_records=check_records)

    def stretch(self, view: memoryview, start: int, end: int) -> Buffer | Batches[Any]:
        """The sound batches between two bytes, for `coordwire.records.arrow.iter_batches`."""
        return view[start:end]


class _Kafka07(LogFormat):
    """Messages of Kafka 0.7. base_offset: of the first one, which is the file's name."""

    unit = "message"
    is_kafka_07 = True

    def __init__(self, base_offset: int) -> None:
        self._base_offset = base_offset

    def batches(self, view: memoryview, *, on_error: OnError, check_records: bool = True) -> Batches[Any]:
        return kafka_07.batches(
            view, position=self._base_offset, on_error=on_error, check_records=check_records
        )

    def stretch(self, view: memoryview, start: int, end: int) -> Buffer | Batches[Any]:
        return kafka_07.batches(view[start:end], position=self._base_offset + start, on_error="skip")


RECORD_BATCHES = LogFormat()


def log_format(path: str) -> LogFormat:
    """The format of the log that this file is, by its name."""
    offset = kafka_07_offset(path.rpartition("/")[2])
    return RECORD_BATCHES if offset is None else _Kafka07(offset)
