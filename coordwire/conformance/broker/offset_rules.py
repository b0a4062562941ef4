"""Cases: committed offsets in each version; who may commit and fetch what; what ends an offset."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

from coordwire.conformance.broker.classic_groups import join, joined
from coordwire.conformance.broker.consumer_groups import HEARTBEAT, HeartbeatMember, consumer
from coordwire.conformance.broker.consumer_members import classic
from coordwire.conformance.broker.offsets import COMMIT, FETCH, commit, committed, deletion, fetched
from coordwire.conformance.broker.stage import Stage, case, table
from coordwire.conformance.cases import code_name

__all__: list[str] = []

NEEDS = "OffsetFetch 7, OffsetCommit 7"
KIP_496, KIP_709, KIP_848 = "KIP-496", "KIP-709", "KIP-848"


async def name_of(stage: Stage, topic: str, version: int) -> dict[str, Any]:
    """A topic as a version names it: from 10 on by its id."""
    return {"topic_id": await stage.topic_id(topic)} if version >= 10 else {"name": topic}


async def commits(stage: Stage, answer: str, version: int) -> None:
    group, topic = stage.group(), await stage.topic()
    await stage.needs("OffsetCommit", version)
    partitions = [{"partition_index": 0, "committed_offset": 7, "committed_metadata": "m"}]
    topics = [await name_of(stage, topic, version) | {"partitions": partitions}]
    result = await stage.ask("OffsetCommit", at=version, group_id=group, topics=topics)
    stage.error("OffsetCommit", result.topics[0].partitions[0].error_code, "NONE")
    partition = await fetched(stage, group, topic)
    stage.equal("offset and metadata", (partition.committed_offset, partition.metadata), (7, "m"))


table(COMMIT, "OffsetFetch 7, OffsetCommit 2", commits, [
    (f"offsets/versions/{number - 1}", f"OffsetCommit {number}", "the offset is fetched",
     "An offset is committed in every version that is offered.", number)
    for number in range(2, 11)
])  # fmt: skip


async def partitions_at(stage: Stage, group: str, topic: str, version: int) -> list[Any]:
    """The topic's partitions 0 and 1 in the answer to OffsetFetch."""
    asked_for = [await name_of(stage, topic, version) | {"partition_indexes": [0, 1]}]
    if version < 8:
        answer = await stage.ask("OffsetFetch", at=version, group_id=group, topics=asked_for)
    else:
        groups = [{"group_id": group, "topics": asked_for}]
        (answer,) = (await stage.ask("OffsetFetch", at=version, groups=groups)).groups
    stage.error("OffsetFetch", answer.error_code, "NONE")
    return sorted(answer.topics[0].partitions, key=lambda partition: int(partition.partition_index))


async def fetches(stage: Stage, answer: str, version: int) -> None:
    group, topic = stage.group(), await stage.topic(2)
    await stage.needs("OffsetFetch", version)
    await committed(stage, group, topic, 7)
    partitions = await partitions_at(stage, group, topic, version)
    facts = [(item.committed_offset, code_name(item.error_code)) for item in partitions]
    stage.equal("offsets and errors", facts, [(7, "NONE"), (-1, "NONE")])


table(FETCH, "OffsetCommit 7, OffsetFetch 1", fetches, [
    (f"offsets/versions/{number + 9}", f"OffsetFetch {number}", "7, and -1 for what was not committed",
     "Offsets are fetched in every version that is offered.", number)
    for number in range(1, 11)
])  # fmt: skip


# --- commits ---


@case("offsets/commit/12", COMMIT, "OffsetCommit without metadata", "no metadata", needs=NEEDS)
async def case_no_metadata(stage: Stage) -> None:
    """Metadata may be null, and is fetched as an empty text."""
    group, topic = stage.group(), await stage.topic()
    await committed(stage, group, topic, 1, partition={"committed_metadata": None})
    result = await fetched(stage, group, topic)
    stage.equal("metadata, epoch", (result.metadata or "", result.committed_leader_epoch), ("", -1))


@case(
    "offsets/commit/13", COMMIT, "OffsetCommit with 4,096 characters of metadata", "all of them", needs=NEEDS
)
async def case_long_metadata(stage: Stage) -> None:
    """Metadata of the default limit's size is kept whole."""
    group, topic = stage.group(), await stage.topic()
    await committed(stage, group, topic, 1, partition={"committed_metadata": "m" * 4_096})
    stage.equal("characters", len((await fetched(stage, group, topic)).metadata), 4_096)


