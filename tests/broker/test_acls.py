"""ACLs: decisions of the authorizer, the APIs that keep them, and what each API answers without them."""

from __future__ import annotations

import itertools
import random
from typing import Any
from uuid import UUID, uuid4

import pytest

from coordwire.broker import Broker, BrokerConfig
from coordwire.broker.handlers import APIS
from coordwire.broker.security.authorizer import Acl, AclFilter, Authorizer
from coordwire.enums import AclOperation, AclPermissionType, AclResourceType, ErrorCode, PatternType
from coordwire.messages import CreateAclsRequest, StreamsGroupHeartbeatRequest
from coordwire.messages.create_acls import AclCreation
from coordwire.messages.streams_group_heartbeat import Subtopology, TopicInfo, Topology
from coordwire.versions import ApiKey
from tests.broker.authorized.brokers import kafka, ours
from tests.broker.authorized.kept import kept
from tests.broker.authorized.requests import ACLS, TOPICS, requests
from tests.broker.authorized.run import answers
from tests.broker.core import Core
from tests.broker.corners.differences import differing
from tests.growth import assert_linear
from tests.interop.conftest import give_up
from tests.interop.maven import Unavailable

TOPIC, GROUP = AclResourceType.TOPIC.value, AclResourceType.GROUP.value
LITERAL, PREFIXED = PatternType.LITERAL.value, PatternType.PREFIXED.value
DENY, ALLOW = AclPermissionType.DENY.value, AclPermissionType.ALLOW.value
ANN, HOST = "User:ann", "127.0.0.1"


def acl(
    name: str,
    operation: AclOperation = AclOperation.READ,
    permission: int = ALLOW,
    *,
    pattern: int = LITERAL,
    principal: str = ANN,
    host: str = "*",
    kind: int = TOPIC,
) -> Acl:
    return Acl(kind, pattern, name, principal, host, operation.value, permission)


def allows(acls: list[Acl], operation: AclOperation, name: str, **options: Any) -> bool:
    authorizer = Authorizer(**options)
    for one in acls:
        authorizer.add(one, uuid4())
    return authorizer.allows(ANN, HOST, operation.value, TOPIC, name)


READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE


@pytest.mark.parametrize(
    ("acls", "operation", "name", "expected"),
    [
        ([], READ, "t", False),
        ([acl("t")], READ, "t", True),
        ([acl("t")], READ, "t2", False),
        ([acl("t")], WRITE, "t", False),
        ([acl("*")], READ, "t", True),
        ([acl("t", pattern=PREFIXED)], READ, "t2", True),
        ([acl("t2", pattern=PREFIXED)], READ, "t", False),
        ([acl("*", pattern=PREFIXED)], READ, "t", False),
        ([acl("t", principal="User:*")], READ, "t", True),
        ([acl("t", principal="User:bob")], READ, "t", False),
        ([acl("t", principal="Group:ann")], READ, "t", False),
        ([acl("t", host=HOST)], READ, "t", True),
        ([acl("t", host="127.0.0.2")], READ, "t", False),
        ([acl("t", kind=GROUP)], READ, "t", False),
        ([acl("t", AclOperation.ALL)], READ, "t", True),
        ([acl("t", WRITE)], DESCRIBE, "t", True),
        ([acl("t", AclOperation.DELETE)], DESCRIBE, "t", True),
        ([acl("t", AclOperation.ALTER)], DESCRIBE, "t", True),
        ([acl("t", AclOperation.CREATE)], DESCRIBE, "t", False),
        ([acl("t", AclOperation.ALTER_CONFIGS)], DESCRIBE, "t", False),
        ([acl("t", AclOperation.ALTER_CONFIGS)], AclOperation.DESCRIBE_CONFIGS, "t", True),
        ([acl("t", DESCRIBE)], READ, "t", False),
        ([acl("t"), acl("t", permission=DENY)], READ, "t", False),
        ([acl("t"), acl("t", permission=DENY, principal="User:*")], READ, "t", False),
        ([acl("t"), acl("*", AclOperation.ALL, DENY)], READ, "t", False),
        ([acl("t"), acl("t", permission=DENY, host="127.0.0.2")], READ, "t", True),
        ([acl("*"), acl("t", permission=DENY, pattern=PREFIXED)], READ, "t9", False),
        ([acl("t", DESCRIBE), acl("t", READ, DENY)], DESCRIBE, "t", True),
    ],
)
def test_decisions(acls: list[Acl], operation: AclOperation, name: str, expected: bool) -> None:
    for order in (acls, acls[::-1]):
        assert allows(order, operation, name) is expected
    assert allows(acls, operation, name, super_users=[ANN])


