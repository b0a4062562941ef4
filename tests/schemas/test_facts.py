"""What the schemas say beyond the bytes: entities, secrets, listeners, deprecated versions, errors."""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from coordwire.codec import Field, Struct
from coordwire.codec.walk import entity_field, entity_values
from coordwire.enums import ErrorCode, enum_of
from coordwire.messages import __all__ as names
from coordwire.messages import find_message
from coordwire.messages.error_conditions import ERROR_CONDITIONS
from coordwire.messages.keys import FACTS, ApiKey
from coordwire.messages.secret_paths import SECRET_PATHS
from schemas._generate.emit import module_text
from schemas._generate.indexes import error_conditions_text, keys_text, secret_paths_text
from schemas._generate.walk import ModuleRow, SchemaError, _check_facts, _Walk
from schemas.vocabulary import Api, Array, Bytes, GroupId, Message, Nullable, Secret, String
from schemas.vocabulary import Struct as Declared

DATA = Path(__file__).parents[1] / "data"

ALWAYS = {"UNKNOWN_SERVER_ERROR", "REQUEST_TIMED_OUT", "UNSUPPORTED_VERSION", "INVALID_REQUEST"}
"""What a broker may answer any request with."""


def classes() -> Iterator[type[Struct]]:
    """Every message, and every struct in one."""
    seen: set[type[Struct]] = set()
    waiting: list[type[Struct]] = [find_message(name) for name in names if name != "find_message"]
    while waiting:
        cls = waiting.pop()
        if cls not in seen:
            seen.add(cls)
            yield cls
            waiting += [field.struct for field in cls._layout_.fields if field.struct is not None]


def fields() -> Iterator[tuple[type[Struct], Field]]:
    return ((cls, field) for cls in classes() for field in cls._layout_.fields)


# --- entities ---

TYPES = {
    "broker_host": "string", "broker_id": "int32", "broker_port": "int32",
    "error_code": "int16", "group_id": "string", "instance_id": "string",
    "member_id": "string", "producer_id": "int64", "topic_name": "string", "transactional_id": "string",
}  # fmt: skip


def test_an_entity_has_its_type() -> None:
    result = {(field.entity, field.type) for _, field in fields() if field.entity is not None}
    others = {("error_code", "int32"), ("broker_port", "uint16")}  # ZooKeeper's, and those between brokers
    assert result == {*TYPES.items(), *others}


@pytest.mark.parametrize(
    ("name", "entity"),
    [
        ("group_id", "group_id"),
        ("group_ids", "group_id"),
        ("member_id", "member_id"),
        ("consumer_id", "member_id"),
        ("group_instance_id", "instance_id"),
        ("instance_id", "instance_id"),
        ("transactional_id", "transactional_id"),
        ("producer_id", "producer_id"),
        ("topic_name", "topic_name"),
        ("broker_id", "broker_id"),
        ("error_code", "error_code"),
    ],
)
def test_a_field_with_an_entitys_name_has_it(name: str, entity: str) -> None:
    results = [(cls, field) for cls, field in fields() if field.name == name and field.type == TYPES[entity]]
    assert results
    assert [f"{cls.__name__}.{field.name}" for cls, field in results if field.entity != entity] == []


def test_every_address_of_a_broker_in_a_response_is_known_as_one() -> None:
    """The hosts of ACLs are those of clients; Streams' user endpoints are those of applications."""
    places = {
        (path[0].__name__, field.name, field.entity)
        for path, field in response_fields()
        if field.name in ("host", "port")
    }
    assert {name for name, _, entity in places if entity is None} == {
        "DeleteAclsResponse",
        "DescribeAclsResponse",
        "StreamsGroupDescribeResponse",
        "StreamsGroupHeartbeatResponse",
    }
    assert {(name, entity) for _, name, entity in places if entity is not None} == {
        ("host", "broker_host"),
        ("port", "broker_port"),
    }
    assert len({name for name, _, entity in places if entity == "broker_host"}) >= 12


def response_fields() -> Iterator[tuple[tuple[Any, ...], Field]]:
    """All fields of Kafka's responses, each with the classes around it."""

    def below(cls: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Field]]:
        for field in cls._layout_.fields:
            yield (*path, cls), field
            if field.struct is not None:
                yield from below(field.struct, (*path, cls))

    for key in ApiKey:
        yield from below(find_message(key, "response"), ())