@case(
    "offsets/commit/14",
    COMMIT,
    "OffsetCommit for three partitions of two topics",
    "each its own offset",
    needs=NEEDS,
)
async def case_several(stage: Stage) -> None:
    """A commit may have any number of topics and partitions."""
    group, names = stage.group(), [await stage.topic(2), await stage.topic()]
    offsets = {(names[0], 0): 3, (names[0], 1): 4, (names[1], 0): 5}
    topics = [
        {
            "name": name,
            "partitions": [
                {"partition_index": number, "committed_offset": offset}
                for (topic, number), offset in offsets.items()
                if topic == name
            ],
        }
        for name in names
    ]
    answer = await stage.ask("OffsetCommit", at=7, group_id=group, topics=topics)
    errors = {code_name(item.error_code) for topic in answer.topics for item in topic.partitions}
    stage.equal("errors", errors, {"NONE"})
    answer = await stage.ask("OffsetFetch", at=7, group_id=group, topics=None)
    result = {
        (topic.name, item.partition_index): item.committed_offset
        for topic in answer.topics
        for item in topic.partitions
    }
    stage.equal("offsets", result, offsets)


async def refused_commit(stage: Stage, answer: str, values: dict[str, Any], index: int) -> None:
    group, topic = stage.group(), await stage.topic()
    stage.equal(
        "error", await commit(stage, group, topic, partition={"partition_index": index}, **values), answer
    )


table(COMMIT, NEEDS, refused_commit, [
    ("offsets/commit/15", "OffsetCommit for partition 9 of a topic that has one",
     "UNKNOWN_TOPIC_OR_PARTITION",
     "A partition must be the topic's.", {}, 9),
    ("offsets/commit/16", "OffsetCommit for partition -1", "UNKNOWN_TOPIC_OR_PARTITION",
     "A partition's number is at least 0.", {}, -1),
])  # fmt: skip


@case(
    "offsets/commit/17",
    COMMIT,
    "OffsetCommit by a member that has to join again",
    "NONE",
    needs=f"{NEEDS}, JoinGroup 4",
)
async def case_commit_rebalancing(stage: Stage) -> None:
    """A member may commit what it has done before it joins again."""
    topic, member = await stage.topic(), await joined(stage, stage.group())
    stage.later(join(stage, member.group, await stage.client()))

    async def is_rebalancing() -> bool:
        answer = await stage.ask("Heartbeat", by=member.client, **member.identity)
        return code_name(answer.error_code) == "REBALANCE_IN_PROGRESS"

    await stage.until(is_rebalancing, "a heartbeat says REBALANCE_IN_PROGRESS")
    values: dict[str, Any] = {"member_id": member.id, "generation_id_or_member_epoch": member.generation}
    stage.equal("OffsetCommit", await commit(stage, member.group, topic, **values), "NONE")
    stage.equal("offset", (await fetched(stage, member.group, topic)).committed_offset, 5)


@case("offsets/commit/18", COMMIT, "OffsetCommit by a static member with its instance id", "NONE",
      needs=f"{NEEDS}, JoinGroup 5")  # fmt: skip
async def case_commit_static(stage: Stage) -> None:
    """A static member commits with both its ids."""
    topic, member = await stage.topic(), await joined(stage, stage.group(), group_instance_id="s")
    values: dict[str, Any] = {
        "member_id": member.id, "generation_id_or_member_epoch": member.generation, "group_instance_id": "s",
    }  # fmt: skip
    stage.equal("OffsetCommit", await commit(stage, member.group, topic, **values), "NONE")


@case("offsets/commit/19", COMMIT, "all members left, and OffsetCommit without a member", "NONE",
      needs=f"{NEEDS}, JoinGroup 4, LeaveGroup 3")  # fmt: skip
async def case_commit_empty(stage: Stage) -> None:
    """A tool may commit for a group that has no members; the members' offsets stay else."""
    topic, member = await stage.topic(), await joined(stage, stage.group())
    values: dict[str, Any] = {"member_id": member.id, "generation_id_or_member_epoch": member.generation}
    await committed(stage, member.group, topic, 3, **values)
    await stage.ask("LeaveGroup", group_id=member.group, members=[{"member_id": member.id}])
    stage.equal("offset", (await fetched(stage, member.group, topic)).committed_offset, 3)
    await committed(stage, member.group, topic, 1)
    stage.equal("offset", (await fetched(stage, member.group, topic)).committed_offset, 1)


