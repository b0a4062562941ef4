"""Cases: committed offsets."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from coordwire.conformance.broker.classic_groups import join, joined
from coordwire.conformance.broker.consumer_groups import HEARTBEAT, consumer
from coordwire.conformance.broker.stage import Stage, case
from coordwire.conformance.cases import code_name

COMMIT = "https://kafka.apache.org/protocol#The_Messages_OffsetCommit"
FETCH = "https://kafka.apache.org/protocol#The_Messages_OffsetFetch"
NEEDS = "OffsetCommit 7, OffsetFetch 7"


async def commit(stage: Stage, group: str, topic: str, offset: int = 5, **values: Any) -> str:
    """The error of a commit for partition 0, in version 7."""
    partition = {"partition_index": 0, "committed_offset": offset} | values.pop("partition", {})
    topics = [{"name": topic, "partitions": [partition]}]
    answer = await stage.ask("OffsetCommit", at=7, **{"group_id": group, "topics": topics} | values)
    return code_name(answer.topics[0].partitions[0].error_code)


async def committed(stage: Stage, group: str, topic: str, offset: int, **values: Any) -> None:
    """Commit an offset. Raises `Broken`."""
    stage.equal("OffsetCommit", await commit(stage, group, topic, offset, **values), "NONE")


async def fetched(stage: Stage, group: str, topic: str, *, stable: bool = False) -> Any:
    """The partition 0 of the answer to OffsetFetch 7."""
    topics = [{"name": topic, "partition_indexes": [0]}]
    answer = await stage.ask("OffsetFetch", at=7, group_id=group, topics=topics, require_stable=stable)
    stage.error("OffsetFetch", answer.error_code, "NONE")
    return answer.topics[0].partitions[0]


@case(
    "offsets/commit/1",
    COMMIT,
    "OffsetCommit, then OffsetFetch",
    "offset, epoch and metadata as committed",
    needs=NEEDS,
)
async def case_commit(stage: Stage) -> None:
    """What was committed is fetched."""
    group, topic = stage.group(), await stage.topic()
    details = {"committed_leader_epoch": 0, "committed_metadata": "mine"}
    await committed(stage, group, topic, 1 << 40, partition=details)
    result = await fetched(stage, group, topic)
    facts = (result.committed_offset, result.committed_leader_epoch, result.metadata, result.error_code)
    stage.equal("offset, epoch, metadata, error", facts, (1 << 40, 0, "mine", 0))


@case(
    "offsets/commit/2",
    COMMIT,
    "two commits, the second of a smaller offset",
    "the second is fetched",
    needs=NEEDS,
)
async def case_commit_back(stage: Stage) -> None:
    """The last commit counts, also where it goes back."""
    group, topic = stage.group(), await stage.topic()
    await committed(stage, group, topic, 9)
    await committed(stage, group, topic, 4)
    stage.equal("offset", (await fetched(stage, group, topic)).committed_offset, 4)


@case("offsets/commit/3", COMMIT, "OffsetCommit of another generation", "ILLEGAL_GENERATION", needs=NEEDS)
async def case_commit_generation(stage: Stage) -> None:
    """A member of another generation can't commit."""
    topic, member = await stage.topic(), await joined(stage, stage.group())
    values: dict[str, Any] = {"member_id": member.id, "generation_id_or_member_epoch": member.generation + 1}
    stage.equal("error", await commit(stage, member.group, topic, **values), "ILLEGAL_GENERATION")
    stage.equal("offset", (await fetched(stage, member.group, topic)).committed_offset, -1)


@case("offsets/commit/4", COMMIT, "OffsetCommit with a strange member id", "UNKNOWN_MEMBER_ID", needs=NEEDS)
async def case_commit_unknown(stage: Stage) -> None:
    """A client with an unknown id can't commit for a generation."""
    topic, member = await stage.topic(), await joined(stage, stage.group())
    values: dict[str, Any] = {"member_id": "no-member", "generation_id_or_member_epoch": member.generation}
    stage.equal("error", await commit(stage, member.group, topic, **values), "UNKNOWN_MEMBER_ID")


@case(
    "offsets/commit/5",
    COMMIT,
    "OffsetCommit without a member in a group that has one",
    "UNKNOWN_MEMBER_ID",
    needs=NEEDS,
)
async def case_commit_outside(stage: Stage) -> None:
    """While a group has members, only they commit."""
    topic, member = await stage.topic(), await joined(stage, stage.group())
    stage.equal("error", await commit(stage, member.group, topic), "UNKNOWN_MEMBER_ID")


