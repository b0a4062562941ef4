"""A night of fuzzing shares its time, resumes, and keeps what it found."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz import night
from fuzz.night import Run, main, read, table, targets, write
from tests import proof


@pytest.fixture(autouse=True)
def _as_urgent_as_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(night, "NICENESS", 0)


def test_a_night_resumes(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.json"
    few = ["--slice", "1", "--ledger", str(ledger), "--only", "json_form", "--only", "legacy_sets"]
    assert main(["0.0001", *few]) == 0
    first = read(ledger)
    assert sum(run.slices for run in first.values()) == 1
    main(["0.0001", *few])
    second = read(ledger)
    assert [second[name].slices for name in ("json_form", "legacy_sets")] == [1, 1]
    assert all(
        second[name].cases >= 300 and second[name].seconds > 0 for name in ("json_form", "legacy_sets")
    )
    assert set(second) == set(targets())


def test_what_is_found_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A target that fails at once, as one does whose name is not there."""
    monkeypatch.setattr(night, "targets", lambda: ["nothing"])
    ledger = tmp_path / "ledger.json"
    assert main(["0.0001", "--slice", "1", "--ledger", str(ledger)]) == 1
    (found,) = read(ledger)["nothing"].finds
    assert found.startswith("python -m fuzz.nothing")
    assert found in table(read(ledger))


def test_seeds_go_on(tmp_path: Path) -> None:
    """Where the last slice was the third, the next begins with the seeds of the fourth."""
    run = Run(slices=3)
    night.add_slice("nothing", run, 1)
    assert (run.slices, run.cases) == (4, 0)
    assert run.finds == [f"python -m fuzz.nothing --seconds 1 --seed {3 * night.SEEDS}"]
    write({"nothing": run}, tmp_path / "ledger.json")
    assert not list(tmp_path.glob("*.part"))


def test_the_page_has_the_ledger() -> None:
    assert table(read()) in proof.PAGE.read_text("utf-8")
