"""Bytes that change while they are read, as a bytearray's or another process's file may: whatever is there
then, what comes is a value or our own error, and never another error.

Each step that looks at a header is followed by another one here that finds other bytes there.
"""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from coordwire.errors import CorruptBatch, DecodeError
from coordwire.records import Record, RecordBatch, batches, encode_batch, kafka_07, readahead
from coordwire.records.arrow import BATCH_COLUMNS, fallback, iter_batches, native
from coordwire.records.batch_reader import Batches
from coordwire.records.legacy import LegacyBatch
from coordwire.records.resync import Search

RECORDS = [Record(-1, 1_000 + n, b"k%d" % n, b"v" * (n % 9)) for n in range(30)]
OLD = [Record(-1, -1, None, b"v")]
KINDS = {
    "plain": encode_batch(RECORDS),
    "gzip": encode_batch(RECORDS, codec="gzip"),
    "magic 0": encode_batch(OLD, magic=0),
    "magic 1": encode_batch(OLD, magic=1),
    "magic 1 in gzip": encode_batch(OLD, magic=1, codec="gzip"),
    "smallest": encode_batch([Record(-1, -1, None, None)], magic=0),
}
HEADS = (
    bytes(61),
    b"\xff" * 61,
    b"\x7f" * 61,
    *(bytes(16) + bytes([magic]) + bytes(44) for magic in range(4)),
)


def spoil(data: bytearray, head: bytes, start: int = 0) -> None:
    """Write this over the header, the length kept as it is if the head has none."""
    part = head[: len(data) - start]
    kept = data[start + 8 : start + 12]
    data[start : start + len(part)] = part
    if not any(head[8:12]):
        data[start + 8 : start + 12] = kept