@case(
    "offsets/commit/6", COMMIT, "OffsetCommit for generation 1 of no group", "ILLEGAL_GENERATION", needs=NEEDS
)
async def case_commit_no_group(stage: Stage) -> None:
    """A generation must be a group's."""
    topic = await stage.topic()
    values: dict[str, Any] = {"member_id": "no-member", "generation_id_or_member_epoch": 1}
    stage.equal("error", await commit(stage, stage.group(), topic, **values), "ILLEGAL_GENERATION")


@case(
    "offsets/commit/7",
    COMMIT,
    "OffsetCommit with 5,000 characters of metadata",
    "OFFSET_METADATA_TOO_LARGE",
    needs=NEEDS,
    recommended=True,
)
async def case_commit_metadata(stage: Stage) -> None:
    """Metadata has a limit, by default 4,096 bytes."""
    group, topic = stage.group(), await stage.topic()
    error = await commit(stage, group, topic, partition={"committed_metadata": "m" * 5_000})
    stage.equal("error", error, "OFFSET_METADATA_TOO_LARGE")


@case(
    "offsets/commit/8",
    COMMIT,
    "OffsetCommit for a topic and for no topic",
    "an error for the one alone",
    needs=NEEDS,
)
async def case_commit_no_topic(stage: Stage) -> None:
    """Each partition of a commit has an error of its own."""
    group, topic = stage.group(), await stage.topic()
    partitions = [{"partition_index": 0, "committed_offset": 3}]
    topics = [{"name": name, "partitions": partitions} for name in (f"{topic}-not", topic)]
    answer = await stage.ask("OffsetCommit", at=7, group_id=group, topics=topics)
    codes = {item.name: code_name(item.partitions[0].error_code) for item in answer.topics}
    stage.equal("errors", codes, {f"{topic}-not": "UNKNOWN_TOPIC_OR_PARTITION", topic: "NONE"})
    stage.equal("offset", (await fetched(stage, group, topic)).committed_offset, 3)


@case(
    "offsets/commit/9",
    "KIP-848",
    "OffsetCommit 10 for an id that no topic has",
    "UNKNOWN_TOPIC_ID",
    needs="OffsetCommit 10",
)
async def case_commit_topic_id(stage: Stage) -> None:
    """A topic id must be a topic's."""
    topics = [{"topic_id": uuid4(), "partitions": [{"partition_index": 0, "committed_offset": 1}]}]
    answer = await stage.ask("OffsetCommit", at=10, group_id=stage.group(), topics=topics)
    stage.error("OffsetCommit", answer.topics[0].partitions[0].error_code, "UNKNOWN_TOPIC_ID")


@case(
    "offsets/commit/10",
    "KIP-848",
    "OffsetCommit 9 with an epoch that is too great",
    "STALE_MEMBER_EPOCH",
    needs=f"{HEARTBEAT}, OffsetCommit 9",
)
async def case_commit_epoch(stage: Stage) -> None:
    """A consumer group's member commits with its epoch."""
    member = await consumer(stage)
    topics = [{"name": member.topics[0], "partitions": [{"partition_index": 0, "committed_offset": 1}]}]
    values: dict[str, Any] = {"group_id": member.group, "member_id": member.id, "topics": topics}
    for epoch, error in [(member.epoch + 1, "STALE_MEMBER_EPOCH"), (member.epoch, "NONE")]:
        answer = await stage.ask("OffsetCommit", at=9, generation_id_or_member_epoch=epoch, **values)
        stage.error(f"the epoch {epoch}", answer.topics[0].partitions[0].error_code, error)


@case(
    "offsets/commit/11",
    COMMIT,
    "OffsetCommit between JoinGroup and SyncGroup",
    "REBALANCE_IN_PROGRESS",
    needs=NEEDS,
)
async def case_commit_before_sync(stage: Stage) -> None:
    """Before a generation has assignments its members can't commit."""
    group, topic = stage.group(), await stage.topic()
    answer = await join(stage, group)
    values: dict[str, Any] = {
        "member_id": answer.member_id,
        "generation_id_or_member_epoch": answer.generation_id,
    }
    stage.equal("error", await commit(stage, group, topic, **values), "REBALANCE_IN_PROGRESS")


@case(
    "offsets/fetch/1",
    FETCH,
    "OffsetFetch of what was never committed",
    "-1, no metadata, no error",
    needs=NEEDS,
)
async def case_fetch_nothing(stage: Stage) -> None:
    """What was never committed is -1, and no error, also where there is no group."""
    result = await fetched(stage, stage.group(), await stage.topic())
    facts = (result.committed_offset, result.committed_leader_epoch, result.metadata or "", result.error_code)
    stage.equal("offset, epoch, metadata, error", facts, (-1, -1, "", 0))


