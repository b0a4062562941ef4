"""What a change runs as a sample runs in whole every night, and each of its cases for some commit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests import conftest
from tests.conftest import sample

ROOT = Path(__file__).parents[1]


def steps_of_ci(*options: str) -> dict[str, str]:
    """The steps of CI, each with what a change runs of it."""
    lines = subprocess.check_output([ROOT / ".ci" / "run", *options], text=True).splitlines()
    return {words[0]: words[2] for words in map(str.split, lines)}


def test_what_a_change_does_not_run_in_whole_runs_every_night() -> None:
    amounts = steps_of_ci("--list")
    assert set(amounts.values()) == {"whole", "sample", "turn", "nothing"}
    nightly = (ROOT / ".github" / "workflows" / "nightly.yml").read_text().split()
    assert [name for name, amount in amounts.items() if amount != "whole" and name not in nightly] == []


def test_each_step_has_its_turn() -> None:
    turns = [name for name, amount in steps_of_ci("--list").items() if amount == "turn"]
    due = [set(steps_of_ci("--key", digit, "--due")) for digit in "0123"]
    assert sorted(name for steps in due for name in steps if name in turns) == sorted(turns)
    assert set.intersection(*due).isdisjoint(turns)


@pytest.mark.parametrize("text", ["0/a", "-1/a", "8", "8/", "x/a", "8/g"])
def test_a_sample_needs_a_number_and_a_hash(text: str) -> None:
    with pytest.raises(ValueError, match="expected N/KEY"):
        sample(text)


@pytest.mark.parametrize(
    ("expression", "file", "is_ignored"),
    [
        ("", "codec/test_primitives.py", None),
        ("maven and not long", "codec/test_primitives.py", True),
        ("maven and not long", "interop/test_java.py", None),
        ("growth or slow", "segments/test_growth.py", None),
        ("not spark and not maven", "codec/test_primitives.py", None),
        ("quick", "interop/test_java.py", True),
        ("other and maven", "codec/test_primitives.py", None),
    ],
)
def test_only_files_without_the_named_markers_are_not_collected(
    expression: str, file: str, is_ignored: bool | None
) -> None:
    config = cast(pytest.Config, SimpleNamespace(getoption=lambda name: expression))
    assert conftest.pytest_ignore_collect(ROOT / "tests" / file, config) is is_ignored


@pytest.mark.slow
def test_samples_have_each_test_once_and_none_that_runs_by_default() -> None:
    def collected(*options: str) -> list[str]:
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *options]
        output = subprocess.check_output(command, text=True, cwd=ROOT)
        return [line for line in output.splitlines() if "::" in line]

    file = "tests/patterns/test_cost.py"
    by_default = collected("tests/patterns", "-k", "test_cost")
    parts = [set(collected("-m", "growth or slow", "--sample", f"3/{key}", file)) for key in "012"]
    assert len(set.union(*parts)) == sum(map(len, parts)) >= 3
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert set.union(*parts).isdisjoint(by_default)
    assert set.union(*parts).union(by_default) >= set(collected("-m", "growth or slow", file))
