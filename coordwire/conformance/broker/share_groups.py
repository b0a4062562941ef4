"""Cases: share groups (KIP-932): their members, how they are described, and their offsets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from coordwire.conformance.broker.consumer_groups import Partitions, consumer, partitions_of
from coordwire.conformance.broker.stage import Stage, case, table

KIP_932 = "KIP-932"
HEARTBEAT = "ShareGroupHeartbeat 1"
DESCRIBE = f"{HEARTBEAT}, ShareGroupDescribe 1"


@dataclass(slots=True)
class SharingMember:
    """A member of a share group. owned: its partitions."""

    stage: Stage
    group: str
    topics: Sequence[str]
    id: str = field(default_factory=lambda: str(uuid4()))
    epoch: int = 0
    owned: Partitions = field(default_factory=set)

    async def send(self, **values: Any) -> Any:
        fields: dict[str, Any] = {
            "group_id": self.group, "member_id": self.id, "member_epoch": self.epoch,
        }  # fmt: skip
        names = {"subscribed_topic_names": list(self.topics)} if self.epoch == 0 else {}
        return await self.stage.ask("ShareGroupHeartbeat", **fields | names | values)

    async def beat(self, **values: Any) -> Any:
        """Send a heartbeat, and take what the answer has."""
        answer = await self.send(**values)
        self.stage.error("ShareGroupHeartbeat", answer.error_code, "NONE")
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = partitions_of(answer.assignment)
        return answer

    async def beat_until(self, count: int) -> None:
        """Send heartbeats until it has so many partitions."""
        await self.stage.until_beaten(
            self.beat, lambda: len(self.owned) == count, f"a member has {count} partitions"
        )


async def sharer(stage: Stage, partitions: int = 1, group: str = "") -> SharingMember:
    """The only member of a new share group, which has all partitions of a new topic."""
    member = SharingMember(stage, group or stage.group(), [await stage.topic(partitions)])
    await member.beat_until(partitions)
    return member


async def refused_first(stage: Stage, answer: str, values: dict[str, Any]) -> None:
    member = SharingMember(stage, stage.group(), ["t"])
    stage.error("ShareGroupHeartbeat", (await member.send(**values)).error_code, answer)


table(KIP_932, HEARTBEAT, refused_first, [
    ("groups/share/join/1", "a heartbeat without a member id", "INVALID_REQUEST",
     "A member makes its id itself.", {"member_id": ""}),
    ("groups/share/join/2", "an empty group id", "INVALID_REQUEST", "A group has a name.", {"group_id": ""}),
    ("groups/share/join/3", "a first heartbeat without topics", "INVALID_REQUEST",
     "Who joins must say to what.", {"subscribed_topic_names": None}),
    ("groups/share/join/4", "a first heartbeat with an empty list of topics", "INVALID_REQUEST",
     "Who joins subscribes to a topic at least.", {"subscribed_topic_names": []}),
    ("groups/share/join/5", "an empty rack", "INVALID_REQUEST", "A rack is null or has characters.",
     {"rack_id": ""}),
    ("groups/share/join/6", "the epoch -2", "INVALID_REQUEST",
     "Share groups have no static members, so no one leaves for a while.", {"member_epoch": -2}),
    ("groups/share/epochs/1", "a heartbeat with the epoch 3 in no group", "GROUP_ID_NOT_FOUND",
     "Only a first heartbeat makes a group.", {"member_epoch": 3}),
    ("groups/share/epochs/2", "leaving a group that is not there", "GROUP_ID_NOT_FOUND",
     "Who leaves must be in a group.", {"member_epoch": -1}),
])  # fmt: skip


async def refused_member(stage: Stage, answer: str, epoch: int, values: dict[str, Any]) -> None:
    """epoch: beyond the member's."""
    member = await sharer(stage)
    result = await member.send(**{"member_epoch": member.epoch + epoch} | values)
    stage.error("ShareGroupHeartbeat", result.error_code, answer)


