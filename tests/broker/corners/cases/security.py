"""ACLs without an authorizer, SASL where nobody authenticates."""

from __future__ import annotations

from typing import Any

from tests.broker.corners.script import ask, case

_RULE: dict[str, Any] = {
    "resource_type": 2,
    "resource_name": "t",
    "principal": "User:a",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
_FILTER: dict[str, Any] = {
    "resource_type_filter": 2,
    "resource_name_filter": None,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
for v in (1, 2, 3):
    case(f"acls-described-v{v}", ask("DescribeAcls", v, **_FILTER))
    case(f"acls-created-v{v}", ask("CreateAcls", v, creations=[_RULE, _RULE | {"resource_pattern_type": 4}]))
    case(f"acls-deleted-v{v}", ask("DeleteAcls", v, filters=[_FILTER, _FILTER]))
case("acls-none", ask("CreateAcls", 3, creations=[]), ask("DeleteAcls", 3, filters=[]))
for part in ("resource_type", "resource_pattern_type", "operation", "permission_type"):
    case(
        f"acls-created-without-{part}",
        ask("CreateAcls", 3, creations=[_RULE | {part: 0}]),
        ask("CreateAcls", 3, creations=[_RULE | {part: 99}]),
    )
for part in ("resource_type_filter", "pattern_type_filter", "operation", "permission_type"):
    case(
        f"acls-described-without-{part}",
        ask("DescribeAcls", 3, **_FILTER | {part: 0}),
        ask("DescribeAcls", 3, **_FILTER | {part: 99}),
    )
    case(
        f"acls-deleted-without-{part}",
        ask("DeleteAcls", 3, filters=[_FILTER | {part: 0}]),
        ask("DeleteAcls", 3, filters=[_FILTER | {part: 99}]),
    )
case(
    "acls-created-for-any",
    ask(
        "CreateAcls",
        3,
        creations=[_RULE | {"resource_type": 1}, _RULE | {"principal": ""}, _RULE | {"host": ""}],
    ),
)

for v in (0, 1):
    case(
        f"sasl-handshake-plaintext-v{v}",
        ask("SaslHandshake", v, mechanism="PLAIN"),
        ask("SaslHandshake", v, mechanism=""),
    )
for v in (0, 1, 2):
    case(f"sasl-authenticate-plaintext-v{v}", ask("SaslAuthenticate", v, auth_bytes=b"\0a\0b"))
