"""Cases: streams groups, whose coordinator assigns the tasks of a topology (KIP-1071)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from coordwire.conformance.broker.consumer_groups import consumer
from coordwire.conformance.broker.stage import Stage, case, table

__all__: list[str] = []

KIP_1071 = "KIP-1071"
HEARTBEAT = "StreamsGroupHeartbeat 0"
DESCRIBE = f"{HEARTBEAT}, StreamsGroupDescribe 0"
MISSING_SOURCE, INCORRECT_PARTITIONS, SHUTDOWN = 1, 2, 4
"""Codes of the status."""

Tasks = set[tuple[str, int]]


def topology(*topics: str, epoch: int = 0, **values: Any) -> dict[str, Any]:
    """A topology with a subtopology "0" that reads these topics."""
    subtopology = {"subtopology_id": "0", "source_topics": list(topics)} | values
    return {"epoch": epoch, "subtopologies": [subtopology]}


def tasks_of(tasks: Any) -> Tasks:
    return {(item.subtopology_id, number) for item in tasks or () for number in item.partitions}


def as_tasks(tasks: Tasks) -> list[dict[str, Any]]:
    names = sorted({name for name, _ in tasks})
    return [
        {"subtopology_id": name, "partitions": sorted(number for key, number in tasks if key == name)}
        for name in names
    ]


@dataclass(slots=True)
class TaskMember:
    """A member of a streams group. active: the tasks that it has; status: codes of its last answer."""

    stage: Stage
    group: str
    topology: dict[str, Any]
    instance: str | None = None
    id: str = field(default_factory=lambda: str(uuid4()))
    epoch: int = 0
    active: Tasks = field(default_factory=set)
    status: list[int] = field(default_factory=list)

    async def send(self, **values: Any) -> Any:
        fields: dict[str, Any] = {
            "group_id": self.group, "member_id": self.id, "member_epoch": self.epoch,
            "instance_id": self.instance, "endpoint_information_epoch": -1, "topology": None,
            "active_tasks": None, "standby_tasks": None, "warmup_tasks": None,
        }  # fmt: skip
        if self.epoch == 0:
            fields |= {
                "topology": self.topology, "rebalance_timeout_ms": 30_000, "process_id": self.id,
                "active_tasks": [], "standby_tasks": [], "warmup_tasks": [],
            }  # fmt: skip
        return await self.stage.ask("StreamsGroupHeartbeat", **fields | values)

    async def beat(self, **values: Any) -> Any:
        """Send a heartbeat with what it has, and take what the answer has."""
        tasks = {"active_tasks": as_tasks(self.active), "standby_tasks": [], "warmup_tasks": []}
        answer = await self.send(**({} if self.epoch == 0 else tasks) | values)
        self.stage.error("StreamsGroupHeartbeat", answer.error_code, "NONE")
        self.epoch = answer.member_epoch
        self.status = [item.status_code for item in answer.status or ()]
        if answer.active_tasks is not None:
            self.active = tasks_of(answer.active_tasks)
        return answer

    async def beat_until(self, count: int) -> None:
        """Send heartbeats until it has so many tasks."""
        await self.stage.until_beaten(
            self.beat, lambda: len(self.active) == count, f"a member has {count} tasks"
        )


async def streamer(stage: Stage, partitions: int = 2, *, instance: str | None = None) -> TaskMember:
    """The only member of a new group, which has all tasks of a new topic's partitions."""
    member = TaskMember(stage, stage.group(), topology(await stage.topic(partitions)), instance)
    await member.beat_until(partitions)
    return member


async def refused_first(stage: Stage, answer: str, values: dict[str, Any]) -> None:
    member = TaskMember(stage, stage.group(), topology("t"))
    stage.error("StreamsGroupHeartbeat", (await member.send(**values)).error_code, answer)


ONE_TASK = [{"subtopology_id": "0", "partitions": [0]}]

