"""Schema ids, GUIDs and message indexes as columns, beside a plain decoder; the recipes of docs."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

import pytest

pytest.importorskip("pyspark", reason="pyspark isn't installed: pip install 'coordwire[spark]'")

from pyspark.sql import functions as f

from coordwire.spark.functions import with_schemas
from coordwire.tables.functions import MOST_INDEXES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.skipif(not hasattr(f, "arrow_udf"), reason="PySpark is older than 4.1")

ROOT = Path(__file__).parents[2]
GUID = bytes(range(0xF0, 0x100))
Header = tuple[str, bytes | None]


class Found(NamedTuple):
    id: int | None
    guid: str | None
    message_indexes: list[int] | None
    payload: bytes | None


def zigzag(number: int) -> bytes:
    value, out = ((number << 1) ^ (number >> 31)) & 0xFFFFFFFF, bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag varint as Kafka's ByteUtils reads it. Raises `ValueError`."""
    value = 0
    for shift in range(0, 35, 7):
        if at >= len(data):
            raise ValueError("cut short")
        byte, at = data[at], at + 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= 0xFFFFFFFF
            return (value >> 1) ^ -(value & 1), at
    raise ValueError("too long")


def read_prefix(
    data: bytes, protobuf: bool, magics: str
) -> tuple[int | None, str | None, list[int] | None, int]:
    """What a prefix or a header says, and where it ends. Raises `ValueError`."""
    number, guid, indexes = None, None, None
    if data[:1] == b"\0" and "0" in magics and len(data) >= 5:
        at = 5
        number = int.from_bytes(data[1:5], "big", signed=True)
        if number < 0:
            raise ValueError("a negative id")
    elif data[:1] == b"\1" and "1" in magics and len(data) >= 17:
        at = 17
        guid = str(UUID(bytes=data[1:17]))
    else:
        raise ValueError("no magic")
    if protobuf:
        size, at = varint(data, at)
        indexes = [] if size else [0]
        if size > MOST_INDEXES or size < 0:
            raise ValueError("too many")
        for _ in range(size):
            index, at = varint(data, at)
            if index < 0:
                raise ValueError("a negative index")
            indexes.append(index)
    return number, guid, indexes, at


def plain(data: bytes | None, headers: list[Header], name: str, protobuf: bool) -> Found | None:
    own = [value for key, value in headers if key == name]
    try:
        if own and own[-1] is not None:
            return Found(*read_prefix(own[-1], protobuf, "01")[:3], data)
        if data is None:
            return None
        number, guid, indexes, at = read_prefix(data, protobuf, "0")
        return Found(number, guid, indexes, data[at:])
    except ValueError:
        return None


def cases() -> list[tuple[bytes | None, list[Header]]]:
    """Keys or values with headers: sound, cut short, and by chance."""
    rng = random.Random(5)
    lists = [[0], [1], [0, 0], [3, 1, 2], [300, 70_000], [], [2**31 - 1], [-1], [1] * 32, [1] * 33]
    encoded = [zigzag(len(item)) + b"".join(map(zigzag, item)) for item in lists]
    encoded += [b"\0", b"\2\0", b"\x82\0\4", b"\x80\0", b"\x01", b"\4\2", b"\xff" * 40]
    encoded += [b"\2\x80\x80\x80\x80\x10", b"\2" + b"\x80" * 5 + b"\1"]
    valid = [b"\0" + number.to_bytes(4, "big") + item + b"payload"
             for number in (0, 1, 100_001, 2**31 - 1, 2**31, 2**32 - 1) for item in encoded]  # fmt: skip
    values: list[tuple[bytes | None, list[Header]]] = [(None, []), (b"", []), (b"\0" * 300, [])]
    values += [(data, []) for data in valid]
    values += [(data[: rng.randrange(len(data))], []) for data in valid]
    values += [(rng.randbytes(rng.randrange(30)), []) for _ in range(100)]
    values += [(b"\1" + GUID + b"no header", [])]
    for item in encoded:
        complete = b"\1" + GUID + item
        for head in (complete, complete[:16], complete[:17], b"\0\0\0\0\7" + item, b"\2" + GUID, b"", None):
            values.append((rng.choice([b"value", b"\0\0\0\0\5\0x", None]), [("__value_schema_id", head)]))
    head = b"\1" + GUID
    values += [
        (
            b"v",
            [("__value_schema_id", b"\0\0\0\0\1\0"), ("other", b"x"), ("__value_schema_id", head + b"\0")],
        ),
        (b"\0\0\0\0\5\0v", [("__value_schema_id", head), ("__value_schema_id", None)]),
        (b"\0\0\0\0\5\0v", [("__key_schema_id", head)]),
    ]
    return values


