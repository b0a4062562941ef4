"""How a log is read, by the name of its file: as record batches, or as the messages of Kafka 0.7.

Rules: segments and tables read a log through its format, and know nothing else of releases. In Kafka 0.7
(`NAME.kafka`) a message's offset is the byte where it begins in the partition's log: such a log is read from
its beginning, nothing is kept beside it, and what follows a bad message can't be kept under other offsets.
"""

from __future__ import annotations

__all__ = ["RECORD_BATCHES", "LogFormat", "log_format"]

from typing import Any

from coordwire.records import Batches, batches, kafka_07
from coordwire.records.batch_reader import Buffer, OnError
from coordwire.segments.names import kafka_07_offset


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