table(KIP_1071, HEARTBEAT, refused_first, [
    ("groups/streams/join/1", "a heartbeat without a member id", "INVALID_REQUEST",
     "A member makes its id itself.", {"member_id": ""}),
    ("groups/streams/join/2", "an empty group id", "INVALID_REQUEST",
     "A group has a name.", {"group_id": ""}),
    ("groups/streams/join/3", "a first heartbeat without a topology", "INVALID_REQUEST",
     "Who joins must say what it runs.", {"topology": None}),
    ("groups/streams/join/4", "a first heartbeat without a rebalance timeout", "INVALID_REQUEST",
     "Who joins must say how long it needs to give back tasks.", {"rebalance_timeout_ms": -1}),
    ("groups/streams/join/5", "a first heartbeat with an active task", "INVALID_REQUEST",
     "Who joins has no active tasks.", {"active_tasks": ONE_TASK}),
    ("groups/streams/join/6", "a first heartbeat with a standby task", "INVALID_REQUEST",
     "Who joins has no standby tasks.", {"standby_tasks": ONE_TASK}),
    ("groups/streams/join/7", "a first heartbeat with a warmup task", "INVALID_REQUEST",
     "Who joins has no warmup tasks.", {"warmup_tasks": ONE_TASK}),
    ("groups/streams/join/8", "a first heartbeat that says nothing of its tasks", "INVALID_REQUEST",
     "Who joins must say what it has: no tasks.", {"active_tasks": None}),
    ("groups/streams/join/9", "an empty rack", "INVALID_REQUEST", "A rack is null or has characters.",
     {"rack_id": ""}),
    ("groups/streams/join/10", "an empty instance id", "INVALID_REQUEST",
     "An instance id is null or has characters.", {"instance_id": ""}),
    ("groups/streams/epochs/1", "a heartbeat with the epoch 3 in no group", "GROUP_ID_NOT_FOUND",
     "Only a first heartbeat makes a group.",
     {"member_epoch": 3, "topology": None, "active_tasks": [], "standby_tasks": [], "warmup_tasks": []}),
    ("groups/streams/epochs/2", "the epoch -3", "INVALID_REQUEST", "Epochs are at least -2.",
     {"member_epoch": -3, "topology": None}),
    ("groups/streams/static/1", "the epoch -2 without an instance id", "INVALID_REQUEST",
     "Only a static member leaves for a while.", {"member_epoch": -2, "topology": None}),
])  # fmt: skip


async def refused_member(stage: Stage, answer: str, epoch: int, values: dict[str, Any]) -> None:
    """epoch: beyond the member's."""
    member = await streamer(stage)
    result = await member.send(**{"member_epoch": member.epoch + epoch} | values)
    stage.error("StreamsGroupHeartbeat", result.error_code, answer)


table(KIP_1071, HEARTBEAT, refused_member, [
    ("groups/streams/epochs/3", "a heartbeat with a strange member id", "UNKNOWN_MEMBER_ID",
     "An epoch above 0 is a member's.", 0, {"member_id": "no-member"}),
    ("groups/streams/epochs/4", "a heartbeat with the next epoch", "FENCED_MEMBER_EPOCH",
     "An epoch that the coordinator has not given fences the member.", 1, {}),
    ("groups/streams/epochs/5", "a later heartbeat with a topology", "INVALID_REQUEST",
     "A topology comes with the first heartbeat alone.", 0, {"topology": topology("t")}),
])  # fmt: skip


@case("groups/streams/join/11", KIP_1071, "the first heartbeat", "a task for each partition", needs=HEARTBEAT)
async def case_first(stage: Stage) -> None:
    """The only member gets a task for each partition of the topic that its subtopology reads."""
    member = await streamer(stage, 3)
    stage.equal("active tasks", member.active, {("0", 0), ("0", 1), ("0", 2)})
    stage.true(member.epoch > 0, "its epoch is not above 0")


@case("groups/streams/join/12", KIP_1071, "a heartbeat", "intervals above 0", needs="StreamsGroupHeartbeat 1")
async def case_intervals(stage: Stage) -> None:
    """The coordinator says how often it wants heartbeats and offsets of tasks."""
    member = TaskMember(stage, stage.group(), topology(await stage.topic()))
    answer = await member.beat()
    stage.true(answer.heartbeat_interval_ms > 0, "the interval of heartbeats is not above 0")
    stage.true(answer.task_offset_interval_ms > 0, "the interval of offsets is not above 0")


@case("groups/streams/topology/1", KIP_1071, "a topology that reads a topic that is not there",
      "MISSING_SOURCE_TOPICS as status, no tasks", needs=HEARTBEAT)  # fmt: skip
