"""Tables of bytes that hold bad batches are linear in them, too, whichever half fills them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from coordwire.records import UnreadableRange, backend, batches
from coordwire.records.arrow import iter_batches, native
from coordwire.records.batch import claimed_size
from tests.growth import Charge, assert_linear
from tests.records import test_growth as layouts

pytest.importorskip("pyarrow")


def _filled(
    result: tuple[bool, int], _: object, source: memoryview, start: int, body: bytes | None, number: int
) -> int:
    """The kernel has read up to where it stopped, and the batch there if it isn't the rest of a table."""
    full, end = result
    return end - start + len(body or b"") + (0 if full else claimed_size(source, end))


def _walked(end: int, _: object, source: object, start: int, most: int) -> int:
    return end - start


CHARGES: dict[str, Charge] = layouts.CHARGES | {"run": _filled, "span": _walked}


def draw(data: bytes) -> None:
    for _ in iter_batches(data, on_error="skip"):
        pass


def far_packed(n: int) -> bytes:
    """Each header claims half of what there is, compressed."""
    head = struct.Struct(">qiibIhiqqqhii").pack
    parts = [[head(k, 40 * n, 0, 2, 1, 1, 0, 0, 0, -1, -1, -1, 1), layouts.sound(k)] for k in range(n)]
    return b"".join(each for part in parts for each in part)


def blank_packed(n: int) -> bytes:
    """Each is marked as compressed and has a length of 0, before zeros that go to the end."""
    head = struct.Struct(">qiibIhiqqqhii").pack
    parts = [[layouts.sound(k), head(k, 0, 0, 2, 1, 1, 0, 0, 0, -1, -1, -1, 1)] for k in range(n)]
    return b"".join(each for part in parts for each in part) + bytes(100 * n)


def bad_and_sound(n: int) -> bytes:
    """All headers lead on to the next, up to one that doesn't."""
    head = layouts.head(0, 49)
    return b"".join(layouts.sound(k) + head for k in range(n)) + b"?" * 1200 * n


MADE = [*layouts.MADE, far_packed, blank_packed, bad_and_sound]


@pytest.mark.parametrize("make", MADE)
def test_tables(make: Callable[[int], bytes]) -> None:
    """Of some size: below, what is read before a table begins is a good part of the work."""
    assert_linear(make, draw, 280, charges=CHARGES, slack=layouts.SLACK)


@pytest.mark.parametrize("make", [layouts.far, far_packed, blank_packed, bad_and_sound])
def test_tables_of_more(make: Callable[[int], bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it asks whether there is enough for threads."""
    monkeypatch.setattr(native, "MANY", 540_000)
    monkeypatch.setattr(native, "SPREAD", 2)
    assert_linear(make, draw, 500, charges=CHARGES, slack=layouts.SLACK)


@pytest.mark.parametrize("make", MADE)
@pytest.mark.parametrize("n", [3, 60, 900])
def test_tables_have_what_batches_have(
    make: Callable[[int], bytes], n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same records from the same places, and the same ranges passed over."""
    monkeypatch.setattr(native, "MANY", 3000)
    monkeypatch.setattr(native, "SPREAD", 2)
    data = make(n)
    reader = batches(data, on_error="skip")
    expected = [(batch.position, record.offset, record.value) for batch in reader for record in batch]
    skipped: list[UnreadableRange] = []
    columns = ["batch_position", "offset", "value"]
    tables = list(iter_batches(data, columns=columns, on_error="skip", skipped=skipped, max_bytes=5000))
    rows: list[Any] = [row for table in tables for row in table.to_pylist()]
    assert [tuple(row.values()) for row in rows] == expected
    assert skipped == reader.skipped


def test_the_kernel_is_used() -> None:
    """Else nothing above would say anything of it."""
    if backend.columns is None:
        pytest.skip("no native extension")
    calls = []
    assert_linear(
        layouts.zeros_between, draw, 100,
        charges=CHARGES | {"run": lambda *a: calls.append(a) or _filled(*a)},  # type: ignore[func-returns-value]
    )  # fmt: skip
    assert calls
