"""Cases: topics and their configs, as far as clients and coordinators need them."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from coordwire.conformance.broker.stage import Stage, case, table
from coordwire.conformance.cases import code_name

__all__: list[str] = []

PROTOCOL = "https://kafka.apache.org/protocol"
KIP_195, KIP_339, KIP_516, KIP_525, KIP_966 = "KIP-195", "KIP-339", "KIP-516", "KIP-525", "KIP-966"
TOPIC = 2
"""The type of the resource."""

SET, REMOVE, APPEND, SUBTRACT = range(4)


# --- making ---


async def create(
    stage: Stage, name: str, *, at: int | None = None, only_validate: bool = False, **values: Any
) -> Any:
    """The topic in the answer to CreateTopics."""
    topic = {"name": name, "num_partitions": 1, "replication_factor": -1} | values
    answer = await stage.ask(
        "CreateTopics", at=at, topics=[topic], timeout_ms=10_000, validate_only=only_validate
    )
    return answer.topics[0]


async def metadata(stage: Stage, *names: str, at: int | None = None) -> Any:
    topics = [{"name": name} for name in names]
    return await stage.ask("Metadata", at=at, topics=topics, allow_auto_topic_creation=False)


async def creates(stage: Stage, answer: str, version: int) -> None:
    name = stage.topic_name()
    result = await create(stage, name, at=version, replication_factor=1, num_partitions=2)
    stage.error("CreateTopics", result.error_code, "NONE")

    async def is_there() -> bool:
        (topic,) = (await metadata(stage, name)).topics
        return len(topic.partitions) == 2

    await stage.until(is_there, "the topic has two partitions")


table(PROTOCOL, "Metadata 5, CreateTopics 2", creates, [
    (f"topics/create/{number - 1}", f"CreateTopics {number}", "a topic with its partitions",
     "A topic is made in every version that is offered.", number)
    for number in range(2, 8)
])  # fmt: skip


async def refused_create(stage: Stage, answer: str, values: dict[str, Any]) -> None:
    name = stage.topic_name()
    stage.error(
        "CreateTopics",
        (await create(stage, values.get("name", name), **without_name(values))).error_code,
        answer,
    )


def without_name(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key != "name"}


def config(name: str, value: str | None) -> dict[str, Any]:
    return {"configs": [{"name": name, "value": value}]}


table(PROTOCOL, "CreateTopics 5", refused_create, [
    ("topics/create/7", "a topic with 0 partitions", "INVALID_PARTITIONS",
     "A topic has a partition at least.",
     {"num_partitions": 0}),
    ("topics/create/8", "a topic with 1,000 replicas", "INVALID_REPLICATION_FACTOR",
     "There are as many replicas as brokers at most.", {"replication_factor": 1_000}),
    ("topics/create/9", "a topic with 0 replicas", "INVALID_REPLICATION_FACTOR",
     "A topic has a replica at least.", {"replication_factor": 0}),
    ("topics/create/10", "the name 'a b!'", "INVALID_TOPIC_EXCEPTION",
     "A name has letters, digits, dots, underscores and hyphens.", {"name": "a b!"}),
    ("topics/create/11", "a name of 250 characters", "INVALID_TOPIC_EXCEPTION",
     "A name has 249 characters at most.", {"name": "n" * 250}),
    ("topics/create/12", "the name '..'", "INVALID_TOPIC_EXCEPTION",
     "A name is not '.' or '..'.", {"name": ".."}),
    ("topics/create/13", "the empty name", "INVALID_TOPIC_EXCEPTION", "A topic has a name.", {"name": ""}),
    ("topics/create/14", "a config that is unknown", "INVALID_CONFIG", "A config must be the broker's.",
     config("no.such.config", "1")),
    ("topics/create/15", "retention.ms of 'long'", "INVALID_CONFIG", "A config has a value of its type.",
     config("retention.ms", "long")),
    ("topics/create/16", "partitions and an assignment", "INVALID_REQUEST",
     "Partitions are counted or assigned, not both.",
     {"num_partitions": 2, "assignments": [{"partition_index": 0, "broker_ids": [0]}]}),
    ("topics/create/17", "an assignment to a broker that is not there", "INVALID_REPLICA_ASSIGNMENT",
     "Replicas are on brokers that are there.",
     {"num_partitions": -1, "assignments": [{"partition_index": 0, "broker_ids": [9_999]}]}),
    ("topics/create/18", "an assignment that begins with partition 1", "INVALID_REPLICA_ASSIGNMENT",
     "Partitions are numbered from 0 without gaps.",
     {"num_partitions": -1, "assignments": [{"partition_index": 1, "broker_ids": [1]}]}),
])  # fmt: skip


@case("topics/create/19", PROTOCOL, "a topic that is there", "TOPIC_ALREADY_EXISTS", needs="CreateTopics 5")
async def case_exists(stage: Stage) -> None:
    """A topic is made once."""
    answer = await create(stage, await stage.topic())
    stage.error("CreateTopics", answer.error_code, "TOPIC_ALREADY_EXISTS")


@case(
    "topics/create/20",
    PROTOCOL,
    "CreateTopics that only validates",
    "NONE, and no topic",
    needs="CreateTopics 5",
)
async def case_validate(stage: Stage) -> None:
    """What is only validated is not made."""
    name = stage.topic_name()
    stage.error("CreateTopics", (await create(stage, name, only_validate=True)).error_code, "NONE")
    (topic,) = (await metadata(stage, name)).topics
    stage.error("Metadata", topic.error_code, "UNKNOWN_TOPIC_OR_PARTITION")
    stage.error("CreateTopics", (await create(stage, name)).error_code, "NONE")


@case("topics/create/21", PROTOCOL, "a topic twice in a request", "INVALID_REQUEST", needs="CreateTopics 5")
async def case_twice(stage: Stage) -> None:
    """A request names a topic once."""
    topic = {"name": stage.topic_name(), "num_partitions": 1, "replication_factor": -1}
    answer = await stage.ask("CreateTopics", topics=[topic, topic], timeout_ms=10_000)
    stage.error("CreateTopics", answer.topics[0].error_code, "INVALID_REQUEST")


@case(
    "topics/create/22",
    PROTOCOL,
    "a topic and one that is wrong",
    "an error for the one alone",
    needs="CreateTopics 5",
)
async def case_one_wrong(stage: Stage) -> None:
    """Each topic of a request has an error of its own."""
    names = [stage.topic_name(), stage.topic_name()]
    topics = [
        {"name": name, "num_partitions": partitions, "replication_factor": -1}
        for name, partitions in zip(names, (1, 0), strict=True)
    ]
    answer = await stage.ask("CreateTopics", topics=topics, timeout_ms=10_000)
    errors = {item.name: code_name(item.error_code) for item in answer.topics}
    stage.equal("errors", errors, dict(zip(names, ("NONE", "INVALID_PARTITIONS"), strict=True)))


@case(
    "topics/create/23",
    KIP_525,
    "CreateTopics 5",
    "the topic's configs, partitions and replicas",
    needs="CreateTopics 5",
)
async def case_answer(stage: Stage) -> None:
    """Who makes a topic learns what it has."""
    answer = await create(stage, stage.topic_name(), num_partitions=3, **config("retention.ms", "5000"))
    stage.equal("partitions", answer.num_partitions, 3)
    stage.true(answer.replication_factor >= 1, "there are no replicas")
    values = {item.name: item.value for item in answer.configs}
    stage.equal("retention.ms", values.get("retention.ms"), "5000")


@case("topics/create/24", KIP_516, "CreateTopics 7, then Metadata 12 by id", "the topic's id, and its name",
      needs="CreateTopics 7, Metadata 12")  # fmt: skip
async def case_id(stage: Stage) -> None:
    """A topic has an id, by which it is found."""
    name = stage.topic_name()
    topic_id = (await create(stage, name)).topic_id

    async def is_found() -> bool:
        topics = [{"topic_id": topic_id, "name": None}]
        (topic,) = (await stage.ask("Metadata", topics=topics, allow_auto_topic_creation=False)).topics
        return bool(topic.name == name)

    await stage.until(is_found, "the topic is found by its id")


# --- partitions ---


async def grow(stage: Stage, name: str, count: int, **values: Any) -> str:
    """The error of CreatePartitions."""
    topic = {"name": name, "count": count, "assignments": None} | values
    answer = await stage.ask("CreatePartitions", topics=[topic], timeout_ms=10_000)
    return code_name(answer.results[0].error_code)


async def refused_growth(stage: Stage, answer: str, count: int, values: dict[str, Any]) -> None:
    name = await stage.topic(2)
    stage.equal("CreatePartitions", await grow(stage, name, count, **values), answer)


table(KIP_195, "CreatePartitions 0", refused_growth, [
    ("topics/partitions/1", "fewer partitions", "INVALID_PARTITIONS",
     "Partitions are not taken away.", 1, {}),
    ("topics/partitions/2", "as many partitions", "INVALID_PARTITIONS", "Partitions become more.", 2, {}),
    ("topics/partitions/3", "an assignment for too few partitions", "INVALID_REPLICA_ASSIGNMENT",
     "Each new partition is assigned, or none.", 4, {"assignments": [{"broker_ids": [1]}]}),
])  # fmt: skip


@case(
    "topics/partitions/4",
    KIP_195,
    "CreatePartitions of no topic",
    "UNKNOWN_TOPIC_OR_PARTITION",
    needs="CreatePartitions 0",
)
async def case_grow_unknown(stage: Stage) -> None:
    """What is not there gets no partitions."""
    stage.equal("CreatePartitions", await grow(stage, stage.topic_name(), 3), "UNKNOWN_TOPIC_OR_PARTITION")


@case(
    "topics/partitions/5",
    KIP_195,
    "three partitions for a topic that has one",
    "three partitions",
    needs="CreatePartitions 0",
)
async def case_grow(stage: Stage) -> None:
    """A topic gets more partitions, which have leaders."""
    name = await stage.topic()
    stage.equal("CreatePartitions", await grow(stage, name, 3), "NONE")

    async def has_three() -> bool:
        (topic,) = (await metadata(stage, name)).topics
        return len([part for part in topic.partitions if not part.error_code]) == 3

    await stage.until(has_three, "three partitions have leaders")


# --- deleting, finding ---


@case("topics/delete/1", PROTOCOL, "DeleteTopics of a topic and of none", "NONE, UNKNOWN_TOPIC_OR_PARTITION",
      needs="DeleteTopics 4")  # fmt: skip
async def case_delete(stage: Stage) -> None:
    """Each topic of a request has an error of its own."""
    names = [await stage.topic(), stage.topic_name()]
    answer = await stage.ask("DeleteTopics", at=4, topic_names=names, timeout_ms=10_000)
    errors = {item.name: code_name(item.error_code) for item in answer.responses}
    stage.equal("errors", errors, dict(zip(names, ("NONE", "UNKNOWN_TOPIC_OR_PARTITION"), strict=True)))


@case(
    "topics/delete/2",
    KIP_516,
    "DeleteTopics 6 of an id that no topic has",
    "UNKNOWN_TOPIC_ID",
    needs="DeleteTopics 6",
)
async def case_delete_unknown(stage: Stage) -> None:
    """A topic id must be a topic's."""
    topics = [{"name": None, "topic_id": uuid4()}]
    answer = await stage.ask("DeleteTopics", topics=topics, timeout_ms=10_000)
    stage.error("DeleteTopics", answer.responses[0].error_code, "UNKNOWN_TOPIC_ID")