table(KIP_932, HEARTBEAT, refused_member, [
    ("groups/share/epochs/3", "a heartbeat with a strange member id", "UNKNOWN_MEMBER_ID",
     "An epoch above 0 is a member's.", 0, {"member_id": "no-member"}),
    ("groups/share/epochs/4", "a heartbeat with the next epoch", "FENCED_MEMBER_EPOCH",
     "An epoch that the coordinator has not given fences the member.", 1, {}),
    ("groups/share/epochs/5", "leaving with a strange member id", "UNKNOWN_MEMBER_ID",
     "Only members leave.", 0, {"member_epoch": -1, "member_id": "no-member"}),
])  # fmt: skip


@case(
    "groups/share/join/7", KIP_932, "the first heartbeat", "all partitions, an epoch above 0", needs=HEARTBEAT
)
async def case_first(stage: Stage) -> None:
    """The only member gets every partition of the topics to which it subscribes."""
    member = await sharer(stage, 3)
    topic_id = await stage.topic_id(member.topics[0])
    stage.equal("assignment", member.owned, {(topic_id, number) for number in range(3)})
    stage.true(member.epoch > 0, "its epoch is not above 0")


@case("groups/share/join/8", KIP_932, "a heartbeat", "an interval above 0 for the next", needs=HEARTBEAT)
async def case_interval(stage: Stage) -> None:
    """The coordinator says how often it wants heartbeats."""
    member = SharingMember(stage, stage.group(), [await stage.topic()])
    stage.true((await member.beat()).heartbeat_interval_ms > 0, "the interval is not above 0")


@case("groups/share/join/9", KIP_932, "a heartbeat with a member id", "the same id", needs=HEARTBEAT)
async def case_same_id(stage: Stage) -> None:
    """The answer has the id that the member made."""
    member = SharingMember(stage, stage.group(), [await stage.topic()])
    stage.equal("member id", (await member.beat()).member_id, member.id)


@case(
    "groups/share/join/10", KIP_932, "a topic that is not there", "no partitions, no error", needs=HEARTBEAT
)
async def case_no_topic(stage: Stage) -> None:
    """A subscription may name a topic that is made later."""
    member = SharingMember(stage, stage.group(), [stage.topic_name()])
    await member.beat()
    stage.equal("assignment", member.owned, set())


@case("groups/share/join/11", KIP_932, "two members, one partition", "it is given to both", needs=HEARTBEAT)
async def case_shared_partition(stage: Stage) -> None:
    """Members of a share group share partitions: none goes without where there are fewer than members."""
    first = await sharer(stage)
    second = SharingMember(stage, first.group, first.topics)
    await second.beat_until(1)
    await first.beat_until(1)
    stage.equal("assignments", second.owned, first.owned)


@case(
    "groups/share/join/12", KIP_932, "another subscription", "its partitions, another epoch", needs=HEARTBEAT
)
async def case_other_subscription(stage: Stage) -> None:
    """A member that subscribes to another topic gets that one's partitions in a later epoch."""
    member = await sharer(stage)
    before, topic = member.epoch, await stage.topic(2)
    await member.beat(subscribed_topic_names=[topic])
    await member.beat_until(2)
    topic_id = await stage.topic_id(topic)
    stage.equal("assignment", member.owned, {(topic_id, 0), (topic_id, 1)})
    stage.true(member.epoch > before, "the epoch is the one before")


@case(
    "groups/share/epochs/6",
    KIP_932,
    "the epoch -1, then another heartbeat",
    "-1, then an error",
    needs=HEARTBEAT,
)
async def case_leave(stage: Stage) -> None:
    """A member that leaves is none any more."""
    member = await sharer(stage)
    answer = await member.send(member_epoch=-1)
    stage.error("leaving", answer.error_code, "NONE")
    stage.equal("epoch", answer.member_epoch, -1)
    stage.error("a heartbeat after it", (await member.send()).error_code, "UNKNOWN_MEMBER_ID")


