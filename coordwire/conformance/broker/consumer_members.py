"""Cases: consumer groups (KIP-848): subscriptions, assignors, static members, groups of both protocols."""

from __future__ import annotations

import asyncio
import struct
from typing import Any
from uuid import uuid4

from coordwire.conformance.broker.classic_groups import GenerationMember, beat, join, joined
from coordwire.conformance.broker.consumer_groups import (
    HEARTBEAT,
    KIP_848,
    HeartbeatMember,
    as_topics,
    consumer,
    partitions_of,
    refusal,
)
from coordwire.conformance.broker.offsets import committed, fetched
from coordwire.conformance.broker.stage import Stage, case, table
from coordwire.conformance.cases import code_name

__all__: list[str] = []

BOTH = f"{HEARTBEAT}, JoinGroup 5"
DESCRIBE = f"{HEARTBEAT}, ConsumerGroupDescribe 0"


# --- subscriptions ---


async def refused_first(stage: Stage, answer: str, values: dict[str, Any]) -> None:
    member = HeartbeatMember(stage, stage.group(), ["t"])
    stage.equal("error", await refusal(member, **values), answer)


table(KIP_848, HEARTBEAT, refused_first, [
    ("groups/consumer/join/11", "an empty instance id", "INVALID_REQUEST",
     "An instance id is null or has characters.", {"instance_id": ""}),
    ("groups/consumer/join/12", "an empty rack", "INVALID_REQUEST", "A rack is null or has characters.",
     {"rack_id": ""}),
    ("groups/consumer/join/13", "the epoch -3", "INVALID_REQUEST", "Epochs are at least -2.",
     {"member_epoch": -3}),
    ("groups/consumer/join/14", "the epoch -2 without an instance id", "INVALID_REQUEST",
     "Only a static member leaves for a while.", {"member_epoch": -2}),
    ("groups/consumer/join/15", "an empty assignor", "UNSUPPORTED_ASSIGNOR",
     "An assignor is null or the coordinator's.", {"server_assignor": ""}),
    ("groups/consumer/join/16", "a first heartbeat that says nothing of its partitions", "INVALID_REQUEST",
     "Who joins must say what it has: no partitions.", {"topic_partitions": None}),
    ("groups/consumer/join/17", "leaving a group that is not there", "GROUP_ID_NOT_FOUND",
     "Who leaves must be in a group.", {"member_epoch": -1, "topic_partitions": None}),
])  # fmt: skip


@case(
    "groups/consumer/join/18",
    KIP_848,
    "a topic that is not there",
    "no partitions, no error",
    needs=HEARTBEAT,
)
async def case_no_topic(stage: Stage) -> None:
    """A subscription may name a topic that is made later, and gets its partitions then."""
    name = stage.topic_name()
    member = HeartbeatMember(stage, stage.group(), [name])
    await member.beat()
    stage.equal("assignment", member.owned, set())
    topics = [{"name": name, "num_partitions": 2, "replication_factor": -1}]
    await stage.ask("CreateTopics", topics=topics, timeout_ms=10_000)
    await member.beat_until(2)


@case(
    "groups/consumer/join/19",
    KIP_848,
    "another subscription",
    "its partitions, a later epoch",
    needs=HEARTBEAT,
)
async def case_other_subscription(stage: Stage) -> None:
    """A member that subscribes to another topic has that one's partitions in a later epoch."""
    member = await consumer(stage)
    before, topic = member.epoch, await stage.topic(3)
    await member.beat(subscribed_topic_names=[topic])
    await member.beat_until(3)
    topic_id = await stage.topic_id(topic)
    stage.equal("topics", {partition[0] for partition in member.owned}, {topic_id})
    stage.true(member.epoch > before, "the epoch is the one before")


@case("groups/consumer/join/20", KIP_848, "a topic gets more partitions", "they are assigned",
      needs=f"{HEARTBEAT}, CreatePartitions 0")  # fmt: skip
async def case_more_partitions(stage: Stage) -> None:
    """The coordinator sees that a topic has more partitions, and assigns them."""
    member = await consumer(stage, 1)
    topics = [{"name": member.topics[0], "count": 3, "assignments": None}]
    answer = await stage.ask("CreatePartitions", topics=topics, timeout_ms=10_000)
    stage.error("CreatePartitions", answer.results[0].error_code, "NONE")
    await member.beat_until(3)