def test_a_resource_without_acls_is_open_where_that_is_wanted() -> None:
    others = [acl("t", principal="User:bob")]
    assert allows([], READ, "t", open_by_default=True)
    assert allows(others, READ, "t2", open_by_default=True)
    assert not allows(others, READ, "t", open_by_default=True)


def matches(one: Acl, kind: int, name: str) -> bool:
    """Whether an ACL is about a resource, by Kafka's definition."""
    same = one.name in (name, "*") if one.pattern_type == LITERAL else name.startswith(one.name)
    return one.resource_type == kind and same


def test_many_prefixes_are_found_as_by_trying_each() -> None:
    draw = random.Random(7)
    names = ["".join(letters) for n in range(1, 5) for letters in itertools.product("ab*", repeat=n)]
    for _ in range(200):
        acls = {
            acl(
                draw.choice(names),
                permission=draw.choice((ALLOW, ALLOW, DENY)),
                pattern=draw.choice((LITERAL, PREFIXED)),
                kind=draw.choice((TOPIC, GROUP)),
            )
            for _ in range(draw.randrange(12))
        }
        removed = set(draw.sample(sorted(acls), len(acls) // 3))
        authorizer = Authorizer()
        for one in acls:
            authorizer.add(one, uuid4())
            authorizer.add(one, uuid4())
        for one in removed:
            authorizer.remove(authorizer.id_of(one) or uuid4())
            authorizer.remove(authorizer.id_of(one) or uuid4())
        for name in draw.sample(names, 20):
            about = [one for one in acls - removed if matches(one, TOPIC, name)]
            expected = bool(about) and all(one.permission == ALLOW for one in about)
            assert authorizer.allows(ANN, HOST, READ.value, TOPIC, name) is expected
            wanted = AclFilter(TOPIC, PatternType.MATCH.value, name, None, None, 1, 1)
            results = list(authorizer.find(wanted))
            assert len(results) == len(set(results))
            assert set(results) == set(about)
        for kind, pattern, own in itertools.product((1, TOPIC), (1, LITERAL, PREFIXED), (None, "a", "*")):
            results = list(authorizer.find(AclFilter(kind, pattern, own, ANN, "*", READ.value, 1)))
            assert len(results) == len(set(results))
            assert set(results) == {
                one
                for one in acls - removed
                if kind in (1, one.resource_type) and pattern in (1, one.pattern_type)
                if own in (None, one.name)
            }


@pytest.mark.parametrize(
    ("acls", "expected"),
    [
        ([], False),
        ([acl("t", WRITE)], True),
        ([acl("t", READ)], False),
        ([acl("t", WRITE, pattern=PREFIXED)], True),
        ([acl("t", AclOperation.ALL)], True),
        ([acl("t", WRITE), acl("t", WRITE, DENY)], False),
        ([acl("t", WRITE), acl("t", WRITE, DENY, pattern=PREFIXED)], False),
        ([acl("t", WRITE), acl("t2", WRITE, DENY)], True),
        ([acl("t", WRITE, pattern=PREFIXED), acl("t", WRITE, DENY)], True),
        ([acl("t", WRITE), acl("*", WRITE, DENY)], False),
        ([acl("*", WRITE), acl("t", WRITE, DENY)], True),
        ([acl("t", WRITE, principal="User:bob")], False),
    ],
)
def test_some_resource(acls: list[Acl], expected: bool) -> None:
    authorizer = Authorizer()
    for one in acls:
        authorizer.add(one, uuid4())
    assert authorizer.allows_some(ANN, HOST, WRITE.value, TOPIC) is expected
    assert Authorizer([ANN]).allows_some(ANN, HOST, WRITE.value, TOPIC)


@pytest.mark.growth
def test_decisions_do_not_cost_more_with_more_acls() -> None:
    """As many decisions as ACLs: were one linear in the ACLs, all would be quadratic. The steps along the
    prefixes are a logarithm, as these names are numbers; the length of a name bounds them."""

    def made(n: int) -> tuple[Authorizer, int]:
        authorizer = Authorizer()
        for number in range(n):
            pattern = PREFIXED if number % 2 else LITERAL
            authorizer.add(acl(f"topic-{number:06}", pattern=pattern, principal=f"User:{number}"), uuid4())
            authorizer.add(acl("topic-", pattern=PREFIXED, principal=f"User:{number}"), uuid4())
        return authorizer, n

    def decide(given: tuple[Authorizer, int]) -> None:
        authorizer, n = given
        for number in range(n):
            assert authorizer.allows(f"User:{number}", HOST, READ.value, TOPIC, f"topic-{number:06}")

    assert_linear(made, decide, n=500, slack=1.25)


# --- each API, as a real broker answers it ---

_OPEN = {
    ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.PUSH_TELEMETRY,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
}  # fmt: skip
"""APIs that need no permission."""

_NOT_COMPARED = {ApiKey.ALTER_REPLICA_LOG_DIRS, ApiKey.DESCRIBE_QUORUM}


def unlike(found: dict[str, list[Any]]) -> list[Any]:
    """Where answers differ from those that are kept of a real broker."""
    known = kept()
    assert list(found) == list(known) == list(ACLS)
    return [
        (name, *kafkas[:2], *difference)
        for name, outcomes in known.items()
        for kafkas, own in zip(outcomes, found[name], strict=True)
        for difference in differing(kafkas, own)
    ]


def test_each_api_answers_a_user_as_a_real_broker_does() -> None:
    with ours() as address:
        assert unlike(answers(address)) == []


@pytest.mark.maven
def test_a_real_broker_still_answers_so() -> None:
    try:
        with kafka() as address:
            assert unlike(answers(address)) == []
    except Unavailable as error:
        give_up(error)


def test_every_api_is_asked() -> None:
    ids = {name: UUID(int=1) for name in TOPICS}
    asked = {ApiKey(request.api_key) for request, _ in requests(ids) if request.api_key is not None}
    assert {ApiKey(key) for key in APIS} - asked == _OPEN | _NOT_COMPARED


def test_internal_topics_of_streams_are_created_by_those_who_may() -> None:
    """As a Kafka 4.3.0 broker does, texts included."""
    core = Core(topics={"lines": 1}, authorizer=True)
    assert core.cluster.authorizer is not None
    everyone = "User:ANONYMOUS"
    for one in (
        acl("*", DESCRIBE, principal=everyone),
        acl("*", READ, principal=everyone, kind=GROUP),
        acl("mine", AclOperation.CREATE, principal=everyone),
    ):
        core.cluster.authorizer.add(one, uuid4())
    for stores, detail in (
        (["mine", "yours"], "mine, yours; Unauthorized to CREATE on topics yours."),
        (["mine"], "mine"),
    ):
        assert "mine" not in core.cluster.topics
        part = Subtopology(
            subtopology_id="0",
            source_topics=["lines"],
            state_changelog_topics=[TopicInfo(name=name) for name in stores],
        )
        request = StreamsGroupHeartbeatRequest(
            group_id="-".join(stores), member_id="m", process_id="p", rebalance_timeout_ms=60_000,
            topology=Topology(epoch=1, subtopologies=[part]), active_tasks=[], standby_tasks=[],
            warmup_tasks=[],
        )  # fmt: skip
        details = [status.status_detail for status in core.ask(request, 0).status or ()]
        assert f"Internal topics are missing: {detail}" in details
    assert "mine" in core.cluster.topics
    assert "yours" not in core.cluster.topics


# --- the APIs of ACLs ---

_CREATION: dict[str, Any] = {
    "resource_type": TOPIC, "resource_name": "t", "principal": ANN, "host": "*",
    "operation": READ.value, "permission_type": ALLOW,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, None),
        ({"resource_name": ""}, "Invalid empty resource name"),
        ({"resource_type": 4}, "The only valid name for the CLUSTER resource is kafka-cluster"),
        ({"resource_type": 1}, "Invalid resourceType ANY"),
        ({"resource_pattern_type": 2}, "Invalid patternType MATCH"),
        ({"operation": 1}, "Invalid operation ANY"),
        ({"permission_type": 1}, "Invalid permissionType ANY"),
        (
            {"principal": "ann"},
            "Could not parse principal from `ann` (no colon is present separating the principal type from the"
            " principal name)",
        ),
    ],
)
def test_an_acl_that_cannot_be(changes: dict[str, Any], message: str | None) -> None:
    core = Core(authorizer=True)
    for _ in range(2):  # the second time it is there
        (result,) = core.ask(CreateAclsRequest(creations=[AclCreation(**_CREATION | changes)]), 3).results
        expected = ErrorCode.NONE if message is None else ErrorCode.INVALID_REQUEST
        assert (result.error_code, result.error_message) == (expected, message)
    assert core.cluster.authorizer is not None
    everything = AclFilter(1, 1, None, None, None, 1, 1)
    assert len(list(core.cluster.authorizer.find(everything))) == (message is None)