@case(
    "groups/share/epochs/7", KIP_932, "the epoch 0 again", "its assignment, the same epoch", needs=HEARTBEAT
)
async def case_rejoin(stage: Stage) -> None:
    """A member that lost its state begins at 0 under its id, and gets its partitions again."""
    member = await sharer(stage, 2)
    before = member.epoch
    member.epoch, member.owned = 0, set()
    await member.beat_until(2)
    stage.equal("epoch", member.epoch, before)


@case("groups/share/epochs/8", KIP_932, "the epoch before", "the current epoch", needs=HEARTBEAT)
async def case_epoch_before(stage: Stage) -> None:
    """A member whose last answer was lost may repeat its heartbeat, and gets the current epoch."""
    member = await sharer(stage)
    epochs = [member.epoch]
    await member.beat(subscribed_topic_names=[*member.topics, await stage.topic()])

    async def owns() -> bool:
        if member.epoch != epochs[-1]:
            epochs.append(member.epoch)
        await member.beat()
        return member.epoch == epochs[-1] and len(member.owned) == 2

    await stage.until(owns, "a member has 2 partitions")
    answer = await member.send(member_epoch=epochs[-2])
    stage.error("the epoch before", answer.error_code, "NONE")
    stage.equal("epoch", answer.member_epoch, member.epoch)


@case("groups/share/epochs/9", KIP_932, "one of two members leaves", "a later epoch", needs=HEARTBEAT)
async def case_epoch_grows(stage: Stage) -> None:
    """A member that leaves gives those who stay another epoch."""
    first = await sharer(stage, 2)
    second = SharingMember(stage, first.group, first.topics)
    await second.beat()
    await first.beat()
    before = first.epoch
    await second.send(member_epoch=-1)

    async def has_moved() -> bool:
        await first.beat()
        return first.epoch > before

    await stage.until(has_moved, "the epoch moves on after a member left")


async def described(stage: Stage, group: str) -> Any:
    return (await stage.ask("ShareGroupDescribe", group_ids=[group])).groups[0]


@case("groups/share/describe/1", KIP_932, "ShareGroupDescribe", "state, epochs, members", needs=DESCRIBE)
async def case_describe(stage: Stage) -> None:
    """A group is described with what its members have."""
    member = await sharer(stage, 2)
    group = await described(stage, member.group)
    stage.error("ShareGroupDescribe", group.error_code, "NONE")
    facts = (group.group_state, group.group_epoch, group.assignment_epoch)
    stage.equal("state and epochs", facts, ("Stable", member.epoch, member.epoch))
    (item,) = group.members
    facts = (item.member_id, item.member_epoch, list(item.subscribed_topic_names))
    stage.equal("member", facts, (member.id, member.epoch, list(member.topics)))
    stage.equal("assignment", partitions_of(item.assignment), member.owned)


@case("groups/share/describe/2", KIP_932, "ShareGroupDescribe of no group", "GROUP_ID_NOT_FOUND",
      needs="ShareGroupDescribe 1")  # fmt: skip
async def case_describe_unknown(stage: Stage) -> None:
    """A group that is not there is not described."""
    stage.error(
        "ShareGroupDescribe", (await described(stage, stage.group())).error_code, "GROUP_ID_NOT_FOUND"
    )


@case("groups/share/describe/3", KIP_932, "ShareGroupDescribe of a consumer group", "GROUP_ID_NOT_FOUND",
      needs="ConsumerGroupHeartbeat 1, ShareGroupDescribe 1")  # fmt: skip
async def case_describe_other(stage: Stage) -> None:
    """A group of another type is not described as a share group."""
    member = await consumer(stage)
    stage.error("ShareGroupDescribe", (await described(stage, member.group)).error_code, "GROUP_ID_NOT_FOUND")