def everything(reader: Iterator[Any]) -> None:
    """Ask for all that there is of the batches; only our own error may end it."""
    try:
        for batch in reader:
            for name in (*BATCH_COLUMNS, "attributes", "base_timestamp"):
                if hasattr(RecordBatch, name):
                    with suppress(DecodeError):
                        getattr(batch, name)
            with suppress(DecodeError):
                batch.verify()
                list(batch)
    except DecodeError:
        pass


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("kind", KINDS)
def test_between_the_length_and_the_header(kind: str, on_error: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    size = Search.size
    for head in HEADS:
        data = bytearray(KINDS[kind] * 2)

        def changed(self: Search, pos: int, data: bytearray = data, head: bytes = head) -> int:
            result = size(self, pos)
            spoil(data, head, pos)
            return result

        monkeypatch.setattr(Search, "size", changed)
        everything(batches(data, on_error=on_error))
        everything(iter(Batches(data, on_error)))


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("magic", [0, 1])
def test_between_the_length_and_the_header_of_kafka_07(
    magic: int, on_error: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = kafka_07._Search.size
    for value in (0, 1, 2, 255):
        for payload in (b"", b"text"):
            data = bytearray(kafka_07.encode_messages([payload, payload], magic=magic))

            def changed(self: Any, pos: int, data: bytearray = data, value: int = value) -> int:
                result = size(self, pos)
                if result:
                    data[pos + 4] = value
                return result

            monkeypatch.setattr(kafka_07._Search, "size", changed)
            everything(kafka_07.batches(data, on_error=on_error))


def test_a_header_that_is_too_short_or_of_another_magic() -> None:
    for size in range(61):
        with pytest.raises(CorruptBatch, match="at least 61 bytes"):
            RecordBatch(memoryview(bytes(size)), 7)
    for size in range(26):
        with pytest.raises(CorruptBatch, match="at least 26 bytes"):
            LegacyBatch(memoryview(bytes(size)), 7)
    for magic in (2, 127, 128, 255):
        with pytest.raises(CorruptBatch, match="expected a message's magic of 0 or 1") as error_info:
            LegacyBatch(memoryview(bytes(16) + bytes([magic]) + bytes(20)), 7)
        assert error_info.value.position == 7 + 16
    for short in (bytes(4), bytes(8), b"\0\0\0\0\1" + bytes(4)):
        with pytest.raises(CorruptBatch, match="at least"):
            kafka_07.Kafka07Batch(memoryview(short))
    with pytest.raises(CorruptBatch, match="0 or 1, got 2"):
        kafka_07.Kafka07Batch(memoryview(b"\0\0\0\0\2" + bytes(40)))


def tables(data: bytearray, **options: Any) -> list[pa.RecordBatch]:
    """The tables up to an error of ours."""
    results: list[pa.RecordBatch] = []
    try:
        for table in iter_batches(data, **options):
            table.validate(full=True)
            results.append(table)
    except DecodeError:
        pass
    return results


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_table_says_of_its_batches_what_was_read(
    half: str, codec: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch's columns are made when the table is full: of the header as it was."""
    parts = [encode_batch(RECORDS, base_offset=100 * n, codec=codec, producer_id=n) for n in range(4)]
    columns = ["offset", *BATCH_COLUMNS]
    expected = pa.Table.from_batches(tables(bytearray(b"".join(parts)), columns=columns))
    assert expected.num_rows == 120
    for head in HEADS:
        data = bytearray(b"".join(parts))

        def wreck(data: bytearray = data, head: bytes = head) -> None:
            for at in range(4):
                spoil(data, head, sum(map(len, parts[:at])))

        owner: Any = native.Filler if half == "c" else fallback.PythonColumns
        name = "table" if half == "c" else "_table"
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, _before(getattr(owner, name), wreck))
            assert pa.Table.from_batches(tables(data, columns=columns)).equals(expected)


def _before(call: Callable[..., Any], first: Callable[[], None]) -> Callable[..., Any]:
    def both(*args: Any) -> Any:
        first()
        return call(*args)

    return both


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_between_any_two_steps_of_the_tables(
    half: str, kind: str, on_error: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a batch is decompressed, handed to the kernel, asked of the reader, or gathered."""
    places: list[tuple[Any, str]] = [
        (Search, "size"),
        (fallback.PythonColumns, "_add"),
        (RecordBatch, "payload"),
    ]
    if half == "c":
        places += [
            (native.Filler, "run"), (native.Filler, "last_table"),
            (readahead, "batch_size"), (readahead, "batch_at"),
        ]  # fmt: skip
    for owner, name in places:
        for head in HEADS:
            for start in (0, len(KINDS[kind])):
                data = bytearray(KINDS[kind] * 3)
                with monkeypatch.context() as patch:
                    patch.setattr(
                        owner, name, _before(getattr(owner, name), partial(spoil, data, head, start))
                    )
                    tables(data, on_error=on_error, columns=["base_offset", "key", "codec"])


@pytest.mark.parametrize("kind", KINDS)
def test_the_codec_changes_after_decompressing(half: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A number that no codec has is never in a table."""
    if half == "python":
        pytest.skip("the native half's alone")
    run = native.Filler.run
    for attributes in range(8):
        data = bytearray(KINDS[kind])

        def changed(
            self: Any, position: int, body: Any, data: bytearray = data, attributes: int = attributes
        ) -> Any:
            data[22] = attributes
            return run(self, position, body)

        with monkeypatch.context() as patch:
            patch.setattr(native.Filler, "run", changed)
            tables(data, columns=["codec"])


def test_another_thread_changes_the_bytes() -> None:
    sources = [
        bytearray(encode_batch([Record(timestamp=n, key=b"k" * (n % 20), value=b"v") for n in range(3_000)])),
        bytearray(b"".join(encode_batch(RECORDS) for _ in range(40))),
        bytearray(b"".join(KINDS.values()) * 5),
    ]
    stop = threading.Event()
    foreign: list[BaseException] = []

    def change() -> None:
        choice = random.Random(1)
        while not stop.is_set():
            data = choice.choice(sources)
            at = choice.choice((choice.randrange(len(data)), choice.randrange(61)))
            kept = data[at]
            data[at] = choice.choice((0, 1, 0x7F, 0x80, 0xFF))
            data[at] = kept

    def read(seed: int) -> None:
        choice = random.Random(seed)
        try:
            for _ in range(40):
                data = choice.choice(sources)
                on_error: Any = choice.choice(("raise", "skip"))
                most = choice.choice((1_000, 1 << 20))
                columns = choice.choice((None, ["batch_size", "codec", "key"], ["headers"]))
                try:
                    for table in iter_batches(data, on_error=on_error, max_bytes=most, columns=columns):
                        table.validate()
                except DecodeError:
                    pass
                everything(batches(data, on_error="skip"))
        except BaseException as error:
            foreign.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    changing = threading.Thread(target=change)
    readers = [threading.Thread(target=read, args=(seed,)) for seed in (2, 3)]
    try:
        for thread in (changing, *readers):
            thread.start()
        for thread in readers:
            thread.join()
    finally:
        stop.set()
        changing.join()
        sys.setswitchinterval(interval)
    assert not foreign