async def case_missing_source(stage: Stage) -> None:
    """A member learns that its topology's topics are not there, and stays a member."""
    member = TaskMember(stage, stage.group(), topology(stage.topic_name()))
    await member.beat()
    stage.true(MISSING_SOURCE in member.status, f"the status is {member.status}")
    stage.equal("active tasks", member.active, set())


@case("groups/streams/topology/2", KIP_1071, "the topic is made", "its tasks, and no status", needs=HEARTBEAT)
async def case_source_appears(stage: Stage) -> None:
    """A group gets its tasks once its topics are there."""
    name = stage.topic_name()
    member = TaskMember(stage, stage.group(), topology(name))
    await member.beat()
    await stage.ask("CreateTopics", topics=[{"name": name, "num_partitions": 2, "replication_factor": -1}],
                    timeout_ms=10_000)  # fmt: skip
    await member.beat_until(2)
    stage.true(MISSING_SOURCE not in member.status, f"the status is {member.status}")


@case("groups/streams/topology/3", KIP_1071, "two topics that are to be partitioned alike and are not",
      "INCORRECTLY_PARTITIONED_TOPICS as status", needs=HEARTBEAT)  # fmt: skip
async def case_copartition(stage: Stage) -> None:
    """A member learns that its topics don't have as many partitions as one another."""
    topics = [await stage.topic(1), await stage.topic(2)]
    alike = [{"source_topics": [0, 1], "source_topic_regex": [], "repartition_source_topics": []}]
    member = TaskMember(stage, stage.group(), topology(*topics, copartition_groups=alike))

    async def knows() -> bool:
        await member.beat()
        return INCORRECT_PARTITIONS in member.status

    await stage.until(knows, "the status is INCORRECTLY_PARTITIONED_TOPICS")


@case(
    "groups/streams/topology/4",
    KIP_1071,
    "a subtopology with a changelog",
    "its topic is made",
    needs=HEARTBEAT,
)
async def case_changelog(stage: Stage) -> None:
    """The broker makes the topics of a topology's state, with as many partitions as tasks."""
    source, changelog = await stage.topic(3), stage.topic_name()
    state = [{"name": changelog, "partitions": 0, "replication_factor": 0, "topic_configs": []}]
    member = TaskMember(stage, stage.group(), topology(source, state_changelog_topics=state))
    await member.beat_until(3)
    (topic,) = (await stage.ask("Metadata", topics=[{"name": changelog}])).topics
    stage.error("Metadata", topic.error_code, "NONE")
    stage.equal("partitions", len(topic.partitions), 3)


@case("groups/streams/topology/5", KIP_1071, "two subtopologies", "the tasks of both", needs=HEARTBEAT)
async def case_subtopologies(stage: Stage) -> None:
    """Each subtopology has tasks of its own."""
    topics = [await stage.topic(1), await stage.topic(2)]
    parts = [{"subtopology_id": str(number), "source_topics": [name]} for number, name in enumerate(topics)]
    member = TaskMember(stage, stage.group(), {"epoch": 0, "subtopologies": parts})
    await member.beat_until(3)
    stage.equal("active tasks", member.active, {("0", 0), ("1", 0), ("1", 1)})


@case("groups/streams/topology/6", KIP_1071, "a changelog whose name no topic can have",
      "STREAMS_INVALID_TOPOLOGY", needs=HEARTBEAT)  # fmt: skip
async def case_invalid_topology(stage: Stage) -> None:
    """The topics of a topology's state have names that topics can have."""
    state = [{"name": "a b", "partitions": 0, "replication_factor": 0, "topic_configs": []}]
    member = TaskMember(stage, stage.group(), topology("t", state_changelog_topics=state))
    stage.error("StreamsGroupHeartbeat", (await member.send()).error_code, "STREAMS_INVALID_TOPOLOGY")


@case("groups/streams/topology/7", KIP_1071, "a second member with another topology epoch", "INVALID_REQUEST",
      needs=HEARTBEAT)  # fmt: skip
