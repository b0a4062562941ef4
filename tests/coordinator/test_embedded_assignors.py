"""An embedder's assignors take the place of Kafka's, for each kind of groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from coordwire.coordinator import (
    GroupCoordinator,
    GroupSpec,
    StreamsGroupSpec,
    Target,
    TargetTasks,
)
from coordwire.enums import ErrorCode
from coordwire.messages import ShareGroupHeartbeatRequest
from coordwire.messages.streams_group_heartbeat import Topology
from tests.coordinator.growth_bench import WIDE, WIDE_PARTS, GrowthBench
from tests.coordinator.test_streams_groups import ask, join, shard_with


def _failing(spec: object) -> Any:
    raise RuntimeError("out of order")


def test_a_share_assignor_decides_who_reads_what() -> None:
    specs: list[GroupSpec] = []

    def last_takes_all(spec: GroupSpec) -> Mapping[str, Target]:
        specs.append(spec)
        last = max(spec.members)
        return {last: {topic: tuple(sorted(parts)) for topic, parts in spec.assignable.items()}}

    bench = GrowthBench(1, assignors={"share": {"simple": last_takes_all}})
    epochs: dict[str, int] = {}
    assigned: dict[str, list[int]] = {}
    for _ in range(3):
        for member_id in "ab":
            (answer,) = bench.send(
                ShareGroupHeartbeatRequest(
                    group_id="g", member_id=member_id, member_epoch=epochs.get(member_id, 0),
                    subscribed_topic_names=None if member_id in epochs else ["wide"],
                ),
                1,
            )  # fmt: skip
            assert answer.error_code == 0
            epochs[member_id] = answer.member_epoch
            if answer.assignment is not None:
                parts = answer.assignment.topic_partitions
                assigned[member_id] = parts[0].partitions if parts else []
    assert assigned == {"a": [], "b": list(range(WIDE.partitions))}
    assert specs[0].assignable == {}  # no state was initialized when the first member came
    assert specs[-1].partitions == {WIDE.id: WIDE.partitions}


def test_a_streams_assignor_decides_who_runs_what() -> None:
    def last_runs_all(spec: StreamsGroupSpec) -> Mapping[str, TargetTasks]:
        assert spec.standby_replicas == 0
        tasks = {part_id: frozenset(range(part.tasks)) for part_id, part in spec.subtopologies.items()}
        assert {member.process_id for member in spec.members.values()} <= {"process of a", "process of b"}
        return {max(spec.members): TargetTasks(active=tasks), "nobody": TargetTasks(active=tasks)}

    shard = shard_with({"wide": 3}, assignors={"streams": {"sticky": last_runs_all}})
    topology = Topology(subtopologies=WIDE_PARTS)
    first: Any = ask(shard, join(topology, "a")).response
    assert [part.partitions for part in first.active_tasks] == [[0, 1, 2]]
    ask(shard, join(topology, "b"))
    group: Any = shard.groups["words"]
    assert not group.target("a")
    assert group.target("b") == TargetTasks(active={"0": frozenset({0, 1, 2})})


@pytest.mark.parametrize("kind", ["share", "streams"])
def test_an_assignor_that_raises_is_answered(kind: str) -> None:
    if kind == "share":
        bench = GrowthBench(1, assignors={"share": {"simple": _failing}})
        request = ShareGroupHeartbeatRequest(group_id="g", member_id="m", subscribed_topic_names=["wide"])
        answer: Any = bench.send(request, 1)[0]
        groups = bench.shard.groups
    else:
        shard = shard_with({"wide": 3}, assignors={"streams": {"sticky": _failing}})
        answer = ask(shard, join(Topology(subtopologies=WIDE_PARTS))).response
        groups = shard.groups
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert answer.error_message.endswith(": out of order")
    assert groups == {}


@pytest.mark.parametrize(
    ("assignors", "reason"),
    [
        ({"uniform": _failing}, "expected assignors by kind: consumer, share, streams; got 'uniform'"),
        ({"share": {"mine": _failing}}, "expected a share assignor with the name 'simple', got 'mine'"),
        ({"streams": {"": _failing}}, "expected a streams assignor with the name 'sticky', got ''"),
    ],
)
def test_an_assignor_that_no_group_would_use_is_refused(assignors: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        GroupCoordinator(assignors=assignors)
