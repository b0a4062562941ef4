"""Every fuzz target holds for some inputs, and its file opens with what it checks."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fuzz
from coordwire.records import backend
from fuzz._run import main, with_examples

FOLDER = Path(fuzz.__file__).parent
TARGETS = [
    path.stem
    for path in sorted(FOLDER.glob("[!_]*.py"))
    if any(isinstance(n, ast.FunctionDef) and n.name == "fuzz" for n in ast.parse(path.read_text()).body)
]
TARGETS.sort(key=lambda name: name != "json_form")  # the first is what runs by default: one that is fast
NATIVE = {"columns_native", "columns_shapes", "engines"}
"""Targets about the extension alone: without it they have nothing to compare."""

SLOW = {"engines"}
"""Targets whose examples are whole captures."""


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_target(name: str) -> None:
    if name in NATIVE and backend.columns is None:
        pytest.skip("the native extension is not there")
    module = import_module(f"fuzz.{name}")
    assert module.__doc__
    with_examples(
        module.fuzz, settings().max_examples // 5 if name in SLOW else 2 * settings().max_examples
    )()


def test_there_are_targets() -> None:
    assert {"json_form", "message", "decode_frame", "connection", "capture", "dialects", "inside"} <= set(
        TARGETS
    )


def test_the_command_line_runs_so_many_examples(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    seen: list[int] = []

    @given(st.integers())
    def target(value: int) -> None:
        seen.append(value)

    main(target, ["--examples", "30"])
    assert len(seen) == 30
    assert "nothing found" in capsys.readouterr().out


def test_a_failure_is_not_swallowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    @given(st.integers())
    def target(value: int) -> None:
        assert value < 100

    with pytest.raises(AssertionError):
        main(target, ["--seconds", "5"])