def test_every_field_of_error_codes_is_known_as_one() -> None:
    for cls, field in fields():
        if enum_of(cls.__name__, field.name) is ErrorCode:
            assert field.entity == "error_code", f"{cls.__name__}.{field.name}"
        elif field.entity == "error_code":
            assert cls.__name__.startswith(("Draft", "Kafka07", "ZooKeeper")), f"{cls.__name__}.{field.name}"


def test_every_message_of_the_group_coordinator_names_its_group() -> None:
    silent = {"FindCoordinator", "ListGroups"}
    for facts in FACTS.values():
        if facts.coordinator in ("group", "share") and facts.name not in silent:
            cls = find_message(f"{facts.name}Request")
            assert any(_leads(cls, "group_id")), facts.name


def _leads(cls: Any, entity: str) -> Iterator[bool]:
    for field in cls._layout_.fields:
        yield field.entity == entity
        if field.struct is not None:
            yield from _leads(field.struct, entity)


def test_values_of_an_entity() -> None:
    from coordwire.messages import AddPartitionsToTxnResponse, DescribeGroupsRequest, JoinGroupRequest
    from coordwire.messages.add_partitions_to_txn import (
        AddPartitionsToTxnPartitionResult,
        AddPartitionsToTxnTopicResult,
    )

    assert list(entity_values(DescribeGroupsRequest(groups=["a", "b"]), "group_id")) == ["a", "b"]
    request = JoinGroupRequest(group_id="g", member_id="m", group_instance_id=None)
    assert list(entity_values(request, "member_id", "instance_id")) == ["m"]
    assert list(entity_values(None, "group_id")) == []
    partition = AddPartitionsToTxnPartitionResult(partition_error_code=47)
    topic = AddPartitionsToTxnTopicResult(name="t", results_by_partition=[partition])
    answer = AddPartitionsToTxnResponse(results_by_topic_v3_and_below=[topic])
    assert list(entity_values(answer, "error_code")) == [0, 47]
    assert list(entity_values(answer, "topic_name")) == ["t"]
    assert entity_field(JoinGroupRequest, "group_id") == "group_id"
    assert entity_field(DescribeGroupsRequest, "group_id") is None  # an array


# --- secrets ---


def test_the_table_of_secrets_is_that_of_the_marks() -> None:
    result = {name: tuple(_secrets(find_message(name), "")) for name in names if name != "find_message"}
    assert {name: paths for name, paths in result.items() if paths} == SECRET_PATHS


def _secrets(cls: Any, prefix: str) -> Iterator[str]:
    for field in cls._layout_.fields:
        path = f"{prefix}{field.name}{'[]' if field.array else ''}"
        if field.secret:
            yield path
        if field.struct is not None:
            yield from _secrets(field.struct, f"{path}.")


def test_what_is_secret() -> None:
    """Spelled out once, so that none is lost from the schemas unnoticed."""
    assert {
        "SaslAuthenticateRequest": ("auth_bytes",),
        "SaslAuthenticateResponse": ("auth_bytes",),
        "AlterUserScramCredentialsRequest": ("upsertions[].salt", "upsertions[].salted_password"),
        "CreateDelegationTokenResponse": ("hmac",),
        "RenewDelegationTokenRequest": ("hmac",),
        "ExpireDelegationTokenRequest": ("hmac",),
        "DescribeDelegationTokenResponse": ("tokens[].hmac",),
        "EnvelopeRequest": ("request_data",),
        "EnvelopeResponse": ("response_data",),
        "CreateTopicsRequest": ("topics[].configs[].value",),
        "CreateTopicsResponse": ("topics[].configs[].value",),
        "DescribeConfigsResponse": ("results[].configs[].value", "results[].configs[].synonyms[].value"),
        "AlterConfigsRequest": ("resources[].configs[].value",),
        "IncrementalAlterConfigsRequest": ("resources[].configs[].value",),
        "UserScramCredentialRecord": ("salt", "stored_key", "server_key"),
        "ConfigRecord": ("value",),
        "FetchSnapshotResponse": ("topics[].partitions[].unaligned_records",),
        "ZooKeeperAuthRequest": ("auth",),
        "ZooKeeperCreateSessionRequest": ("passwd",),
        "ZooKeeperCreateSessionResponse": ("passwd",),
        "ZooKeeperMultiReadRequest": ("operations",),
        "ZooKeeperMultiRequest": ("operations",),
        "ZooKeeperSaslRequest": ("token",),
        "ZooKeeperSaslResponse": ("token",),
        **dict.fromkeys(WITH_ACLS, ("acl[].id",)),
    } == SECRET_PATHS


