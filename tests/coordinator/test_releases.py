"""Releases of Kafka: what differs between them is a rule, which a kept history shows, and a page lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import pytest

from coordwire.coordinator.releases import RELEASES, ReleaseRules, rules_of
from tests.coordinator.recorded_histories import RecordedHistory, checksum
from tests.coordinator.release_histories import (
    CHANGES,
    Change,
    changed_histories,
    outcomes,
    page_rows,
    without_rule,
)

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "coordinator-releases.md"


def _sums(history: RecordedHistory) -> list[int]:
    """What ours makes of a history."""
    steps = [step for _, step in history.steps]
    return [checksum(outcome) for outcome in outcomes(history.seed, steps, history.release)]


def test_each_rule_is_a_change_of_one_release() -> None:
    assert [change.rule for change in CHANGES] == [field.name for field in fields(ReleaseRules)]
    for change in CHANGES:
        since = RELEASES.index(change.since)
        assert [getattr(rules_of(release), change.rule) for release in RELEASES] == [
            number >= since for number in range(len(RELEASES))
        ]


@pytest.mark.parametrize(
    ("change", "histories"), list(changed_histories()), ids=[change.rule for change in CHANGES]
)
def test_a_change_is_shown_by_kafkas_releases_and_ours(
    change: Change, histories: Sequence[RecordedHistory]
) -> None:
    kafkas = {history.release: [crc for crc, _ in history.steps] for history in histories}
    assert list(kafkas) == list(RELEASES)
    assert kafkas[RELEASES[RELEASES.index(change.since) - 1]] != kafkas[change.since]
    assert {history.release: _sums(history) for history in histories} == kafkas
    with without_rule(change.rule):
        assert _sums(histories[-1]) != kafkas[RELEASES[-1]]


def test_the_page_lists_every_change() -> None:
    lines = PAGE.read_text().splitlines()
    assert [line for line in lines if line.startswith("## ") or line.endswith("` |")] == list(page_rows())
