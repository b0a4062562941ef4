"""What operators' tools ask: quotas, users, log directories, elections, reassignments, quorum, metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from tests.broker.corners.script import Step, ask, case, only_if, quiet, topic
from tests.broker.corners.values import NO_TOPIC


def _quota(entity: Sequence[tuple[str, str | None]], *ops: tuple[str, float, bool], **more: Any) -> Step:
    return ask(
        "AlterClientQuotas",
        1,
        entries=[
            {
                "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
                "ops": [{"key": key, "value": value, "remove": remove} for key, value, remove in ops],
            }
        ],
        **more,
    )


_RATE = ("producer_byte_rate", 1000.0, False)
_QUOTAS: list[tuple[list[tuple[str, str | None]], tuple[str, float, bool]]] = [
    ([("user", "$u")], _RATE),
    ([("user", "$u")], ("producer_byte_rate", 0.0, False)),
    ([("user", "$u")], ("producer_byte_rate", -1.0, False)),
    ([("user", "$u")], ("producer_byte_rate", 1.5, False)),
    ([("user", "$u")], ("no_such_quota", 1.0, False)),
    ([("user", "$u")], ("connection_creation_rate", 1.0, False)),
    ([("user", "")], _RATE),
    ([], _RATE),
    ([("planet", "x")], _RATE),
    ([("user", "$u"), ("user", "$c")], _RATE),
    ([("user", "$u"), ("ip", "127.0.0.9")], _RATE),
    ([("ip", "127.0.0.9")], ("connection_creation_rate", 5.0, False)),
    ([("ip", "nonsense.invalid")], ("connection_creation_rate", 5.0, False)),
    ([("ip", "127.0.0.9")], _RATE),
    ([("user", "$u")], ("no_such_quota", 0.0, True)),
    ([("user", "$u")], ("producer_byte_rate", 0.0, True)),
    ([("", "x")], _RATE),
    ([("user", "$u")], ("request_percentage", 12.5, False)),
    ([("user", "$u")], ("consumer_byte_rate", float("nan"), False)),
    ([("user", "$u")], ("consumer_byte_rate", float("inf"), False)),
    ([("user", "$u")], ("controller_mutation_rate", 0.5, False)),
]
for number, (entity, op) in enumerate(_QUOTAS):
    case(f"quota-{number:02}", _quota(entity, op))
case("quota-twice", _quota([("user", "$u")], _RATE, ("producer_byte_rate", 5.0, False)))
case("quota-no-changes", _quota([("user", "$u")]))
case("quota-validate-only", _quota([("user", "$u")], _RATE, validate_only=True))
case("quota-none", ask("AlterClientQuotas", 1, entries=[]))


def _quotas(*components: tuple[str, int, str | None], strict: bool = False) -> Step:
    return ask(
        "DescribeClientQuotas",
        1,
        strict=strict,
        components=[
            {"entity_type": kind, "match_type": match, "match": name} for kind, match, name in components
        ],
    )


_COMPONENTS: list[list[tuple[str, int, str | None]]] = [
    [("user", 0, "$u")],
    [("user", 0, None)],
    [("user", 2, "$u")],
    [("user", 9, None)],
    [("", 0, "x")],
    [("planet", 0, "x")],
    [("user", 0, "$u"), ("user", 0, "$u")],
    [("ip", 0, "127.0.0.77"), ("user", 0, "$u")],
    [("user", 1, None)],
    [("client-id", 0, "$c")],
    [("user", 1, "x")],
]
for number, components in enumerate(_COMPONENTS):
    case(f"describe-quotas-{number:02}", _quotas(*components))

# --- SCRAM users ---


def _upserted(
    name: str = "$u", mechanism: int = 1, iterations: int = 4096, salt: bytes = b"salt"
) -> dict[str, Any]:
    return {
        "name": name,
        "mechanism": mechanism,
        "iterations": iterations,
        "salt": salt,
        "salted_password": b"p" * 32,
    }


case("users-unknown", ask("DescribeUserScramCredentials", 0, users=[{"name": "$u"}]))
case("users-twice", ask("DescribeUserScramCredentials", 0, users=[{"name": "$u"}, {"name": "$u"}]))
case("users-empty-name", ask("DescribeUserScramCredentials", 0, users=[{"name": ""}]))
_CHANGES: list[dict[str, Any]] = [
    {},
    {"name": ""},
    {"mechanism": 0},
    {"mechanism": 9},
    {"iterations": 4095},
    {"iterations": 16_385},
    {"iterations": -1},
    {"salt": b""},
]
for number, change in enumerate(_CHANGES):
    case(f"users-upsert-{number}", ask("AlterUserScramCredentials", 0, upsertions=[_upserted(**change)]))
case("users-delete-unknown", ask("AlterUserScramCredentials", 0, deletions=[{"name": "$u", "mechanism": 1}]))
case(
    "users-delete-odd",
    ask("AlterUserScramCredentials", 0, deletions=[{"name": "$u", "mechanism": 9}]),
    ask("AlterUserScramCredentials", 0, deletions=[{"name": "", "mechanism": 1}]),
)
case("users-upsert-twice", ask("AlterUserScramCredentials", 0, upsertions=[_upserted(), _upserted()]))
case(
    "users-upsert-and-delete",
    ask("AlterUserScramCredentials", 0, upsertions=[_upserted()], deletions=[{"name": "$u", "mechanism": 1}]),
)
case(
    "users-upsert-both", ask("AlterUserScramCredentials", 0, upsertions=[_upserted(), _upserted(mechanism=2)])
)
case("users-none", ask("AlterUserScramCredentials", 0, upsertions=[], deletions=[]))

# --- log directories ---

for v in (1, 4, 5):
    case(
        f"log-dirs-v{v}",
        topic("$t", 2),
        ask("DescribeLogDirs", v, topics=[{"topic": "$t", "partitions": [0, 1]}]),
    )
case(
    "log-dirs-of-unknown",
    topic(),
    ask(
        "DescribeLogDirs", 4, topics=[{"topic": "$t", "partitions": [7]}, {"topic": "$t2", "partitions": [0]}]
    ),
)
case("log-dirs-of-nothing", ask("DescribeLogDirs", 4, topics=[]))
case(
    "move-log-elsewhere",
    topic(),
    ask(
        "AlterReplicaLogDirs",
        2,
        dirs=[
            {
                "path": "/no/such/folder",
                "topics": [{"name": "$t", "partitions": [0, 7]}, {"name": "$t2", "partitions": [0]}],
            }
        ],
    ),
)
case(
    "move-log-nowhere",
    topic(),
    ask("AlterReplicaLogDirs", 2, dirs=[{"path": "relative", "topics": [{"name": "$t", "partitions": [0]}]}]),
    ask("AlterReplicaLogDirs", 2, dirs=[]),
)

# --- elections and reassignments ---


def _elected(kind: int, topics: Any, version: int = 2) -> Step:
    return ask(
        "ElectLeaders",
        version,
        topic_partitions=topics,
        timeout_ms=2000,
        **only_if(version, election_type=kind),
    )


_ZERO = [{"topic": "$t", "partitions": [0]}]
case("elect", topic(), _elected(0, _ZERO), _elected(1, _ZERO), _elected(0, _ZERO, 0))
case("elect-unknown-type", topic(), _elected(9, _ZERO), _elected(-1, _ZERO))
case(
    "elect-unknown",
    topic(),
    _elected(
        0,
        [
            {"topic": "$t", "partitions": [7, -1]},
            {"topic": "$t2", "partitions": [0]},
            {"topic": "", "partitions": [0]},
        ],
    ),
)
case("elect-none", _elected(0, []))
case("elect-twice", topic(), _elected(0, [{"topic": "$t", "partitions": [0, 0]}]))


def _moved(replicas: Any, index: int = 0, name: str = "$t", **more: Any) -> Step:
    return ask(
        "AlterPartitionReassignments",
        1 if more else 0,
        timeout_ms=2000,
        topics=[{"name": name, "partitions": [{"partition_index": index, "replicas": replicas}]}],
        **more,
    )


case("reassign", topic(), _moved([1]), _moved(None))
case("reassign-odd", topic(), _moved([]), _moved([9]), _moved([1, 1]), _moved([-1]), _moved([1, 9]))
case(
    "reassign-unknown",
    topic(),
    _moved([1], 7),
    _moved([1], name="$t2"),
    _moved(None, 7),
    _moved(None, name="$t2"),
    _moved([1], name=""),
)
case(
    "reassign-other-factor",
    topic(),
    _moved([1, 9], allow_replication_factor_change=False),
    _moved([], allow_replication_factor_change=False),
)
case("reassign-none", ask("AlterPartitionReassignments", 1, timeout_ms=2000, topics=[]))
case(
    "reassign-partition-twice",
    topic(),
    ask(
        "AlterPartitionReassignments",
        0,
        timeout_ms=2000,
        topics=[
            {
                "name": "$t",
                "partitions": [
                    {"partition_index": 0, "replicas": [1]},
                    {"partition_index": 0, "replicas": [1]},
                ],
            }
        ],
    ),
)
case(
    "reassignments",
    topic(),
    ask(
        "ListPartitionReassignments", 0, timeout_ms=1000, topics=[{"name": "$t", "partition_indexes": [0, 7]}]
    ),
    ask("ListPartitionReassignments", 0, timeout_ms=1000, topics=[{"name": "$t2", "partition_indexes": [0]}]),
    ask("ListPartitionReassignments", 0, timeout_ms=1000, topics=None),
)

# --- the quorum, metrics ---

case(
    "quorum-of-unknown",
    *(
        ask("DescribeQuorum", v, topics=[{"topic_name": name, "partitions": [{"partition_index": index}]}])
        for v, name, index in ((0, "$t", 0), (2, "__cluster_metadata", 7), (2, "", 0))
    ),
    ask("DescribeQuorum", 2, topics=[]),
)
case("telemetry-first", ask("GetTelemetrySubscriptions", 0, keep={"i": "client_instance_id"}))
case("telemetry-own-id", ask("GetTelemetrySubscriptions", 0, client_instance_id=NO_TOPIC))
case("push-without-id", ask("PushTelemetry", 0, metrics=b""))
case(
    "push-before-subscription",
    ask("PushTelemetry", 0, client_instance_id=NO_TOPIC, subscription_id=5, metrics=b""),
)

# --- nodes that leave, voters ---

case("unregister-broker", *(ask("UnregisterBroker", 0, broker_id=number) for number in (9, -1, 2147483647)))
case(
    "unregister-controller",
    *(ask("UnregisterController", 0, controller_id=number) for number in (9, -1, 1)),
)


def _voters(api: str, version: int, cluster_id: str | None, voter_id: int, directory: UUID) -> Step:
    return ask(
        api,
        version,
        cluster_id=cluster_id,
        voter_id=voter_id,
        voter_directory_id=directory,
        **only_if(
            api == "AddRaftVoter",
            timeout_ms=1000,
            listeners=[{"name": "CONTROLLER", "host": "localhost", "port": 9093}],
        ),
        **only_if(version > 0, ack_when_committed=False),
    )


for api, v in (("AddRaftVoter", 0), ("AddRaftVoter", 1), ("RemoveRaftVoter", 0)):
    case(
        f"{'add' if api[0] == 'A' else 'remove'}-voter-v{v}",
        quiet("DescribeCluster", 0, keep={"$c": "cluster_id"}),
        _voters(api, v, "other", 7, UUID(int=7)),
        _voters(api, v, "", 7, UUID(int=7)),
        _voters(api, v, "$c", -1, UUID(int=7)),
        _voters(api, v, "$c", 7, UUID(int=0)),
        _voters(api, v, "other", -1, UUID(int=0)),
    )
case(
    "voter-that-could-be",
    _voters("RemoveRaftVoter", 0, None, 7, UUID(int=7)),
)
case(
    "add-voter-without-listeners",
    ask("AddRaftVoter", 0, cluster_id=None, voter_id=7, voter_directory_id=UUID(int=7), listeners=[]),
)