@case(
    "topics/delete/3",
    KIP_516,
    "a topic is deleted and made again",
    "another id",
    needs="DeleteTopics 4, CreateTopics 7",
)
async def case_made_again(stage: Stage) -> None:
    """A topic of a deleted topic's name has an id of its own."""
    name = await stage.topic()
    before = await stage.topic_id(name)
    await stage.ask("DeleteTopics", at=4, topic_names=[name], timeout_ms=10_000)

    async def is_made() -> bool:
        return not (await create(stage, name)).error_code

    await stage.until(is_made, "the topic is made again")

    async def has_another() -> bool:
        (topic,) = (await metadata(stage, name)).topics
        return not topic.error_code and topic.topic_id != before

    await stage.until(has_another, "the topic has another id")


@case(
    "topics/metadata/1",
    PROTOCOL,
    "Metadata of no topic, without making it",
    "UNKNOWN_TOPIC_OR_PARTITION",
    needs="Metadata 4",
)
async def case_metadata_unknown(stage: Stage) -> None:
    """Who doesn't want a topic to be made by asking gets an error, and none is made."""
    name = stage.topic_name()
    for _ in range(2):
        (topic,) = (await metadata(stage, name)).topics
        stage.error("Metadata", topic.error_code, "UNKNOWN_TOPIC_OR_PARTITION")