async def case_other_epoch(stage: Stage) -> None:
    """A group has one topology: who joins with another epoch of it is refused."""
    first = await streamer(stage, 2)
    topic = first.topology["subtopologies"][0]["source_topics"][0]
    second = TaskMember(stage, first.group, topology(topic, epoch=1))
    stage.error("StreamsGroupHeartbeat", (await second.send()).error_code, "INVALID_REQUEST")


@case(
    "groups/streams/reconcile/1",
    KIP_1071,
    "a second member joins",
    "each has half; none twice",
    needs=HEARTBEAT,
)
async def case_reconcile(stage: Stage) -> None:
    """A task is given to a member only after the one that had it gave it back."""
    first = await streamer(stage, 4)
    second = TaskMember(stage, first.group, first.topology)

    async def is_balanced() -> bool:
        await second.beat()
        stage.equal("tasks of both", second.active & first.active, set())
        if len(first.active) == 2 == len(second.active):
            return True
        await first.beat()
        return False

    await stage.until(is_balanced, "two members have two tasks each")
    stage.equal("all tasks", len(first.active | second.active), 4)


@case(
    "groups/streams/reconcile/2",
    KIP_1071,
    "one of two members leaves",
    "the other has all again",
    needs=HEARTBEAT,
)
async def case_leave_of_two(stage: Stage) -> None:
    """What a member had that left goes to those who stay."""
    first = await streamer(stage, 2)
    second = TaskMember(stage, first.group, first.topology)

    async def is_balanced() -> bool:
        await first.beat()
        await second.beat()
        return len(first.active) == 1 == len(second.active)

    await stage.until(is_balanced, "two members have a task each")
    await second.send(member_epoch=-1)
    await first.beat_until(2)


@case("groups/streams/reconcile/3", KIP_1071, "a second member joins, the first gives nothing back",
      "the second has none", needs=HEARTBEAT)  # fmt: skip
async def case_no_release(stage: Stage) -> None:
    """What a member doesn't give back is not given to another."""
    first = await streamer(stage, 2)
    had = as_tasks(first.active)
    second = TaskMember(stage, first.group, first.topology)
    for _ in range(6):
        await second.beat()
        stage.equal("tasks of the second", second.active, set())
        await first.send(active_tasks=had, standby_tasks=[], warmup_tasks=[])


@case(
    "groups/streams/epochs/6",
    KIP_1071,
    "the epoch -1, then another heartbeat",
    "-1, then an error",
    needs=HEARTBEAT,
)
async def case_leave(stage: Stage) -> None:
    """A member that leaves is none any more."""
    member = await streamer(stage)
    answer = await member.send(member_epoch=-1)
    stage.error("leaving", answer.error_code, "NONE")
    stage.equal("epoch", answer.member_epoch, -1)
    stage.error("a heartbeat after it", (await member.send()).error_code, "UNKNOWN_MEMBER_ID")


@case("groups/streams/epochs/7", KIP_1071, "the epoch 0 again", "its tasks", needs=HEARTBEAT)
async def case_rejoin(stage: Stage) -> None:
    """A member that lost its state begins at 0 under its id, and gets its tasks again."""
    member = await streamer(stage, 2)
    member.epoch, member.active = 0, set()
    await member.beat_until(2)


@case("groups/streams/static/2", KIP_1071, "a second member with the same instance id",
      "UNRELEASED_INSTANCE_ID", needs="StreamsGroupHeartbeat 1")  # fmt: skip
async def case_instance_in_use(stage: Stage) -> None:
    """An instance id is one member's at a time."""
    first = await streamer(stage, instance="s")
    second = TaskMember(stage, first.group, first.topology, "s")
    stage.error("StreamsGroupHeartbeat", (await second.send()).error_code, "UNRELEASED_INSTANCE_ID")


@case("groups/streams/static/3", KIP_1071, "the epoch -2, then a new member with the instance id",
      "its tasks", needs="StreamsGroupHeartbeat 1")  # fmt: skip
async def case_static_return(stage: Stage) -> None:
    """A static member that left for a while has its tasks when it comes back."""
    first = await streamer(stage, instance="s")
    answer = await first.send(member_epoch=-2)
    stage.error("leaving for a while", answer.error_code, "NONE")
    second = TaskMember(stage, first.group, first.topology, "s")
    await second.beat_until(2)
    stage.equal("active tasks", second.active, first.active)


