"""`ZooKeeperTree` against kept answers and watch events of real servers, without Java."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from tests.designs.drafts.zookeeper_operations_oracle import differences, operation_count

KEPT = Path(__file__).parent.parent.parent / "data" / "zookeeper_operations"
RELEASES = ("3.4.10", "3.9.3")


def kept(release: str) -> list[str]:
    return lzma.open(KEPT / f"{release}.txt.xz", "rt").read().splitlines()


@pytest.mark.parametrize("release", RELEASES)
def test_answers_and_events_are_those_of_a_real_server(release: str) -> None:
    lines = kept(release)
    assert operation_count(lines) == 4_000
    assert sum(line.startswith("event\t") for line in lines) > 50
    assert list(differences(lines)) == []


@pytest.mark.parametrize("word", ["event\t", "error\t", "ok\t"])
def test_a_difference_is_found(word: str) -> None:
    lines = kept("3.9.3")
    number = next(number for number, line in enumerate(lines) if line.startswith(word))
    lines[number] += "x"
    assert len(list(differences(lines))) == 1
