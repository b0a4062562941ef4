"""Timelines of recordings with a real broker, held to its coordinator's own log.

tests/data/stories has the captures and what the log says (see record/README.md). Whole captures
must be told as the log tells them: who was in, generations and epochs, causes, who caused them, lengths, who
had what. Captures that are not whole (lost packets, one side, a late beginning, cut packets) may leave things
out, and must not tell what never was.
"""

from __future__ import annotations

import json
import lzma
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.conftest import run as run
from tests.timeline.derived import DERIVED, packets
from tests.timeline.story_checks import differences, false_claims

STORIES = Path(__file__).parent.parent / "data" / "stories"
NAMES = sorted(path.stem for path in STORIES.glob("*.json"))
MUTILATED = ("classic-causes", "consumer-causes", "share-causes", "streams-causes")

Told = list[dict[str, Any]]


@pytest.fixture(scope="module")
def known() -> dict[str, Told]:
    """What was told of whole recordings by the tests before."""
    return {}


def capture_of(name: str) -> bytes:
    return lzma.decompress((STORIES / f"{name}.pcap.xz").read_bytes())


def truth_of(name: str) -> dict[str, Any]:
    truth: dict[str, Any] = json.loads((STORIES / f"{name}.json").read_text())
    return truth


def tell(run: Run, capture: bytes, folder: Path) -> Told:
    path = folder / "capture.pcap"
    path.write_bytes(capture)
    return run("timeline", "--format", "json", path).forms


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_is_told_as_the_coordinator_logged_it(
    name: str, run: Run, tmp_path: Path, known: dict[str, Told]
) -> None:
    capture = capture_of(name)
    told = known[name] = tell(run, capture, tmp_path)
    end = packets(capture)[-1].micros // 1000
    results = list(differences(told, truth_of(name)["groups"], end))
    assert not results, "\n".join([f"{name}:", *results])


@pytest.mark.parametrize("how", DERIVED)
@pytest.mark.parametrize("name", MUTILATED)
def test_what_is_told_of_half_a_capture_was_so(name: str, how: str, run: Run, tmp_path: Path) -> None:
    told = tell(run, DERIVED[how](capture_of(name)), tmp_path)
    results = list(false_claims(told, truth_of(name)["groups"]))
    assert not results, "\n".join([f"{name}, {how}:", *results])


def clients_words(truth: dict[str, Any]) -> Iterator[tuple[int, str, str]]:
    """When a client said that it has which partitions."""
    for time, name, *remaining in truth["assigned"]:
        yield int(time), name, remaining[0] if remaining else ""


def test_members_have_what_their_clients_say(run: Run, tmp_path: Path) -> None:
    """A classic group's assignments are opaque to its coordinator; its members know them."""
    compared = 0
    for name in ("classic-causes", "classic-freezes", "classic-static"):
        truth = truth_of(name)
        told = tell(run, capture_of(name), tmp_path)
        who = {one["memberId"]: one["clientId"] for one in told if one["event"] == "memberJoined"}
        said: dict[str, list[tuple[int, str]]] = defaultdict(list)
        for time, client, has in clients_words(truth):
            said[client].append((time, has))
        for fact in truth["groups"][name]["generations"]:
            for one in told:
                if one["event"] != "rebalanceEnded" or one["generation"] != fact["generation"]:
                    continue
                for share in one["assignments"]:
                    has = ",".join(sorted(f"{p['topic']}-{p['partition']}" for p in share["partitions"]))
                    until = fact["steady"] + 1500
                    words = [
                        text for time, text in said[who[share["memberId"]]] if fact["began"] < time < until
                    ]
                    if words and one["outcome"] == "steady":
                        assert has in words, f"{name}, generation {fact['generation']}: {share['memberId']}"
                        compared += 1
    assert compared > 20


def test_the_recordings_have_every_cause(run: Run, tmp_path: Path, known: dict[str, Told]) -> None:
    """The situations that are looked at are many; by kind of group."""
    causes: dict[str, Counter[str]] = defaultdict(Counter)
    for name in NAMES:
        for one in known.get(name) or tell(run, capture_of(name), tmp_path):
            if one["event"] == "rebalanceEnded":
                causes[one["kind"]][one["cause"]] += 1
    assert set(causes["classic"]) >= {
        "first_member", "new_member", "static_member_returned", "member_left", "session_timeout",
        "subscription_changed", "partitions_revoked", "leader_rejoined", "member_rejoined",
    }  # fmt: skip
    assert set(causes["consumer"]) >= {
        "first_member", "new_member", "static_member_returned", "member_left", "session_timeout",
        "subscription_changed", "assignment_changed",
    }  # fmt: skip
    for kind in ("share", "streams"):
        assert set(causes[kind]) >= {"first_member", "new_member", "member_left", "session_timeout"}