@case("groups/streams/shutdown/1", KIP_1071, "a member leaves and asks for a shutdown",
      "the others learn of it", needs=HEARTBEAT)  # fmt: skip
async def case_shutdown(stage: Stage) -> None:
    """A member can ask that the whole application ends: every other gets the status."""
    first = await streamer(stage, 2)
    second = TaskMember(stage, first.group, first.topology)
    await second.beat()
    await second.send(shutdown_application=True)

    async def knows() -> bool:
        await first.beat()
        return SHUTDOWN in first.status

    await stage.until(knows, "the other member's status is SHUTDOWN_APPLICATION")


async def described(stage: Stage, group: str) -> Any:
    return (await stage.ask("StreamsGroupDescribe", group_ids=[group])).groups[0]


@case(
    "groups/streams/describe/1",
    KIP_1071,
    "StreamsGroupDescribe",
    "state, epochs, topology, members",
    needs=DESCRIBE,
)
async def case_describe(stage: Stage) -> None:
    """A group is described with its topology and what its members have."""
    member = await streamer(stage, 2)
    await member.beat()
    group = await described(stage, member.group)
    stage.error("StreamsGroupDescribe", group.error_code, "NONE")
    facts = (group.group_state, group.group_epoch, group.assignment_epoch)
    stage.equal("state and epochs", facts, ("Stable", member.epoch, member.epoch))
    names = [list(item.source_topics) for item in group.topology.subtopologies]
    stage.equal("topics", names, [member.topology["subtopologies"][0]["source_topics"]])
    (item,) = group.members
    stage.equal("member", (item.member_id, item.member_epoch), (member.id, member.epoch))
    stage.equal("tasks", tasks_of(item.assignment.active_tasks), member.active)
    stage.equal("target", tasks_of(item.target_assignment.active_tasks), member.active)


@case("groups/streams/describe/2", KIP_1071, "StreamsGroupDescribe of no group", "GROUP_ID_NOT_FOUND",
      needs="StreamsGroupDescribe 0")  # fmt: skip
async def case_describe_unknown(stage: Stage) -> None:
    """A group that is not there is not described."""
    error = (await described(stage, stage.group())).error_code
    stage.error("StreamsGroupDescribe", error, "GROUP_ID_NOT_FOUND")


@case("groups/streams/describe/3", KIP_1071, "StreamsGroupDescribe of a consumer group", "GROUP_ID_NOT_FOUND",
      needs="ConsumerGroupHeartbeat 1, StreamsGroupDescribe 0")  # fmt: skip
async def case_describe_other(stage: Stage) -> None:
    """A group of another type is not described as a streams group."""
    error = (await described(stage, (await consumer(stage)).group)).error_code
    stage.error("StreamsGroupDescribe", error, "GROUP_ID_NOT_FOUND")


@case("groups/streams/describe/4", KIP_1071, "StreamsGroupDescribe of a group whose topic is missing",
      "NotReady", needs=DESCRIBE)  # fmt: skip
async def case_describe_not_ready(stage: Stage) -> None:
    """A group whose topology can't run is not ready."""
    member = TaskMember(stage, stage.group(), topology(stage.topic_name()))
    await member.beat()
    stage.equal("state", (await described(stage, member.group)).group_state, "NotReady")


@case(
    "groups/streams/describe/5",
    KIP_1071,
    "StreamsGroupDescribe after all members left",
    "Empty",
    needs=DESCRIBE,
)
async def case_describe_empty(stage: Stage) -> None:
    """A group without members stays, and is empty."""
    member = await streamer(stage)
    await member.send(member_epoch=-1)
    group = await described(stage, member.group)
    stage.equal("state and members", (group.group_state, len(group.members)), ("Empty", 0))


@case("groups/streams/list/1", KIP_1071, "ListGroups of streams groups", "the group, with its type",
      needs=f"{HEARTBEAT}, ListGroups 5")  # fmt: skip
async def case_list(stage: Stage) -> None:
    """A streams group is listed as one."""
    member = await streamer(stage)
    groups = (await stage.ask("ListGroups", types_filter=["streams"])).groups
    types = {item.group_id: (item.group_type.lower(), item.protocol_type) for item in groups}
    stage.equal("its type", types.get(member.group), ("streams", "streams"))


