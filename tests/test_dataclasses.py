"""Dataclasses that are completed at first use: what they become is what the standard library makes."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import KW_ONLY, field
from threading import Barrier, Thread
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from coordwire import _dataclasses

T = TypeVar("T")


def plain(**options: Any) -> dict[str, Any]:
    """The classes of each shape, as the standard library's decorator makes them."""
    return shapes(dataclasses.dataclass, **options)


def shapes(decorator: Any, **options: Any) -> dict[str, Any]:
    @decorator(slots=True, **options)
    class Simple:
        """Two fields."""

        first: int
        second: list[int] = field(default_factory=list)

        def total(self) -> int:
            return self.first + sum(self.second)

    @decorator(slots=True, **options)
    class Derived(Simple):
        """A field more, and what is not a field."""

        kind: ClassVar[str] = "derived"
        _: KW_ONLY
        third: str = "x"

    @decorator(slots=True, **options)
    class Written(Generic[T]):
        """Its own methods stay."""

        value: T

        def __repr__(self) -> str:
            return "written"

        def __eq__(self, other: object) -> bool:
            return False

        def __hash__(self) -> int:
            return 7

    return {"Simple": Simple, "Derived": Derived, "Written": Written}


OPTIONS: list[dict[str, bool]] = [
    {}, {"frozen": True}, {"kw_only": True}, {"frozen": True, "kw_only": True}, {"eq": False},
    {"eq": False, "frozen": True}, {"repr": False},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", ["Simple", "Derived", "Written"])
def test_it_equals_the_standard_one(name: str, options: dict[str, bool]) -> None:
    made, standard = shapes(_dataclasses.dataclass, **options)[name], plain(**options)[name]
    assert made.__slots__ == standard.__slots__
    assert made.__match_args__ == standard.__match_args__
    assert vars(made).keys() | _SINCE >= vars(standard).keys()
    assert vars(made).keys() <= vars(standard).keys() | _SINCE
    for attribute, value in vars(standard).items():
        ours = vars(made).get(attribute)
        assert type(ours) is type(value) or attribute in _SINCE, attribute
        if inspect.isfunction(value):
            assert inspect.unwrap(ours).__code__.co_code == inspect.unwrap(value).__code__.co_code
    assert str(inspect.signature(made)) == str(inspect.signature(standard))
    assert (made.__hash__ is None) == (standard.__hash__ is None)
    assert repr(made.__dataclass_params__) == repr(standard.__dataclass_params__)
    for ours, theirs in zip(dataclasses.fields(made), dataclasses.fields(standard), strict=True):
        assert (ours.name, ours.kw_only, ours.default) == (theirs.name, theirs.kw_only, theirs.default)


_SINCE = {"__dict__", "__weakref__", "__doc__", "__static_attributes__", "__firstlineno__", "__parameters__"}
"""What depends on the version of Python or on the class's own text."""

FIRST_USES: dict[str, Callable[[Any, Any], object]] = {
    "making": lambda cls, _: cls(1, [2]).total() == 3,
    "equality": lambda cls, raw: raw(1) == raw(1) and raw(1) != raw(2),
    "text": lambda cls, raw: repr(raw(1)).endswith("Simple(first=1, second=[])"),
    "hash": lambda cls, raw: hash(raw(1, ())) == hash(cls(1, ())),
    "match": lambda cls, _: cls.__match_args__ == ("first", "second"),
    "fields": lambda cls, _: [each.name for each in dataclasses.fields(cls)] == ["first", "second"],
    "replace": lambda cls, raw: dataclasses.replace(raw(1), first=2) == cls(2),
    "copy": lambda cls, raw: copy.copy(raw(1)) == copy.deepcopy(raw(1)),
    "signature": lambda cls, _: list(inspect.signature(cls).parameters) == ["first", "second"],
}


@pytest.mark.parametrize("use", FIRST_USES.values(), ids=FIRST_USES)
def test_each_first_use_completes_it(use: Callable[[Any, Any], object]) -> None:
    cls = shapes(_dataclasses.dataclass, frozen=True)["Simple"]
    assert type(vars(cls)["__init__"]).__name__ == "_Attribute"

    def raw(first: int, second: object = None) -> Any:
        """An instance that no `__init__` made."""
        instance = object.__new__(cls)
        object.__setattr__(instance, "first", first)
        object.__setattr__(instance, "second", [] if second is None else second)
        return instance

    assert use(cls, raw)
    assert inspect.isfunction(vars(cls)["__init__"])


def test_the_first_use_may_be_a_change() -> None:
    cls = shapes(_dataclasses.dataclass, frozen=True)["Simple"]
    instance = object.__new__(cls)
    with pytest.raises(dataclasses.FrozenInstanceError):
        instance.first = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        del instance.first


def test_a_derived_class_may_come_first() -> None:
    classes = shapes(_dataclasses.dataclass)
    derived = classes["Derived"](1, [2], third="y")
    assert (derived.total(), derived.third, derived.kind) == (3, "y", "derived")
    assert not hasattr(derived, "__dict__")


def test_threads_may_use_it_first_at_once() -> None:
    for _ in range(20):
        cls = shapes(_dataclasses.dataclass)["Derived"]
        results: list[bool] = []
        barrier = Barrier(4)

        def use(cls: Any = cls, barrier: Barrier = barrier, results: list[bool] = results) -> None:
            barrier.wait()
            results.append(cls(1) == cls(1))

        threads = [Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [True] * 4


def test_public_ones_are_copied_and_pickled() -> None:
    from coordwire.broker import BrokerConfig
    from coordwire.records import Record

    record = Record(value=b"v")
    assert pickle.loads(pickle.dumps(record)) == record == copy.deepcopy(record)
    assert copy.copy(BrokerConfig()) == BrokerConfig()


def test_importing_a_broker_completes_few() -> None:
    script = """
import dataclasses
made, make = [], dataclasses._process_class
def process(cls, *options, **more):
    made.append(cls)
    return make(cls, *options, **more)
dataclasses._process_class = process
from coordwire.broker import Broker
print(len(made))
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 45  # of more than 130, beside messages
