"""Our coordinator and Kafka's agree, answer by answer and record by record, on random histories."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from tests.coordinator import foreign_logs, rule_histories
from tests.coordinator.archived_histories import archived
from tests.coordinator.comparison import first_difference
from tests.coordinator.coverage import Coverage
from tests.coordinator.histories import Replayer
from tests.coordinator.oracle import RELEASES, oracle
from tests.coordinator.reach import answered_against_reason, unreached
from tests.coordinator.recorded_histories import (
    FOREIGN,
    FURTHER,
    NEWER,
    STREAMS,
    RecordedHistory,
    checksum,
    read_histories,
)
from tests.coordinator.settings import has_streams, settings
from tests.interop.conftest import give_up
from tests.interop.maven import Unavailable

FRESH = 20
"""Histories that Kafka's own coordinator judges; `python -m tests.coordinator.comparison` takes more."""


SHARE = 3
"""CI replays every third of the kept histories; `-m long` replays them all, and prints what they reach."""


@dataclass(slots=True)
class _Replayed:
    """What became of the kept histories."""

    count: int = 0
    differences: list[str] = field(default_factory=list)
    coverage: Coverage = field(default_factory=Coverage)


def _replay(share: int) -> _Replayed:
    replayed = _Replayed()
    for index, history in enumerate(read_histories()):
        replayed.count += 1
        if index % share == 0:
            _replay_one(history, replayed)
    for further in (FURTHER, STREAMS):
        for history in read_histories(further):
            _replay_one(history, replayed)
    return replayed


def _replay_one(history: RecordedHistory, replayed: _Replayed) -> None:
    seed, steps, release = history
    replayer = Replayer(settings(seed, release))
    for number, (expected, step) in enumerate(steps):
        outcome = replayer.run(step)
        if checksum(outcome.sorted(replayer.requests)) != expected:
            replayed.differences.append(f"history {seed}, step {number}: {step}")
            return
        replayed.coverage.add(replayer, outcome)


@pytest.fixture(scope="module")
def replayed() -> _Replayed:
    return _replay(SHARE)


def test_kept_histories_come_out_as_kafka_made_them(replayed: _Replayed) -> None:
    assert replayed.differences == []
    assert replayed.count >= 1_000


def test_histories_of_single_rules_come_out_as_kafka_made_them() -> None:
    replayed = _Replayed()
    for history in archived("rules"):
        replayed.count += 1
        _replay_one(history, replayed)
    assert replayed.differences == []
    assert replayed.count == len(rule_histories.RULES) + len(rule_histories.LATER)


def test_histories_of_newer_releases_come_out_as_kafka_made_them() -> None:
    replayed, releases = _Replayed(), set()
    for history in [*read_histories(NEWER), *archived("random")]:
        replayed.count += 1
        releases.add(history.release)
        _replay_one(history, replayed)
    assert replayed.differences == []
    assert replayed.count >= 100
    assert releases == set(RELEASES[1:])


def test_logs_with_other_kinds_of_groups_come_out_as_kafka_made_them() -> None:
    replayed = _Replayed()
    for history in read_histories(FOREIGN):
        replayed.count += 1
        _replay_one(history, replayed)
    assert replayed.differences == []
    assert replayed.count >= 100


@pytest.mark.long
def test_all_kept_histories_come_out_as_kafka_made_them(capsys: pytest.CaptureFixture[str]) -> None:
    replayed = _replay(1)
    assert replayed.differences == []
    with capsys.disabled():
        print("", *replayed.coverage.lines(), sep="\n")


def test_kept_histories_reach_every_error_code_record_and_transition(replayed: _Replayed) -> None:
    assert list(unreached(replayed.coverage)) == []
    assert list(answered_against_reason(replayed.coverage)) == []


@pytest.mark.maven
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("seed", range(1_000_000, 1_000_000 + FRESH))
def test_kafka_agrees(seed: int, release: str) -> None:
    try:
        oracle(release)
    except Unavailable as error:
        give_up(error)
    difference = first_difference(seed, release=release)
    assert difference is None, str(difference)


@pytest.mark.maven
@pytest.mark.parametrize("seed", [seed for seed in range(1_100_000, 1_100_100) if has_streams(seed)][:FRESH])
def test_kafka_agrees_about_streams_groups(seed: int) -> None:
    release = RELEASES[seed % len(RELEASES)]
    try:
        oracle(release)
    except Unavailable as error:
        give_up(error)
    difference = first_difference(seed, release=release)
    assert difference is None, str(difference)


@pytest.mark.maven
@pytest.mark.parametrize("seed", range(3_000_000, 3_000_000 + FRESH))
def test_kafka_agrees_about_other_kinds_of_groups(seed: int) -> None:
    try:
        oracle()
    except Unavailable as error:
        give_up(error)
    difference, _ = foreign_logs.compared(seed)
    assert difference is None, str(difference)
