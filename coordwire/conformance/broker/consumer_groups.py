"""Cases: consumer groups, whose coordinator assigns (KIP-848)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from coordwire.conformance.broker.stage import Stage, case
from coordwire.conformance.cases import Broken, code_name

KIP_848, KIP_1082 = "KIP-848", "KIP-1082"
HEARTBEAT = "ConsumerGroupHeartbeat 1"
REBALANCE_MS = 30_000

Partitions = set[tuple[UUID, int]]


@dataclass(slots=True)
class HeartbeatMember:
    """A member that takes and gives back partitions as the coordinator wants it. owned: what it has."""

    stage: Stage
    group: str
    topics: Sequence[str]
    instance: str | None = None
    id: str = field(default_factory=lambda: str(uuid4()))
    epoch: int = 0
    owned: Partitions = field(default_factory=set)

    async def send(self, **values: Any) -> Any:
        """The answer to a heartbeat; what it doesn't have to repeat is left out."""
        fields: dict[str, Any] = {
            "group_id": self.group, "member_id": self.id, "member_epoch": self.epoch,
            "instance_id": self.instance, "rebalance_timeout_ms": -1,
        }  # fmt: skip
        if self.epoch == 0:
            fields |= {
                "rebalance_timeout_ms": REBALANCE_MS, "subscribed_topic_names": list(self.topics),
                "topic_partitions": [],
            }  # fmt: skip
        return await self.stage.ask("ConsumerGroupHeartbeat", **fields | values)

    async def beat(self, **values: Any) -> Any:
        """Send a heartbeat with what it owns, and do what the answer has."""
        owned = {} if self.epoch == 0 else {"topic_partitions": as_topics(self.owned)}
        answer = await self.send(**owned | values)
        self.stage.error("ConsumerGroupHeartbeat", answer.error_code, "NONE")
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = partitions_of(answer.assignment)
        return answer

    async def beat_until(self, count: int) -> None:
        """Send heartbeats until it owns so many partitions."""
        await self.stage.until_beaten(
            self.beat, lambda: len(self.owned) == count, f"a member has {count} partitions"
        )


def partitions_of(assignment: Any) -> Partitions:
    return {(topic.topic_id, number) for topic in assignment.topic_partitions for number in topic.partitions}


def as_topics(partitions: Partitions) -> list[dict[str, Any]]:
    topics: dict[UUID, list[int]] = {}
    for topic_id, number in sorted(partitions, key=str):
        topics.setdefault(topic_id, []).append(number)
    return [{"topic_id": topic_id, "partitions": numbers} for topic_id, numbers in topics.items()]


async def consumer(stage: Stage, partitions: int = 2, *, instance: str | None = None) -> HeartbeatMember:
    """The only member of a new group, which has all partitions of a new topic."""
    member = HeartbeatMember(stage, stage.group(), [await stage.topic(partitions)], instance)
    await member.beat_until(partitions)
    return member


async def refusal(member: HeartbeatMember, **values: Any) -> str:
    return code_name((await member.send(**values)).error_code)


@case(
    "groups/consumer/join/1",
    KIP_848,
    "the first heartbeat, with a topic",
    "all partitions, an epoch above 0",
    needs=HEARTBEAT,
)
async def case_first(stage: Stage) -> None:
    """The only member gets every partition of the topics to which it subscribes."""
    member = await consumer(stage, 3)
    topic_id = await stage.topic_id(member.topics[0])
    stage.equal("assignment", member.owned, {(topic_id, number) for number in range(3)})
    stage.true(member.epoch > 0, "its epoch is not above 0")


@case("groups/consumer/join/2", KIP_848, "a heartbeat", "an interval above 0 for the next", needs=HEARTBEAT)
async def case_interval(stage: Stage) -> None:
    """The coordinator says how often it wants heartbeats."""
    member = HeartbeatMember(stage, stage.group(), [await stage.topic()])
    stage.true((await member.beat()).heartbeat_interval_ms > 0, "the interval is not above 0")


@case(
    "groups/consumer/join/3", KIP_1082, "heartbeat 1 without a member id", "INVALID_REQUEST", needs=HEARTBEAT
)
async def case_no_id(stage: Stage) -> None:
    """From version 1 on a member makes its id itself."""
    member = HeartbeatMember(stage, stage.group(), ["t"], id="")
    stage.equal("error", await refusal(member), "INVALID_REQUEST")


@case(
    "groups/consumer/join/4",
    KIP_848,
    "heartbeat 0 without a member id",
    "an id",
    needs="ConsumerGroupHeartbeat 0",
)
async def case_id_of_the_coordinator(stage: Stage) -> None:
    """In version 0 a member may leave its id to the coordinator."""
    member = HeartbeatMember(stage, stage.group(), [await stage.topic()], id="")
    answer = await member.send(at=0)
    stage.error("error", answer.error_code, "NONE")
    stage.true(bool(answer.member_id), "no member id comes with it")