@case("groups/consumer/join/21", KIP_848, "two members with different topics",
      "each has its own topic's partitions", needs=HEARTBEAT)  # fmt: skip
async def case_different_topics(stage: Stage) -> None:
    """Members of a group may subscribe to different topics."""
    first = await consumer(stage, 2)
    second = HeartbeatMember(stage, first.group, [await stage.topic(2)])
    await second.beat_until(2)
    await first.beat_until(2)
    stage.equal("partitions of both", first.owned & second.owned, set())


@case("groups/consumer/join/22", KIP_848, "a heartbeat with all fields in a stable group",
      "its assignment again", needs=HEARTBEAT)  # fmt: skip
async def case_full_heartbeat(stage: Stage) -> None:
    """A heartbeat that names everything is answered with the assignment: an answer may have been lost."""
    member = await consumer(stage)
    answer = await member.send(
        rebalance_timeout_ms=30_000, subscribed_topic_names=list(member.topics),
        topic_partitions=as_topics(member.owned),
    )  # fmt: skip
    stage.error("ConsumerGroupHeartbeat", answer.error_code, "NONE")
    stage.true(answer.assignment is not None, "there is no assignment")
    stage.equal("assignment", partitions_of(answer.assignment), member.owned)


@case("groups/consumer/join/23", KIP_848, "a heartbeat without changes in a stable group", "no assignment",
      needs=HEARTBEAT)  # fmt: skip
async def case_short_heartbeat(stage: Stage) -> None:
    """A heartbeat that repeats nothing is answered without the assignment, where that didn't change."""
    member = await consumer(stage)
    await member.beat()
    answer = await member.send()
    stage.error("ConsumerGroupHeartbeat", answer.error_code, "NONE")
    stage.equal("assignment", answer.assignment, None)


# --- regular expressions ---


@case("groups/consumer/regex/1", KIP_848, "a regular expression for two of three topics",
      "the partitions of the two", needs=HEARTBEAT)  # fmt: skip
async def case_expression(stage: Stage) -> None:
    """The coordinator resolves a regular expression over the names of topics."""
    topics = [await stage.topic() for _ in range(3)]
    expression = f"{stage.prefix}-topic-[01]"
    member = HeartbeatMember(stage, stage.group(), [])
    await member.beat(subscribed_topic_regex=expression)
    await member.beat_until(2)
    ids = {await stage.topic_id(topic) for topic in topics[:2]}
    stage.equal("topics", {partition[0] for partition in member.owned}, ids)


@case("groups/consumer/regex/2", KIP_848, "a regular expression that matches a part of a name", "nothing",
      needs=HEARTBEAT)  # fmt: skip
async def case_whole_name(stage: Stage) -> None:
    """A regular expression matches whole names."""
    topics = [await stage.topic() for _ in range(2)]
    member = HeartbeatMember(stage, stage.group(), topics[:1])
    await member.beat(subscribed_topic_regex=f"{stage.prefix}-topic-")
    for _ in range(4):
        await asyncio.sleep(0.3)
        await member.beat()
    stage.equal("partitions", len(member.owned), 1)


@case("groups/consumer/regex/3", KIP_848, "a regular expression and the names of topics",
      "the partitions of both", needs=HEARTBEAT)  # fmt: skip
async def case_both_subscriptions(stage: Stage) -> None:
    """A member may subscribe by names and by a regular expression."""
    topics = [await stage.topic() for _ in range(2)]
    member = HeartbeatMember(stage, stage.group(), topics[:1])
    await member.beat(subscribed_topic_regex=f"{stage.prefix}-topic-1")
    await member.beat_until(2)


@case(
    "groups/consumer/regex/4",
    KIP_848,
    "the regular expression is taken back",
    "no partitions",
    needs=HEARTBEAT,
)
async def case_expression_ends(stage: Stage) -> None:
    """An empty regular expression ends the subscription by it."""
    await stage.topic()
    member = HeartbeatMember(stage, stage.group(), [])
    await member.beat(subscribed_topic_regex=f"{stage.prefix}-topic-0")
    await member.beat_until(1)
    await member.beat(subscribed_topic_regex="")
    await member.beat_until(0)


@case("groups/consumer/regex/5", KIP_848, "ConsumerGroupDescribe of a member with a regular expression",
      "the expression", needs=DESCRIBE)  # fmt: skip
