"""Functions on columns: Kafka's own words for what Kafka wrote, the command's rows, no error for any bytes.

DuckDB and Polars give the same."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

import pyarrow as pa

from coordwire.capture import Capture, FrameEntry
from coordwire.cli.__main__ import main
from coordwire.embedded import open_field
from coordwire.logs import TOPICS
from coordwire.messages import FetchResponse
from coordwire.messages.fetch import FetchableTopicResponse, PartitionData
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.record_types import RECORD_TYPES
from coordwire.records import Record, batches, encode_batch
from coordwire.tables import functions
from coordwire.tables import log_records as log_columns
from coordwire.tables.arrays import BYTES_TOGETHER, TOGETHER, structs, together
from coordwire.tables.columns import OFFSETS, arrow_type
from coordwire.tables.readers.coordinator_logs import record_values
from coordwire.timeline.from_log.coordinator_log import coordinator_record
from tests.broker_sample import broker_sample
from tests.tables.column_samples import DATA, log_records, samples, subscription

NAMES = list(functions.FUNCTIONS)


def test_each_record_of_a_log_says_what_kafka_says() -> None:
    lines = log_records()
    keys, values, logs = samples("decode_log_record")
    rows = functions.decode_log_record(keys, values, logs).to_pylist()[: len(lines)]
    assert len(lines) > 70
    for line, row in zip(lines, rows, strict=True):
        assert (row["type"], row["version"], row["error_reason"]) == (line["type"], line["version"], None)
        assert json.loads(row["key"]) == line["key"]
        assert (None if row["value"] is None else json.loads(row["value"])) == line["value"]
        assert row["tombstone"] == (line["value"] is None)
        assert row["kind"] == RECORD_TYPES[line["log"]][line["type"]].value.removesuffix("Value")


def test_a_row_has_the_values_of_the_offsets_table() -> None:
    """Read with the keys known, and each alone by what the table's reader uses."""
    columns = samples("decode_log_record")
    rows = functions.decode_log_record(
        *(pa.chunked_array([column, column]) for column in columns)
    ).to_pylist()
    half = len(rows) // 2
    assert rows[:half] == rows[half:]
    logs = {topic: log for log, topic in TOPICS.items()}
    compared = 0
    for row, key, value, topic in zip(rows, *(column.to_pylist() for column in columns), strict=False):
        if topic in logs and (key is not None or value is not None):
            place = {"file": "", "log": logs[topic], "log_partition": None}
            record = coordinator_record(Record(key=key, value=value), place, logs[topic])
            expected = record_values(record, show_secrets=False)
            time = expected.get("commit_time")
            expected["commit_time"] = None if time is None else pa.scalar(
                time, pa.timestamp("us", tz="UTC")
            ).as_py()  # fmt: skip
            assert row == {name: expected.get(name) for name in row}
            compared += 1
    assert compared > 200
    assert set(rows[0]) <= {column.name for column in OFFSETS}


