"""Audits of a real broker's logs: clean ones have no findings, planted faults are found and nothing else; in
DuckDB, and in Spark the same."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import coordwire.spark

pytest.importorskip("duckdb", reason="duckdb isn't installed")
pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

import duckdb
import pyarrow as pa

from coordwire.errors import CoordwireError
from coordwire.records import Record, RecordBatch, batches, encode_batch
from coordwire.tables import audits, engine_sql, pipeline
from coordwire.tables.columns import TABLES, arrow_schema
from coordwire.tables.options import Options
from coordwire.tables.readers.sources import SOURCES, plan, read
from tests.broker_sample import broker_sample

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Frame = Any  # a DataFrame of Spark, or a relation of DuckDB


class Row(dict[str, Any]):
    """A row, whose columns are attributes too."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


class InDuckDB:
    """Frames of tables that Arrow or the pipeline has, and their rows."""

    def __init__(self) -> None:
        self.connection = duckdb.connect()
        self.connection.execute("SET TimeZone = 'UTC'")

    def frame(self, table: pa.Table) -> Frame:
        return self.connection.from_arrow(table)

    def stored(self, out: str, name: str) -> Frame:
        return self.connection.read_parquet(f"{out}/{name}/**/*.parquet")

    def rows(self, frame: Frame) -> list[Row]:
        return [Row(row) for row in frame.to_arrow_table().to_pylist()]


class InSpark:
    """The same in Spark. Arrow makes the frames: no Python worker starts."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def frame(self, table: pa.Table) -> Frame:
        return self.spark.createDataFrame(table).cache()

    def stored(self, out: str, name: str) -> Frame:
        return coordwire.spark.table(self.spark, out, name).cache()

    def rows(self, frame: Frame) -> list[Row]:
        return [Row(row.asDict()) for row in frame.collect()]


Engine = InDuckDB | InSpark


@pytest.fixture(scope="module", params=["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def engine(request: pytest.FixtureRequest) -> Engine:
    if request.param == "duckdb":
        return InDuckDB()
    request.getfixturevalue("interpreted")
    return InSpark(request.getfixturevalue("spark"))


TOPICS = ("codec-gzip-0", "codec-lz4-0", "codec-none-0", "codec-zstd-0", "compacted-0", "several.segments-0",
          "several.segments-1", "transactions-0", "__consumer_offsets-0")  # fmt: skip
LAST = (1 << 31) - 1


def pieces(path: Path) -> list[bytes]:
    """A segment's batches, as bytes."""
    data = path.read_bytes()
    return [data[batch.position : batch.position + batch.size] for batch in batches(data)]


def change(path: Path, edit: Callable[[list[bytes]], Iterable[bytes]]) -> None:
    path.write_bytes(b"".join(edit(pieces(path))))


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def log(number: int) -> str:
    return f"{number:020}.log"


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Broker 1 as it was; broker 2 with faults."""
    folder = tmp_path_factory.mktemp("brokers")
    for broker in ("1", "2"):
        for topic in TOPICS:
            shutil.copytree(
                broker_sample() / "data" / topic, folder / broker / topic,
                ignore=lambda _, names: [name for name in names if not name.endswith(".log")],
            )  # fmt: skip
    two = folder / "2"
    change(two / "codec-none-0" / log(0), lambda all: all[:2] + all[3:])  # offsets 3 to 52 are lost
    change(two / "codec-zstd-0" / log(0), lambda all: [*all[:2], flipped(all[2], 70), *all[3:]])
    change(two / "codec-gzip-0" / log(0), lambda all: [*all[:3], all[2], *all[3:]])  # 3 to 52 twice
    change(two / "codec-lz4-0" / log(0), lambda all: all[:-1])  # the tail is cut off
    # The same batches in one segment, of which one has another leader epoch.
    logs = sorted((two / "several.segments-1").glob("*.log"))
    joined = [piece for path in logs for piece in pieces(path)]
    joined[4] = joined[4][:12] + (7).to_bytes(4, "big") + joined[4][16:]
    for path in logs[1:]:
        path.unlink()
    logs[0].write_bytes(b"".join(joined))
    # One batch in two parts, as another leader would have it; a file that is about to be deleted.
    path = two / "several.segments-0" / log(187)
    [batch] = batches(path.read_bytes())
    records = list(batch)
    path.write_bytes(rewritten(batch, records[:4]) + rewritten(batch, records[4:]))
    shutil.copy(path, path.with_name(path.name + ".deleted"))
    return folder


def rewritten(batch: RecordBatch, records: list[Record]) -> bytes:
    return encode_batch(
        records, base_offset=records[0].offset, partition_leader_epoch=batch.partition_leader_epoch
    )


@pytest.fixture(scope="module")
def stored(brokers: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The pipeline's tables of both brokers."""
    out = str(tmp_path_factory.mktemp("tables"))
    pipeline.run(pipeline.LocalEngine(1), [str(brokers)], out, tables=["batches", "quarantine"], report=False)
    return out


