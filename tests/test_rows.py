"""Rows made at native speed are those that their class makes."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from dataclasses import FrozenInstanceError, dataclass, fields
from typing import Any

import pytest

from coordwire._speedups import native, rows
from coordwire._speedups.rows import row_maker
from coordwire.timeline.events import OffsetCommitted

NAMES = [field.name for field in fields(OffsetCommitted)]


@pytest.mark.parametrize("half", [native, None])
def test_a_row_is_what_its_class_makes(half: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "native", half)
    make = row_maker(OffsetCommitted)
    values: list[Any] = [f"{name} {number}" for number, name in enumerate(NAMES)]
    made = make(*values)
    assert made == OffsetCommitted(**dict(zip(NAMES, values, strict=True)))
    assert type(made) is OffsetCommitted
    assert hash(made) == hash(copy.copy(made))
    assert pickle.loads(pickle.dumps(made)) == made
    with pytest.raises(FrozenInstanceError):
        made.offset = 3  # type: ignore[misc]
    for wrong in (values[1:], [*values, 1], []):
        with pytest.raises((TypeError, ValueError)):
            make(*wrong)


class Beside:
    """What can be referred to weakly."""


def test_rows_are_for_the_collector() -> None:
    """A row in a cycle goes with it."""
    make = row_maker(OffsetCommitted)
    values: list[Any] = [[], *range(len(NAMES) - 1)]
    row = make(*values)
    beside = Beside()
    ref = weakref.ref(beside)
    values[0].extend((row, beside))
    del row, values, beside
    gc.collect()
    assert ref() is None


@dataclass
class Open:
    value: int


@dataclass(slots=True)
class Busy:
    value: int

    def __post_init__(self) -> None:
        self.value += 1


def test_classes_that_are_no_plain_rows_are_refused() -> None:
    with pytest.raises(TypeError, match="does more than keep its values"):
        row_maker(Busy)
    if native is None:
        return
    with pytest.raises(TypeError, match="value is not a slot"):
        row_maker(Open)
    for cls, names in ((int, ()), (Busy, ("real",)), (Busy, (1,)), (Busy, ["value"]), ("Busy", ())):
        with pytest.raises(TypeError):
            native.SlotMaker(cls, names)


@pytest.mark.skipif(native is None, reason="no native extension, which makes the lists")
def test_lists_have_the_values_of_each_slot() -> None:
    assert native is not None
    lists = native.SlotMaker(OffsetCommitted, tuple(NAMES)).lists
    made = [OffsetCommitted(**{name: f"{name} {number}" for name in NAMES}) for number in range(5)]  # type: ignore[arg-type]
    assert lists(made) == tuple([getattr(row, name) for row in made] for name in NAMES)
    assert lists([]) == tuple([] for _ in NAMES)
    empty = OffsetCommitted.__new__(OffsetCommitted)
    assert lists([empty]) == tuple([None] for _ in NAMES)
    for objects in ([made[0], object()], [None], 7):
        with pytest.raises(TypeError):
            lists(objects)