@case(
    "groups/consumer/join/5", KIP_848, "a first heartbeat without topics", "INVALID_REQUEST", needs=HEARTBEAT
)
async def case_no_topics(stage: Stage) -> None:
    """Who joins must say to what."""
    member = HeartbeatMember(stage, stage.group(), ["t"])
    stage.equal("error", await refusal(member, subscribed_topic_names=None), "INVALID_REQUEST")


@case(
    "groups/consumer/join/6",
    KIP_848,
    "a first heartbeat without a rebalance timeout",
    "INVALID_REQUEST",
    needs=HEARTBEAT,
)
async def case_no_timeout(stage: Stage) -> None:
    """Who joins must say how long it needs to give back partitions."""
    member = HeartbeatMember(stage, stage.group(), ["t"])
    stage.equal("error", await refusal(member, rebalance_timeout_ms=-1), "INVALID_REQUEST")


@case(
    "groups/consumer/join/7", KIP_848, "a first heartbeat with partitions", "INVALID_REQUEST", needs=HEARTBEAT
)
async def case_partitions_at_first(stage: Stage) -> None:
    """Who joins owns nothing."""
    member = HeartbeatMember(stage, stage.group(), ["t"])
    owned = [{"topic_id": uuid4(), "partitions": [0]}]
    stage.equal("error", await refusal(member, topic_partitions=owned), "INVALID_REQUEST")


@case(
    "groups/consumer/join/8",
    KIP_848,
    "an assignor that the broker lacks",
    "UNSUPPORTED_ASSIGNOR",
    needs=HEARTBEAT,
)
async def case_unknown_assignor(stage: Stage) -> None:
    """An assignor must be the coordinator's."""
    member = HeartbeatMember(stage, stage.group(), ["t"])
    stage.equal("error", await refusal(member, server_assignor="dice"), "UNSUPPORTED_ASSIGNOR")


@case("groups/consumer/join/9", KIP_848, "an empty group id", "INVALID_REQUEST", needs=HEARTBEAT)
async def case_empty_group(stage: Stage) -> None:
    """A group has a name."""
    member = HeartbeatMember(stage, "", ["t"])
    stage.error("error", (await member.send()).error_code, "INVALID_REQUEST", "INVALID_GROUP_ID")


@case(
    "groups/consumer/join/10",
    KIP_848,
    "a regular expression that is none",
    "INVALID_REGULAR_EXPRESSION",
    needs=HEARTBEAT,
)
async def case_wrong_expression(stage: Stage) -> None:
    """The coordinator checks a subscription's regular expression."""
    member = HeartbeatMember(stage, stage.group(), [])
    stage.equal("error", await refusal(member, subscribed_topic_regex="(["), "INVALID_REGULAR_EXPRESSION")


@case(
    "groups/consumer/epochs/1",
    KIP_848,
    "a heartbeat with an unknown id with the epoch 3",
    "UNKNOWN_MEMBER_ID",
    needs=HEARTBEAT,
)
async def case_unknown_member(stage: Stage) -> None:
    """An epoch above 0 is a member's."""
    member = await consumer(stage)
    stranger = HeartbeatMember(stage, member.group, member.topics, epoch=3)
    stage.equal("error", await refusal(stranger), "UNKNOWN_MEMBER_ID")


@case(
    "groups/consumer/epochs/2",
    KIP_848,
    "a heartbeat with the next epoch",
    "FENCED_MEMBER_EPOCH",
    needs=HEARTBEAT,
)
async def case_greater_epoch(stage: Stage) -> None:
    """An epoch that the coordinator has not given fences the member."""
    member = await consumer(stage)
    stage.equal("error", await refusal(member, member_epoch=member.epoch + 1), "FENCED_MEMBER_EPOCH")


@case(
    "groups/consumer/epochs/3",
    KIP_848,
    "a heartbeat with the epoch before, and partitions that it had",
    "the current epoch",
    needs=HEARTBEAT,
)
async def case_lost_answer(stage: Stage) -> None:
    """A member whose last answer was lost may repeat its heartbeat, and gets the current epoch."""
    # A topic older than the member's is known to the coordinator by now, so that the epoch moves once.
    later_topic = await stage.topic()
    member = await consumer(stage)
    before = member.epoch
    topics = [*member.topics, later_topic]
    await member.send(subscribed_topic_names=topics, topic_partitions=as_topics(member.owned))

    async def has_moved() -> bool:
        answer = await member.send(member_epoch=before, topic_partitions=as_topics(member.owned))
        stage.error("the epoch before", answer.error_code, "NONE")
        return bool(answer.member_epoch > before)

    await stage.until(has_moved, "the epoch moves on after another subscription")
    answer = await member.send(member_epoch=before, topic_partitions=as_topics(member.owned))
    stage.error("the epoch before", answer.error_code, "NONE")
    stage.true(answer.member_epoch > before, "the answer has the epoch before")