async def case_expression_described(stage: Stage) -> None:
    """A member is described with its regular expression."""
    member = HeartbeatMember(stage, stage.group(), [])
    await member.beat(subscribed_topic_regex=f"{stage.prefix}-topic-.*")
    (group,) = (await stage.ask("ConsumerGroupDescribe", group_ids=[member.group])).groups
    expressions = [item.subscribed_topic_regex for item in group.members]
    stage.equal("expressions", expressions, [f"{stage.prefix}-topic-.*"])


# --- assignors ---


async def assigns(stage: Stage, answer: str, name: str) -> None:
    """Two members of two topics with two partitions."""
    topics = [await stage.topic(2) for _ in range(2)]
    first = HeartbeatMember(stage, stage.group(), topics)
    second = HeartbeatMember(stage, first.group, topics)
    await first.beat(server_assignor=name)
    await second.beat(server_assignor=name)

    async def is_balanced() -> bool:
        await first.beat()
        await second.beat()
        return len(first.owned) == 2 == len(second.owned)

    await stage.until(is_balanced, "two members have two partitions each")
    (group,) = (await stage.ask("ConsumerGroupDescribe", group_ids=[first.group])).groups
    stage.equal("assignor", group.assignor_name, name)
    if name == "range":
        topics_of = [{topic for topic, _ in member.owned} for member in (first, second)]
        stage.equal("topics of each", [len(ids) for ids in topics_of], [2, 2])


table(KIP_848, DESCRIBE, assigns, [
    ("groups/consumer/assignor/1", "the assignor uniform", "each member has half",
     "Both of Kafka's assignors are there: uniform shares out all partitions.", "uniform"),
    ("groups/consumer/assignor/2", "the assignor range", "each member has half of each topic",
     "Both of Kafka's assignors are there: range shares out each topic.", "range"),
])  # fmt: skip


# --- members ---


@case("groups/consumer/static/4", KIP_848, "the former member of an instance id sends a heartbeat",
      "UNKNOWN_MEMBER_ID", needs=HEARTBEAT)  # fmt: skip
async def case_static_replaced(stage: Stage) -> None:
    """A static member that left for a while and was replaced under another id is none any more."""
    first = await consumer(stage, instance="s")
    await first.send(member_epoch=-2)
    second = HeartbeatMember(stage, first.group, first.topics, "s")
    await second.beat_until(2)
    error = await refusal(first)
    stage.true(error in ("FENCED_INSTANCE_ID", "UNKNOWN_MEMBER_ID"), f"a heartbeat: {error}")


@case("groups/consumer/static/5", KIP_848, "an unknown instance id with the epoch 3", "UNKNOWN_MEMBER_ID",
      needs=HEARTBEAT)  # fmt: skip
async def case_unknown_instance(stage: Stage) -> None:
    """An instance id must be a member's."""
    first = await consumer(stage, instance="s")
    foreign = HeartbeatMember(stage, first.group, first.topics, "t", epoch=3)
    stage.equal("error", await refusal(foreign), "UNKNOWN_MEMBER_ID")


@case("groups/consumer/static/6", KIP_848, "a static member leaves for a while",
      "its partitions stay with it", needs=HEARTBEAT)  # fmt: skip
async def case_static_keeps(stage: Stage) -> None:
    """What a static member had that left for a while is given to no other."""
    first = await consumer(stage, 2, instance="s")
    second = HeartbeatMember(stage, first.group, first.topics)

    async def is_balanced() -> bool:
        await first.beat()
        await second.beat()
        return len(first.owned) == 1 == len(second.owned)

    await stage.until(is_balanced, "two members have a partition each")
    await first.send(member_epoch=-2)
    for _ in range(4):
        await second.beat()
        await asyncio.sleep(0.3)
    stage.equal("partitions of the second", len(second.owned), 1)


@case("groups/consumer/static/7", KIP_848, "a static member leaves for good",
      "its partitions go to the other", needs=HEARTBEAT)  # fmt: skip
async def case_static_leaves(stage: Stage) -> None:
    """A static member that leaves with the epoch -1 doesn't come back."""
    first = await consumer(stage, 2, instance="s")
    second = HeartbeatMember(stage, first.group, first.topics)
    await second.beat()
    await first.send(member_epoch=-1)
    await second.beat_until(2)