def test_when_there_is_an_authorizer() -> None:
    assert BrokerConfig().made_authorizer() is None
    assert BrokerConfig(users={"ann": "x"}, authorizer=False).made_authorizer() is None
    for config, is_open in (
        (BrokerConfig(users={"ann": "x"}), True),
        (BrokerConfig(sasl_mechanisms=("OAUTHBEARER",)), True),
        (BrokerConfig(authorizer=True), False),
        (BrokerConfig(authorizer=True, allow_everyone_if_no_acl_found=True), True),
    ):
        made = config.made_authorizer()
        assert made is not None
        assert made.allows(ANN, HOST, READ.value, TOPIC, "t") is is_open


# --- clients ---


def users_broker() -> Any:
    config = BrokerConfig(users={"admin": "a", "ann": "b"}, authorizer=True, super_users=("User:admin",))
    return Broker.in_thread(topics={"t": 1}, config=config)


def test_confluent_kafka_keeps_acls() -> None:
    admin = pytest.importorskip("confluent_kafka.admin")
    confluent = pytest.importorskip("confluent_kafka")

    def client(user: str, password: str) -> Any:
        return admin.AdminClient(
            {
                "bootstrap.servers": broker.bootstrap, "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN", "sasl.username": user, "sasl.password": password,
            }
        )  # fmt: skip

    with users_broker() as broker:
        chief, ann = client("admin", "a"), client("ann", "b")
        assert "t" not in ann.list_topics(timeout=10).topics
        binding = admin.AclBinding(
            admin.ResourceType.TOPIC, "t", admin.ResourcePatternType.LITERAL, ANN, "*",
            admin.AclOperation.READ, admin.AclPermissionType.ALLOW,
        )  # fmt: skip
        with pytest.raises(confluent.KafkaException) as refused:
            ann.create_acls([binding])[binding].result(10)
        assert refused.value.args[0].code() == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert chief.create_acls([binding])[binding].result(10) is None
        assert "t" in ann.list_topics(timeout=10).topics
        chosen = admin.AclBindingFilter(
            admin.ResourceType.TOPIC, "t", admin.ResourcePatternType.MATCH, None, None,
            admin.AclOperation.ANY, admin.AclPermissionType.ANY,
        )  # fmt: skip
        assert chief.describe_acls(chosen).result(10) == [binding]
        assert chief.delete_acls([chosen])[chosen].result(10) == [binding]
        assert chief.describe_acls(chosen).result(10) == []
        assert "t" not in ann.list_topics(timeout=10).topics


