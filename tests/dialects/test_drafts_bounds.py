"""What is remembered of a draft's group is bounded, whatever its connections say, and whether they end."""

from __future__ import annotations

from typing import Any

import pytest

from coordwire.capture.entries import ConnectionEnd
from coordwire.dialects import groups, joined_groups, started_groups
from coordwire.dialects.groups import DraftGroups
from coordwire.timeline import group as timeline_group
from coordwire.timeline.evidence import Seen
from coordwire.timeline.from_wire.group_frames import place_of
from tests.dialects.test_drafts_growth import Script

MOST = 10
"""So many members and connections, here."""


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (joined_groups, started_groups, timeline_group):
        monkeypatch.setattr(module, "MOST_MEMBERS", MOST)
    monkeypatch.setattr(groups, "MOST_CONNECTIONS", MOST)
    monkeypatch.setattr(joined_groups, "MOST_TIMEOUTS", MOST)
    monkeypatch.setattr(joined_groups, "MOST_REASONS", MOST)


def read(script: Script) -> DraftGroups:
    known = DraftGroups()
    for entry in script.entries:
        if isinstance(entry, ConnectionEnd):
            list(known.end(entry, Seen(entry.time_ns, entry.capture, 0)))
        else:
            list(known.feed(entry, place_of(entry)))
    return known


def largest(group: Any) -> int:
    """The size of the largest of a group's own collections; those of connections by broker count together."""
    sizes = [len(value) for value in vars(group).values() if isinstance(value, dict | set | list)]
    by_broker: dict[str, set[Any]] = getattr(group, "_open", {})
    return max(*sizes, sum(len(connections) for connections in by_broker.values()))


def test_connections_that_do_not_end() -> None:
    script = Script("draft-3")
    for number in range(10 * MOST):
        name = f"c{number}"
        script.joined(name, script.joins(name), number + 1, number)
    (group,) = read(script)._joined.values()
    assert largest(group) <= MOST + 1


def test_joins_of_one_generation_without_an_end() -> None:
    script = Script("draft-3")
    script.joins("waits")
    for number in range(10 * MOST):
        name = f"c{number % MOST}"
        script.joined(f"d{number}", script.joins(name), 1, number)
    (group,) = read(script)._joined.values()
    assert largest(group) <= MOST + 1


@pytest.mark.parametrize("dialect", ["draft-1", "draft-2"])
def test_consumers_that_register_and_are_not_accepted(dialect: str) -> None:
    script = Script(dialect)
    for number in range(10 * MOST):
        script.registers(f"c{number}")
    (group,) = read(script)._started.values()
    assert largest(group) <= MOST + 1


def test_a_consumer_that_is_lost_again_and_again() -> None:
    script = Script("draft-1")
    for _ in range(200):
        script.registers("c")
        script.accepts("c")
        script.end("c")
    (group,) = read(script)._started.values()
    assert largest(group) <= started_groups.FEW_DEADLINES + 3
