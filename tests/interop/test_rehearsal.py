"""`coordwire.designs.rehearsal` against upgrades that are really done, on brokers of two releases.

Rules: what is refused and its text, and the number of rebalances, are equal. Idle time depends on when
members heartbeat: the real one is within that of 20 seeds, with room for clients that take a while to start.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from coordwire.coordinator import CoordinatorConfig
from coordwire.designs.rehearsal import RecordedGroup, Roll, RollConfig, RollStep, find_groups, roll
from coordwire.messages import ConsumerGroupMetadataValue, GroupMetadataValue
from coordwire.timeline.from_log.coordinator_log import CoordinatorRecord, LogItem, read_file
from coordwire.timeline.from_log.files import find_files
from tests.interop.conftest import give_up
from tests.interop.maven import Unavailable
from tests.interop.rolled_group import RealGroup, roll_really

pytestmark = pytest.mark.maven

GROUPS = (
    RealGroup("eager", {"orders": 6, "bills": 3}, {"eager-1": "-", "eager-2": "-", "eager-3": "-"}),
    RealGroup(
        "careful", {"tills": 6}, {"careful-1": "till-1", "careful-2": "till-2", "careful-3": "-"},
        "consumer.CooperativeStickyAssignor",
    ),
    RealGroup("custom", {"custom": 3}, {"custom-1": "-", "custom-2": "-"}, "RollingMembers$WithData"),
)  # fmt: skip
SETTINGS = {"group.initial.rebalance.delay.ms": "0"}
AWAY_S = 3
SEEDS = range(20)


def items(folder: Path) -> Iterator[LogItem]:
    for file in find_files([folder]):
        if file.log == "consumer_offsets":
            yield from read_file(file)


def generation(folder: Path, group_id: str) -> int:
    """The last generation, or epoch, of a group in the log."""
    values = [
        item.value for item in items(folder) if isinstance(item, CoordinatorRecord) and item.group == group_id
    ]
    last = [value for value in values if isinstance(value, ConsumerGroupMetadataValue | GroupMetadataValue)]
    return last[-1].epoch if isinstance(last[-1], ConsumerGroupMetadataValue) else last[-1].generation


def rehearsed(group: RecordedGroup, real: RealGroup, release: str) -> list[Roll]:
    config = CoordinatorConfig(release=release).with_settings(SETTINGS)
    names = [name if instance == "-" else instance for name, instance in real.members.items()]
    steps = [RollStep(name) for name in names]
    settings = [RollConfig(away_ms=AWAY_S * 1000, pause_ms=6_000, seed=seed) for seed in SEEDS]
    return [roll(group, steps, config, setting) for setting in settings]


@pytest.mark.parametrize("release", ["4.3.0", "4.4.0"])
def test_it_goes_as_rehearsed(release: str, tmp_path: Path) -> None:
    try:
        before, after, rolls = roll_really(release, tmp_path, GROUPS, away_s=AWAY_S, settings=SETTINGS)
    except Unavailable as error:
        give_up(error)
    groups = find_groups(items(before))
    assert set(groups) == {real.group_id for real in GROUPS}
    for real, real_roll in zip(GROUPS, rolls, strict=True):
        rolled = rehearsed(groups[real.group_id], real, release)
        failures = [[f"GroupIdNotFoundException: {each.text}" for each in one.refusals] for one in rolled]
        assert failures == [real_roll.failures] * len(SEEDS)
        assert real_roll.settles
        assert {one.is_complete for one in rolled} == {not real_roll.failures}
        rebalances = generation(after, real.group_id) - generation(before, real.group_id)
        assert {one.rebalances for one in rolled} == {rebalances}
        idle = [one.idle_ms for one in rolled]
        assert 0.8 * min(idle) <= sum(real_roll.idle_ms.values()) <= 1.3 * max(idle) + 1_000