WITH_ACLS = (
    *("ZooKeeperCreateRequest", "ZooKeeperCreate2Request", "ZooKeeperCreateContainerRequest"),
    *("ZooKeeperCreateTtlRequest", "ZooKeeperCreateOperation", "ZooKeeperCreateTtlOperation"),
    *("ZooKeeperGetAclResponse", "ZooKeeperSetAclRequest"),
)


# --- APIs ---


def test_every_error_is_a_kafka_error() -> None:
    for facts in FACTS.values():
        assert len(set(facts.errors)) == len(facts.errors), facts.name
        for name in facts.errors:
            assert ErrorCode[name] != ErrorCode.NONE


def test_conditions_are_those_of_errors_that_the_api_has() -> None:
    for key, conditions in ERROR_CONDITIONS.items():
        assert conditions
        assert set(conditions) <= set(FACTS[key].errors), FACTS[key].name


@pytest.mark.parametrize(
    "key", [ApiKey.JOIN_GROUP, ApiKey.OFFSET_COMMIT, ApiKey.END_TXN, ApiKey.PRODUCE, ApiKey.FETCH]
)
def test_most_errors_of_much_used_apis_have_conditions(key: ApiKey) -> None:
    assert len(ERROR_CONDITIONS[key]) >= 0.7 * len(FACTS[key].errors)


def test_what_carries_errors_has_a_field_for_them() -> None:
    for facts in FACTS.values():
        if facts.errors:
            assert any(_leads(find_message(f"{facts.name}Response"), "error_code")), facts.name


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (ApiKey.JOIN_GROUP, {"UNKNOWN_MEMBER_ID", "MEMBER_ID_REQUIRED", "GROUP_MAX_SIZE_REACHED"}),
        (ApiKey.HEARTBEAT, {"ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS", "FENCED_INSTANCE_ID"}),
        (ApiKey.OFFSET_COMMIT, {"STALE_MEMBER_EPOCH", "OFFSET_METADATA_TOO_LARGE", "UNKNOWN_TOPIC_ID"}),
        (ApiKey.CONSUMER_GROUP_HEARTBEAT, {"FENCED_MEMBER_EPOCH", "UNRELEASED_INSTANCE_ID"}),
        (ApiKey.END_TXN, {"PRODUCER_FENCED", "TRANSACTION_ABORTABLE", "CONCURRENT_TRANSACTIONS"}),
        (ApiKey.SHARE_ACKNOWLEDGE, {"INVALID_RECORD_STATE", "SHARE_SESSION_NOT_FOUND"}),
        (ApiKey.STREAMS_GROUP_HEARTBEAT, {"STREAMS_INVALID_TOPOLOGY", "STREAMS_TOPOLOGY_FENCED"}),
    ],
)
def test_errors_of_an_api(key: ApiKey, expected: set[str]) -> None:
    assert expected <= set(FACTS[key].errors)


def test_every_coordinators_api_may_be_at_the_wrong_broker() -> None:
    for facts in FACTS.values():
        if facts.coordinator is not None and facts.errors:
            assert "COORDINATOR_NOT_AVAILABLE" in facts.errors, facts.name


def test_listeners() -> None:
    assert FACTS[ApiKey.JOIN_GROUP].listeners == ("broker",)
    assert FACTS[ApiKey.VOTE].listeners == ("controller",)
    assert FACTS[ApiKey.CREATE_TOPICS].listeners == ("broker", "controller")
    assert FACTS[ApiKey.LEADER_AND_ISR].listeners == ("zkBroker",)


def test_deprecated_and_unstable_versions() -> None:
    assert FACTS[ApiKey.FETCH].deprecated == range(4)
    assert not FACTS[ApiKey.JOIN_GROUP].deprecated
    assert {key for key, facts in FACTS.items() if facts.unstable is not None} == {ApiKey.INIT_PRODUCER_ID}
    assert FACTS[ApiKey.INIT_PRODUCER_ID].unstable == 6
    for facts in FACTS.values():
        assert set(facts.deprecated) < set(range(facts.first, facts.last + 1)), facts.name


