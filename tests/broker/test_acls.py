"""ACLs: decisions of the authorizer, the APIs that keep them, and what each API answers without them."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from coordwire.broker.authorizer import Acl, AclFilter, Authorizer
from coordwire.enums import AclOperation, AclPermissionType, AclResourceType, PatternType
from tests.growth import assert_linear

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
    made = Authorizer(**options)
    for one in acls:
        made.add(one)
    return made.allows(ANN, HOST, operation.value, TOPIC, name)


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
        made = Authorizer()
        for one in acls:
            made.add(one)
            made.add(one)
        for one in removed:
            made.remove(one)
            made.remove(one)
        for name in draw.sample(names, 20):
            about = [one for one in acls - removed if matches(one, TOPIC, name)]
            expected = bool(about) and all(one.permission == ALLOW for one in about)
            assert made.allows(ANN, HOST, READ.value, TOPIC, name) is expected
            wanted = AclFilter(TOPIC, PatternType.MATCH.value, name, None, None, 1, 1)
            found = list(made.find(wanted))
            assert len(found) == len(set(found))
            assert set(found) == set(about)
        for kind, pattern, name in itertools.product((1, TOPIC), (1, LITERAL, PREFIXED), (None, "a", "*")):
            found = list(made.find(AclFilter(kind, pattern, name, ANN, "*", READ.value, 1)))
            assert len(found) == len(set(found))
            assert set(found) == {
                one
                for one in acls - removed
                if kind in (1, one.resource_type) and pattern in (1, one.pattern_type)
                if name in (None, one.name)
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
    made = Authorizer()
    for one in acls:
        made.add(one)
    assert made.allows_some(ANN, HOST, WRITE.value, TOPIC) is expected
    assert Authorizer([ANN]).allows_some(ANN, HOST, WRITE.value, TOPIC)


def test_decisions_do_not_cost_more_with_more_acls() -> None:
    """As many decisions as ACLs: were one linear in the ACLs, all would be quadratic. The steps along the
    prefixes are a logarithm, as these names are numbers; the length of a name bounds them."""

    def made(n: int) -> tuple[Authorizer, int]:
        authorizer = Authorizer()
        for number in range(n):
            pattern = PREFIXED if number % 2 else LITERAL
            authorizer.add(acl(f"topic-{number:06}", pattern=pattern, principal=f"User:{number}"))
            authorizer.add(acl("topic-", pattern=PREFIXED, principal=f"User:{number}"))
        return authorizer, n

    def decide(given: tuple[Authorizer, int]) -> None:
        authorizer, n = given
        for number in range(n):
            assert authorizer.allows(f"User:{number}", HOST, READ.value, TOPIC, f"topic-{number:06}")

    assert_linear(made, decide, n=500, slack=1.25)