@case("groups/streams/delete/1", KIP_1071, "DeleteGroups of a group with a member", "NON_EMPTY_GROUP",
      needs=f"{HEARTBEAT}, DeleteGroups 1")  # fmt: skip
async def case_delete(stage: Stage) -> None:
    """A group with members is not deleted."""
    member = await streamer(stage)
    answer = await stage.ask("DeleteGroups", groups_names=[member.group])
    stage.error("DeleteGroups", answer.results[0].error_code, "NON_EMPTY_GROUP")
    await member.beat()


@case("groups/streams/delete/2", KIP_1071, "DeleteGroups of an empty group", "NONE, and it is gone",
      needs=f"{DESCRIBE}, DeleteGroups 1")  # fmt: skip
async def case_delete_empty(stage: Stage) -> None:
    """An empty group can be deleted."""
    member = await streamer(stage)
    await member.send(member_epoch=-1)
    answer = await stage.ask("DeleteGroups", groups_names=[member.group])
    stage.error("DeleteGroups", answer.results[0].error_code, "NONE")
    error = (await described(stage, member.group)).error_code
    stage.error("StreamsGroupDescribe", error, "GROUP_ID_NOT_FOUND")


@case("groups/streams/type/1", KIP_1071, "a streams group's first heartbeat in a consumer group",
      "GROUP_ID_NOT_FOUND", needs=f"ConsumerGroupHeartbeat 1, {HEARTBEAT}")  # fmt: skip
async def case_in_consumer_group(stage: Stage) -> None:
    """A consumer group doesn't become a streams group."""
    member = await consumer(stage)
    answer = await TaskMember(stage, member.group, topology(member.topics[0])).send()
    stage.error("StreamsGroupHeartbeat", answer.error_code, "GROUP_ID_NOT_FOUND")


@case("groups/streams/type/2", KIP_1071, "a consumer group's first heartbeat in a streams group",
      "GROUP_ID_NOT_FOUND", needs=f"{HEARTBEAT}, ConsumerGroupHeartbeat 1")  # fmt: skip
async def case_consumer_in_streams_group(stage: Stage) -> None:
    """A streams group doesn't become a consumer group."""
    member = await streamer(stage)
    answer = await stage.ask(
        "ConsumerGroupHeartbeat", group_id=member.group, member_id="m", member_epoch=0,
        rebalance_timeout_ms=10_000, subscribed_topic_names=["t"], topic_partitions=[],
    )  # fmt: skip
    stage.error("ConsumerGroupHeartbeat", answer.error_code, "GROUP_ID_NOT_FOUND")


@case("groups/streams/offsets/1", KIP_1071, "OffsetCommit with the member's epoch, and with the next",
      "NONE, then an error", needs=f"{HEARTBEAT}, OffsetCommit 9")  # fmt: skip
async def case_commit(stage: Stage) -> None:
    """A member of a streams group commits with its epoch."""
    member = await streamer(stage, 1)
    topic = member.topology["subtopologies"][0]["source_topics"][0]
    topics = [{"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 1}]}]
    values: dict[str, Any] = {"group_id": member.group, "member_id": member.id, "topics": topics}
    for epoch, error in [(member.epoch, "NONE"), (member.epoch + 1, "STALE_MEMBER_EPOCH")]:
        answer = await stage.ask("OffsetCommit", at=9, generation_id_or_member_epoch=epoch, **values)
        stage.error(f"the epoch {epoch}", answer.topics[0].partitions[0].error_code, error)


@case("groups/streams/offsets/2", KIP_1071, "OffsetCommit without a member in a group that has one",
      "UNKNOWN_MEMBER_ID", needs=f"{HEARTBEAT}, OffsetCommit 9")  # fmt: skip
async def case_commit_outside(stage: Stage) -> None:
    """While a group has members, only they commit."""
    member = await streamer(stage, 1)
    topic = member.topology["subtopologies"][0]["source_topics"][0]
    topics = [{"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 1}]}]
    answer = await stage.ask("OffsetCommit", at=9, group_id=member.group, topics=topics)
    stage.error("OffsetCommit", answer.topics[0].partitions[0].error_code, "UNKNOWN_MEMBER_ID")
