"""Each promise names what holds it, and that is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.proof import ROOT

PAGE = ROOT / "docs" / "development" / "promises.md"
NAMED = re.compile(r"`(?:python -m )?((?:tests|fuzz|schemas|\.ci)[\w./]*)(?:::(\w+))?[^`]*`")
PROMISES = [
    (promise.strip(), held)
    for promise, held in re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    if promise.strip() not in ("promise", "---")
]


def file_of(name: str) -> Path:
    """The file or folder that a test, or a module after `python -m`, is in."""
    path = ROOT / name
    if not path.exists():
        path = ROOT / name.replace(".", "/")
    return path if path.exists() else path.with_suffix(".py")


def test_there_are_promises() -> None:
    assert len(PROMISES) > 40


@pytest.mark.parametrize(("promise", "held"), PROMISES)
def test_a_promise_is_held(promise: str, held: str) -> None:
    named = NAMED.findall(held)
    assert named, promise
    for name, function in named:
        path = file_of(name)
        assert path.exists(), name
        assert not function or f"def {function}(" in path.read_text("utf-8"), f"{name}::{function}"
