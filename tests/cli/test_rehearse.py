"""`coordwire rehearse`: the verdict, the table, the advice, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.broker_sample import broker_sample

from .conftest import Run

DATA = str(broker_sample() / "data")


def test_the_upgrade_of_a_recorded_group(run: Run) -> None:
    result = run("rehearse", DATA, "--release", "4.3.0", "--release", "4.4")
    assert (result.status, result.err) == (0, "")
    lines = result.text.splitlines()
    assert lines[0].startswith("── orders-classic 2 members, 3 partitions, range, generation 2 ──")
    assert lines[1:3] == [
        "✓ 4.3.0  the upgrade goes through, in 2 orders of restarts",
        "✓ 4.4.0  the upgrade goes through, in 2 orders of restarts",
    ]
    assert all(len(line) <= 80 for line in lines)
    assert "all members back: the group falls back to classic" in result.text
    assert run("rehearse", DATA, "--release", "4.3.0", "--release", "4.4").out == result.out


def test_a_policy_that_refuses_is_named(run: Run) -> None:
    words = ("rehearse", DATA, "--broker", "group.consumer.migration.policy=disabled")
    result = run(*words)
    assert (result.status, result.err) == (1, "")
    assert "✗ 4.4.0  the upgrade does not go through" in result.text
    assert "✗ GROUP_ID_NOT_FOUND: 4.3.0 in 2 of 2 orders" in result.text
    assert "because online upgrade is disabled." in " ".join(result.text.split())
    assert "change first\n- group.consumer.migration.policy is disabled" in result.text
    assert all(len(line) <= 80 for line in result.text.splitlines())
    form = json.loads(run(*words, "--format", "json").text)
    assert form["succeeds"] is False
    assert [each["complete"] for each in form["releases"]] == [0, 0, 0]
    assert form["advice"][0]["kind"] == "change"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            ["--group", "orders-clasic"],
            "no classic group orders-clasic with members there; did you mean orders",
        ),
        (["--release", "4.2"], "--release: expected a release of 4.3.0, 4.3.1, 4.4.0, got '4.2'"),
        (["--broker", "group.consumer.migraton.policy=x"], "did you mean group.consumer.migration.policy?"),
        (["--broker", "group.consumer.migration.policy=x"], "expected one of bidirectional, upgrade,"),
        (["--broker", "x"], "--broker: expected NAME=VALUE, got 'x'"),
        (["--partitions", "codec-non=3"], "does not subscribe to codec-non; did you mean codec-none?"),
        (["--partitions", "several.segments=1"], "expected at least the 2 that were seen, got 1"),
        (["--partitions", "several.segments"], "--partitions: expected TOPIC=N"),
        (["--partitions", "several.segments=999999"], "expected at most 100,000 partitions, got 1,000,000"),
        (["--orders", "0"], "--orders: expected 1 to 10,000, got 0"),
        (["--away", "soon"], "--away: expected a time such as 5s"),
    ],
)
def test_what_can_not_be_rehearsed(run: Run, words: list[str], error: str) -> None:
    result = run("rehearse", DATA, *words)
    assert result.status == 2
    assert result.out == b""
    assert error in " ".join(result.err.split())


def test_a_capture_and_its_groups(run: Run, captures: Path) -> None:
    capture = captures / "confluent__rdmock__group-range.pcap"
    result = run("rehearse", capture, "--release", "4.4.0", "--format", "json")
    assert (result.status, result.err) == (0, "")
    form = json.loads(result.text)
    assert form["group"] == "g-range"
    assert form["partitions"] == {"t-group": 4, "t-group2": 2}
    assert len(form["members"]) == 3
    assert form["releases"][0]["complete"] == 6
    empty = run("rehearse", captures / "confluent__noida__sasl.pcap")
    assert (empty.status, empty.out) == (2, b"")
    assert "no classic group with members there" in empty.err
    assert run("rehearse", "nowhere.pcap").status == 2