@case(
    "groups/share/describe/4", KIP_932, "ShareGroupDescribe after all members left", "Empty", needs=DESCRIBE
)
async def case_describe_empty(stage: Stage) -> None:
    """A group without members stays, and is empty."""
    member = await sharer(stage)
    await member.send(member_epoch=-1)
    group = await described(stage, member.group)
    stage.equal("state and members", (group.group_state, len(group.members)), ("Empty", 0))


@case("groups/share/type/1", KIP_932, "a share group's first heartbeat in a consumer group",
      "GROUP_ID_NOT_FOUND", needs="ConsumerGroupHeartbeat 1, ShareGroupHeartbeat 1")  # fmt: skip
async def case_in_consumer_group(stage: Stage) -> None:
    """A consumer group doesn't become a share group."""
    member = await consumer(stage)
    answer = await SharingMember(stage, member.group, member.topics).send()
    stage.error("ShareGroupHeartbeat", answer.error_code, "GROUP_ID_NOT_FOUND")


async def refused_in_share_group(
    stage: Stage, answer: str, api: str, path: str, values: dict[str, Any]
) -> None:
    """path: of the answer's part with the error."""
    member = await sharer(stage)
    groups: dict[str, Any] = {"GROUP": member.group, "GROUPS": [member.group]}
    values = {
        name: groups.get(value, value) if isinstance(value, str) else value for name, value in values.items()
    }
    result = await stage.ask(api, **values)
    for name in filter(None, path.split(".")):
        result = getattr(result, name)[0]
    stage.error(api, result.error_code, answer)


JOIN = {"group_id": "GROUP", "session_timeout_ms": 10_000, "protocol_type": "consumer",
        "protocols": [{"name": "range"}], "member_id": ""}  # fmt: skip
FIRST = {"group_id": "GROUP", "member_id": "m", "member_epoch": 0, "rebalance_timeout_ms": 10_000,
         "subscribed_topic_names": ["t"], "topic_partitions": []}  # fmt: skip

table(KIP_932, f"{HEARTBEAT}, JoinGroup 5", refused_in_share_group, [
    ("groups/share/type/2", "JoinGroup of a share group", "INCONSISTENT_GROUP_PROTOCOL",
     "A share group has no classic members.", "JoinGroup", "", JOIN),
])  # fmt: skip
table(KIP_932, f"{HEARTBEAT}, ConsumerGroupHeartbeat 1", refused_in_share_group, [
    ("groups/share/type/3", "a consumer group's first heartbeat in a share group", "GROUP_ID_NOT_FOUND",
     "A share group doesn't become a consumer group.", "ConsumerGroupHeartbeat", "", FIRST),
])  # fmt: skip
table(KIP_932, f"{HEARTBEAT}, ConsumerGroupDescribe 0", refused_in_share_group, [
    ("groups/share/type/4", "ConsumerGroupDescribe of a share group", "GROUP_ID_NOT_FOUND",
     "A share group is not described as a consumer group.", "ConsumerGroupDescribe", "groups",
     {"group_ids": "GROUPS"}),
])  # fmt: skip
table(KIP_932, f"{HEARTBEAT}, DescribeGroups 6", refused_in_share_group, [
    ("groups/share/type/5", "DescribeGroups of a share group", "GROUP_ID_NOT_FOUND",
     "A share group is not described as a classic group.", "DescribeGroups", "groups", {"groups": "GROUPS"}),
])  # fmt: skip
table(KIP_932, f"{HEARTBEAT}, DeleteGroups 1", refused_in_share_group, [
    ("groups/share/delete/1", "DeleteGroups of a share group with a member", "NON_EMPTY_GROUP",
     "A group with members is not deleted.", "DeleteGroups", "results", {"groups_names": "GROUPS"}),
])  # fmt: skip


@case("groups/share/delete/2", KIP_932, "DeleteGroups of an empty share group", "NONE, and it is gone",
      needs=f"{DESCRIBE}, DeleteGroups 1")  # fmt: skip
