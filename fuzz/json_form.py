"""Any JSON is a message's form, which comes back from that message, or an EncodeError; no other error."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from coordwire import from_json, to_json
from coordwire.codec import Message
from coordwire.errors import EncodeError
from coordwire.testing.strategies import messages
from fuzz._run import main
from tests.conformance.engines import MESSAGES

ODD: list[Any] = [
    None, True, False, 0, -1, 1, 127, 128, 255, 65536, 1 << 31, 1 << 63, -(1 << 63) - 1, 10**400, 10**5000,
    0.5, 1e308, -0.0, float("nan"), float("inf"), "", "NaN", "Infinity", "NaN:7ff8000000000001",
    "NaN:7ff0000000000000", "NaN:7ff800000000000g", "AA==", "AA=", "A", "é", "\ud800", "A" * 22,
    "A" * 21 + "B", "A" * 20 + "+/", [], [None], [[]], [{}], {}, {"_tags": {"7": ""}},
    {"7": "AA=="}, {"07": ""}, {"-1": ""}, {"4294967296": ""}, {"9" * 5000: ""}, {"٣": ""},
    {"7": 1}, {"7": None}, [0, "", {}], {"a": {"b": [{"c": None}]}},
]  # fmt: skip
JSON = st.sampled_from(ODD) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


def places(form: Any) -> list[tuple[Any, Any]]:
    """Every container inside a form, with each of its keys or indexes."""
    results: list[tuple[Any, Any]] = []
    content = list(form.items()) if isinstance(form, dict) else list(enumerate(form))
    for step, value in content:
        results.append((form, step))
        if isinstance(value, (dict, list)):
            results += places(value)
    return results


@st.composite
def inputs(draw: st.DrawFn) -> tuple[type[Message], int, Any]:
    """A message's class and version, and a form that was changed somewhere."""
    cls = draw(st.sampled_from(MESSAGES))
    version = draw(st.sampled_from(cls.versions))
    form: Any = copy.deepcopy(to_json(draw(messages(cls, version=version, nan=True)), version=version))
    for _ in range(draw(st.integers(0, 2))):
        result = places(form)
        if not result:
            break
        where, step = draw(st.sampled_from(result))
        change = draw(st.sampled_from(["value", "value", "value", "drop", "rename", "_tags"]))
        if change == "value" or not isinstance(where, dict):
            where[step] = copy.deepcopy(draw(JSON))
        elif change == "_tags":
            where["_tags"] = copy.deepcopy(draw(JSON))
        else:
            value = where.pop(step)
            if change == "rename":
                where[draw(st.text(max_size=8))] = value
    return cls, version, form


@given(inputs())
def fuzz(given_: tuple[type[Message], int, Any]) -> None:
    cls, version, form = given_
    try:
        message = from_json(cls, form, version=version)
    except EncodeError as error:
        assert error.reason
        assert isinstance(error.path, str)
        return
    again = to_json(message, version=version)
    assert to_json(from_json(cls, json.loads(json.dumps(again)), version=version), version=version) == again
    try:
        wire = message.encode(version=version)
    except EncodeError:  # texts that are too long or hold half a surrogate pair
        return
    assert to_json(cls.decode(wire, version=version), version=version) == again


if __name__ == "__main__":
    main(fuzz)