@case(
    "topics/metadata/2",
    PROTOCOL,
    "Metadata of an empty list of topics",
    "brokers and no topics",
    needs="Metadata 4",
)
async def case_metadata_none(stage: Stage) -> None:
    """An empty list selects nothing: null selects all."""
    answer = await metadata(stage)
    stage.equal("topics", answer.topics, [])
    stage.true(len(answer.brokers) > 0, "there are no brokers")


@case(
    "topics/metadata/3",
    KIP_516,
    "Metadata 12 of an id that no topic has",
    "UNKNOWN_TOPIC_ID",
    needs="Metadata 12",
)
async def case_metadata_id(stage: Stage) -> None:
    """A topic id must be a topic's."""
    topics = [{"topic_id": uuid4(), "name": None}]
    answer = await stage.ask("Metadata", topics=topics, allow_auto_topic_creation=False)
    stage.error("Metadata", answer.topics[0].error_code, "UNKNOWN_TOPIC_ID")


async def is_found(stage: Stage, answer: str, version: int) -> None:
    name = await stage.topic(2)
    topics = [{"name": name}]
    values: dict[str, Any] = {"allow_auto_topic_creation": False} if version >= 4 else {}
    result = await stage.ask("Metadata", at=version, topics=topics, **values)
    (topic,) = result.topics
    stage.equal("partitions", sorted(part.partition_index for part in topic.partitions), [0, 1])
    nodes = {broker.node_id for broker in result.brokers}
    stage.true({part.leader_id for part in topic.partitions} <= nodes, "a leader is not among the brokers")


