"""The page of the seed documents is true: quotations, names and tests exist, and tests find their mutants."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache

import pytest

from tests.designs.mutated_code import mutants, mutated, span
from tests.designs.seeds import (
    ROOT,
    TESTS,
    WORD,
    Demand,
    Seed,
    document,
    page,
    place,
    read,
)

SEEDS, ROWS = read()
DONE = [row for row in ROWS if not row.open]
MOST_OPEN = 0
"""Demands that nothing does; the number may only fall."""

PARTS = 16
"""Of the mutants, each in a process of its own."""


def name(demand: Demand) -> str:
    return f"{demand.seed}-{'-'.join(WORD.findall(demand.words)[:5])}"


def test_the_page_has_every_demand() -> None:
    result = page(SEEDS, ROWS)
    assert [seed.title for seed in SEEDS if f"## {seed.title}\n" not in result] == []
    assert len(re.findall(r"^\| “", result, re.MULTILINE)) == len(ROWS)


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.number)
def test_quotations_are_in_their_document_in_order(seed: Seed) -> None:
    words, places = document(seed.number), []
    for row in ROWS:
        if row.seed == seed.number:
            assert 4 <= len(WORD.findall(row.words)) <= 25, row.words
            assert len(WORD.findall(row.until)) <= 12, row.until
            at = place(row, words)
            assert at is not None, row.words
            places.append(at)
    assert places == sorted(places)
    assert len(set(places)) == len(places)


@cache
def names_in(path: str) -> set[str]:
    tree = ast.parse((ROOT / TESTS / path).read_text())
    return {one.name for one in tree.body if isinstance(one, ast.FunctionDef) and one.name.startswith("test")}


def test_code_and_tests_are_there() -> None:
    for demand in DONE:
        assert demand.code
        assert demand.tests
        for code in demand.code:
            span(code)
        for test in demand.tests:
            path, _, function = test.partition("::")
            assert function in names_in(path), test


def test_every_code_and_every_test_has_a_mutant() -> None:
    few = [f"{one.seed} {one.words}" for one in DONE if len(one.mutants) < max(len(one.code), len(one.tests))]
    assert few == []
    assert len(ROWS) - len(DONE) <= MOST_OPEN


def test_mutants_change_their_code_alone() -> None:
    for mutant in mutants(DONE):
        assert mutant.old != mutant.new
        ast.parse(mutated(mutant))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_mutants_are_found(part: int) -> None:
    options = ["--part", f"{part}/{PARTS}", "--jobs", "1", "--anew"]
    command = [sys.executable, "-m", "tests.designs.mutants", *options]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_wrong_quotation_is_not_found() -> None:
    wrong = Demand("000", "One of the brokers is elected as the leader")
    assert place(wrong, document("000")) is None