def test_kafka_python_keeps_acls() -> None:
    admin = pytest.importorskip("kafka.admin")
    with users_broker() as broker:
        chief = admin.KafkaAdminClient(
            bootstrap_servers=broker.bootstrap, security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN",
            sasl_plain_username="admin", sasl_plain_password="a",
        )  # fmt: skip
        try:
            expected = admin.ACL(
                ANN, "*", admin.ACLOperation.READ, admin.ACLPermissionType.ALLOW,
                admin.ResourcePattern(admin.ResourceType.TOPIC, "t", admin.ACLResourcePatternType.PREFIXED),
            )  # fmt: skip
            assert chief.create_acls([expected])["failed"] == []
            chosen = admin.ACLFilter(
                ANN, "*", admin.ACLOperation.ANY, admin.ACLPermissionType.ANY,
                admin.ResourcePatternFilter(
                    admin.ResourceType.TOPIC, "t", admin.ACLResourcePatternType.PREFIXED
                ),
            )  # fmt: skip
            acls, error = chief.describe_acls(chosen)
            assert acls == [expected]
            assert error.errno == 0
            ((_, deleted, _),) = chief.delete_acls([chosen])
            assert deleted == [expected]
            assert chief.describe_acls(chosen)[0] == []
        finally:
            chief.close()
