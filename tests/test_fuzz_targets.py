"""Every fuzz target holds for some inputs, and its file opens with what it checks."""

from __future__ import annotations

from importlib import import_module

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordwire._speedups import native
from fuzz._run import compares_native, main, with_examples
from fuzz.night import targets

TARGETS = targets()
TARGETS.sort(key=lambda name: name != "json_form")  # the first is what runs by default: one that is fast
SLOW = {"engines"}
"""Targets whose examples are whole captures."""


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_target(name: str) -> None:
    module = import_module(f"fuzz.{name}")
    if native is None and hasattr(module.fuzz, "compares_native"):
        pytest.skip("the native extension is not there")
    assert module.__doc__
    with_examples(
        module.fuzz, settings().max_examples // 5 if name in SLOW else 2 * settings().max_examples
    )()


def test_there_are_targets() -> None:
    assert {"json_form", "message", "decode_frame", "connection", "capture", "dialects", "inside"} <= set(
        TARGETS
    )


def test_the_command_line_runs_so_many_examples(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[int] = []

    @given(st.integers())
    def target(value: int) -> None:
        seen.append(value)

    main(target, ["--examples", "30"])
    assert len(seen) == 30
    assert "nothing found" in capsys.readouterr().out


def test_a_seed_is_printed_and_repeats_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    runs: list[list[int]] = []

    @given(st.integers())
    def target(value: int) -> None:
        runs[-1].append(value)

    def values_of(*arguments: str) -> list[int]:
        runs.append([])
        main(target, ["--examples", "40", *arguments])
        return runs[-1]

    fresh = values_of()
    printed = capsys.readouterr().out.split("seed ")[1].split()[0]
    assert values_of("--seed", printed) == fresh
    assert values_of() != fresh


def test_each_round_draws_other_values() -> None:
    values: list[int] = []

    @given(st.integers(0, 1 << 62))
    def target(value: int) -> None:
        values.append(value)
        if len(values) == 60:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        main(target, ["--seconds", "60"], examples=20)
    assert values[:20] != values[20:40] != values[40:]


def test_a_failure_names_the_command_that_repeats_it(capsys: pytest.CaptureFixture[str]) -> None:
    @given(st.integers())
    def target(value: int) -> None:
        assert value < 100

    with pytest.raises(AssertionError):
        main(target, ["--seconds", "5"])
    command = capsys.readouterr().err.strip().removeprefix(f"repeat it: python -m {__name__} ")
    with pytest.raises(AssertionError):
        main(target, command.split())


def test_a_target_that_compares_the_extension_fails_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    @compares_native
    @given(st.integers())
    def target(value: int) -> None:
        pass

    monkeypatch.setattr("fuzz._run.native", None)
    with pytest.raises(SystemExit, match="is not there"):
        main(target, ["--examples", "1"])
