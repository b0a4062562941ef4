"""Rolls of groups that are made here: what is refused, what is idle, what falls back, in every order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest

from coordwire.capture import Capture
from coordwire.coordinator import CoordinatorConfig
from coordwire.designs.rehearsal import (
    RecordedGroup,
    RehearsalConfig,
    RollConfig,
    RollStep,
    find_captured_groups,
    rehearse,
    roll,
)
from coordwire.designs.rehearsal.recorded_group import recorded_group
from coordwire.designs.simulator.runs import simulate
from coordwire.errors import Malformed
from coordwire.messages import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    GroupMetadataValue,
)
from coordwire.messages.classic_group_records import MemberMetadata
from coordwire.messages.consumer_protocol import ConsumerProtocolAssignmentTopicPartition
from tests.growth import assert_linear

VERSION = b"\0\3"


def member(
    name: str, owned: dict[str, list[int]], *, instance: str | None = None, data: bytes | None = None,
    session_ms: int = 45_000,
) -> MemberMetadata:  # fmt: skip
    subscription = ConsumerProtocolSubscription(topics=sorted(owned))
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=partitions)
            for topic, partitions in owned.items()
        ],
        user_data=data,
    )
    return MemberMetadata(
        member_id=f"{name}-1", group_instance_id=instance, client_id=name, client_host="/10.0.0.9",
        rebalance_timeout=300_000, session_timeout=session_ms,
        subscription=VERSION + subscription.encode(version=3),
        assignment=VERSION + assignment.encode(version=3),
    )  # fmt: skip


def group(
    members: Sequence[MemberMetadata], *, protocol: str = "range", kind: str = "consumer"
) -> RecordedGroup:
    value = GroupMetadataValue(
        protocol_type=kind, generation=7, protocol=protocol, leader=members[0].member_id,
        members=list(members),
    )  # fmt: skip
    return recorded_group("orders", value, 3, {})


THREE = [member(name, {"orders": [2 * number, 2 * number + 1]}) for number, name in enumerate("abc")]


def texts(rehearsed: object) -> str:
    return " | ".join(advice.text for advice in rehearsed.advice)  # type: ignore[attr-defined]


def test_every_order_is_rolled_and_its_costs_are_known() -> None:
    rehearsed = rehearse(group(THREE))
    assert rehearsed.succeeds
    assert [each.release for each in rehearsed.releases] == ["4.3.0", "4.3.1", "4.4.0"]
    for each in rehearsed.releases:
        assert len({known.order for known in each.upgrades}) == rehearsed.possible == 6
        assert each.complete == 6
        for known in each.upgrades:
            assert [restart.kind for restart in known.restarts] == ["consumer"] * 3
            assert known.rebalances == 6  # each leaves and joins
            assert known.longest_ms >= 100
            assert all(restart.twice_ms == 0 for restart in known.restarts)
        assert all(known.fallbacks == 1 for known in each.back)
        assert {known.restarts[-1].kind for known in each.back} == {"classic"}
        assert {tuple(restart.kind for restart in known.restarts) for known in each.setbacks} == {
            ("consumer", "classic")
        }
        assert all(known.restarts[-1].kind == "classic" for known in each.plain)


def test_static_members_keep_their_partitions() -> None:
    static = [member(name, {"orders": [number]}, instance=f"till-{name}") for number, name in enumerate("ab")]
    rehearsed = rehearse(group(static), RehearsalConfig(releases=("4.4.0",)))
    for known in rehearsed.releases[0].upgrades:
        assert (known.rebalances, known.is_complete) == (0, True)
        assert all(5_000 <= restart.idle_ms <= 6_500 for restart in known.restarts)
        assert all(restart.moved == 0 for restart in known.restarts)


def test_cooperative_members_rebalance_once_more_for_what_moves() -> None:
    rolled = [
        roll(
            group(THREE, protocol=protocol),
            [RollStep(name, "classic") for name in "abc"],
            CoordinatorConfig(),
        )
        for protocol in ("range", "cooperative-sticky")
    ]
    assert [[restart.rebalances for restart in known.restarts] for known in rolled] == [[2] * 3, [3] * 3]


def test_data_of_a_custom_assignor_is_refused() -> None:
    custom = [member(name, {"orders": [number]}, data=b"\7") for number, name in enumerate("ab")]
    rehearsed = rehearse(group(custom, protocol="mine"))
    assert [each.complete for each in rehearsed.releases] == [0, 0, 0]
    (error, text), places = next(iter(rehearsed.releases[0].refusals.items()))
    assert error == "GROUP_ID_NOT_FOUND"
    assert "an unsupported custom assignor is in use" in text
    assert len(places) == 2
    assert "The assignor mine adds data of its own" in rehearsed.advice[0].text
    assert all(not each.back for each in rehearsed.releases)


def test_groups_of_others_and_full_ones_are_refused() -> None:
    rehearsed = rehearse(group(THREE, kind="connect"), RehearsalConfig(releases=("4.4.0",)))
    assert "does not use the consumer embedded protocol" in next(iter(rehearsed.releases[0].refusals))[1]
    assert "protocol type is 'connect'" in rehearsed.advice[0].text
    config = RehearsalConfig(releases=("4.4.0",), broker={"group.consumer.max.size": "1"})
    rehearsed = rehearse(group(THREE), config)
    assert "exceeds the consumer group maximum size" in next(iter(rehearsed.releases[0].refusals))[1]
    assert "group.consumer.max.size is 1" in texts(rehearsed)


def test_a_partition_of_two_members_is_the_known_fault() -> None:
    both = [member(name, {"orders": [0, 1]}, instance=name) for name in "ab"]
    rehearsed = rehearse(group(both), RehearsalConfig(releases=("4.4.0",)))
    assert {key[0] for key in rehearsed.releases[0].refusals} == {"UNKNOWN_SERVER_ERROR"}
    assert any(advice.ticket == "KAFKA-21684" for advice in rehearsed.advice)


def test_without_downgrades_the_group_stays_a_consumer_group() -> None:
    config = RehearsalConfig(releases=("4.4.0",), broker={"group.consumer.migration.policy": "upgrade"})
    rehearsed = rehearse(group(THREE), config)
    assert rehearsed.succeeds
    assert {known.fallbacks for known in rehearsed.releases[0].back} == {0}
    assert {known.restarts[-1].kind for known in rehearsed.releases[0].back} == {"consumer"}
    assert "group.consumer.migration.policy is upgrade" in texts(rehearsed)


def test_settings_that_clients_must_drop_are_named() -> None:
    short = [member(name, {"orders": [number]}, session_ms=10_000) for number, name in enumerate("ab")]
    rehearsed = rehearse(group(short, protocol="cooperative-sticky"), RehearsalConfig(releases=("4.4.0",)))
    assert "session.timeout.ms (10,000 ms: a, b)" in texts(rehearsed)
    assert "partition.assignment.strategy (the group uses cooperative-sticky)" in texts(rehearsed)


def test_orders_of_many_members_are_a_sample_by_a_seed() -> None:
    many = group([member(f"m{number}", {"orders": [number]}) for number in range(7)])
    config = RehearsalConfig(releases=("4.4.0",), orders=3)
    first, again = (rehearse(many, config) for _ in range(2))
    other = rehearse(many, replace(config, roll=RollConfig(seed=2)))
    orders = [[known.order for known in each.releases[0].upgrades] for each in (first, again, other)]
    assert orders[0] == orders[1] != orders[2]
    assert len(set(orders[0])) == 3
    assert first == again
    assert first.possible == 5_040


def test_limits_and_malformed_members() -> None:
    wide = group([member("a", {"orders": [2_000_000_000]})])
    with pytest.raises(ValueError, match="at most 100,000 partitions, got 2,000,000,001"):
        rehearse(wide)
    with pytest.raises(ValueError, match="at most 300 members, got 301"):
        rehearse(group([member("a", {"orders": [0]})] * 301))
    with pytest.raises(ValueError, match="one id twice"):
        rehearse(group([THREE[0], THREE[0]]))
    with pytest.raises(Malformed):
        rehearse(group([member(name, {"orders": [0]}, instance="x") for name in "ab"]))
    unread = member("b", {"orders": [1]}, instance="b")
    unread.assignment = b"\0\3\0\0"
    rehearsed = rehearse(group([THREE[0], unread]), RehearsalConfig(releases=("4.4.0",)))
    assert "Of b: its assignment is malformed" in texts(rehearsed)
    broken = member("b", {"orders": [1]})
    broken.subscription = b"\0\3\0\0"
    rehearsed = rehearse(group([THREE[0], broken]), RehearsalConfig(releases=("4.4.0",)))
    assert "the embedded consumer protocol is malformed" in str(rehearsed.releases[0].refusals)
    assert "Of b: its subscription is malformed" in texts(rehearsed)


def test_members_with_one_name_are_told_apart() -> None:
    twins = group([replace(THREE[0], member_id="x"), replace(THREE[1], client_id="a")])
    assert [each.name for each in twins.members] == ["a #1", "a #2"]
    rolled = roll(twins, [RollStep("a #2"), RollStep("a #1")], CoordinatorConfig())
    assert rolled.is_complete


def test_names_are_linear_in_the_members() -> None:
    def members(n: int) -> list[MemberMetadata]:
        return [member("app" if number % 2 else f"app-{number}", {}) for number in range(n)]

    assert_linear(members, group, 200)


def test_a_capture_shows_the_group_of_its_last_generation(tmp_path: Path) -> None:
    file = tmp_path / "run.pcap"
    with file.open("wb") as stream:
        simulate("classic", members=3, partitions=6, seed=3, duration_ms=20_000, pcap=stream)
    groups = find_captured_groups(Capture(BytesIO(file.read_bytes()), "run.pcap").entries())
    captured = groups["group"]
    assert [each.name for each in captured.members] == ["consumer-1", "consumer-2", "consumer-3"]
    assert sorted(place for each in captured.members for place in each.owned) == [
        ("orders", number) for number in range(6)
    ]
    assert {each.assignors for each in captured.members} == {("range",)}
    assert {each.record.session_timeout for each in captured.members} == {6_000}
    assert rehearse(captured, RehearsalConfig(releases=("4.4.0",))).succeeds


def test_heartbeats_follow_the_seed() -> None:
    steps = [RollStep(name) for name in "abc"]
    idle = {
        roll(group(THREE), steps, CoordinatorConfig(), RollConfig(seed=seed)).idle_ms for seed in range(4)
    }
    assert len(idle) > 1


def test_large_groups_have_fewer_orders() -> None:
    many = group([member(f"m{number:02}", {"orders": [number]}) for number in range(16)])
    rehearsed = rehearse(many, RehearsalConfig(releases=("4.4.0",)))
    assert len(rehearsed.releases[0].upgrades) == 9
    assert rehearsed.releases[0].complete == 9


def test_faults_of_releases_are_named_where_the_group_can_meet_them() -> None:
    static = [member(name, {"orders": [number]}, instance=name) for number, name in enumerate("ab")]
    tickets = [advice.ticket for advice in rehearse(group(static, protocol="sticky")).advice if advice.ticket]
    assert tickets == ["KAFKA-21684", "KAFKA-21582"]
    assert not any(advice.ticket for advice in rehearse(group(THREE)).advice)
