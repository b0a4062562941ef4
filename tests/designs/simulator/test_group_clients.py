"""Models of members of each kind of group with a coordinator on two nodes, with and without faults."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pytest

from coordwire.capture import Capture
from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.designs.simulator import PcapWriter, World, parse_faults
from coordwire.designs.simulator.kafka import (
    ClassicClient,
    Cluster,
    ConsumerClient,
    GroupClient,
    GroupClientConfig,
)
from coordwire.designs.simulator.kafka.heartbeats import HEARTBEATS
from coordwire.enums import ErrorCode
from coordwire.timeline import MemberJoined, MemberLeft, timeline

TOPICS = {"orders": 6, "payments": 4}
EVERY = {("group", topic, index) for topic, count in TOPICS.items() for index in range(count)}
KINDS = ["classic", "cooperative", *HEARTBEATS]


class Run:
    """A group of some members, and all that they said."""

    def __init__(self, kind: str, seed: int, members: int = 4, plan: str = "", **settings: Any) -> None:
        self.file = io.BytesIO()
        self.world = World(seed=seed, tap=PcapWriter(self.file))
        self.cluster = Cluster(self.world, topics=TOPICS)
        for number in range(1, members + 1):
            config = GroupClientConfig(
                topics=tuple(TOPICS),
                client_id=f"till-{number}",
                cooperative=kind == "cooperative",
                **settings,
            )
            make: Callable[[GroupClientConfig], GroupClient] = ClassicClient
            if kind in HEARTBEATS:
                make = partial(ConsumerClient, heartbeats=HEARTBEATS[kind])
            self.world.add(f"consumer-{number}", partial(make, config), at=number * 500)
        self.world.plan(parse_faults(plan))

    def client(self, number: int) -> GroupClient:
        process = self.world.nodes[f"consumer-{number}"].process
        assert isinstance(process, GroupClient)
        return process

    def check_owned_once(self) -> None:
        ownership = self.world.ownership
        assert {
            partition: len(ownership.owners(partition)) for partition in ownership.partitions
        } == dict.fromkeys(EVERY, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_members_share_the_partitions(kind: str) -> None:
    run = Run(kind, 1)
    run.world.run(30_000)
    run.check_owned_once()
    assert run.world.ownership.duplicated_ms == 0
    sizes = Counter(len(run.client(number).owned) for number in range(1, 5))
    assert sizes == {2: 2, 3: 2}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "plan",
    [
        "30s crash consumer-2", "30s crash consumer-2 for 5s", "30s freeze consumer-1 for 40s",
        "30s cut consumer-3 coordinator-* for 40s", "30s crash coordinator-1 for 10s",
        "30s freeze coordinator-1 for 10s", "30s drop consumer-* coordinator-*", "30s leave consumer-4",
    ],
)  # fmt: skip
def test_members_share_the_partitions_after_a_fault(kind: str, plan: str) -> None:
    run = Run(kind, 2, plan=plan)
    run.world.run(200_000)
    run.check_owned_once()


@pytest.mark.parametrize("kind", ["classic", "cooperative"])
def test_a_member_that_subscribes_anew_while_it_joins_joins_again(kind: str) -> None:
    run = Run(kind, 3, members=2, plan="1500ms subscribe consumer-2 payments")
    run.world.run(1_500)
    client = run.client(2)
    assert isinstance(client, ClassicClient)
    assert (client.phase, client.topics) == ("joining", ("payments",))
    run.world.run(30_000)
    assert {topic for topic, _ in client.owned} == {"payments"}


def test_a_static_member_that_comes_back_in_time_keeps_its_partitions() -> None:
    plan = "30s crash consumer-1 for 2s"
    run = Run("classic", 1, members=1, plan=plan, instance_id="till", session_timeout_ms=20_000)
    run.world.run(100_000)
    run.check_owned_once()
    group = run.cluster.process("coordinator-1")
    assert group is not None
    groups = group.shard.groups.values()
    assert [group.generation for group in groups if isinstance(group, ClassicGroupModel)] == [1]


def test_topics_that_grow_are_assigned() -> None:
    for kind in KINDS:
        run = Run(kind, 1)
        run.world.clock.at(30_000, run.cluster.change_topics, {"orders": 7})
        run.world.run(120_000)
        assert len(run.world.ownership.owners(("group", "orders", 6))) == 1


def test_appends_that_wait_are_written_together() -> None:
    """As Kafka's coordinators gather the records of several requests; else a large group never settles."""

    def writes(most_together: int | None) -> list[int]:
        world = World(seed=1)
        cluster = Cluster(world, topics={"orders": 80}, write_ms=(20, 40), most_together=most_together)
        append, sizes = cluster.append, []

        def counted(epoch: int, records: Iterable[tuple[bytes, bytes | None]]) -> ErrorCode | None:
            results = list(records)
            sizes.append(len(results))
            return append(epoch, results)

        cluster.append = counted  # type: ignore[method-assign]
        for number in range(1, 41):
            config = GroupClientConfig(client_id=f"till-{number}")
            world.add(f"consumer-{number}", partial(ConsumerClient, config), at=500)
        world.run(30_000)
        owners = [len(world.ownership.owners(partition)) for partition in world.ownership.partitions]
        assert owners == [1] * 80
        return sizes

    one_by_one, together = writes(1), writes(None)
    assert max(one_by_one) < 100 < max(together)
    assert len(together) < len(one_by_one) / 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_is_a_capture_that_the_timeline_reads(kind: str) -> None:
    run = Run(kind, 1, plan="40s crash consumer-2")
    run.world.run(90_000)
    results = list(timeline(Capture(io.BytesIO(run.file.getvalue()), "run.pcap").entries()))
    joined = {event.member_id for event in results if isinstance(event, MemberJoined)}
    member_ids = {event.member_id for event in results if isinstance(event, MemberLeft)}
    assert joined >= {run.client(number).member_id for number in (1, 3, 4)}
    assert len(joined) == 4
    assert len(member_ids) == 1


SCRIPT = """
from tests.designs.simulator.test_group_clients import digests
print(digests())
"""


def digests() -> list[str]:
    results = []
    for kind in KINDS:
        run = Run(kind, 3, plan="20s crash coordinator-1 for 9s; 30s freeze consumer-2 for 30s")
        run.world.run(60_000)
        results.append(hashlib.sha256(run.file.getvalue()).hexdigest())
    return results


def test_a_seed_gives_the_same_bytes_whatever_the_hashes_are() -> None:
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True,
        env={**os.environ, "PYTHONHASHSEED": seed},
    )  # fmt: skip
    assert result.stdout.strip() == str(digests())