@pytest.fixture(scope="module")
def right() -> tuple[Told, dict[str, Any]]:
    """Lines that tell one recording as its log does, made from the log."""
    truth = truth_of("classic-causes")["groups"]
    (group,) = truth
    lines: Told = []
    for fact in truth[group]["joined"]:
        lines.append(
            {
                "event": "memberJoined",
                "memberId": fact["member"],
                "instanceId": None,
                **at(fact["time"]),
            }
        )
    for fact in truth[group]["left"]:
        lines.append(
            {
                "event": "memberLeft",
                "memberId": fact["member"],
                "how": fact["how"],
                **at(fact["time"]),
            }
        )
    causes = [
        "first_member", "new_member", "subscription_changed", "leader_rejoined", "new_member",
        "session_timeout", "member_left",
    ]  # fmt: skip
    for cause, fact in zip(causes, truth[group]["generations"], strict=False):
        lines.append(
            {
                "event": "rebalanceEnded", "generation": fact["generation"], "outcome": "steady",
                "cause": cause, "members": ["?"] * fact["members"], "memberId": None, "inferred": False,
                "assignments": [], "lengthMs": 0,
                "began": at(fact["began"])["time"], "ended": at(fact["steady"])["time"],
                **at(fact["steady"]),
            }
        )  # fmt: skip
    told = [{"group": group, **one} for one in sorted(lines, key=lambda line: line["time"])]
    return told, truth


def at(millis: int) -> dict[str, str]:
    return {"time": datetime.fromtimestamp(millis / 1000, UTC).isoformat()}


def test_what_the_log_says_is_no_difference(right: tuple[Told, dict[str, Any]]) -> None:
    told, truth = right
    assert list(differences(told, truth, 1 << 60)) == []
    assert list(false_claims(told, truth)) == []


@pytest.mark.parametrize(
    ("event", "changes", "words"),
    [
        ("memberLeft", {"how": "left"}, "went by session_timeout, told as"),
        ("memberLeft", {"time": "2026-11-22T08:00:00+00:00"}, "which is told for"),
        ("memberLeft", {"memberId": "somebody"}, "it went at no time"),
        ("memberJoined", {"memberId": "somebody"}, "joined at"),
        ("rebalanceEnded", {"generation": 77}, "generation 77 is told as steady and never was"),
        ("rebalanceEnded", {"outcome": "empty"}, "isn't told"),
        ("rebalanceEnded", {"members": []}, "0 members told"),
        ("rebalanceEnded", {"cause": "partitions_revoked"}, "partitions_revoked is told"),
        ("rebalanceEnded", {"memberId": "somebody"}, "by ['somebody'] as told"),
        ("rebalanceEnded", {"began": "2026-11-22T08:00:00+00:00"}, "began"),
        ("rebalanceEnded", {"ended": "2026-11-22T08:00:00+00:00"}, "steady"),
    ],
)
def test_a_difference_is_found(
    event: str, changes: dict[str, Any], words: str, right: tuple[Told, dict[str, Any]]
) -> None:
    told, truth = right
    changed = [dict(one) for one in told]
    next(one for one in changed if one["event"] == event).update(changes)
    results = list(differences(changed, truth, 1 << 60))
    assert any(words in text for text in results), results


def test_standby_tasks_are_those_that_the_coordinator_logged(run: Run, tmp_path: Path) -> None:
    """Its log has each member's "new assignment state", with its standby tasks."""
    rows = tell(run, capture_of("streams-standby"), tmp_path)
    clients = {event["memberId"]: event["clientId"][0] for event in rows if event["event"] == "memberJoined"}
    standby = {
        event["generation"]: {
            clients[part["memberId"]]: [task["partition"] for task in part["partitions"]]
            for part in event["standby"]
        }
        for event in rows
        if event["event"] == "rebalanceEnded" and event["outcome"] == "steady"
    }
    logged = {3: {}, 4: {"a": [2, 3], "b": [0, 1]}, 5: {}, 6: {"a": [2, 3], "c": [0, 1]}, 7: {}}
    assert standby == logged