table(PROTOCOL, "Metadata 0", is_found, [
    (f"topics/metadata/{number + 4}", f"Metadata {number}", "the topic's partitions, with leaders",
     "A topic is described in every version that is offered.", number)
    for number in range(14)
])  # fmt: skip


@case("topics/describe/1", KIP_966, "DescribeTopicPartitions of at most one partition",
      "one, and where to go on", needs="DescribeTopicPartitions 0")  # fmt: skip
async def case_describe_pages(stage: Stage) -> None:
    """A topic's partitions come in pages of the size that is asked for."""
    name = await stage.topic(2)
    answer = await stage.ask("DescribeTopicPartitions", topics=[{"name": name}], response_partition_limit=1)
    numbers = [part.partition_index for part in answer.topics[0].partitions]
    stage.equal("first page", numbers, [0])
    cursor = {
        "topic_name": answer.next_cursor.topic_name,
        "partition_index": answer.next_cursor.partition_index,
    }
    stage.equal("next page", cursor, {"topic_name": name, "partition_index": 1})
    answer = await stage.ask(
        "DescribeTopicPartitions", topics=[{"name": name}], response_partition_limit=1, cursor=cursor
    )
    stage.equal("second page", [part.partition_index for part in answer.topics[0].partitions], [1])


# --- configs ---


async def alter(
    stage: Stage, name: str, *changes: tuple[str, int, str | None], only_validate: bool = False
) -> str:
    """The error of IncrementalAlterConfigs."""
    configs = [
        {"name": key, "config_operation": operation, "value": value} for key, operation, value in changes
    ]
    resource = {"resource_type": TOPIC, "resource_name": name, "configs": configs}
    answer = await stage.ask("IncrementalAlterConfigs", resources=[resource], validate_only=only_validate)
    return code_name(answer.responses[0].error_code)


async def value_of(stage: Stage, name: str, key: str) -> str | None:
    """A topic's config."""
    resources = [{"resource_type": TOPIC, "resource_name": name, "configuration_keys": [key]}]
    (result,) = (await stage.ask("DescribeConfigs", resources=resources)).results
    stage.error("DescribeConfigs", result.error_code, "NONE")
    stage.equal("names", [item.name for item in result.configs], [key])
    value: str | None = result.configs[0].value
    return value


async def has_value(stage: Stage, name: str, key: str, expected: str) -> None:
    async def is_set() -> bool:
        return await value_of(stage, name, key) == expected

    await stage.until(is_set, f"{key} is {expected}")


async def changes_config(
    stage: Stage, answer: str, key: str, steps: list[tuple[int, str | None]], expected: str
) -> None:
    name = await stage.topic()
    for operation, value in steps:
        stage.equal("IncrementalAlterConfigs", await alter(stage, name, (key, operation, value)), "NONE")
    await has_value(stage, name, key, expected)