async def consumer_commit(stage: Stage, member: HeartbeatMember, **values: Any) -> str:
    """The error of OffsetCommit 9 for partition 0."""
    topics = [{"name": member.topics[0], "partitions": [{"partition_index": 0, "committed_offset": 1}]}]
    fields: dict[str, Any] = {
        "group_id": member.group, "member_id": member.id, "topics": topics,
        "generation_id_or_member_epoch": member.epoch,
    }  # fmt: skip
    answer = await stage.ask("OffsetCommit", **{"at": 9} | fields | values)
    return code_name(answer.topics[0].partitions[0].error_code)


async def refused_consumer_commit(stage: Stage, answer: str, values: dict[str, Any]) -> None:
    member = await consumer(stage)
    stage.equal("error", await consumer_commit(stage, member, **values), answer)


table(KIP_848, f"{HEARTBEAT}, OffsetCommit 9", refused_consumer_commit, [
    ("offsets/commit/20", "OffsetCommit 9 with a strange member id in a consumer group", "UNKNOWN_MEMBER_ID",
     "Only members commit for their epoch.", {"member_id": "no-member"}),
    ("offsets/commit/21", "OffsetCommit 9 without a member in a consumer group that has one",
     "UNKNOWN_MEMBER_ID",
     "While a group has members, only they commit.", {"member_id": "", "generation_id_or_member_epoch": -1}),
])  # fmt: skip


@case("offsets/commit/22", KIP_848, "OffsetCommit 9 with the epoch 1 in no group", "GROUP_ID_NOT_FOUND",
      needs=f"{HEARTBEAT}, OffsetCommit 9")  # fmt: skip
async def case_commit_no_group(stage: Stage) -> None:
    """From version 9 on a group that is not there is not found."""
    member = HeartbeatMember(stage, stage.group(), [await stage.topic()], epoch=1)
    stage.equal("error", await consumer_commit(stage, member), "GROUP_ID_NOT_FOUND")


@case("offsets/commit/23", KIP_848, "OffsetCommit 8 with an epoch that is too great", "UNSUPPORTED_VERSION",
      needs=f"{HEARTBEAT}, OffsetCommit 8")  # fmt: skip
async def case_commit_old_version(stage: Stage) -> None:
    """A client whose version doesn't know epochs learns that it can't commit for a consumer group."""
    member = await consumer(stage)
    error = await consumer_commit(stage, member, at=8, generation_id_or_member_epoch=member.epoch + 1)
    stage.equal("error", error, "UNSUPPORTED_VERSION")


@case("offsets/commit/24", KIP_848, "OffsetCommit 9 with the epoch before", "STALE_MEMBER_EPOCH",
      needs=f"{HEARTBEAT}, OffsetCommit 9")  # fmt: skip
async def case_commit_before(stage: Stage) -> None:
    """A member that has a later epoch doesn't commit with one of before its partitions were assigned."""
    member = await consumer(stage)
    await member.beat(subscribed_topic_names=[*member.topics, await stage.topic()])
    await member.beat_until(3)
    stage.equal(
        "error", await consumer_commit(stage, member, generation_id_or_member_epoch=0), "STALE_MEMBER_EPOCH"
    )
    stage.equal("its own epoch", await consumer_commit(stage, member), "NONE")


@case("offsets/commit/25", KIP_848, "OffsetCommit 10 by id, then OffsetFetch 7 by name", "the offset",
      needs="OffsetFetch 7, OffsetCommit 10")  # fmt: skip
async def case_id_and_name(stage: Stage) -> None:
    """An offset that was committed by a topic's id is fetched by its name."""
    group, topic = stage.group(), await stage.topic()
    partitions = [{"partition_index": 0, "committed_offset": 8}]
    topics = [{"topic_id": await stage.topic_id(topic), "partitions": partitions}]
    answer = await stage.ask("OffsetCommit", at=10, group_id=group, topics=topics)
    stage.equal("topic id", answer.topics[0].topic_id, topics[0]["topic_id"])
    stage.equal("offset", (await fetched(stage, group, topic)).committed_offset, 8)


# --- fetches ---


async def group_fetched(stage: Stage, at: int, **group: Any) -> Any:
    """The one group of the answer to OffsetFetch."""
    (answer,) = (await stage.ask("OffsetFetch", at=at, groups=[{"topics": None} | group])).groups
    return answer


@case("offsets/fetch/5", FETCH, "OffsetFetch of a topic that is not there", "-1, no error", needs=NEEDS)
async def case_fetch_no_topic(stage: Stage) -> None:
    """A topic that is not there has no offset, and causes no error."""
    result = await fetched(stage, stage.group(), stage.topic_name())
    stage.equal("offset and error", (result.committed_offset, result.error_code), (-1, 0))


