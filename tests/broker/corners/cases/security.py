"""ACLs without an authorizer, SASL and delegation tokens where nobody authenticates."""

from __future__ import annotations

from typing import Any

from tests.broker.corners.script import ask, case, only_if

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

# --- delegation tokens, for which a connection would have to be authenticated ---

for v in (1, 2, 3):
    case(
        f"token-created-v{v}",
        ask("CreateDelegationToken", v, renewers=[], max_lifetime_ms=-1),
        ask(
            "CreateDelegationToken",
            v,
            renewers=[{"principal_type": "Group", "principal_name": "g"}],
            max_lifetime_ms=-7,
            **only_if(v > 2, owner_principal_type="User", owner_principal_name="ann"),
        ),
    )
    case(
        f"tokens-described-v{v}",
        ask("DescribeDelegationToken", v, owners=None),
        ask("DescribeDelegationToken", v, owners=[]),
        ask("DescribeDelegationToken", v, owners=[{"principal_type": "User", "principal_name": "ann"}]),
    )
for v in (1, 2):
    case(f"token-renewed-v{v}", ask("RenewDelegationToken", v, hmac=b"abc", renew_period_ms=-1))
    case(f"token-expired-v{v}", ask("ExpireDelegationToken", v, hmac=b"", expiry_time_period_ms=-1))
