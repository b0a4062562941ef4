"""Sound data of every shape as Arrow: no records to 100,000, values of no bytes to 1 MB, every codec and
projection, copied and as views, tables small and large. Each half gives what the records say.

A batch of some thousands of tiny records made the native half write after its memory: a record counts for 32
bytes in a table's size and may take 7, so that the size was beyond what was foreseen of it.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from coordwire.records import backend
from coordwire.records.arrow import RECORD_COLUMNS, iter_batches, schema
from fuzz import columns_shapes
from fuzz._columns import EVERYTHING
from fuzz._shapes import STAMP, Shape
from fuzz.records_native import spread_from

from .data import CODECS

PROJECTIONS = (
    None,
    ["offset"],
    ["value", "timestamp_ms"],
    ["headers", "key"],
    ["batch_position", "timestamp"],
)
SMALL = (
    Shape(1, 0),
    Shape(3, 1),
    Shape(1, 4_000),
    Shape(1, 4_000, (None,), (None,)),
    Shape(3, 1_500, (0, None, 1), (1, 0)),
    Shape(2, 800, (12, 13), (300, None, 64)),
    Shape(1, 2_000, (1,), (0,), (0, 2, 0, 1)),
    Shape(2, 40, (8_192, 0), (1 << 16, None)),
    Shape(1, 3, (1 << 20,), (0, 1 << 20)),
)
LARGE = (
    Shape(1, 100_000),
    Shape(1, 100_000, (1,), (1,)),
    Shape(25, 4_000),
    Shape(1, 30_000, (0, None), (1, None, 0), (0, 0, 1)),
    Shape(4, 1, (None,), (1 << 20,)),
)


def wanted(shape: Shape, columns: list[str] | None, view: bool) -> pa.Table:
    """The table that the shape has to become."""
    parts = shape.cycle()
    numbers = range(shape.rows)

    def repeated(values: list[Any], kind: Any) -> Any:
        if not shape.rows:
            return pa.array([], type=kind)
        index = pa.array([number % len(parts) for number in numbers] * shape.batches, type=pa.int32())
        return pa.array(values, type=kind).take(index)

    form = schema(columns, view=view)
    stamps = [STAMP + number for number in numbers] * shape.batches
    sizes = [len(shape.batch(number)) for number in range(shape.batches)]
    columns_of = {
        "offset": lambda kind: pa.array(range(shape.rows * shape.batches), type=kind),
        "timestamp": lambda kind: pa.array([stamp * 1000 for stamp in stamps], type=pa.int64()).cast(kind),
        "timestamp_ms": lambda kind: pa.array(stamps, type=kind),
        "batch_position": lambda kind: pa.array(
            [sum(sizes[:at]) for at in range(shape.batches) for _ in numbers], type=kind
        ),
        "key": lambda kind: repeated([part.key for part in parts], pa.binary()).cast(kind),
        "value": lambda kind: repeated([part.value for part in parts], pa.binary()).cast(kind),
        "headers": lambda kind: repeated(
            [[{"key": name, "value": value} for name, value in part.headers] for part in parts], kind
        ),
    }
    return pa.Table.from_arrays([columns_of[field.name](field.type) for field in form], schema=form)


def check(shape: Shape, **options: Any) -> None:
    data = b"".join(shape.batch(number) for number in range(shape.batches))
    tables = list(iter_batches(data, **options))
    for table in tables:
        table.validate(full=True)
    columns, view = options.get("columns"), options.get("view", False)
    result = pa.Table.from_batches(tables, schema=schema(columns, view=view))
    assert result.equals(wanted(shape, columns, view))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("shape", SMALL, ids=lambda shape: str(SMALL.index(shape)))
def test_small(shape: Shape, codec: Any) -> None:
    for view in (False, True):
        check(shape._replace(codec=codec), view=view)
        check(shape._replace(codec=codec), view=view, on_error="skip")


@pytest.mark.parametrize("columns", PROJECTIONS, ids=lambda columns: "-".join(columns or RECORD_COLUMNS))
@pytest.mark.parametrize("max_bytes", [-1, 5_000, 1 << 40])
def test_projections_and_sizes_of_tables(columns: list[str] | None, max_bytes: int) -> None:
    for view in (False, True):
        for codec in ("none", "lz4"):
            shape = Shape(2, 600, (0, None, 1), (1, 0), (0, 0, 2, 1), codec)
            check(shape, columns=columns, max_bytes=max_bytes, view=view)


@pytest.mark.parametrize("shape", LARGE, ids=lambda shape: str(LARGE.index(shape)))
def test_large(half: str, shape: Shape) -> None:
    check(shape)
    if half == "c":
        check(shape._replace(codec="lz4"), view=True, on_error="skip")
        with spread_from(1):
            check(shape, columns=["key", "timestamp"])


@pytest.mark.parametrize("shape", [*SMALL, *LARGE], ids=lambda shape: str([*SMALL, *LARGE].index(shape)))
def test_the_kernel_by_itself(half: str, shape: Shape) -> None:
    if half == "python" or backend.columns is None:
        pytest.skip("the native half's alone")
    for view, most in ((False, 4 << 20), (True, 1 << 30), (False, 70_000)):
        columns_shapes.check(shape, EVERYTHING, most, view, view)
    if shape in SMALL:
        columns_shapes.check(shape._replace(codec="zstd"), EVERYTHING, 4 << 20, True, False)