@case(
    "offsets/fetch/6",
    KIP_848,
    "OffsetFetch 10 of an id that no topic has",
    "UNKNOWN_TOPIC_ID",
    needs="OffsetFetch 10",
)
async def case_fetch_unknown_id(stage: Stage) -> None:
    """A topic id must be a topic's."""
    topics = [{"topic_id": uuid4(), "partition_indexes": [0]}]
    answer = await group_fetched(stage, 10, group_id=stage.group(), topics=topics)
    stage.error("OffsetFetch", answer.topics[0].partitions[0].error_code, "UNKNOWN_TOPIC_ID")


@case("offsets/fetch/7", FETCH, "OffsetFetch of all topics of a group without commits", "none", needs=NEEDS)
async def case_fetch_none(stage: Stage) -> None:
    """A group that has committed nothing has no topics."""
    answer = await stage.ask("OffsetFetch", at=7, group_id=stage.group(), topics=None)
    stage.equal("error and topics", (answer.error_code, answer.topics), (0, []))


@case("offsets/fetch/8", FETCH, "OffsetFetch of an empty list of topics", "none", needs=NEEDS)
async def case_fetch_empty(stage: Stage) -> None:
    """An empty list selects nothing: null selects all."""
    group = stage.group()
    await committed(stage, group, await stage.topic(), 1)
    answer = await stage.ask("OffsetFetch", at=7, group_id=group, topics=[])
    stage.equal("topics", answer.topics, [])


@case(
    "offsets/fetch/9",
    "KIP-447",
    "OffsetFetch of stable offsets without a transaction",
    "the offset",
    needs=NEEDS,
)
async def case_fetch_stable(stage: Stage) -> None:
    """Who asks for stable offsets gets those that no transaction has."""
    group, topic = stage.group(), await stage.topic()
    await committed(stage, group, topic, 6)
    result = await fetched(stage, group, topic, stable=True)
    stage.equal("offset and error", (result.committed_offset, result.error_code), (6, 0))


@case("offsets/fetch/10", KIP_709, "OffsetFetch 8 of two groups, each of its own topic",
      "each group's topic alone", needs="OffsetCommit 7, OffsetFetch 8")  # fmt: skip
async def case_fetch_own_topics(stage: Stage) -> None:
    """Each group of a request has topics of its own."""
    groups, topics = [stage.group(), stage.group()], [await stage.topic(), await stage.topic()]
    for group in groups:
        for topic in topics:
            await committed(stage, group, topic, 2)
    asked_for = [
        {"group_id": group, "topics": [{"name": topic, "partition_indexes": [0]}]}
        for group, topic in zip(groups, topics, strict=True)
    ]
    answer = await stage.ask("OffsetFetch", at=8, groups=asked_for)
    result = {item.group_id: [topic.name for topic in item.topics] for item in answer.groups}
    stage.equal("topics", result, dict(zip(groups, [[topic] for topic in topics], strict=True)))


@case("offsets/fetch/11", KIP_848, "OffsetFetch 9 without a member in a consumer group", "the offset",
      needs=f"{HEARTBEAT}, OffsetCommit 9, OffsetFetch 9")  # fmt: skip
async def case_fetch_outside(stage: Stage) -> None:
    """A tool may fetch a group's offsets without being a member."""
    member = await consumer(stage)
    stage.equal("OffsetCommit", await consumer_commit(stage, member), "NONE")
    answer = await group_fetched(stage, 9, group_id=member.group)
    stage.error("OffsetFetch", answer.error_code, "NONE")
    stage.equal("offset", answer.topics[0].partitions[0].committed_offset, 1)


@case("offsets/fetch/12", KIP_848, "OffsetFetch 9 of two groups, one with a strange member",
      "an error for the one alone", needs=f"{HEARTBEAT}, OffsetFetch 9")  # fmt: skip
async def case_fetch_errors(stage: Stage) -> None:
    """Each group of an answer has an error of its own."""
    member, name = await consumer(stage), stage.group()
    await committed(stage, name, await stage.topic(), 4)
    groups = [
        {"group_id": member.group, "member_id": "no-member", "member_epoch": 1, "topics": None},
        {"group_id": name, "topics": None},
    ]
    answer = await stage.ask("OffsetFetch", at=9, groups=groups)
    errors = {item.group_id: code_name(item.error_code) for item in answer.groups}
    stage.equal("errors", errors, {member.group: "UNKNOWN_MEMBER_ID", name: "NONE"})


# --- ends ---


async def deleted(stage: Stage, group: str, topic: str) -> str:
    """The error of OffsetDelete, or of its partition 0."""
    answer = await stage.ask("OffsetDelete", group_id=group, topics=deletion(topic))
    return code_name(answer.error_code or answer.topics[0].partitions[0].error_code)


