"""The facts of a cluster beside its topics, as records of `__cluster_metadata`: levels of features, settings
of groups and brokers, quotas, what users prove themselves with, ACLs.

Strategy: a change of facts is records; `ClusterState.change` writes them and applies each, and a restart
applies the last one that the log has of each fact. Rule: a record of something else, as a setting of a later
release, is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

from coordwire.broker.cluster.facts import ClusterFacts
from coordwire.broker.security.authorizer import Acl
from coordwire.broker.security.credentials import SCRAM_MECHANISMS, ScramCredential
from coordwire.broker.settings.settings import GROUP_SETTINGS, checked
from coordwire.codec import Message
from coordwire.enums import ConfigResourceType
from coordwire.messages import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    RemoveAccessControlEntryRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Whom a quota is for: kinds with names, sorted."""


def setting_records(
    kind: ConfigResourceType, name: str, known: Mapping[str, str], changed: Mapping[str, str]
) -> list[ConfigRecord]:
    """The records for a resource whose settings become others."""
    return [
        ConfigRecord(resource_type=int(kind), resource_name=name, name=key, value=changed.get(key))
        for key in dict.fromkeys((*known, *changed))
        if known.get(key) != changed.get(key)
    ]


def quota_entity(record: ClientQuotaRecord) -> QuotaEntity:
    return tuple(sorted((part.entity_type, part.entity_name) for part in record.entity))


def fact_of(message: Message) -> Hashable:
    """Which fact a record is about; None where it is about none."""
    match message:
        case FeatureLevelRecord():
            return FeatureLevelRecord, message.name
        case ConfigRecord() if message.resource_type in (ConfigResourceType.GROUP, ConfigResourceType.BROKER):
            return ConfigRecord, message.resource_type, message.resource_name, message.name
        case ClientQuotaRecord():
            return ClientQuotaRecord, quota_entity(message), message.key
        case UserScramCredentialRecord() | RemoveUserScramCredentialRecord():
            return UserScramCredentialRecord, message.name, message.mechanism
        case AccessControlEntryRecord() | RemoveAccessControlEntryRecord():
            return AccessControlEntryRecord, message.id
    return None


def apply(facts: ClusterFacts, records: Iterable[Message]) -> None:
    """Change facts as records say. Raises `BadSetting` for a group's setting that has no such value."""
    levels: dict[str, int] = {}
    for record in records:
        if isinstance(record, FeatureLevelRecord):
            levels[record.name] = record.feature_level
        else:
            _APPLIED[type(record)](facts, record)
    facts.features.update({name: level for name, level in levels.items() if name in facts.features.supported})


def _apply_setting(facts: ClusterFacts, record: ConfigRecord) -> None:
    owner, name, value = record.resource_name, record.name, record.value
    if record.resource_type == ConfigResourceType.BROKER:
        _set(facts.broker_settings.setdefault(owner, {}), name, value)
    elif name in GROUP_SETTINGS:
        settings = facts.settings_of_group(owner)
        _set(settings.own, name, None if value is None else checked(GROUP_SETTINGS, name, value, of="group"))
        if settings.own:
            facts.group_settings[owner] = settings
        else:
            facts.group_settings.pop(owner, None)


def _set(settings: dict[str, str], name: str, value: str | None) -> None:
    if value is None:
        settings.pop(name, None)
    else:
        settings[name] = value


def _apply_quota(facts: ClusterFacts, record: ClientQuotaRecord) -> None:
    entity = quota_entity(record)
    quotas = facts.quotas.setdefault(entity, {})
    quotas.pop(record.key, None)
    if not record.remove:
        quotas[record.key] = record.value
    if not quotas:
        del facts.quotas[entity]


def _apply_credential(facts: ClusterFacts, record: UserScramCredentialRecord) -> None:
    mechanism = SCRAM_MECHANISMS.get(record.mechanism)
    if mechanism is not None:
        credential = ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)
        facts.scram.upsert(record.name, mechanism, credential)


def _remove_credential(facts: ClusterFacts, record: RemoveUserScramCredentialRecord) -> None:
    mechanism = SCRAM_MECHANISMS.get(record.mechanism)
    if mechanism is not None:
        facts.scram.delete(record.name, mechanism)


def acl_of(record: AccessControlEntryRecord) -> Acl:
    return Acl(
        record.resource_type,
        record.pattern_type,
        record.resource_name,
        record.principal,
        record.host,
        record.operation,
        record.permission_type,
    )


def _apply_acl(facts: ClusterFacts, record: AccessControlEntryRecord) -> None:
    if facts.authorizer is not None:
        facts.authorizer.add(acl_of(record), record.id)


def _remove_acl(facts: ClusterFacts, record: RemoveAccessControlEntryRecord) -> None:
    if facts.authorizer is not None:
        facts.authorizer.remove(record.id)


_APPLIED: Mapping[type[Message], Callable[[ClusterFacts, Any], None]] = {
    ConfigRecord: _apply_setting,
    ClientQuotaRecord: _apply_quota,
    UserScramCredentialRecord: _apply_credential,
    RemoveUserScramCredentialRecord: _remove_credential,
    AccessControlEntryRecord: _apply_acl,
    RemoveAccessControlEntryRecord: _remove_acl,
}
