"""The page of proofs says what its data says, and its commands exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import proof

ROWS = proof.read()


def test_the_page_has_the_rows() -> None:
    page = proof.PAGE.read_text("utf-8")
    assert proof.rendered(page, ROWS) == page


@pytest.mark.parametrize("key", ROWS)
def test_a_command_exists(key: str) -> None:
    row = ROWS[key]
    assert set(row) == set(proof.HEADINGS)
    python, option, module, *arguments = str(row["command"]).split()
    assert (python, option) == ("python", "-m")
    if module != "pytest":
        path = proof.ROOT / Path(*module.split("."))
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists()
        return
    for argument in arguments:
        if "/" in argument:
            assert (proof.ROOT / argument).exists(), argument


@pytest.mark.parametrize("key", ROWS)
def test_a_figure_has_its_run(key: str) -> None:
    row = ROWS[key]
    if row["cases"] == "not measured":
        assert not row["date"]
        assert not row["commit"]
        return
    assert isinstance(row["cases"], int)
    assert row["cases"] > 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", str(row["date"]))
    assert re.fullmatch(r"[0-9a-f]{7,40}\+?", str(row["commit"]))


def test_counts() -> None:
    assert proof.counts("3 failed, 1763 passed, 2 skipped in 9s") == (1766, 3)
    assert proof.counts("nothing found in 60 s, 1,200 cases\nnothing found in 9 s, 1 cases\n") == (1201, 0)
    for output, reason in (("1 passed, 1 error in 9s", "did not run"), ("usage: pytest", "neither")):
        with pytest.raises(ValueError, match=reason):
            proof.counts(output)