SEEN = {
    "AddPartitionsToTxn": "CONCURRENT_TRANSACTIONS INVALID_PRODUCER_EPOCH PRODUCER_FENCED",
    "ConsumerGroupDescribe": "GROUP_ID_NOT_FOUND",
    "ConsumerGroupHeartbeat": "UNKNOWN_MEMBER_ID UNRELEASED_INSTANCE_ID",
    "CreateAcls": "SECURITY_DISABLED",
    "CreateDelegationToken": "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
    "CreateTopics": "INVALID_TOPIC_EXCEPTION",
    "DeleteAcls": "SECURITY_DISABLED",
    "DeleteGroups": "GROUP_ID_NOT_FOUND",
    "DeleteTopics": "UNKNOWN_TOPIC_OR_PARTITION",
    "DescribeAcls": "SECURITY_DISABLED",
    "DescribeDelegationToken": "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
    "ExpireDelegationToken": "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
    "Fetch": "NOT_LEADER_OR_FOLLOWER OFFSET_OUT_OF_RANGE",
    "FindCoordinator": "COORDINATOR_NOT_AVAILABLE",
    "Heartbeat": "INVALID_GROUP_ID REBALANCE_IN_PROGRESS UNKNOWN_MEMBER_ID",
    "InitProducerId": "CONCURRENT_TRANSACTIONS COORDINATOR_LOAD_IN_PROGRESS",
    "JoinGroup": "COORDINATOR_NOT_AVAILABLE INVALID_GROUP_ID MEMBER_ID_REQUIRED UNKNOWN_MEMBER_ID",
    "LeaveGroup": "INVALID_GROUP_ID",
    "ListOffsets": "NOT_LEADER_OR_FOLLOWER",
    "Metadata": "UNKNOWN_TOPIC_OR_PARTITION",
    "OffsetCommit": "FENCED_INSTANCE_ID REBALANCE_IN_PROGRESS UNKNOWN_MEMBER_ID",
    "OffsetDelete": "INVALID_GROUP_ID",
    "Produce": "NOT_LEADER_OR_FOLLOWER UNKNOWN_TOPIC_OR_PARTITION",
    "RenewDelegationToken": "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
    "SaslAuthenticate": "SASL_AUTHENTICATION_FAILED",
    "SaslHandshake": "UNSUPPORTED_SASL_MECHANISM",
    "SyncGroup": "INCONSISTENT_GROUP_PROTOCOL INVALID_GROUP_ID REBALANCE_IN_PROGRESS",
}
"""Errors in captures of Apache Kafka 3.9 and 4.3 and of other brokers, but for those of `ALWAYS`."""


@pytest.mark.parametrize("name", SEEN)
def test_errors_that_were_captured_are_listed(name: str) -> None:
    (facts,) = (facts for facts in FACTS.values() if facts.name == name)
    assert set(SEEN[name].split()) - ALWAYS <= set(facts.errors)


VERSIONS = re.compile(r"[^,;]*(?: \(|, in )(from version|before version|versions before) (\d+)(?: on)?\)?\.")
"""A condition that holds in some versions alone."""


def answered() -> dict[str, set[tuple[int, str]]]:
    """By API, the versions and errors of what brokers of Kafka 4.4.0 answered to corner cases and to clients
    with few rights."""
    answers: dict[str, set[tuple[int, str]]] = defaultdict(set)
    for path in DATA.glob("*/kafka-*.jsonl"):
        waiting: list[Any] = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        while waiting:
            match waiting.pop():
                case [str(name), int(version), dict(fields)]:
                    answers[name] |= {(version, error) for error in error_names(fields)}
                case list(values):
                    waiting += values
                case dict(fields):
                    waiting += fields.values()
    return answers


def error_names(value: Any) -> Iterator[str]:
    """The errors in an answer in its normal form, at any depth."""
    if isinstance(value, dict):
        for name, field in value.items():
            if name.endswith("error_code") and isinstance(field, str):
                yield field
            else:
                yield from error_names(field)
    elif isinstance(value, list):
        for element in value:
            yield from error_names(element)


ANSWERED = answered()


def test_many_answers_are_recorded() -> None:
    assert len(ANSWERED) >= 50
    assert sum(map(len, ANSWERED.values())) >= 290
    conditions = [text for texts in ERROR_CONDITIONS.values() for text in texts.values()]
    assert sum(VERSIONS.fullmatch(text) is not None for text in conditions) >= 15