@case("groups/consumer/static/8", KIP_848, "ConsumerGroupDescribe with a static member",
      "its instance id and rack", needs=DESCRIBE)  # fmt: skip
async def case_static_described(stage: Stage) -> None:
    """A static member is described with its instance id, and where it is."""
    member = HeartbeatMember(stage, stage.group(), [await stage.topic()], "s")
    await member.beat(rack_id="r")
    (group,) = (await stage.ask("ConsumerGroupDescribe", group_ids=[member.group])).groups
    facts = [(item.instance_id, item.rack_id) for item in group.members]
    stage.equal("instance id and rack", facts, [("s", "r")])


@case("groups/consumer/reconcile/4", KIP_848, "partitions are not given back within the rebalance timeout",
      "the member is fenced", needs=HEARTBEAT)  # fmt: skip
async def case_rebalance_timeout(stage: Stage) -> None:
    """A member that doesn't give back in time is removed, and the other has everything."""
    first = HeartbeatMember(stage, stage.group(), [await stage.topic(2)])
    await first.beat(rebalance_timeout_ms=1_500)
    await first.beat_until(2)
    had = as_topics(first.owned)
    second = HeartbeatMember(stage, first.group, first.topics)
    await second.beat()

    async def is_to_give_back() -> bool:
        await second.beat()
        answer = await first.send(topic_partitions=had)
        return answer.assignment is not None and len(partitions_of(answer.assignment)) == 1

    await stage.until(is_to_give_back, "the first member is to give back a partition")
    await second.beat_until(2)
    stage.equal("a heartbeat of the first", await refusal(first), "UNKNOWN_MEMBER_ID")


@case("groups/consumer/describe/5", KIP_848, "ConsumerGroupDescribe while a member has to give back",
      "Reconciling", needs=DESCRIBE)  # fmt: skip
async def case_reconciling(stage: Stage) -> None:
    """A group whose members don't have their target yet is reconciling."""
    first = await consumer(stage, 2)
    second = HeartbeatMember(stage, first.group, first.topics)
    await second.beat()

    async def is_reconciling() -> bool:
        await second.beat()
        (group,) = (await stage.ask("ConsumerGroupDescribe", group_ids=[first.group])).groups
        return bool(group.group_state == "Reconciling")

    await stage.until(is_reconciling, "the group is reconciling")


@case(
    "groups/consumer/describe/6",
    KIP_848,
    "ConsumerGroupDescribe after all members left",
    "Empty",
    needs=DESCRIBE,
)
async def case_described_empty(stage: Stage) -> None:
    """A group without members stays, and is empty."""
    member = await consumer(stage)
    await member.send(member_epoch=-1)
    (group,) = (await stage.ask("ConsumerGroupDescribe", group_ids=[member.group])).groups
    stage.equal("state and members", (group.group_state, len(group.members)), ("Empty", 0))


@case("groups/consumer/describe/7", KIP_848, "ConsumerGroupDescribe of a group and of none",
      "an error for the one alone", needs=DESCRIBE)  # fmt: skip
async def case_described_several(stage: Stage) -> None:
    """Each of several groups has an error of its own."""
    member, name = await consumer(stage), stage.group()
    groups = (await stage.ask("ConsumerGroupDescribe", group_ids=[name, member.group])).groups
    errors = {item.group_id: code_name(item.error_code) for item in groups}
    stage.equal("errors", errors, {name: "GROUP_ID_NOT_FOUND", member.group: "NONE"})


@case("groups/consumer/describe/8", "KIP-1099", "ConsumerGroupDescribe 1 of a consumer member", "its type",
      needs=f"{HEARTBEAT}, ConsumerGroupDescribe 1")  # fmt: skip
async def case_member_type(stage: Stage) -> None:
    """A member is described with the protocol that it has: 1 is the consumer protocol."""
    member = await consumer(stage)
    (group,) = (await stage.ask("ConsumerGroupDescribe", at=1, group_ids=[member.group])).groups
    stage.equal("types", [item.member_type for item in group.members], [1])


@case("groups/consumer/delete/2", KIP_848, "DeleteGroups of an empty group", "NONE, and it is gone",
      needs=f"{DESCRIBE}, DeleteGroups 1")  # fmt: skip