@case(
    "groups/consumer/epochs/4",
    KIP_848,
    "the epoch before, and partitions that it never had",
    "FENCED_MEMBER_EPOCH",
    needs=HEARTBEAT,
)
async def case_stale_epoch(stage: Stage) -> None:
    """The epoch before is taken only with partitions that the member has."""
    member = await consumer(stage)
    before = member.epoch
    await member.beat(subscribed_topic_names=[*member.topics, await stage.topic()])
    await member.beat_until(3)
    stage.true(member.epoch > before, "another subscription left the epoch as it was")
    foreign = as_topics({(uuid4(), 0)})
    error = await refusal(member, member_epoch=before, topic_partitions=foreign)
    stage.equal("error", error, "FENCED_MEMBER_EPOCH")


@case(
    "groups/consumer/epochs/5",
    KIP_848,
    "a heartbeat with the epoch 3 in no group",
    "GROUP_ID_NOT_FOUND",
    needs=HEARTBEAT,
)
async def case_unknown_group(stage: Stage) -> None:
    """Only a first heartbeat makes a group."""
    member = HeartbeatMember(stage, stage.group(), ["t"], epoch=3)
    answer = await member.send()
    stage.error("error", answer.error_code, "GROUP_ID_NOT_FOUND", "UNKNOWN_MEMBER_ID")


@case(
    "groups/consumer/epochs/6",
    KIP_848,
    "a heartbeat with the epoch -1, then another",
    "-1, then an error",
    needs=HEARTBEAT,
)
async def case_leave(stage: Stage) -> None:
    """A member that leaves is none any more."""
    member = await consumer(stage)
    answer = await member.send(member_epoch=-1)
    stage.error("leaving", answer.error_code, "NONE")
    stage.equal("epoch", answer.member_epoch, -1)
    stage.equal("a heartbeat after it", await refusal(member), "UNKNOWN_MEMBER_ID")


@case(
    "groups/consumer/epochs/7",
    KIP_848,
    "a member joins again with the epoch 0",
    "its assignment",
    needs=HEARTBEAT,
)
async def case_rejoin(stage: Stage) -> None:
    """A member that has lost its state begins at 0 under its id, and gets its partitions again."""
    member = await consumer(stage)
    member.epoch, member.owned = 0, set()
    await member.beat_until(2)


@case(
    "groups/consumer/epochs/8",
    KIP_848,
    "the epoch 0 again, in a stable group",
    "the group's epoch stays",
    needs=HEARTBEAT,
)
async def case_rejoin_keeps_the_epoch(stage: Stage) -> None:
    """Who joins again with the same subscription changes nothing."""
    member = await consumer(stage)
    before, member.epoch = member.epoch, 0
    stage.equal("epoch", (await member.beat()).member_epoch, before)


@case(
    "groups/consumer/reconcile/1",
    KIP_848,
    "a second member joins",
    "each has half; none is owned twice",
    needs=HEARTBEAT,
)
async def case_reconcile(stage: Stage) -> None:
    """A partition is given to a member only after the one that had it gave it back."""
    first = await consumer(stage, 4)
    second = HeartbeatMember(stage, first.group, first.topics)

    async def is_balanced() -> bool:
        answer = await second.beat()
        if answer.assignment is not None and second.owned & first.owned:
            raise Broken("a partition is given to a member while another has it")
        if len(first.owned) == 2 == len(second.owned):
            return True
        await first.beat()
        return False

    await stage.until(is_balanced, "two members have two partitions each")
    stage.equal("all partitions", len(first.owned | second.owned), 4)


@case(
    "groups/consumer/reconcile/2",
    KIP_848,
    "a second member joins, the first gives nothing back",
    "the second has none",
    needs=HEARTBEAT,
)
async def case_no_release(stage: Stage) -> None:
    """What a member doesn't give back is not given to another."""
    first = await consumer(stage, 2)
    had = as_topics(first.owned)
    second = HeartbeatMember(stage, first.group, first.topics)
    for _ in range(6):
        await second.beat()
        stage.equal("partitions of the second", second.owned, set())
        await first.send(topic_partitions=had)
        await asyncio.sleep(0.3)