table(KIP_339, "DescribeConfigs 1, IncrementalAlterConfigs 0", changes_config, [
    ("topics/configs/1", "a config is set", "its value", "A config has the value that was set.",
     "retention.ms", [(SET, "5000")], "5000"),
    ("topics/configs/2", "a config is set and removed", "the default",
     "A config that is removed has its default.",
     "min.insync.replicas", [(SET, "5"), (REMOVE, None)], "1"),
    ("topics/configs/3", "a value is added to a list", "both", "A list may be added to.",
     "cleanup.policy", [(SET, "compact"), (APPEND, "delete")], "compact,delete"),
    ("topics/configs/4", "a value is taken from a list", "the rest", "A list may be taken from.",
     "cleanup.policy", [(SET, "compact,delete"), (SUBTRACT, "compact")], "delete"),
])  # fmt: skip


async def refused_alter(
    stage: Stage, answer: str, change: tuple[str, int, str | None], has_topic: bool
) -> None:
    name = await stage.topic() if has_topic else stage.topic_name()
    stage.equal("IncrementalAlterConfigs", await alter(stage, name, change), answer)


table(KIP_339, "DescribeConfigs 1, IncrementalAlterConfigs 0", refused_alter, [
    ("topics/configs/5", "a config that is unknown", "INVALID_CONFIG", "A config must be the broker's.",
     ("no.such.config", SET, "1"), True),
    ("topics/configs/6", "retention.ms of 'long'", "INVALID_CONFIG", "A config has a value of its type.",
     ("retention.ms", SET, "long"), True),
    ("topics/configs/7", "a value is added to a config that is not a list", "INVALID_CONFIG",
     "Only a list is added to.", ("retention.ms", APPEND, "1"), True),
    ("topics/configs/8", "a config of no topic", "UNKNOWN_TOPIC_OR_PARTITION",
     "What is not there has no configs.", ("retention.ms", SET, "1"), False),
])  # fmt: skip


@case("topics/configs/10", KIP_339, "IncrementalAlterConfigs that only validates",
      "NONE, and the value of before",
      needs="DescribeConfigs 1, IncrementalAlterConfigs 0")  # fmt: skip
async def case_only_validated(stage: Stage) -> None:
    """What is only validated is not set."""
    name = await stage.topic(retention_ms="7000")
    change = ("retention.ms", SET, "5000")
    stage.equal("IncrementalAlterConfigs", await alter(stage, name, change, only_validate=True), "NONE")
    stage.equal("retention.ms", await value_of(stage, name, "retention.ms"), "7000")


@case("topics/configs/11", KIP_339, "a change of one config of two", "the other stays",
      needs="DescribeConfigs 1, IncrementalAlterConfigs 0")  # fmt: skip
async def case_other_stays(stage: Stage) -> None:
    """A change touches what it names alone."""
    name = await stage.topic(retention_ms="7000", segment_bytes="1048576")
    stage.equal("IncrementalAlterConfigs", await alter(stage, name, ("retention.ms", SET, "5000")), "NONE")
    await has_value(stage, name, "retention.ms", "5000")
    stage.equal("segment.bytes", await value_of(stage, name, "segment.bytes"), "1048576")


@case(
    "topics/configs/12",
    PROTOCOL,
    "DescribeConfigs of no topic",
    "UNKNOWN_TOPIC_OR_PARTITION",
    needs="DescribeConfigs 1",
)
async def case_describe_unknown(stage: Stage) -> None:
    """What is not there has no configs."""
    resources = [{"resource_type": TOPIC, "resource_name": stage.topic_name(), "configuration_keys": None}]
    (result,) = (await stage.ask("DescribeConfigs", resources=resources)).results
    stage.error("DescribeConfigs", result.error_code, "UNKNOWN_TOPIC_OR_PARTITION")


@case("topics/configs/9", "KIP-226", "DescribeConfigs of a topic with one config set",
      "where each value is from", needs="DescribeConfigs 1")  # fmt: skip
async def case_sources(stage: Stage) -> None:
    """A config is described with where its value is from: 1 is the topic, 5 a default."""
    name = await stage.topic(retention_ms="7000")
    resources = [{"resource_type": TOPIC, "resource_name": name, "configuration_keys": None}]
    (result,) = (await stage.ask("DescribeConfigs", resources=resources)).results
    sources = {item.name: item.config_source for item in result.configs}
    facts = (sources.get("retention.ms"), sources.get("delete.retention.ms"))
    stage.equal("sources", facts, (1, 5))