@pytest.mark.usefixtures("interpreted")
def test_columns_are_those_of_a_plain_decoder(spark: SparkSession) -> None:
    import pyarrow as pa

    made_rows = cases()
    header = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    table = pa.table(
        {
            "number": pa.array(range(len(made_rows)), pa.int32()),
            "key": pa.array([data for data, _ in made_rows], pa.binary()),
            "value": pa.array([data for data, _ in made_rows], pa.binary()),
            "headers": pa.array(
                [[{"key": key, "value": value} for key, value in headers] for _, headers in made_rows], header
            ),
        }
    )
    records = spark.createDataFrame(table)
    assert with_schemas(records.select("value")).columns == [
        "value", "value_schema_id", "value_schema_guid", "value_payload",
    ]  # fmt: skip
    for protobuf in (False, True):
        actual = with_schemas(records, protobuf=protobuf).collect()
        assert [row.number for row in actual] == list(range(len(made_rows)))
        several = 0
        for row, (data, headers) in zip(actual, made_rows, strict=True):
            for side in ("key", "value"):
                expected = plain(data, headers, f"__{side}_schema_id", protobuf) or Found(
                    None, None, None, None
                )
                payload = row[f"{side}_payload"]
                assert row[f"{side}_schema_id"] == expected.id, (data, headers)
                assert row[f"{side}_schema_guid"] == expected.guid, (data, headers)
                assert (None if payload is None else bytes(payload)) == expected.payload, (data, headers)
                if protobuf:
                    assert row[f"{side}_message_indexes"] == expected.message_indexes, (data, headers)
                    several += len(expected.message_indexes or []) > 1
        assert (several > 10) == protobuf


AVRO, PROTOBUF = re.findall(
    r"^```py\n(.*?)^```$", (ROOT / "docs/how-to/audits.md").read_text(), re.MULTILINE | re.DOTALL
)[-2:]
PROGRAM = """
import sys
import pyarrow as pa
from pathlib import Path
from coordwire.spark.session import session

spark = session("local[1]", config={"spark.jars": ",".join(sys.argv[1:])})

def field(number, data):
    return bytes([number << 3 | 2, len(data)]) + data

def number(number, value):
    return bytes([number << 3, value])

# message Other {} message Order { int64 id = 1; string name = 2; } in orders.proto
fields = [field(2, field(1, b"id") + number(3, 1) + number(4, 1) + number(5, 3)),
          field(2, field(1, b"name") + number(3, 2) + number(4, 1) + number(5, 9))]
messages = field(4, field(1, b"Other")) + field(4, field(1, b"Order") + b"".join(fields))
file = field(1, b"orders.proto") + messages + field(12, b"proto3")
Path("orders.desc").write_bytes(field(1, file))
SCHEMA = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}, '
SCHEMA += '{"name": "name", "type": "string"}]}'
avro = b"\\0" + (7).to_bytes(4, "big") + bytes([2 * 42, 2 * 3]) + b"tea"
proto = b"\\0" + (8).to_bytes(4, "big") + bytes([2, 2]) + number(1, 42) + field(2, b"tea")
header = [{"key": "__value_schema_id", "value": b"\\1" + bytes(16)}]
rows = [("orders", avro, []), ("orders", avro[5:], header), ("orders", b"no", []), ("protos", proto, [])]
names = ["topic", "value", "headers"]
kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
columns = [pa.array(column, type) for column, type in zip(zip(*rows), (pa.string(), pa.binary(), kind))]
records = spark.createDataFrame(pa.Table.from_arrays(columns, names))
registry = {7: SCHEMA, "00000000-0000-0000-0000-000000000000": SCHEMA}
"""


JARS = sorted(map(str, Path(os.environ.get("COORDWIRE_SPARK_JARS", os.devnull)).glob("*.jar")))


@pytest.mark.spark
@pytest.mark.parametrize("name", ["avro", "protobuf"])
def test_a_recipe(name: str, tmp_path: Path) -> None:
    """Not for every run: it needs jars from Maven Central that go with this Spark, and a second Java."""
    if not any(f"spark-{name}_" in jar for jar in JARS):
        pytest.skip(f"spark-{name} is in no folder COORDWIRE_SPARK_JARS")
    recipe, table = (AVRO, "orders") if name == "avro" else (PROTOBUF, "protos")
    program = f"{PROGRAM}{recipe}\nprint(sorted(map(str, {table}.collect())))\n"
    process = subprocess.run(
        [sys.executable, "-c", program, *JARS], cwd=tmp_path, capture_output=True, text=True, timeout=500,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert process.returncode == 0, process.stderr[-3000:]
    row = f"Row(topic='{table}', order=Row(id=42, name='tea'))"
    assert process.stdout.splitlines()[-1] == str([row] * (1 + (name == "avro")))
