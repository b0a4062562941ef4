"""The page of the seed documents is true: quotations, names and tests exist, and tests need their code."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.designs.seeds import (
    ROOT,
    TESTS,
    WORD,
    Demand,
    Seed,
    can_be_left_out,
    document,
    fails_without,
    page,
    place,
    read,
    resolve,
)

SEEDS, ROWS = read()
DONE = [row for row in ROWS if not row.open]
CHECKED = [one for one in DONE if can_be_left_out(one.code[0])]
MOST_OPEN = 0
"""Demands that nothing does; the number may only fall."""


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
            resolve(code)
        for test in demand.tests:
            path, _, function = test.partition("::")
            assert function in names_in(path), test


def test_most_demands_have_a_test_that_can_fail() -> None:
    assert len(CHECKED) > 0.9 * len(DONE)
    assert len(ROWS) - len(DONE) <= MOST_OPEN


SOME = [
    next(demand for demand in CHECKED if demand.seed == seed)
    for seed in dict.fromkeys(one.seed for one in CHECKED)
]


@pytest.mark.parametrize("demand", SOME, ids=name)
def test_some_tests_fail_without_their_code(demand: Demand) -> None:
    assert fails_without(demand.code[0], demand.tests[0])


@pytest.mark.long
@pytest.mark.parametrize("demand", [demand for demand in CHECKED if demand not in SOME], ids=name)
def test_a_test_fails_without_its_code(demand: Demand) -> None:
    assert fails_without(demand.code[0], demand.tests[0])


def test_a_wrong_quotation_is_not_found() -> None:
    wrong = Demand("000", "One of the brokers is elected as the leader")
    assert place(wrong, document("000")) is None


def test_a_test_that_does_not_need_its_code_is_found() -> None:
    test = "designs/drafts/test_draft_1.py::test_a_second_registration_on_a_connection_closes_it"
    assert not fails_without("designs.drafts.draft_3_consumer:NewConsumer.subscribe", test)
