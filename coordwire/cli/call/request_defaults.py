"""What a request of `call` has where its user gives nothing.

Strategy: a struct as its schema makes it, then the values of one table: what Kafka's message definitions and
clients mean by "all", "any" and "none", where the default on the wire means nothing, or nothing valid. A time
that a broker takes to answer is the command's own. Rules: no value widens what is changed (DeleteAcls and
ElectLeaders keep theirs); a field with which a reading request would change something is off; a value goes
only where the version that was asked for has it.
"""

from __future__ import annotations

from typing import Any, TypeVar

from coordwire import __version__
from coordwire.cli import Failure
from coordwire.codec import Request, Struct
from coordwire.codec.fields import Field
from coordwire.codec.walk import fields_of
from coordwire.enums import AclOperation, AclPermissionType, AclResourceType, PatternType
from coordwire.messages.keys import FACTS

S = TypeVar("S", bound=Struct)

MEANT: dict[str, dict[str, Any]] = {
    # null for all of them: "about" in clients/src/main/resources/common/message/*Request.json
    "MetadataRequest": {"topics": None},
    "OffsetFetchRequestGroup": {"topics": None},
    "DescribeShareGroupOffsetsRequestGroup": {"topics": None},
    "DescribeLogDirsRequest": {"topics": None},
    "DescribeDelegationTokenRequest": {"owners": None},
    "DescribeUserScramCredentialsRequest": {"users": None},
    "DescribeConfigsResource": {"configuration_keys": None},
    # -1 for the broker's own defaults, from v4 on: CreateTopicsRequest.json
    "CreatableTopic": {"num_partitions": -1, "replication_factor": -1},
    # null where the controller assigns the replicas: CreatePartitionsRequest.json
    "CreatePartitionsTopic": {"assignments": None},
    # AccessControlEntryFilter.ANY and ResourcePatternFilter.ANY of Kafka's clients
    "DescribeAclsRequest": {
        "resource_type_filter": int(AclResourceType.ANY), "resource_name_filter": None,
        "pattern_type_filter": int(PatternType.ANY), "principal_filter": None, "host_filter": None,
        "operation": int(AclOperation.ANY), "permission_type": int(AclPermissionType.ANY),
    },
    # ApiVersionsRequest.isValid: both have letters
    "ApiVersionsRequest": {"client_software_name": "coordwire", "client_software_version": __version__},
    # null for an idempotent producer (InitProducerIdRequest.json); Java's transaction.timeout.ms
    "InitProducerIdRequest": {"transactional_id": None, "transaction_timeout_ms": 60_000},
}  # fmt: skip
"""Values by struct and field."""


NEEDED: dict[str, tuple[str, str]] = {
    # KafkaApis.handleAddPartitionsToTxnRequest answers with the last transaction's result
    "AddPartitionsToTxnRequest": ("transactions", "v3_and_below_transactional_id"),
    # Kafka 3.9 fails to count the errors of an OffsetFetchResponse without groups
    "OffsetFetchRequest": ("groups", "group_id"),
}
"""Requests that Kafka does not answer when they are empty: a list, or the field of older versions."""


def check_needed(request: Request[Any]) -> None:
    """Raise `Failure` for a request that would get no answer."""
    cls = type(request)
    fields = NEEDED.get(cls.__name__, ())
    if fields and not any(getattr(request, name) for name in fields):
        name = FACTS[cls.api_key or 0].name
        raise Failure(f"call: {name}: expected {' or '.join(fields)}: Kafka does not answer without")


def fresh(cls: type[S], timeout_ms: int | None = None, version: int | None = None) -> S:
    """A new request or struct of one. timeout_ms: how long a broker may take, for a request; None for as long
    as the schema has it. version: None for the newest that has the values."""
    struct = cls()
    values = dict(MEANT.get(cls.__name__, {}))
    if version is not None:
        fields = {field.name: field for field in fields_of(cls, version)}
        values = {name: _in(fields[name], values[name], version) for name in values.keys() & fields.keys()}
    if issubclass(cls, Request):
        if (switch := switch_of(cls)) is not None:
            values[switch] = False
        if timeout_ms is not None and _has_timeout(cls):
            values["timeout_ms"] = timeout_ms
    for name, value in values.items():
        setattr(struct, name, value)
    return struct


def _in(field: Field, value: Any, version: int) -> Any:
    """A value in a version; the schema's default where null may not be there."""
    return field.fresh_default() if value is None and not field.nullable(version) else value


def switch_of(cls: type[Request[Any]]) -> str | None:
    """The field with which a request changes something that otherwise does not."""
    declared = FACTS[cls.api_key or 0].modifies
    return declared[0] if isinstance(declared, tuple) and declared[1] else None


def _has_timeout(cls: type[Struct]) -> bool:
    """Whether every version takes a time for the broker's answer."""
    return any(
        field.name == "timeout_ms" and (field.first == 0 or field.ignorable) for field in fields_of(cls)
    )
