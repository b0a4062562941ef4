"""Records of the coordinators' logs as columns, of their keys and values.

Strategy: keys come again and again, and each is read once, for the columns that it has; of a value the native
engine writes the text, and only a commit's becomes a message. Rows that need more are made one by one by
`coordinator_record`, as `coordwire offsets` does, and are put where they belong. Rules: no row raises; no
secret is in a value that has a key.
"""

from __future__ import annotations

__all__ = ["LOG_RECORD", "MessageTexts", "log_record_structs"]

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from coordwire.capture.jsonlines import text
from coordwire.codec import Message
from coordwire.codec.program import OTHERWISE, layout_transcriber
from coordwire.codec.walk import layout_of
from coordwire.logs import TOPICS, Log, find_record
from coordwire.records import Record
from coordwire.tables.arrays import ColumnValues, argument_values, byte_array, in_order, repeated, structs
from coordwire.tables.columns import OFFSETS, arrow_type
from coordwire.tables.readers.coordinator_logs import record_values, time_of
from coordwire.timeline.from_log.coordinator_log import CoordinatorRecord, coordinator_record

if TYPE_CHECKING:
    import pyarrow

OFFSETS_TOPIC = TOPICS["consumer_offsets"]

MOST_KEYS, KEY_SIZE = 50_000, 1_000
"""So many keys are kept with what they say, from one array to the next, and so many bytes of each."""

TOGETHER = 256
"""So many rows are made at once: their tuples are gone before the garbage collector looks at them."""

VERSION_SIZE = 2
"""Bytes of a value's version, which come first."""

_LOGS: Mapping[str | None, Log] = {topic: log for log, topic in TOPICS.items()}

_OF_THE_PLACE = frozenset(
    ("log", "log_partition", "log_offset", "time", "producer_id", "marker", "raw_key", "raw_value",
     "input_file", "broker_id", "cluster_id", "file_state")
)  # fmt: skip
"""Columns of the offsets table that say where a record is, or hold bytes that are at hand."""

LOG_RECORD = {column.name: column.type for column in OFFSETS if column.name not in _OF_THE_PLACE}
_OF_KEY = ("type", "kind", "group_id", "topic", "partition", "key")
_OF_VALUE = (
    "version", "committed_offset", "leader_epoch", "metadata", "commit_time", "tombstone", "value",
)  # fmt: skip
_COMMIT = ("offset", "leader_epoch", "metadata", "commit_timestamp")
"""The fields of a commit's message, but those of Kafka before 0.9."""

_TOMBSTONE = (None, None, None, None, None, True, None)


class MessageTexts:
    """JSON forms of messages, straight from their bytes."""

    def __init__(self) -> None:
        self._known: dict[
            tuple[type[Message], int], Callable[[bytes, None], tuple[str | None, int] | None]
        ] = {}

    def of(self, cls: type[Message], version: int, body: bytes) -> str | None:
        """The text of `to_json`; None where that must serve."""
        transcribe = self._known.get((cls, version))
        if transcribe is None:
            transcribe = self._known[cls, version] = _transcriber(cls, version)
        written = transcribe(body, None)
        return None if written is None or written[1] & OTHERWISE else written[0]


def _transcriber(cls: type[Message], version: int) -> Callable[[bytes, None], tuple[str | None, int] | None]:
    writer = layout_transcriber(layout_of(cls, version)) if version in cls.versions else None
    return _no_text if writer is None else writer.transcribe


def _no_text(body: bytes, header: None) -> None:
    """No text."""


class _ValueReader:
    """The values of one class, for the columns that they have. is_commit: they have more than a text."""

    def __init__(self, cls: type[Message], *, is_commit: bool) -> None:
        self._cls, self._decode = cls, cls.decode
        self._is_commit = is_commit
        self._versions: dict[bytes, tuple[int, Callable[[bytes, None], Any], Callable[[Any], Any]]] = {}

    def row(self, value: bytes | None) -> tuple[Any, ...] | None:
        """What a value says; None where the slow path must serve."""
        if value is None:
            return _TOMBSTONE
        start = value[:VERSION_SIZE]
        known = self._versions.get(start)
        if known is None:
            known = self._add_version(start)
            if known is None:
                return None
        version, transcribe, commit_of = known
        body = value[VERSION_SIZE:]
        written = transcribe(body, None)
        if written is None or written[1] & OTHERWISE:
            return None
        if not self._is_commit:
            return version, None, None, None, None, False, written[0]
        offset, leader_epoch, metadata, time_ms = commit_of(self._decode(body, version=version))
        return version, offset, leader_epoch, metadata, time_of(time_ms), False, written[0]

    def _add_version(
        self, start: bytes
    ) -> tuple[int, Callable[[bytes, None], Any], Callable[[Any], Any]] | None:
        """Keep how values of a version are read; None for one that there is not, of which none is kept."""
        version = int.from_bytes(start, "big", signed=True)
        if len(start) < VERSION_SIZE or version not in self._cls.versions:
            return None
        is_readable = not self._is_commit or all(hasattr(self._cls, name) for name in _COMMIT)
        transcribe = _transcriber(self._cls, version) if is_readable else _no_text
        known = self._versions[start] = version, transcribe, attrgetter(*_COMMIT)
        return known


@cache
def _value_reader(log: Log, record_type: int, *, is_commit: bool) -> _ValueReader:
    return _ValueReader(find_record(log, record_type).value, is_commit=is_commit)