async def case_delete_empty(stage: Stage) -> None:
    """An empty group can be deleted."""
    member = await consumer(stage)
    await member.send(member_epoch=-1)
    answer = await stage.ask("DeleteGroups", groups_names=[member.group])
    stage.error("DeleteGroups", answer.results[0].error_code, "NONE")
    (group,) = (await stage.ask("ConsumerGroupDescribe", group_ids=[member.group])).groups
    stage.error("ConsumerGroupDescribe", group.error_code, "GROUP_ID_NOT_FOUND")


# --- both protocols ---


def subscription(*topics: str) -> bytes:
    """A classic member's metadata, in version 0 of the consumer protocol."""
    names = b"".join(struct.pack(">h", len(name)) + name.encode() for name in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", -1)


NO_PARTITIONS = struct.pack(">hii", 0, 0, -1)
"""An assignment, in version 0 of the consumer protocol."""


async def classic(stage: Stage, topic: str) -> GenerationMember:
    """A classic member that subscribes to a topic."""
    protocols = [("range", subscription(topic))]
    return await joined(stage, stage.group(), protocols=protocols, assignment=NO_PARTITIONS)


@case("groups/migration/1", KIP_848, "a consumer member joins a classic group",
      "the group's type is consumer", needs=f"{BOTH}, ListGroups 5")  # fmt: skip
async def case_upgrade(stage: Stage) -> None:
    """A classic group of consumers becomes a consumer group when the first member of that protocol comes."""
    topic = await stage.topic(2)
    old = await classic(stage, topic)
    new = HeartbeatMember(stage, old.group, [topic])
    await new.beat()
    groups = (await stage.ask("ListGroups", types_filter=["consumer"])).groups
    stage.true(old.group in {item.group_id for item in groups}, "it is not among the consumer groups")


@case("groups/migration/2", KIP_848, "a consumer member joins a classic group",
      "the classic member has to join again", needs=BOTH)  # fmt: skip
async def case_upgrade_rebalances(stage: Stage) -> None:
    """Classic members of a consumer group learn from their heartbeats that they have to join again."""
    topic = await stage.topic(2)
    old = await classic(stage, topic)
    new = HeartbeatMember(stage, old.group, [topic])
    await new.beat()

    async def is_rebalancing() -> bool:
        await new.beat()
        return await beat(stage, old) == "REBALANCE_IN_PROGRESS"

    await stage.until(is_rebalancing, "a heartbeat says REBALANCE_IN_PROGRESS")


@case("groups/migration/3", KIP_848, "a group of another protocol type, then a consumer member",
      "GROUP_ID_NOT_FOUND", needs=f"JoinGroup 5, {HEARTBEAT}")  # fmt: skip
async def case_other_type(stage: Stage) -> None:
    """Only classic groups of consumers become consumer groups."""
    answer = await join(stage, group := stage.group(), await stage.client(), protocol_type="connect")
    stage.error("JoinGroup", answer.error_code, "NONE")
    new = HeartbeatMember(stage, group, [await stage.topic()])
    stage.equal("error", await refusal(new), "GROUP_ID_NOT_FOUND")


@case("groups/migration/4", KIP_848, "an empty classic group, then a consumer member",
      "it joins; the offsets stay", needs=f"{BOTH}, OffsetFetch 7")  # fmt: skip
async def case_empty_upgrade(stage: Stage) -> None:
    """An empty classic group becomes a consumer group, with the offsets that it had."""
    topic, group = await stage.topic(2), stage.group()
    await committed(stage, group, topic, 5)
    await HeartbeatMember(stage, group, [topic]).beat_until(2)
    stage.equal("offset", (await fetched(stage, group, topic)).committed_offset, 5)


@case("groups/migration/5", KIP_848, "an empty consumer group, then a classic member",
      "it leads generation 1", needs=BOTH)  # fmt: skip
async def case_empty_downgrade(stage: Stage) -> None:
    """An empty consumer group becomes a classic group when a member of that protocol comes."""
    member = await consumer(stage)
    await member.send(member_epoch=-1)
    answer = await join(stage, member.group, protocols=[("range", subscription(*member.topics))])
    stage.error("JoinGroup", answer.error_code, "NONE")
    stage.equal("leader", answer.leader, answer.member_id)


@case("groups/migration/6", KIP_848, "a classic member joins a consumer group",
      "it joins, and has partitions", needs=f"{BOTH}, SyncGroup 3")  # fmt: skip
async def case_classic_joins(stage: Stage) -> None:
    """A classic member of consumers may join a consumer group: the coordinator assigns to it too."""
    first = await consumer(stage, 2)
    client = await stage.client()
    answer = await join(stage, first.group, client, protocols=[("range", subscription(*first.topics))])
    stage.error("JoinGroup", answer.error_code, "NONE")
    stage.true(answer.leader != answer.member_id, "the classic member leads")
    (group,) = (await stage.ask("ConsumerGroupDescribe", group_ids=[first.group])).groups
    stage.equal("members", len(group.members), 2)


@case("groups/migration/7", KIP_848, "a classic member of another protocol joins a consumer group",
      "INCONSISTENT_GROUP_PROTOCOL", needs=f"{HEARTBEAT}, JoinGroup 5")  # fmt: skip
async def case_classic_other(stage: Stage) -> None:
    """Classic members of a consumer group are consumers."""
    first = await consumer(stage)
    answer = await join(stage, first.group, protocol_type="connect")
    stage.error("JoinGroup", answer.error_code, "INCONSISTENT_GROUP_PROTOCOL")


@case("groups/migration/8", KIP_848, "the last consumer member leaves a group with a classic one",
      "the group's type is classic", needs=f"{BOTH}, ListGroups 5")  # fmt: skip
async def case_downgrade(stage: Stage) -> None:
    """A consumer group in which classic members alone stay becomes a classic group."""
    topic = await stage.topic(2)
    old = await classic(stage, topic)
    new = HeartbeatMember(stage, old.group, [topic])
    await new.beat()
    await new.send(member_epoch=-1)

    async def is_classic() -> bool:
        groups = (await stage.ask("ListGroups", types_filter=["classic"])).groups
        return old.group in {item.group_id for item in groups}

    await stage.until(is_classic, "it is among the classic groups")


@case("groups/migration/9", "KIP-1099", "ConsumerGroupDescribe 1 of a classic member", "its type",
      needs=f"{BOTH}, ConsumerGroupDescribe 1")  # fmt: skip
async def case_classic_type(stage: Stage) -> None:
    """Members of both protocols are described with theirs: 0 is the classic protocol."""
    topic = await stage.topic(2)
    old = await classic(stage, topic)
    await HeartbeatMember(stage, old.group, [topic]).beat()
    (group,) = (await stage.ask("ConsumerGroupDescribe", at=1, group_ids=[old.group])).groups
    types = {item.member_type for item in group.members}
    stage.equal("types", types, {0, 1})


async def refused_in_consumer_group(stage: Stage, answer: str, api: str, values: dict[str, Any]) -> None:
    first = await consumer(stage)
    names: dict[str, Any] = {"group_id": first.group, "member_id": first.id}
    stage.error(api, (await stage.ask(api, generation_id=first.epoch, **names | values)).error_code, answer)


for number, (api, values) in enumerate(
    [("Heartbeat", {}), ("SyncGroup", {"protocol_type": "consumer", "protocol_name": "range"})], 10
):
    table(KIP_848, f"{HEARTBEAT}, {api} 3", refused_in_consumer_group, [
        (f"groups/migration/{number}", f"{api} by a consumer member", "UNKNOWN_MEMBER_ID",
         "A member of the consumer protocol has no requests of the classic one.", api, values),
    ])  # fmt: skip


@case(
    "groups/consumer/epochs/9",
    KIP_848,
    "a member leaves twice",
    "NONE, then UNKNOWN_MEMBER_ID",
    needs=HEARTBEAT,
)
async def case_leave_twice(stage: Stage) -> None:
    """Who left can't leave again."""
    member = await consumer(stage)
    stage.error("leaving", (await member.send(member_epoch=-1)).error_code, "NONE")
    stage.equal("leaving again", await refusal(member, member_epoch=-1), "UNKNOWN_MEMBER_ID")


@case(
    "groups/consumer/epochs/10",
    KIP_848,
    "a second member joins",
    "a later epoch for the first",
    needs=HEARTBEAT,
)
async def case_epoch_grows(stage: Stage) -> None:
    """Every change of a group's members gives it a later epoch."""
    first = await consumer(stage, 2)
    before = first.epoch
    await HeartbeatMember(stage, first.group, first.topics, id=str(uuid4())).beat()

    async def has_moved() -> bool:
        await first.beat()
        return first.epoch > before

    await stage.until(has_moved, "the epoch moves on after a member came")
