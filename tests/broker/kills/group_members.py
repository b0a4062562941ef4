"""Members of groups while the broker is killed: one of a classic group, one of a consumer group.

Rule: a member goes on with its id, and its generation or epoch.
"""

from __future__ import annotations

import asyncio
from typing import Any

from coordwire.enums import ErrorCode
from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    SyncGroupRequest,
)
from coordwire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequestTopicPartitions as Owned
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.sync_group import SyncGroupRequestAssignment
from tests.broker.kills.repeating_link import (
    CLASSIC,
    CONSUMER,
    PARTITIONS,
    TOPIC,
    Link,
    Wrong,
    expect,
)


class ClassicMember:
    """A member of a classic group: it joins once, and its generation outlives each kill."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.heartbeats = 0

    async def run(self) -> None:
        link = self._link
        protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
        join = JoinGroupRequest(
            group_id=CLASSIC, session_timeout_ms=60_000, rebalance_timeout_ms=60_000,
            protocol_type="consumer", protocols=protocols, group_instance_id="one",
        )  # fmt: skip
        joined = await link.ask(join, 9)
        expect("JoinGroup", joined.error_code)
        who: dict[str, Any] = {"group_id": CLASSIC, "member_id": joined.member_id, "group_instance_id": "one"}
        share = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"mine")
        sync = SyncGroupRequest(
            **who, generation_id=joined.generation_id, assignments=[share], protocol_type="consumer",
            protocol_name="range",
        )  # fmt: skip
        synced = await link.ask(sync, 5)
        if synced.error_code or synced.assignment != b"mine":
            # A group is written with its assignment: a broker that was killed before that has none.
            expect(
                "SyncGroup",
                synced.error_code,
                ErrorCode.REBALANCE_IN_PROGRESS,
                ErrorCode.UNKNOWN_MEMBER_ID,
            )
            await self.run()
        while True:
            answer = await link.ask(HeartbeatRequest(**who, generation_id=joined.generation_id), 4)
            expect("Heartbeat", answer.error_code)
            self.heartbeats += 1
            await asyncio.sleep(0.005)


class ConsumerMember:
    """A member of a consumer group, which keeps its id, epoch and partitions."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.heartbeats = 0

    async def run(self) -> None:
        who: dict[str, Any] = {"group_id": CONSUMER, "member_id": "b5jnOxQOSHu2KIvv1nLvuA"}
        first = ConsumerGroupHeartbeatRequest(
            **who, member_epoch=0, rebalance_timeout_ms=60_000, subscribed_topic_names=[TOPIC],
            topic_partitions=[],
        )  # fmt: skip
        owned: list[Owned] = []
        epoch = 0
        while not epoch or sum(len(one.partitions) for one in owned) != PARTITIONS:
            answer = await self._link.ask(
                ConsumerGroupHeartbeatRequest(**who, member_epoch=epoch, topic_partitions=owned)
                if epoch
                else first,
                0,
            )
            expect("ConsumerGroupHeartbeat", answer.error_code)
            epoch = answer.member_epoch
            if answer.assignment is not None:
                owned = [
                    Owned(topic_id=partition.topic_id, partitions=list(partition.partitions))
                    for partition in answer.assignment.topic_partitions
                ]
            await asyncio.sleep(0.01)
        while True:
            answer = await self._link.ask(ConsumerGroupHeartbeatRequest(**who, member_epoch=epoch), 0)
            expect("ConsumerGroupHeartbeat", answer.error_code)
            if answer.member_epoch != epoch or answer.assignment is not None:
                raise Wrong(
                    f"epoch {answer.member_epoch} and {answer.assignment}, expected epoch {epoch} only"
                )
            self.heartbeats += 1
            await asyncio.sleep(0.005)