def test_a_brokers_logs_are_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    """Each record of the coordinators' logs of a real broker."""
    assert main(["offsets", "--format", "json", str(broker_sample() / "data")]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    same = {"kind": "kind", "type": "type", "version": "version", "group_id": "group", "topic": "topic",
            "partition": "partition", "tombstone": "tombstone", "unknown": "unknown"}  # fmt: skip
    compared = 0
    for log, topic in TOPICS.items():
        printed = [line for line in lines if (line["entry"], line["log"]) == ("record", log)]
        records = {
            (str(path), record.offset): record
            for path in broker_sample().glob(f"data/{topic}-*/*.log")
            for batch in batches(path.read_bytes())
            if not batch.is_control
            for record in batch
        }
        stored = [records.pop((line["file"], line["logOffset"])) for line in printed]
        keys, values = [record.key for record in stored], [record.value for record in stored]
        rows = functions.decode_log_record(pa.array(keys), pa.array(values), topic).to_pylist()
        for line, row in zip(printed, rows, strict=True):
            assert {name: row[name] for name in same} == {name: line[of] for name, of in same.items()}
            form = [None if row[name] is None else json.loads(row[name]) for name in ("key", "value")]
            assert form == [line["key"], line["value"]]
            assert row["error_reason"] is line["error"] is None
            compared += 1
        assert not records
    assert compared > 200


def test_what_cannot_be_read_says_why() -> None:
    rows = functions.decode_log_record(*samples("decode_log_record")).to_pylist()
    *_, unknown, other, empty, no_key, nothing, no_log = rows
    assert unknown["unknown"] == "record type 32512 is unknown"
    assert other["error_reason"] == "orders is not a coordinator's log"
    assert empty["error_reason"] == "the record type needs 2 bytes, 0 given"
    assert no_key["error_reason"] == "a record of __consumer_offsets needs a key"
    assert nothing is None is no_log


def test_records_after_damaged_ones() -> None:
    sound, damaged, cut, empty, none, null = functions.decode_records(*samples("decode_records")).to_pylist()
    assert [(record["log_offset"], record["value"]) for record in sound["records"]] == [
        (0, b"v"),
        (1, None),
        (2, b"w"),
    ]
    assert sound["records"][2]["headers"] == [{"key": "h", "value": b"x"}]
    assert sound["error_reason"] is None
    assert [record["log_offset"] for record in damaged["records"]] == [2]
    assert damaged["error_reason"].startswith("bytes 0 to ")
    assert [record["log_offset"] for record in cut["records"]] == [0, 1]
    assert cut["error_reason"].endswith(" bytes at the end are not a whole batch")
    assert empty == {"records": [], "error_reason": None}
    assert (none["records"], none["error_reason"]) == ([], "8 bytes at the end are not a whole batch")
    assert null is None


def test_messages_and_their_secrets() -> None:
    metadata, cut, version, api, null, password = functions.decode_message(
        *samples("decode_message")
    ).to_pylist()
    assert json.loads(metadata["body"])["topics"] is None
    assert (cut["body"], cut["error_position"]) == (None, len(samples("decode_message")[0][0].as_py()) - 1)
    assert "99" in version["error_reason"]
    assert api["error_reason"] == "there is no request of an API NoSuchApi"
    assert null is None
    assert password["redacted"] == ["auth_bytes"]
    assert "secret" not in password["body"]


def test_subscriptions_and_assignments() -> None:
    rows = functions.consumer_subscription(*samples("consumer_subscription")).to_pylist()
    assert [row["version"] for row in rows[:4]] == [0, 1, 2, 3]
    assert {tuple(row["topics"]) for row in rows[:5]} == {("orders", "lines")}
    assert rows[3]["owned_partitions"] == [{"topic": "orders", "partitions": [0, 2]}]
    assert (rows[3]["generation_id"], rows[3]["rack_id"], rows[3]["error_reason"]) == (7, "r1", None)
    assert rows[4]["error_reason"]
    assert rows[5]["error_reason"] == rows[6]["error_reason"] == "the bytes are not of the consumer protocol"
    assert rows[7] is None
    given_row = functions.consumer_assignment(*samples("consumer_assignment")).to_pylist()[0]
    assert given_row["partitions"] == [{"topic": "orders", "partitions": [1]}]


def test_a_registry_prefix() -> None:
    rows = functions.registry_schema(*samples("registry_schema")).to_pylist()
    none = {"guid": None, "message_indexes": None}
    guid = "00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert rows[:2] == [{"id": 7, "payload": b"payload"} | none, {"id": 7, "payload": b""} | none]
    assert rows[2:6] == [None] * 4
    assert rows[6] == {"id": 7, "guid": None, "message_indexes": [1, 2], "payload": b"payload"}
    assert rows[7] == {"id": None, "guid": guid, "message_indexes": [0], "payload": b"payload"}
    column = samples("registry_schema")[0]
    assert functions.registry_schema(column).to_pylist()[:6] == rows[:6]


KINDS = (pa.binary(), pa.binary(), pa.string())


@given(st.lists(st.none() | st.binary(max_size=80), max_size=6), st.data())
def test_no_bytes_raise(values: list[bytes | None], data: st.DataObject) -> None:
    column = pa.array(values, pa.binary())
    for function in functions.FUNCTIONS.values():
        others = {"api": "Fetch", "version": data.draw(st.integers(-1, 20)), "direction": "response",
                  "log": data.draw(st.sampled_from([*TOPICS.values(), "orders"])),
                  "protobuf": data.draw(st.booleans())}  # fmt: skip
        decoded = function(
            *(column if kind == "binary" else others[name] for name, kind in function.arguments.items())
        )
        assert len(decoded) == len(values) or not values
        assert decoded.type == arrow_type(functions.struct_type(function.result))


def test_records_of_any_time() -> None:
    """Also of one that Python has no date for."""
    times = [5, -1, -5, 253_402_300_800_000, -(1 << 50), (1 << 63) // 1000 + 1, 1 << 62]
    data = encode_batch([Record(timestamp=time, value=b"v") for time in times])
    (record_lists,) = functions.decode_records(data).field("records")
    actual = record_lists.values.field("time").cast("int64").to_pylist()
    assert actual == [5000, None, -5000, 253_402_300_800_000_000, -(1 << 50) * 1000, None, None]


def test_a_value_for_all_rows_in_any_form() -> None:
    bodies, *_ = samples("decode_message")
    apis, versions, directions = ["Metadata"] * 6, [9] * 6, ["request"] * 6
    expected = functions.decode_message(bodies, pa.array(apis), pa.array(versions), pa.array(directions))
    for form in (lambda value: value, pa.scalar, lambda value: pa.array([value])):
        constants = [form(value) for value in ("Metadata", 9, "request")]
        assert functions.decode_message(bodies, *constants) == expected
        assert len(functions.decode_message(bodies[:0], *constants)) == 0


@pytest.mark.parametrize("columns", [
    (pa.array(["text"]), b"v"), (pa.array([7]), None), (b"k", b"v", pa.array([b"__consumer_offsets"])),
])  # fmt: skip
def test_columns_of_another_type(columns: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match="expected"):
        functions.decode_log_record(*columns)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_in_duckdb(name: str) -> None:
    duckdb = pytest.importorskip("duckdb", reason="duckdb isn't installed")
    pytest.importorskip("numpy", reason="DuckDB's functions need numpy")
    function, columns = functions.FUNCTIONS[name], samples(name)
    connection = duckdb.connect()
    assert functions.register(connection) == functions.register(connection) == NAMES
    connection.execute("SET TimeZone = 'UTC'")
    stored = pa.table(dict(zip(function.arguments, columns, strict=True)))
    connection.register("stored", stored)
    decoded = connection.sql(f"SELECT {name}({', '.join(function.arguments)}) AS decoded FROM stored").arrow()
    rows = [row["decoded"] for batch in decoded for row in batch.to_pylist()]
    assert rows == function(*columns).to_pylist()


@pytest.mark.parametrize("name", NAMES)
def test_the_same_in_polars(name: str) -> None:
    polars = pytest.importorskip("polars", reason="polars isn't installed")
    function, columns = functions.FUNCTIONS[name], samples(name)
    frame = polars.from_arrow(pa.table(dict(zip(function.arguments, columns, strict=True))))
    decoded = frame.lazy().select(functions.polars(name, *function.arguments).alias("decoded")).collect()
    expected = polars.Series(function(*columns))
    assert decoded["decoded"].dtype == expected.dtype
    assert decoded["decoded"].to_list() == expected.to_list()


def test_literals_in_polars() -> None:
    polars = pytest.importorskip("polars", reason="polars isn't installed")
    bodies, *_ = samples("decode_message")
    frame = polars.DataFrame({"body": bodies.to_pylist(), "half": [0, 0, 0, 1, 1, 1]})
    constants = [polars.lit(value) for value in ("Metadata", 9, "request")]
    expression = functions.polars("decode_message", "body", *constants)
    expected = polars.Series(functions.decode_message(bodies, "Metadata", 9, "request")).to_list()
    assert frame.select(expression.alias("decoded"))["decoded"].to_list() == expected
    halves = frame.lazy().group_by("half", maintain_order=True).agg(expression.alias("decoded")).collect()
    assert [row for half in halves["decoded"].to_list() for row in half] == expected
    assert frame.head(0).select(expression).height == 0


def test_texts_straight_from_bytes_are_those_of_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every message in the stored captures, of which some have secrets, and each cut short."""
    columns: list[list[Any]] = [[], [], [], []]
    for path in sorted((DATA / "captures").glob("*.pcap")):
        with path.open("rb") as stream:
            for frame in Capture(stream, path.name).entries():
                if isinstance(frame, FrameEntry) and frame.message is not None and not frame.deviations:
                    body = frame.message.encode(version=frame.body_version or 0)
                    for data in (body, body[:-1]):
                        values = (data, frame.api_name, frame.body_version, frame.direction)
                        for column, value in zip(columns, values, strict=True):
                            column.append(value)
    arguments = list(map(pa.array, columns))
    fast = functions.decode_message(*arguments)
    monkeypatch.setattr(functions, "_plain_text", lambda *_: None)
    assert fast == functions.decode_message(*arguments)
    assert sum(fast.field("redacted").is_valid().to_pylist()) > 3
    assert sum(fast.field("body").is_valid().to_pylist()) > 500


@pytest.mark.parametrize("rows", [[], [None], [(1, "a"), None, (None, "b")], [(n, "t") for n in range(7)]])
def test_rows_in_parts_are_those_at_once(rows: list[tuple[Any, ...] | None]) -> None:
    result = {"number": "int", "text": "string"}
    array = structs(iter(rows), result)
    assert array.to_pylist() == [row and dict(zip(result, row, strict=True)) for row in rows]
    for at_once in (1, 2, 7):
        assert structs(iter(rows), result, at_once) == array


def test_few_long_rows_are_objects_at_a_time() -> None:
    assert together([pa.array([b"x"] * 1_000), "Fetch"], 1_000) == TOGETHER
    assert together([pa.array([b"x" * BYTES_TOGETHER] * 3)], 3) == 1
    assert together([pa.array([], pa.binary())], 0) == 1


def test_records_of_logs_by_columns_are_those_of_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeated, damaged and null ones, of several logs, in any order."""
    rng = random.Random(7)
    stored = list(zip(*(column.to_pylist() for column in samples("decode_log_record")), strict=True))
    rows: list[tuple[Any, ...]] = []
    for key, value, log in rng.choices(stored, k=700):
        damaged = [value, value, None] if value is None else [value, value, None, value[:-1], value[:1], b""]
        rows.append((key if rng.random() < 0.9 else None, rng.choice(damaged), log))
    of_one_log = [row for row in rows if row[2] == TOPICS["consumer_offsets"]]
    for some in (rows, of_one_log, rows[:0], rows[:1]):
        columns = [pa.array([row[index] for row in some], kind) for index, kind in enumerate(KINDS)]
        fast = functions.decode_log_record(*columns)
        with monkeypatch.context() as patch:
            patch.setattr(log_columns, "_known_key", lambda log, key: None)
            assert fast == functions.decode_log_record(*columns)
    assert len(of_one_log) > 100


def test_subscriptions_by_value_are_those_of_each_row() -> None:
    """Repeated, damaged and null ones, and assignments, against what `open_field` finds."""
    rng = random.Random(5)
    values: list[bytes | None] = [None, b"", b"\0"]
    for version in range(5):
        data = subscription(min(version, 3))
        values += [data, data[: rng.randrange(len(data))], version.to_bytes(2, "big") + data[2:], data + b"x"]
    values = [rng.choice(values) for _ in range(300)]
    rows = functions.consumer_subscription(pa.array(values, pa.binary())).to_pylist()
    for value, row in zip(values, rows, strict=True):
        embedded = open_field(JoinGroupRequestProtocol, "metadata", value, "consumer")
        if value is None:
            assert row is None
        elif embedded is None:
            assert row["error_reason"] == "the bytes are not of the consumer protocol"
        else:
            message: Any = embedded.message
            assert (row["version"], row["topics"]) == (embedded.version, list(message.topics))
            assert (row["generation_id"], row["rack_id"]) == (message.generation_id, message.rack_id)
            assert row["error_reason"] == (embedded.deviation and str(embedded.deviation))


def test_records_of_the_metadata_log_are_withheld() -> None:
    bodies = []
    for topic in ("orders", "__cluster_metadata"):
        partition = PartitionData(records=b"no record set, but perhaps a part of one")
        answer = FetchResponse(responses=[FetchableTopicResponse(topic=topic, partitions=[partition])])
        bodies.append(answer.encode(version=11))
    orders, metadata = functions.decode_message(pa.array(bodies), "Fetch", 11, "response").to_pylist()
    assert orders["redacted"] is None
    assert metadata["redacted"] == ["responses[0].partitions[0].records"]
    assert json.loads(metadata["body"])["responses"][0]["partitions"][0]["records"] is None


def test_no_version_is_kept_that_there_is_not() -> None:
    """A worker keeps what it knows of values from one array to the next."""
    key = bytes.fromhex("0001000167000174000000" + "00")
    values = [number.to_bytes(2, "big") + b"?" for number in range(1 << 12)]
    rows = functions.decode_log_record(pa.array([key] * len(values)), pa.array(values)).to_pylist()
    assert len(rows) == len(values)
    kept = log_columns._known_key("consumer_offsets", key)
    assert kept is not None
    assert len(kept.values._versions) <= 5