async def case_delete(stage: Stage) -> None:
    """An empty share group can be deleted."""
    member = await sharer(stage)
    await member.send(member_epoch=-1)
    answer = await stage.ask("DeleteGroups", groups_names=[member.group])
    stage.error("DeleteGroups", answer.results[0].error_code, "NONE")
    stage.error("ShareGroupDescribe", (await described(stage, member.group)).error_code, "GROUP_ID_NOT_FOUND")


@case("groups/share/list/1", KIP_932, "ListGroups of share groups", "the group, with its type and protocol",
      needs=f"{HEARTBEAT}, ListGroups 5")  # fmt: skip
async def case_list(stage: Stage) -> None:
    """A share group is listed as one."""
    member = await sharer(stage)
    groups = (await stage.ask("ListGroups", types_filter=["share"])).groups
    types = {item.group_id: (item.group_type.lower(), item.protocol_type) for item in groups}
    stage.equal("its type", types.get(member.group), ("share", "share"))


# --- offsets ---


async def start_offset(stage: Stage, group: str, topic: str) -> int:
    """Where a share group's partition 0 begins; -1 where it has not begun."""
    topics = [{"topic_name": topic, "partitions": [0]}]
    answer = await stage.ask("DescribeShareGroupOffsets", groups=[{"group_id": group, "topics": topics}])
    stage.error("DescribeShareGroupOffsets", answer.groups[0].error_code, "NONE")
    result: int = answer.groups[0].topics[0].partitions[0].start_offset
    return result


async def altered(stage: Stage, group: str, topic: str, offset: int) -> Any:
    """The answer to AlterShareGroupOffsets for partition 0."""
    partitions = [{"partition_index": 0, "start_offset": offset}]
    return await stage.ask(
        "AlterShareGroupOffsets", group_id=group, topics=[{"topic_name": topic, "partitions": partitions}]
    )


ALTER = f"{HEARTBEAT}, DescribeShareGroupOffsets 0, AlterShareGroupOffsets 0"
DELETE = f"{HEARTBEAT}, DescribeShareGroupOffsets 0, AlterShareGroupOffsets 0, DeleteShareGroupOffsets 0"


async def emptied(stage: Stage) -> SharingMember:
    """A share group whose member has left."""
    member = await sharer(stage)
    await member.send(member_epoch=-1)
    return member


@case("offsets/share/1", KIP_932, "DescribeShareGroupOffsets before anything was fetched", "-1",
      needs=f"{HEARTBEAT}, DescribeShareGroupOffsets 0")  # fmt: skip
async def case_not_begun(stage: Stage) -> None:
    """A partition that no one has read has no start offset."""
    member = await sharer(stage)
    stage.equal("start offset", await start_offset(stage, member.group, member.topics[0]), -1)


@case(
    "offsets/share/2",
    KIP_932,
    "AlterShareGroupOffsets of an empty group",
    "the new start offset",
    needs=ALTER,
)
async def case_alter(stage: Stage) -> None:
    """The start offset of an empty group can be set."""
    member = await emptied(stage)
    answer = await altered(stage, member.group, member.topics[0], 0)
    stage.error("AlterShareGroupOffsets", answer.error_code, "NONE")
    stage.error("the partition", answer.responses[0].partitions[0].error_code, "NONE")
    stage.equal("start offset", await start_offset(stage, member.group, member.topics[0]), 0)


@case(
    "offsets/share/3",
    KIP_932,
    "AlterShareGroupOffsets of a group with a member",
    "NON_EMPTY_GROUP",
    needs=ALTER,
)
async def case_alter_non_empty(stage: Stage) -> None:
    """Offsets that members use are not set."""
    member = await sharer(stage)
    answer = await altered(stage, member.group, member.topics[0], 0)
    stage.error("AlterShareGroupOffsets", answer.error_code, "NON_EMPTY_GROUP")