@pytest.fixture(scope="module")
def tables(engine: Engine, stored: str) -> dict[str, Frame]:
    return {name: engine.stored(stored, name) for name in ("batches", "quarantine")}


def of(table: Frame, brokers: Path, number: int) -> Frame:
    """The rows of one broker."""
    return table.filter(f"input_file LIKE '{brokers}/{number}/%'")


def columns(rows: Iterable[Row], names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names.split()) for row in rows]


def made_of(names: str, made_rows: list[tuple[Any, ...]]) -> pa.Table:
    """Rows of these columns of the tables records and batches."""
    known = {column.name: column for column in (*TABLES["batches"], *TABLES["records"])}
    schema = arrow_schema([known[name] for name in names.split()])
    columns = zip(*made_rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def test_gaps(engine: Engine, tables: dict[str, Frame], brokers: Path) -> None:
    actual = audits.offset_gaps(tables["batches"], quarantine=tables["quarantine"])
    names = "log topic kind first_offset last_offset why input_file position before_end"
    tuples = columns(engine.rows(actual), names)
    current = [(Path(row[0]).parent.name, *row[1:5]) for row in tuples if row[2] != "compacted"]
    assert current == [
        ("2", "codec-gzip", "repeated", 3, 52),
        ("2", "codec-none", "missing", 3, 52),
        ("2", "codec-zstd", "unreadable", 3, 52),
    ]
    compacted = [row for row in tuples if row[2] == "compacted"]
    assert {row[1] for row in compacted} == {"compacted", "__consumer_offsets"}
    item = [(row[3], row[4]) for row in compacted if f"{brokers}/1/compacted-0" == row[0]]
    assert item == plain_gaps(brokers / "1" / "compacted-0")
    missing = next(row for row in tuples if row[2] == "missing")
    assert missing[5].startswith("neither unreadable bytes nor a trace of compaction: lost")
    assert missing[6] == f"{brokers}/2/codec-none-0/{log(0)}"
    assert missing[7] == missing[8] == sum(map(len, pieces(brokers / "1/codec-none-0" / log(0))[:2]))
    # A topic without a trace is to be named; without the quarantine nothing explains the unreadable one.
    gaps = audits.offset_gaps(tables["batches"], compacted=["codec-n*"])
    named = columns(engine.rows(gaps), "topic kind")
    assert ("codec-none", "compacted") in named
    assert ("codec-zstd", "missing") in named


GLOBS = (
    "orders[-_.]*", "a[a-]", "[!-]x", "[]a-c]b", "[^a]b", "*a*b", "a?", "x[{y}]", "[z-a]", "[a", "a{b}",
    "it's", "a`b", "['];", "a\"", "\\d", "[\\d]a", "a[b\\]c]", "\0", "*}", "ab'); DROP TABLE t; --",
)  # fmt: skip
"""Names or globs, whatever they are made of."""


@pytest.mark.parametrize("glob", GLOBS)
def test_globs_of_compacted_topics(glob: str) -> None:
    """Beside `fnmatch`, for names that topics may have."""
    names = [
        "orders-x",
        "orders_x",
        "orders.",
        "aa",
        "a-",
        "ab",
        "bb",
        "xx",
        "-x",
        "xy",
        "xaxb",
        "a",
        "z",
        "da",
    ]
    pattern = engine_sql.pattern_of([glob])
    query = f"SELECT name FROM (SELECT unnest(?) AS name) WHERE regexp_matches(name, '{pattern}')"
    actual = duckdb.connect().execute(query.format(), [names]).fetchall()
    assert [name for (name,) in actual] == [name for name in names if fnmatchcase(name, glob)]


def test_globs_in_both_engines(engine: Engine) -> None:
    """A batch with a gap before it, in each topic."""
    names = ["orders-x", "ordersx", "a-", "ab", 'it\'s {x} "q" `p`', None]
    made_rows = [
        (name, 0, f"/d/{number}/0.log", offset, offset, offset, 100, 1, -1, -1, -1, -1, False, False, None)
        for number, name in enumerate(names) for offset in (0, 9)
    ]  # fmt: skip
    gaps = audits.offset_gaps(engine.frame(made_of(BATCH, made_rows)), compacted=GLOBS)
    assert columns(engine.rows(gaps), "topic kind") == [
        (None, "missing"), ("a-", "compacted"), ("ab", "compacted"), ("it's {x} \"q\" `p`", "missing"),
        ("orders-x", "compacted"), ("ordersx", "missing"),
    ]  # fmt: skip


def plain_gaps(folder: Path) -> list[tuple[int, int]]:
    end, gaps = None, []
    for path in sorted(folder.glob("*.log")):
        for batch in batches(path.read_bytes()):
            if end is not None and batch.base_offset > end:
                gaps.append((end, batch.base_offset - 1))
            end = batch.last_offset + 1
    return gaps


def test_every_offset_is_accounted_for(engine: Engine, tables: dict[str, Frame], brokers: Path) -> None:
    actual = engine.rows(audits.offset_coverage(tables["batches"], quarantine=tables["quarantine"]))
    assert len(actual) == 2 * len(TOPICS)
    for row in actual:
        offsets = row.records + row.markers + row.compacted + row.unreadable + row.missing - row.repeated
        assert row.end_offset - row.first_offset == offsets
        assert row.is_compacted == (row.topic in ("compacted", "__consumer_offsets"))
        folder = Path(row.log)
        live = [path for path in folder.iterdir() if path.suffix == ".log"]
        read = [
            (batch.is_control, batch.count or 0)
            for path in live
            for batch in batches(path.read_bytes(), on_error="skip")
        ]
        assert row.batches == len(read)
        assert row.markers == sum(count for control, count in read if control)
        assert row.records == sum(count for control, count in read if not control)
    clean = [row for row in actual if Path(row.log).parent.name == "1"]
    assert not any(row.missing or row.unreadable or row.repeated for row in clean)
    assert any(row.markers for row in clean)


def test_records_sent_twice(engine: Engine) -> None:
    names = "topic partition time key value headers is_control log_offset producer_id"
    rerun = [(b"k", b"v", 5, 8), (b"k", b"v", 9, 7), (b"k", b"w", 10, 7), (None, None, 11, 7)]
    made_rows: list[tuple[Any, ...]] = [
        ("t", 0, 1, key, value, [], False, *place) for key, value, *place in (*rerun, (None, None, 12, 7))
    ]
    made_rows += [("t", 0, 1, b"k", b"v", [], False, 5, 8), ("t", 1, 1, b"k", b"v", [], False, 5, 8)]
    made_rows += [("t", 0, 1, b"m", b"m", [], True, offset, 7) for offset in (20, 21)]
    actual = engine.rows(audits.repeated_records(engine.frame(made_of(names, made_rows))))
    assert columns(actual, "topic partition value times offsets producers") == [
        ("t", 0, b"v", 2, [5, 9], [7, 8]), ("t", 0, None, 2, [11, 12], [7]),
    ]  # fmt: skip
    unnamed = engine.frame(made_of(names.removesuffix(" producer_id"), [row[:-1] for row in made_rows]))
    shorter = [{name: value for name, value in row.items() if name != "producers"} for row in actual]
    assert engine.rows(audits.repeated_records(unnamed)) == shorter
    # A release without producers' ids has nulls, which are no ids.
    none = engine.frame(made_of(names, [(*row[:-1], None) for row in made_rows[:2]]))
    assert columns(engine.rows(audits.repeated_records(none)), "offsets producers") == [([5, 9], [])]


def test_replicas(engine: Engine, tables: dict[str, Frame], brokers: Path) -> None:
    item, two = (of(tables["batches"], brokers, number) for number in (1, 2))
    two = two.filter("not (topic = 'codec-gzip' and position > 0 and base_offset = 3)").union(
        two.filter("topic = 'codec-gzip' and base_offset = 3").limit(1)
    )  # a batch that is there twice is for `offset_gaps`
    all_found = engine.rows(audits.compare_replicas(item, two))
    names = "topic partition base_offset kind side fields left_last_offset right_last_offset"
    tuples = columns(all_found, names)
    assert tuples == [
        ("codec-lz4", 0, tuples[0][2], "shorter", "left", None, tuples[0][6], None),
        ("codec-none", 0, 3, "missing", "left", None, 52, None),
        ("codec-zstd", 0, 3, "missing", "left", None, 52, None),
        ("several.segments", 0, 187, "differs", "both", tuples[3][5], 195, 190),
        ("several.segments", 0, 191, "cut differently", "right", None, None, 195),
        (
            "several.segments",
            1,
            tuples[5][2],
            "differs",
            "both",
            ["partition_leader_epoch"],
            tuples[5][6],
            tuples[5][6],
        ),
    ]
    assert {"last_offset", "size", "checksum", "count"} <= set(tuples[3][5])
    epoch = next(row for row in all_found if row.partition == 1)
    bytes_ = audits.batch_bytes(epoch)
    assert (bytes_.first, bytes_.differing) == (15, 1)  # the last byte of the leader epoch
    assert len(bytes_.left) == len(bytes_.right) == epoch.left_size
    lost = next(row for row in all_found if row.topic == "codec-none")
    assert audits.batch_bytes(lost)[1:] == (b"", 0, lost.left_size)
    verdicts = columns(
        engine.rows(audits.replica_divergence(item, two)),
        "topic partition verdict first_offset first_kind left_epoch right_epoch differing",
    )
    assert [row for row in verdicts if row[2] != "equal"] == [
        ("codec-lz4", 0, "right is shorter", None, None, None, None, 0),
        ("codec-none", 0, "diverged", 3, "missing", 0, None, 1),
        ("codec-zstd", 0, "diverged", 3, "missing", 0, None, 1),
        ("several.segments", 0, "diverged", 187, "differs", 2, 2, 2),
        ("several.segments", 1, "diverged", tuples[5][2], "differs", 0, 7, 1),
    ]
    assert len(verdicts) == len(TOPICS)
    none = audits.replica_divergence(item.filter("topic = 'transactions'"), two.filter("false"))
    assert columns(engine.rows(none), "topic verdict") == [("transactions", "no log")]
    later = audits.compare_replicas(item, item.filter("base_offset >= 52"))
    assert {row.kind for row in engine.rows(later) if row.topic == "several.segments"} == {"before"}


def test_leader_epochs(engine: Engine, tables: dict[str, Frame], brokers: Path) -> None:
    actual = audits.leader_epochs(tables["batches"].filter("topic = 'several.segments' and partition = 1"))
    tuples = columns(engine.rows(actual), "log epoch first_offset end_offset falls")
    checkpoint = (broker_sample() / "data/several.segments-1/leader-epoch-checkpoint").read_text()
    entries = [tuple(map(int, line.split())) for line in checkpoint.splitlines()[2:]]
    item = [row for row in tuples if row[0].startswith(f"{brokers}/1/")]
    assert [(epoch, first) for _, epoch, first, *_ in item] == entries
    assert not any(row[4] for row in item)
    assert [row[1] for row in tuples if row[4]] == [0, 2]  # after the planted 7


def test_sequences(engine: Engine, tables: dict[str, Frame], brokers: Path) -> None:
    actual = audits.producer_sequences(tables["batches"])
    tuples = columns(engine.rows(actual), "log topic kind base_offset expected skipped")
    clean = [row for row in tuples if row[0].startswith(f"{brokers}/1/")]
    assert {(row[1], row[2]) for row in clean} == {
        ("compacted", "compacted"), ("transactions", "new epoch"),
    }  # fmt: skip
    planted = [row[1:] for row in tuples if row[0].startswith(f"{brokers}/2/") and row[1].startswith("codec")]
    assert planted == [
        ("codec-gzip", "duplicate", 3, 53, None),
        ("codec-zstd", "gap", 53, 3, 50),
    ]


BATCH = (
    "topic partition input_file position base_offset last_offset size count producer_id producer_epoch "
    "base_sequence last_sequence is_control transactional delete_horizon_ms"
)


def test_sequences_that_wrap_and_go_wrong(engine: Engine) -> None:
    """Each producer a case: epochs, first and last sequences, and the kinds that are found."""
    cases: dict[int, tuple[list[tuple[int, int, int]], list[str | None]]] = {
        1: ([(0, LAST - 4, LAST - 2), (0, LAST - 1, 1), (0, 2, 4)], [None, "wrap", None]),
        2: ([(0, LAST - 1, LAST), (0, 0, 3), (0, 4, 4)], [None, "wrap", None]),
        3: ([(0, LAST - 4, LAST - 2), (0, 3, 4), (0, 5, 5)], [None, "gap", None]),
        4: ([(0, 0, 4), (0, 5, 9), (0, 0, 4), (0, 10, 14)], [None, None, "duplicate", None]),
        5: ([(0, 0, 4), (0, 5, 9), (0, 3, 6), (0, 10, 14)], [None, None, "out of order", None]),
        6: ([(3, 0, 4), (4, 0, 4), (3, 5, 9), (4, 5, 9)], [None, "new epoch", "old epoch", None]),
        7: ([(0, 40, 49), (1, 7, 9), (1, 10, 10)], [None, "gap in new epoch", None]),
        8: ([(0, 0, 4), (0, LAST - 1, LAST), (0, 5, 6)], [None, "out of order", None]),
    }
    made_rows, expected = [], []
    for producer, (sequences, kinds) in cases.items():
        offset = 0
        for (epoch, first, last), kind in zip(sequences, kinds, strict=True):
            count = (last - first) % (LAST + 1) + 1
            made_rows.append(("t", producer, f"/d/t-{producer}/{log(0)}", offset, offset, offset + count - 1,
                         100, count, producer, epoch, first, last, False, False, None))  # fmt: skip
            if kind:
                expected.append((producer, kind, offset))
            offset += count
    actual = engine.rows(audits.producer_sequences(engine.frame(made_of(BATCH, made_rows))))
    assert columns(actual, "producer_id kind base_offset") == expected
    gaps = [row for row in actual if row.kind == "gap"]
    assert columns(gaps, "expected skipped") == [(LAST - 1, 5)]


def test_throughput(engine: Engine, tables: dict[str, Frame], brokers: Path) -> None:
    item = of(tables["batches"], brokers, 1)
    actual = [row for row in engine.rows(audits.producer_throughput(item)) if row.topic == "several.segments"]
    expected: dict[int | None, list[RecordBatch]] = {}
    for path in (brokers / "1").glob("several.segments-*/*.log"):
        for batch in batches(path.read_bytes()):
            expected.setdefault(None if batch.producer_id < 0 else batch.producer_id, []).append(batch)
    assert {row.producer_id: (row.batches, row.records, row.bytes) for row in actual} == {
        producer: (len(all), sum(b.count or 0 for b in all), sum(b.size for b in all))
        for producer, all in expected.items()
    }
    for row in actual:
        assert row.idempotent == (row.producer_id is not None)
        seconds = (row.last_time - row.first_time).total_seconds()
        assert seconds < 1 or row.bytes_per_second == round(row.bytes / seconds, 3)
    all_minutes = engine.rows(audits.producer_throughput(item, every="10 seconds"))
    minutes = [row for row in all_minutes if row.topic == "several.segments"]
    assert sum(row.records for row in minutes) == sum(row.records for row in actual)
    assert all(row.records_per_second == round(row.records / 10, 3) for row in minutes)
    assert all((row.ends - row.begins).total_seconds() == 10 for row in minutes)


TIMES = "topic partition input_file position size count producer_id is_control transactional time"


def test_throughput_by_intervals_of_utc(engine: Engine) -> None:
    """Also of days, one of which has 23 hours where the session is."""
    day = 86_400_000_000
    start = 19_812 * day  # 2024-03-30
    made_rows = [
        ("t", 0, f"/d/t-0/{log(0)}", 0, 100, 1, -1, False, False, start + hours * day // 24)
        for hours in (23, 24, 47, 48)
    ]
    batches = engine.frame(made_of(TIMES, made_rows))
    set_zone(engine, "Europe/Berlin")
    try:
        days = engine.rows(audits.producer_throughput(batches, every="1 day"))
        hours = engine.rows(audits.producer_throughput(batches, every="12 hours"))
    finally:
        set_zone(engine, "UTC")
    assert columns(days, "batches bytes_per_second") == [(n, round(n * 100 / 86_400, 3)) for n in (1, 2, 1)]
    assert {(row.ends.timestamp() - row.begins.timestamp()) for row in days} == {86_400}
    assert [row.batches for row in hours] == [1, 1, 1, 1]


def set_zone(engine: Engine, zone: str) -> None:
    if isinstance(engine, InDuckDB):
        engine.connection.execute(f"SET TimeZone = '{zone}'")
    else:
        engine.spark.conf.set("spark.sql.session.timeZone", zone)


@pytest.mark.parametrize("every", ["", "1 minute'; DROP TABLE t; --", "1 minute {rows}", "1 minute`"])
def test_what_is_no_interval(every: str) -> None:
    batches = InDuckDB().frame(made_of(TIMES, [("t", 0, "/d/t-0/0.log", 0, 100, 1, -1, False, False, 0)]))
    with pytest.raises(CoordwireError, match="expected an interval such as"):
        audits.producer_throughput(batches, every=every)


SCHEMA = "topic partition log_offset time key value is_control input_file producer_id transactional"


def read_records(folders: list[str], names: list[str]) -> pa.Table:
    """What the data source reads, without Python workers."""
    source, options = SOURCES["kafka-segment"], Options(paths=tuple(folders))
    return pa.Table.from_batches(
        batch for task in plan(source, options) for batch in read(source, task, options, names)
    )


def test_the_state_of_topics(engine: Engine, brokers: Path) -> None:
    """Beside a plain loop that knows transactions by their markers."""
    folders = [str(brokers / "1" / name) for name in ("compacted-0", "transactions-0")]
    records = engine.frame(read_records(folders, SCHEMA.split()))
    calls = {(row.topic, row.log_offset) for row in engine.rows(audits.committed(records))}
    # PySpark before 4.1 gives bytearrays.
    state = {(row.topic, bytes(row.key)): row for row in engine.rows(audits.latest_by_key(records))}
    expected: set[tuple[str, int]] = set()
    latest: dict[tuple[str, bytes], tuple[int, bytes | None]] = {}
    aborted = 0
    for folder in map(Path, folders):
        topic = folder.name.rpartition("-")[0]
        open_: dict[int, list[Record]] = {}
        remaining: list[Record] = []
        for path in sorted(folder.glob("*.log")):
            for batch in batches(path.read_bytes()):
                for record in batch:
                    if batch.is_control:
                        ended = open_.pop(batch.producer_id, [])
                        committed = (record.key or b"")[2:4] == b"\x00\x01"
                        remaining += ended if committed else []
                        aborted += 0 if committed else len(ended)
                    elif batch.transactional:
                        open_.setdefault(batch.producer_id, []).append(record)
                    else:
                        remaining.append(record)
        expected |= {(topic, record.offset) for record in remaining}
        for record in sorted(remaining, key=lambda record: record.offset):
            if record.key is not None:
                latest[topic, record.key] = (record.offset, record.value)
    assert aborted > 0
    assert calls == expected
    alive = {key: actual for key, actual in latest.items() if actual[1] is not None}
    assert {key: (row.log_offset, row.value) for key, row in state.items()} == alive
    assert len(alive) < len(latest)
    removed_too = engine.rows(audits.latest_by_key(records, tombstones=True))
    with_removed = {(row.topic, bytes(row.key)) for row in removed_too}
    assert with_removed == set(latest)
    with pytest.raises(CoordwireError, match="the records have no column transactional: ask for it"):
        audits.committed(engine.frame(read_records(folders, SCHEMA.split()[:-1])))


def test_a_transaction_without_an_end_is_not_committed(engine: Engine) -> None:
    marker = {"commit": b"\0\0\0\1", "abort": b"\0\0\0\0"}
    story = [
        (1, "a"), (2, "b"), (None, "c"), (1, "commit"), (2, "abort"), (1, "d"), (None, "a"), (2, "e"),
        (2, "commit"), (1, None),
    ]  # fmt: skip
    made_rows = [
        ("t", 0, offset, None, marker.get(action or "") or b"k-" + (action or "x").encode(), b"v",
         action in marker, "/d/t-0/0.log", -1 if producer is None else producer, producer is not None)
        for offset, (producer, action) in enumerate(story)
    ]  # fmt: skip
    records = engine.frame(made_of(SCHEMA, made_rows))
    assert sorted(row.log_offset for row in engine.rows(audits.committed(records))) == [0, 2, 6, 7]
    latest = columns(engine.rows(audits.latest_by_key(records)), "key log_offset")
    assert latest == [(b"k-c", 2), (b"k-a", 6), (b"k-e", 7)]


def test_columns_may_be_called_anything(engine: Engine) -> None:
    row = ("t", 0, 5, 1, b"k", b"v", False, "/d/t-0/0.log", -1, False)
    table = made_of(SCHEMA, [row])
    names = ["a`b", 'a"b', "{rows}", "it's", "``", "a b"]
    for name in names:
        table = table.append_column(name, pa.array([7]))
    for audit in (audits.committed, audits.latest_by_key):
        [actual] = engine.rows(audit(engine.frame(table)))
        assert list(actual) == [*SCHEMA.split(), *names]
        assert [actual[name] for name in names] == [7] * len(names)


def test_the_copy_that_counts_is_the_same_in_both(engine: Engine) -> None:
    """Also where a broker's number is unknown."""
    names = "topic partition base_offset input_file broker_id file_state partition_leader_epoch cluster_id"
    copies = [
        ("/1", "1", "live", 4), ("/2", None, "live", 4), ("/0", "0", None, None), ("/3", None, "swap", 5),
    ]  # fmt: skip
    made_rows: list[tuple[Any, ...]] = [("t", 0, 7, *copy, None) for copy in copies[:3]]
    made_rows += [("t", 1, 7, *copy, None) for copy in copies]
    rows = engine.rows(audits.once(engine.frame(made_of(names, made_rows))))
    assert sorted(columns(rows, "partition input_file")) == [(0, "/2"), (1, "/3")]


def test_each_batch_once(engine: Engine, tables: dict[str, Frame]) -> None:
    """Both are of one cluster: of a batch that both have, the copy of the later leader epoch counts."""
    rows = engine.rows(tables["batches"])
    clusters = {(row.cluster_id, row.topic, row.partition, row.base_offset) for row in rows}
    assert len(engine.rows(audits.once(tables["batches"]))) == len(clusters) < len(rows)


@pytest.mark.spark
def test_both_engines_find_the_same(
    spark: SparkSession, interpreted: None, stored: str, brokers: Path
) -> None:
    def found(engine: Engine) -> dict[str, list[Row]]:
        batches, quarantine = (engine.stored(stored, name) for name in ("batches", "quarantine"))
        one, two = (of(batches, brokers, number) for number in (1, 2))
        results = {
            "gaps": audits.offset_gaps(batches, quarantine=quarantine, compacted=["codec-[nx]*"]),
            "coverage": audits.offset_coverage(batches, quarantine=quarantine),
            "sequences": audits.producer_sequences(batches),
            "throughput": audits.producer_throughput(batches),
            "epochs": audits.leader_epochs(batches),
            "replicas": audits.compare_replicas(one, two),
            "divergence": audits.replica_divergence(one, two),
        }
        return {name: engine.rows(frame) for name, frame in results.items()}

    in_spark, in_duckdb = found(InSpark(spark)), found(InDuckDB())
    for row in (*in_spark["throughput"], *in_duckdb["throughput"]):  # Spark's times have no zone
        row |= {name: row[name].replace(tzinfo=None) for name in ("first_time", "last_time")}
    for name, rows in in_spark.items():
        assert rows == in_duckdb[name], name
        assert rows, name