@pytest.mark.parametrize("name", sorted(ANSWERED))
def test_errors_that_kafka_answered_are_listed_with_conditions_that_agree(name: str) -> None:
    """Where an API has conditions, each error that was answered has one, for the version of the request."""
    ((key, facts),) = ((key, facts) for key, facts in FACTS.items() if facts.name == name)
    conditions = ERROR_CONDITIONS.get(key, {})
    for version, error in ANSWERED[name]:
        assert error in ALWAYS or error in facts.errors
        assert error in ALWAYS or not conditions or error in conditions
        if limited := VERSIONS.fullmatch(conditions.get(error, "")):
            assert (version >= int(limited[2])) is (limited[1] == "from version"), (version, error)


# --- the generator ---


def api(**facts: Any) -> Api:
    return Api(999, "MadeUp", versions=(0, 3), flexible=2, doc="Made up.", **facts)


def walked(**declared: object) -> ModuleRow:
    module = ModuleType("schemas.made.up")
    module.__doc__ = "Made up."
    for value in declared.values():
        if isinstance(value, Message):
            value.module = module.__name__
    module.__dict__.update(declared)
    return _Walk(module).run()


def test_facts_reach_the_generated_text() -> None:
    part = Declared("key" / Nullable(Secret(Bytes)) * "K.", doc="A part.")
    facts = {"listeners": ("controller",), "deprecated": (0, 1), "unstable": 3, "errors": ("NOT_CONTROLLER",)}
    made_up = api(**facts)
    request = made_up.request("groups" / Array(GroupId) * "G.", "parts" / Array(part) * "P.")
    row = walked(Part=part, MadeUpRequest=request, MadeUpResponse=made_up.response())
    text = module_text(row)
    assert 'groups: list[str] = array("string", default=[], entity="group_id")' in text
    assert 'key: bytes | None = field("bytes", default=None, null=0, secret=True)' in text
    assert '"MadeUpRequest": ("parts[].key",),' in secret_paths_text([row])
    keys = keys_text([row])
    assert 'listeners=("controller",),' in keys
    assert "deprecated=range(2)," in keys
    assert "unstable=3," in keys
    assert '"NOT_CONTROLLER",' in keys
    ast.parse(keys)


def test_conditions_of_errors_reach_a_module_of_their_own() -> None:
    made_up = api(errors={"NOT_CONTROLLER": "The controller has changed.", "INVALID_REQUEST": ""})
    row = walked(MadeUpRequest=made_up.request(), MadeUpResponse=made_up.response())
    assert '"NOT_CONTROLLER", "INVALID_REQUEST",' in keys_text([row])
    assert (
        '999: {\n        "NOT_CONTROLLER": "The controller has changed.",\n    },'
        in error_conditions_text([row])
    )


@pytest.mark.parametrize(
    ("facts", "complaint"),
    [
        ({"listeners": ("kitchen",)}, "listeners are broker, controller, zkBroker"),
        ({"listeners": ()}, "listeners are"),
        ({"deprecated": (1, 4)}, "deprecated"),
        ({"deprecated": (2, 1)}, "deprecated"),
        ({"unstable": 4}, "unstable"),
        ({"request_headers": {1: 1}}, "headers of requests begin with version 0"),
        ({"request_headers": {0: 1, 4: 2}}, "headers of requests begin in versions 0 to 3"),
        ({"request_headers": {0: 2, 2: 1}}, "headers of requests do not fall"),
        ({"response_headers": {0: 0, 2: 2}}, "headers of responses are 0 to 1"),
        ({"errors": ("NOT_CONTROLLER", "NOT_CONTROLLER")}, "NOT_CONTROLLER is declared twice"),
        ({"errors": {"NOT_CONTROLLER": "moved"}}, "the condition of NOT_CONTROLLER is a sentence"),
        ({"changes": {1: "A.", 3: "C."}}, "MadeUp: changes= lacks what version 2 brought"),
        ({}, "changes= lacks what version 1, 2, 3 brought"),
        ({"changes": {1: "A.", 2: "B.", 3: "C.", 4: "D."}}, "versions 0 to 3, changes= of 4"),
    ],
)
def test_facts_that_cannot_be(facts: dict[str, Any], complaint: str) -> None:
    with pytest.raises(SchemaError, match=complaint):
        _check_facts(api(**facts))


def test_an_array_is_not_marked_as_a_secret() -> None:
    with pytest.raises(SchemaError, match="only a single value"):
        walked(MadeUpRequest=api().request("keys" / Secret(Array(String)) * "K."))
