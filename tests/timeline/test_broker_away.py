"""A coordinator that is killed, and one that stops cleanly, while a member of each group dies.

The recording has three groups (classic, KIP-848, share) at one Kafka 4.4.0 broker; its coordinator's log says
who was out, and when. Held to it are who left and who is in at the end, and the outages as events.
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from coordwire.timeline.events import BrokerAway
from tests.cli.conftest import Run
from tests.cli.conftest import run as run
from tests.growth import assert_linear
from tests.timeline.script import Script, only
from tests.timeline.story_checks import _in_at_the_end, _left

FOLDER = Path(__file__).parent.parent / "data" / "outages"
CAPTURE = "broker-killed"
Told = list[dict[str, Any]]


@pytest.fixture(name="told")
def told_events(run: Run, tmp_path: Path) -> Told:
    path = tmp_path / "capture.pcap"
    path.write_bytes(lzma.decompress((FOLDER / f"{CAPTURE}.pcap.xz").read_bytes()))
    return run("timeline", "--format", "json", path).forms


def test_the_outages_are_events_of_each_group(told: Told) -> None:
    away = [event for event in told if event["event"] == "brokerAway"]
    assert sorted(event["group"] for event in away) == ["cls", "cls", "new", "new", "shr", "shr"]
    for event in away:
        assert event["answeredBy"] == event["broker"]
        assert event["connections"] >= 8
        assert event["packets"] == sorted(event["packets"])
    first, second = sorted({event["time"][:19] for event in away})
    assert (first, second) == ("2026-11-26T15:15:37", "2026-11-26T15:16:12")
    assert all(
        event["until"][:17] == ("2026-11-26T15:15:" if event["time"][:19] == first else "2026-11-26T15:16:")
        for event in away
    )


def test_nobody_goes_while_the_coordinator_is_away(told: Told) -> None:
    for outage in (event for event in told if event["event"] == "brokerAway"):
        gone = [
            event
            for event in told
            if event["event"] == "memberLeft"
            and event["group"] == outage["group"]
            and outage["time"] < event["time"] < outage["until"]
        ]
        assert gone == []


def test_members_go_as_the_coordinator_logged_it(told: Told) -> None:
    truth = json.loads((FOLDER / f"{CAPTURE}.json").read_text())["groups"]
    assert set(truth) == {"cls", "new", "shr"}
    for group, facts in truth.items():
        events = [event for event in told if event["group"] == group]
        assert [*_left(events, facts, 1 << 60), *_in_at_the_end(events, facts, 1 << 60)] == []
        assert [fact["how"] for fact in facts["left"]].count("session_timeout") >= 1


def ending(n: int) -> Script:
    """So many groups of one broker, half of which have members, and that broker ends so many connections."""
    script = Script()
    for number in range(n):
        script.group = f"g{number}"
        script.heartbeat(f"c{number}", 1)
        if number % 2:
            script.leave(f"c{number}")
    script.close(*(f"c{number}" for number in range(n)), sender="broker")
    return script


def test_each_connection_that_a_broker_ends_costs_the_same_with_many_groups() -> None:
    assert_linear(ending, lambda script: script.events(ends=True), 400)


def test_all_groups_of_a_broker_that_ends_its_connections_are_away() -> None:
    away = only(ending(8).events(ends=True), BrokerAway)
    assert sorted(event.group for event in away) == ["g0", "g2", "g4", "g6"]
    assert {event.connections for event in away} == {8}