@case("offsets/delete/5", KIP_496, "OffsetDelete of a topic to which a classic member subscribes",
      "GROUP_SUBSCRIBED_TO_TOPIC", needs="JoinGroup 5, OffsetDelete 0")  # fmt: skip
async def case_delete_classic(stage: Stage) -> None:
    """The coordinator knows from a consumer's metadata which offsets are in use."""
    topic = await stage.topic()
    member = await classic(stage, topic)
    stage.equal("error", await deleted(stage, member.group, topic), "GROUP_SUBSCRIBED_TO_TOPIC")
    stage.equal("error of another topic", await deleted(stage, member.group, await stage.topic()), "NONE")


@case("offsets/delete/6", KIP_496, "OffsetDelete of a group with members that are not consumers",
      "NON_EMPTY_GROUP", needs="JoinGroup 5, OffsetDelete 0")  # fmt: skip
async def case_delete_other(stage: Stage) -> None:
    """Offsets of a group whose metadata the coordinator can't read are deleted while it is empty alone."""
    client, group = await stage.client(), stage.group()
    answer = await join(stage, group, client, protocol_type="connect")
    stage.error("JoinGroup", answer.error_code, "NONE")
    stage.equal("error", await deleted(stage, group, await stage.topic()), "NON_EMPTY_GROUP")


@case(
    "offsets/delete/7",
    KIP_496,
    "OffsetDelete of what was never committed",
    "NONE",
    needs=f"{NEEDS}, OffsetDelete 0",
)
async def case_delete_nothing(stage: Stage) -> None:
    """An offset that is not there is as one that was deleted."""
    group, topic = stage.group(), await stage.topic(2)
    await committed(stage, group, topic, 3)
    stage.equal("error", await deleted(stage, group, await stage.topic()), "NONE")
    stage.equal("offset", (await fetched(stage, group, topic)).committed_offset, 3)


@case("offsets/delete/8", KIP_496, "OffsetDelete of a topic that is not there", "UNKNOWN_TOPIC_OR_PARTITION",
      needs=f"{NEEDS}, OffsetDelete 0")  # fmt: skip
async def case_delete_no_topic(stage: Stage) -> None:
    """A topic must be there for its offsets to be deleted."""
    group = stage.group()
    await committed(stage, group, await stage.topic(), 3)
    stage.equal("error", await deleted(stage, group, stage.topic_name()), "UNKNOWN_TOPIC_OR_PARTITION")


@case(
    "offsets/delete/9", COMMIT, "a topic is deleted", "its offset is gone", needs=f"{NEEDS}, DeleteTopics 4"
)
async def case_topic_deleted(stage: Stage) -> None:
    """With a topic the offsets of every group for it go."""
    group, topic = stage.group(), await stage.topic()
    await committed(stage, group, topic, 3)
    await stage.ask("DeleteTopics", at=4, topic_names=[topic], timeout_ms=10_000)

    async def is_gone() -> bool:
        return bool((await fetched(stage, group, topic)).committed_offset == -1)

    await stage.until(is_gone, "the deleted topic has no offset")


@case("offsets/delete/10", KIP_496, "OffsetDelete twice, then OffsetFetch of all topics", "no topics",
      needs=f"{NEEDS}, OffsetDelete 0")  # fmt: skip
async def case_delete_twice(stage: Stage) -> None:
    """A deleted offset is not among all offsets, and may be deleted again."""
    group, topics = stage.group(), [await stage.topic(), await stage.topic()]
    for topic in topics:
        await committed(stage, group, topic, 3)
    for _ in range(2):
        stage.equal("error", await deleted(stage, group, topics[0]), "NONE")
    answer = await stage.ask("OffsetFetch", at=7, group_id=group, topics=None)
    stage.equal("topics", [item.name for item in answer.topics], topics[1:])


NO_ID = UUID(int=0)


@case(
    "offsets/commit/26",
    KIP_848,
    "OffsetCommit 10 for the topic id 0",
    "UNKNOWN_TOPIC_ID",
    needs="OffsetCommit 10",
)
async def case_no_id(stage: Stage) -> None:
    """The id of no topic is refused as one that no topic has."""
    topics = [{"topic_id": NO_ID, "partitions": [{"partition_index": 0, "committed_offset": 1}]}]
    answer = await stage.ask("OffsetCommit", at=10, group_id=stage.group(), topics=topics)
    stage.error("OffsetCommit", answer.topics[0].partitions[0].error_code, "UNKNOWN_TOPIC_ID")