class _Key(NamedTuple):
    """What a key says, and what reads its values."""

    columns: tuple[Any, ...]
    values: _ValueReader


def _read_key(log: Log, key: bytes) -> _Key | None:
    """What a key says; None if it can't be read."""
    record = _record(log, key, None)
    if not isinstance(record.key, Message) or record.type is None or record.kind is None:
        return None
    row = record_values(record, show_secrets=False)
    is_commit = log == "consumer_offsets" and record.partition is not None
    values = _value_reader(log, record.type, is_commit=is_commit)
    return _Key(tuple(row[name] for name in _OF_KEY), values)


_known_key = lru_cache(MOST_KEYS)(_read_key)


def _record(log: Log, key: bytes | None, value: bytes | None) -> CoordinatorRecord:
    place = {"file": "", "log": log, "log_partition": None}
    return coordinator_record(Record(key=key, value=value), place, log)


def _slow_row(log: Log, key: bytes | None, value: bytes | None) -> ColumnValues:
    """Any record's row; the twin of the fast path."""
    if key is None and value is None:
        return None
    values = record_values(_record(log, key, value), show_secrets=False)
    return [values.get(name) for name in LOG_RECORD]


def _of_log(log: Log, keys: pyarrow.Array, values: pyarrow.Array) -> pyarrow.StructArray:
    """The records of one log."""
    encoded = keys.dictionary_encode()
    known = [
        (_known_key if len(key) <= KEY_SIZE else _read_key)(log, key)
        for key in encoded.dictionary.to_pylist()
    ]
    key_indices, value_list = encoded.indices.to_pylist(), values.to_pylist()
    columns: list[list[Any]] = [[] for _ in _OF_VALUE]
    slow: list[int] = []
    for start in range(0, len(value_list), TOGETHER):
        rows = [
            None if index is None or (key := known[index]) is None else key.values.row(value)
            for index, value in zip(
                key_indices[start : start + TOGETHER], value_list[start : start + TOGETHER], strict=True
            )
        ]
        slow += [place for place, row in enumerate(rows, start) if row is None]
        for column, part in zip(columns, zip(*filter(None, rows), strict=True), strict=False):
            column += part
    if not slow:
        return _fast_structs(known, encoded.indices, columns)
    fast = sorted({*range(len(value_list))}.difference(slow))
    fast_rows = _fast_structs(known, encoded.indices.take(_places(fast)), columns)
    slow_rows = (_slow_row(log, keys[place].as_py(), value_list[place]) for place in slow)
    return in_order([(fast, fast_rows), (slow, structs(slow_rows, LOG_RECORD))])


def _places(places: Iterable[int]) -> pyarrow.Array:
    import pyarrow as pa

    return pa.array(places, pa.int64())


def _fast_structs(
    known: Sequence[_Key | None], indices: pyarrow.Array, of_values: Sequence[Sequence[Any]]
) -> pyarrow.StructArray:
    """known: keys; indices: those of the rows; of_values: the columns that their values have."""
    import pyarrow as pa

    none = (None,) * len(_OF_KEY)
    of_keys = zip(*(none if key is None else key.columns for key in known), strict=True)
    kinds = {name: arrow_type(kind) for name, kind in LOG_RECORD.items()}
    columns = {name: pa.array(column, kinds[name]) for name, column in zip(_OF_VALUE, of_values, strict=True)}
    for name, column in zip(_OF_KEY, of_keys if known else repeat((), len(_OF_KEY)), strict=True):
        columns[name] = pa.array(column, kinds[name]).take(indices)
    arrays = [columns.get(name, pa.nulls(len(indices), kind)) for name, kind in kinds.items()]
    return pa.StructArray.from_arrays(arrays, fields=[pa.field(*pair) for pair in kinds.items()])


def log_record_structs(key: Any, value: Any, log: Any = OFFSETS_TOPIC) -> pyarrow.StructArray:
    """Records of coordinators' logs as structs. log: the topic of each."""
    import pyarrow as pa

    keys, values, topics = repeated([
        byte_array(key, "key"), byte_array(value, "value"),
        pa.array(argument_values(log, "log", "string"), pa.string()),
    ])  # fmt: skip
    encoded = topics.dictionary_encode()
    names: list[str | None] = encoded.dictionary.to_pylist()
    if len(names) == 1 and not topics.null_count:
        return _of_topic(names[0], keys, values)
    places: dict[int | None, list[int]] = {}
    for place, index in enumerate(encoded.indices.to_pylist()):
        places.setdefault(index, []).append(place)
    return in_order([
        (own, _of_topic(
            None if index is None else names[index], keys.take(_places(own)), values.take(_places(own))
        ))
        for index, own in places.items()
    ] or [((), structs(iter(()), LOG_RECORD))])  # fmt: skip


def _of_topic(topic: str | None, keys: pyarrow.Array, values: pyarrow.Array) -> pyarrow.StructArray:
    if topic in _LOGS:
        return _of_log(_LOGS[topic], keys, values)
    return structs(_of_no_log(topic, len(keys)), LOG_RECORD)


def _of_no_log(topic: str | None, count: int) -> Iterator[ColumnValues]:
    """Rows of a topic that is not a coordinator's log."""
    reason = None if topic is None else text(f"{topic} is not a coordinator's log")
    row = None if reason is None else [*(None,) * (len(LOG_RECORD) - 1), reason]
    return repeat(row, count)