@case(
    "groups/consumer/reconcile/3",
    KIP_848,
    "one of two members leaves",
    "the other has all again",
    needs=HEARTBEAT,
)
async def case_leave_of_two(stage: Stage) -> None:
    """What a member had that left goes to those who stay."""
    first = await consumer(stage, 2)
    second = HeartbeatMember(stage, first.group, first.topics)

    async def is_balanced() -> bool:
        await first.beat()
        await second.beat()
        return len(first.owned) == 1 == len(second.owned)

    await stage.until(is_balanced, "two members have a partition each")
    await second.send(member_epoch=-1)
    await first.beat_until(2)


@case(
    "groups/consumer/static/1",
    KIP_848,
    "a second member with the same instance id",
    "UNRELEASED_INSTANCE_ID",
    needs=HEARTBEAT,
)
async def case_instance_in_use(stage: Stage) -> None:
    """An instance id is one member's at a time."""
    first = await consumer(stage, instance="s")
    second = HeartbeatMember(stage, first.group, first.topics, "s")
    stage.equal("error", await refusal(second), "UNRELEASED_INSTANCE_ID")


@case(
    "groups/consumer/static/2",
    KIP_848,
    "the epoch -2, then a new member with the instance id",
    "its partitions",
    needs=HEARTBEAT,
)
async def case_static_return(stage: Stage) -> None:
    """A static member that left for a while has its partitions when it comes back."""
    first = await consumer(stage, instance="s")
    answer = await first.send(member_epoch=-2)
    stage.error("leaving for a while", answer.error_code, "NONE")
    stage.equal("epoch", answer.member_epoch, -2)
    second = HeartbeatMember(stage, first.group, first.topics, "s")
    await second.beat_until(2)
    stage.equal("assignment", second.owned, first.owned)


@case(
    "groups/consumer/static/3",
    KIP_848,
    "the instance id of one member with the id of another",
    "FENCED_INSTANCE_ID",
    needs=HEARTBEAT,
)
async def case_instance_fenced(stage: Stage) -> None:
    """A member id must be the one that its instance id has now."""
    first = await consumer(stage, instance="s")
    stranger = HeartbeatMember(stage, first.group, first.topics, "s", epoch=first.epoch)
    stage.equal("error", await refusal(stranger), "FENCED_INSTANCE_ID")


@case(
    "groups/consumer/describe/1",
    KIP_848,
    "ConsumerGroupDescribe",
    "state, epochs, members and assignments",
    needs=f"{HEARTBEAT}, ConsumerGroupDescribe 0",
)
async def case_describe(stage: Stage) -> None:
    """A group is described with what its members have and are to have."""
    member = await consumer(stage)
    await member.beat()
    (group,) = (await stage.ask("ConsumerGroupDescribe", group_ids=[member.group])).groups
    stage.error("ConsumerGroupDescribe", group.error_code, "NONE")
    stage.equal("state", group.group_state, "Stable")
    stage.equal("epochs", (group.group_epoch, group.assignment_epoch), (member.epoch, member.epoch))
    (described,) = group.members
    stage.equal("member", (described.member_id, described.member_epoch), (member.id, member.epoch))
    stage.equal("subscription", list(described.subscribed_topic_names), list(member.topics))
    stage.equal("assignment", partitions_of(described.assignment), member.owned)
    stage.equal("target", partitions_of(described.target_assignment), member.owned)


@case(
    "groups/consumer/describe/2",
    KIP_848,
    "ConsumerGroupDescribe of no group",
    "GROUP_ID_NOT_FOUND",
    needs=f"{HEARTBEAT}, ConsumerGroupDescribe 0",
)
async def case_describe_unknown(stage: Stage) -> None:
    """A group that is not there is not described."""
    (group,) = (await stage.ask("ConsumerGroupDescribe", group_ids=[stage.group()])).groups
    stage.error("ConsumerGroupDescribe", group.error_code, "GROUP_ID_NOT_FOUND")


@case(
    "groups/consumer/list/1",
    KIP_848,
    "ListGroups of consumer groups",
    "the group, with its type",
    needs=f"{HEARTBEAT}, ListGroups 5",
)
async def case_list(stage: Stage) -> None:
    """A consumer group is listed as one."""
    member = await consumer(stage)
    groups = (await stage.ask("ListGroups", types_filter=["Consumer"])).groups
    types = {item.group_id: item.group_type.lower() for item in groups}
    stage.equal("its type", types.get(member.group), "consumer")


@case(
    "groups/consumer/delete/1",
    KIP_848,
    "DeleteGroups of a group with a member",
    "NON_EMPTY_GROUP",
    needs=f"{HEARTBEAT}, DeleteGroups 1",
)
async def case_delete(stage: Stage) -> None:
    """A group with members is not deleted."""
    member = await consumer(stage)
    answer = await stage.ask("DeleteGroups", groups_names=[member.group])
    stage.error("DeleteGroups", answer.results[0].error_code, "NON_EMPTY_GROUP")
    stage.equal("a heartbeat after it", await refusal(member), "NONE")