@case(
    "offsets/share/4",
    KIP_932,
    "AlterShareGroupOffsets of no group",
    "an empty group with the offset",
    needs=ALTER,
)
async def case_alter_unknown(stage: Stage) -> None:
    """Offsets can be set before a group's first member comes."""
    group, topic = stage.group(), await stage.topic()

    async def is_set() -> bool:  # a coordinator may learn of a new topic later
        answer = await altered(stage, group, topic, 0)
        stage.error("AlterShareGroupOffsets", answer.error_code, "NONE")
        return not answer.responses[0].partitions[0].error_code

    await stage.until(is_set, "the start offset is set")
    stage.equal("start offset", await start_offset(stage, group, topic), 0)
    stage.equal("state", (await described(stage, group)).group_state, "Empty")


@case(
    "offsets/share/5",
    KIP_932,
    "AlterShareGroupOffsets for no topic",
    "UNKNOWN_TOPIC_OR_PARTITION",
    needs=ALTER,
)
async def case_alter_no_topic(stage: Stage) -> None:
    """Each partition has an error of its own."""
    member = await emptied(stage)
    answer = await altered(stage, member.group, stage.topic_name(), 0)
    stage.error("AlterShareGroupOffsets", answer.error_code, "NONE")
    error = answer.responses[0].partitions[0].error_code
    stage.error("the partition", error, "UNKNOWN_TOPIC_OR_PARTITION")


@case("offsets/share/6", KIP_932, "DeleteShareGroupOffsets of an empty group", "-1 again", needs=DELETE)
async def case_delete_offsets(stage: Stage) -> None:
    """A deleted offset is as one that has not begun."""
    member = await emptied(stage)
    await altered(stage, member.group, member.topics[0], 0)
    stage.equal("start offset", await start_offset(stage, member.group, member.topics[0]), 0)
    answer = await stage.ask(
        "DeleteShareGroupOffsets", group_id=member.group, topics=[{"topic_name": member.topics[0]}]
    )
    stage.error("DeleteShareGroupOffsets", answer.error_code, "NONE")
    stage.error("the topic", answer.responses[0].error_code, "NONE")
    stage.equal("start offset", await start_offset(stage, member.group, member.topics[0]), -1)


async def refused_deletion(stage: Stage, answer: str, has_member: bool) -> None:
    group = (await sharer(stage)).group if has_member else stage.group()
    result = await stage.ask(
        "DeleteShareGroupOffsets", group_id=group, topics=[{"topic_name": await stage.topic()}]
    )
    stage.error("DeleteShareGroupOffsets", result.error_code, answer)


table(KIP_932, f"{HEARTBEAT}, DeleteShareGroupOffsets 0", refused_deletion, [
    ("offsets/share/7", "DeleteShareGroupOffsets of a group with a member", "NON_EMPTY_GROUP",
     "Offsets that members use are not deleted.", True),
    ("offsets/share/8", "DeleteShareGroupOffsets of no group", "GROUP_ID_NOT_FOUND",
     "What is not there has no offsets to delete.", False),
])  # fmt: skip


@case("offsets/share/9", KIP_932, "DescribeShareGroupOffsets of no group", "-1, no error",
      needs="DescribeShareGroupOffsets 0")  # fmt: skip
async def case_describe_offsets_unknown(stage: Stage) -> None:
    """A group that is not there has no offsets, and causes no error."""
    stage.equal("start offset", await start_offset(stage, stage.group(), await stage.topic()), -1)


@case(
    "offsets/share/10", KIP_932, "DescribeShareGroupOffsets of all topics", "those with offsets", needs=ALTER
)
async def case_describe_all_offsets(stage: Stage) -> None:
    """Without topics all offsets are described."""
    member = await emptied(stage)
    await altered(stage, member.group, member.topics[0], 0)
    groups = [{"group_id": member.group, "topics": None}]
    (group,) = (await stage.ask("DescribeShareGroupOffsets", groups=groups)).groups
    result = {
        (item.topic_name, part.partition_index): part.start_offset
        for item in group.topics
        for part in item.partitions
    }
    stage.equal("start offsets", result, {(member.topics[0], 0): 0})
