"""The Arrow kernel fills its columns with just what sound batches of any shape hold: up to 100,000 records,
values of up to 1 MB, copied and as views, every codec, tables small and large; and it writes at no byte after
its memory, which a sanitizer sees."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from coordwire.records import backend, batches
from fuzz._columns import BATCH, EVERYTHING, VALUE, Table
from fuzz._guard import Guard
from fuzz._run import compares_native, main
from fuzz._shapes import MOST, SHAPES, WANTED, Shape

GUARD = Guard()


def filled(
    parts: list[bytes], wanted: int, most: int, view: bool, whole: bool
) -> tuple[list[list[Any]], int]:
    """The columns that the kernel makes of these batches, and how many tables it took."""
    assert backend.columns is not None
    columns = backend.columns(wanted, most, view, whole)
    source = GUARD.place(b"".join(parts))
    results: list[list[Any]] = [[] for bit in range(7) if wanted >> bit & 1]
    bodies: list[bytes] = [bytes(source)]
    tables = position = 0

    def take() -> None:
        nonlocal tables
        tables += 1
        table = Table(*columns.take(), bodies if view else None)
        for column, more in zip(results, table.columns(wanted), strict=True):
            column += more

    for batch in batches(bytes(source)):
        body = None if batch.codec == "none" else bytes(batch.payload())
        bodies += [] if body is None else [body]
        while position == batch.position:
            full, position = columns.run(source, position, body, 0 if body is None else len(bodies) - 1)
            if full:
                take()
            else:
                assert position != batch.position
    assert position == len(source)
    if columns.rows:
        take()
    return results, tables


def check(shape: Shape, wanted: int, most: int, view: bool, whole: bool) -> None:
    parts = [shape.batch(number) for number in range(shape.batches)]
    positions = [sum(map(len, parts[:number])) for number in range(shape.batches)]
    result, tables = filled(parts, wanted, most, view, whole)
    assert result == shape.columns(wanted, positions)
    assert tables <= shape.batches * shape.rows
    assert tables > 1 or not shape.rows or 32 * shape.rows * shape.batches <= most


@compares_native
@given(SHAPES, WANTED, MOST, st.booleans(), st.booleans())
@example(Shape(1, 100_000), EVERYTHING, 4 << 20, False, False)
@example(Shape(1, 4_000), EVERYTHING, 4 << 20, False, False)
@example(Shape(40, 1_000, values=(1,), codec="lz4"), EVERYTHING, 4 << 20, False, True)
@example(Shape(1, 100_000, headers=(0, 0, 1), codec="zstd"), EVERYTHING & ~BATCH, 1 << 30, True, True)
@example(Shape(2, 3, (1 << 20,), (None, 1 << 20), codec="snappy"), VALUE, 1 << 20, False, True)
def fuzz(shape: Shape, wanted: int, most: int, view: bool, whole: bool) -> None:
    check(shape, wanted, most, view, whole)


if __name__ == "__main__":
    main(fuzz, examples=50)