@case("offsets/fetch/2", FETCH, "OffsetFetch of all topics", "those with commits", needs=NEEDS)
async def case_fetch_all(stage: Stage) -> None:
    """Without topics all that was committed is fetched."""
    group, topic = stage.group(), await stage.topic(2)
    await committed(stage, group, topic, 6)
    answer = await stage.ask("OffsetFetch", at=7, group_id=group, topics=None)
    result = {
        (item.name, part.partition_index): part.committed_offset
        for item in answer.topics
        for part in item.partitions
    }
    stage.equal("offsets", result, {(topic, 0): 6})


@case(
    "offsets/fetch/3",
    "KIP-709",
    "OffsetFetch 8 of two groups",
    "each group's own offsets",
    needs="OffsetCommit 7, OffsetFetch 8",
)
async def case_fetch_groups(stage: Stage) -> None:
    """Several groups are fetched at once."""
    topic, groups = await stage.topic(), [stage.group(), stage.group()]
    for offset, group in enumerate(groups, 3):
        await committed(stage, group, topic, offset)
    groups_asked = [{"group_id": group, "topics": None} for group in groups]
    answer = await stage.ask("OffsetFetch", at=8, groups=groups_asked)
    result = {item.group_id: item.topics[0].partitions[0].committed_offset for item in answer.groups}
    stage.equal("offsets", result, dict(zip(groups, (3, 4), strict=True)))


@case(
    "offsets/fetch/4",
    "KIP-848",
    "OffsetFetch 9 with a wrong epoch, and of no member",
    "STALE_MEMBER_EPOCH, UNKNOWN_MEMBER_ID",
    needs=f"{HEARTBEAT}, OffsetFetch 9",
)
async def case_fetch_epoch(stage: Stage) -> None:
    """A consumer group's member fetches with its id and epoch."""
    member = await consumer(stage)
    wrong = [(member.id, member.epoch + 1, "STALE_MEMBER_EPOCH"), ("no-member", 1, "UNKNOWN_MEMBER_ID")]
    for name, epoch, error in [*wrong, (member.id, member.epoch, "NONE")]:
        group = {"group_id": member.group, "member_id": name, "member_epoch": epoch, "topics": None}
        answer = await stage.ask("OffsetFetch", at=9, groups=[group])
        stage.error(f"{name} with the epoch {epoch}", answer.groups[0].error_code, error)


def deletion(topic: str) -> list[dict[str, Any]]:
    return [{"name": topic, "partitions": [{"partition_index": 0}]}]


@case(
    "offsets/delete/1",
    "KIP-496",
    "OffsetDelete of one topic",
    "its offset is gone, the other's stays",
    needs=f"{NEEDS}, OffsetDelete 0",
)
async def case_delete(stage: Stage) -> None:
    """A deleted offset is as one that was never committed."""
    group, first, second = stage.group(), await stage.topic(), await stage.topic()
    for topic in (first, second):
        await committed(stage, group, topic, 8)
    answer = await stage.ask("OffsetDelete", group_id=group, topics=deletion(first))
    stage.error("OffsetDelete", answer.error_code, "NONE")
    result = [(await fetched(stage, group, topic)).committed_offset for topic in (first, second)]
    stage.equal("offsets", result, [-1, 8])


@case(
    "offsets/delete/2",
    "KIP-496",
    "OffsetDelete of a topic to which a member subscribes",
    "GROUP_SUBSCRIBED_TO_TOPIC",
    needs=f"{HEARTBEAT}, OffsetDelete 0",
)
async def case_delete_subscribed(stage: Stage) -> None:
    """Offsets that members use are not deleted."""
    member = await consumer(stage)
    answer = await stage.ask("OffsetDelete", group_id=member.group, topics=deletion(member.topics[0]))
    stage.error("OffsetDelete", answer.topics[0].partitions[0].error_code, "GROUP_SUBSCRIBED_TO_TOPIC")


@case("offsets/delete/3", "KIP-496", "OffsetDelete of no group", "GROUP_ID_NOT_FOUND", needs="OffsetDelete 0")
async def case_delete_unknown(stage: Stage) -> None:
    """What is not there has no offsets to delete."""
    topic = await stage.topic()
    answer = await stage.ask("OffsetDelete", group_id=stage.group(), topics=deletion(topic))
    stage.error("OffsetDelete", answer.error_code, "GROUP_ID_NOT_FOUND")


@case("offsets/delete/4", "KIP-229", "DeleteGroups, then OffsetFetch", "-1", needs=f"{NEEDS}, DeleteGroups 1")
async def case_delete_group(stage: Stage) -> None:
    """With a group its offsets go."""
    group, topic = stage.group(), await stage.topic()
    await committed(stage, group, topic, 8)
    answer = await stage.ask("DeleteGroups", groups_names=[group])
    stage.error("DeleteGroups", answer.results[0].error_code, "NONE")
    stage.equal("offset", (await fetched(stage, group, topic)).committed_offset, -1)
