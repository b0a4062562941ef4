"""What an administrator sets, and whether the broker that has the folder next says the same of it.

Strategy: each turn sets a group's settings, the brokers' common ones, a user's credential and a feature's
level anew, makes a quota and an ACL, and removes those of the turn before; what a broker describes is
compared with what was set, before and after. Rule: a Kafka broker learns of a change after it was answered,
so that it is asked again.
"""

from __future__ import annotations

import time
from typing import Any

from coordwire.client import SyncClient, connect_sync
from coordwire.codec import Request
from coordwire.conformance.cases import message_of
from coordwire.enums import ConfigResourceType
from coordwire.messages import (
    AlterClientQuotasRequest,
    AlterUserScramCredentialsRequest,
    ApiVersionsRequest,
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
    DescribeClientQuotasRequest,
    DescribeConfigsRequest,
    DescribeUserScramCredentialsRequest,
    IncrementalAlterConfigsRequest,
    UpdateFeaturesRequest,
)

WAIT = 20
"""Seconds for a broker to learn of a change."""

Facts = dict[str, Any]
"""What is set, by kind."""


def facts_of(turn: int) -> Facts:
    """What is set in a turn."""
    return {
        "group": {"consumer.session.timeout.ms": str(50_000 + turn)},
        "brokers": {"message.max.bytes": str(2_000_000 + turn)},
        "quotas": [([("client-id", f"c-{turn}"), ("user", None)], [("request_percentage", 12.5 + turn)])],
        "users": [("ann", [(1, 4096 + turn)])],
        "acls": [(4, f"closed-{turn}", [("User:ann", "192.0.2.7", 3, 2)])],
        "level": 1 + turn % 2,
    }


def check(bootstrap: str, turn: int) -> None:
    """Check that what the turn before has set is there, and set this one's."""
    with connect_sync(bootstrap) as client:
        if turn:
            _is_described(client, facts_of(turn - 1), f"turn {turn}, before")
            _remove(client, turn - 1)
        _set(client, turn)
        _is_described(client, facts_of(turn), f"turn {turn}, after")


def _ask(client: SyncClient, cls: type[Request[Any]], **values: Any) -> Any:
    return client.request(message_of(cls, values))


def _set(client: SyncClient, turn: int) -> None:
    facts = facts_of(turn)
    _configure(client, ConfigResourceType.GROUP, "group", facts["group"])
    _configure(client, ConfigResourceType.BROKER, "", facts["brokers"])
    _quota(client, turn, remove=False)
    upserted = {
        "name": "ann", "mechanism": 1, "iterations": 4096 + turn, "salt": b"salt",
        "salted_password": b"password" * 4,
    }  # fmt: skip
    _ask(client, AlterUserScramCredentialsRequest, deletions=[], upsertions=[upserted])
    acl = {
        "resource_type": 2, "resource_name": f"closed-{turn}", "resource_pattern_type": 4,
        "principal": "User:ann", "host": "192.0.2.7", "operation": 3, "permission_type": 2,
    }  # fmt: skip
    _ask(client, CreateAclsRequest, creations=[acl])
    update = {
        "feature": "transaction.version", "max_version_level": facts["level"],
        "upgrade_type": 1 if turn % 2 else 2,
    }  # fmt: skip
    answer = _ask(client, UpdateFeaturesRequest, feature_updates=[update], timeout_ms=10_000)
    assert not answer.error_code, answer


def _remove(client: SyncClient, turn: int) -> None:
    _quota(client, turn, remove=True)
    one = _EVERY_ACL | {"resource_name_filter": f"closed-{turn}"}
    _ask(client, DeleteAclsRequest, filters=[one])


def _configure(client: SyncClient, kind: ConfigResourceType, name: str, settings: dict[str, str]) -> None:
    configs = [{"name": key, "value": value, "config_operation": 0} for key, value in settings.items()]
    resource = {"resource_type": int(kind), "resource_name": name, "configs": configs}
    _ask(client, IncrementalAlterConfigsRequest, resources=[resource])


def _quota(client: SyncClient, turn: int, *, remove: bool) -> None:
    ((parts, quotas),) = facts_of(turn)["quotas"]
    entity = [{"entity_type": kind, "entity_name": name} for kind, name in parts]
    ops = [{"key": key, "value": value, "remove": remove} for key, value in quotas]
    _ask(client, AlterClientQuotasRequest, entries=[{"entity": entity, "ops": ops}])


def _is_described(client: SyncClient, expected: Facts, moment: str) -> None:
    deadline = time.monotonic() + WAIT
    while (found := _described(client)) != expected:
        assert time.monotonic() < deadline, f"{moment}: {found}, not {expected}"
        time.sleep(0.2)


_EVERY_ACL = {
    "resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1,
    "principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1,
}  # fmt: skip


def _described(client: SyncClient) -> Facts:
    acls = _ask(client, DescribeAclsRequest, **_EVERY_ACL)
    quotas = _ask(client, DescribeClientQuotasRequest, components=[], strict=False)
    users = _ask(client, DescribeUserScramCredentialsRequest, users=None)
    versions = _ask(client, ApiVersionsRequest, client_software_name="test", client_software_version="1")
    levels = {feature.name: feature.max_version_level for feature in versions.finalized_features}
    return {
        "group": _settings(client, ConfigResourceType.GROUP, "group", "consumer.session.timeout.ms"),
        "brokers": _settings(client, ConfigResourceType.BROKER, "", "message.max.bytes"),
        "quotas": [
            (
                sorted((part.entity_type, part.entity_name) for part in entry.entity),
                [(value.key, value.value) for value in entry.values],
            )
            for entry in quotas.entries
        ],
        "users": [
            (user.user, [(info.mechanism, info.iterations) for info in user.credential_infos])
            for user in users.results
        ],
        "acls": [
            (
                resource.pattern_type,
                resource.resource_name,
                [(acl.principal, acl.host, acl.operation, acl.permission_type) for acl in resource.acls],
            )
            for resource in acls.resources
        ],
        "level": levels.get("transaction.version"),
    }


def _settings(client: SyncClient, kind: ConfigResourceType, owner: str, name: str) -> dict[str, str]:
    resource = {"resource_type": int(kind), "resource_name": owner, "configuration_keys": [name]}
    (result,) = _ask(client, DescribeConfigsRequest, resources=[resource]).results
    return {config.name: config.value for config in result.configs}
