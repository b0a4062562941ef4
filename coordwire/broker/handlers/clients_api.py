"""Clients: their quotas (DescribeClientQuotas and AlterClientQuotas, KIP-546) and their metrics (KIP-714).

API keys and versions: DescribeClientQuotas 48 v0-1, AlterClientQuotas 49 v0-1, GetTelemetrySubscriptions 71
v0, PushTelemetry 72 v0.

Rules: quotas are kept and described, and not enforced. The broker asks clients for no metric, so they push
none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_address

from coordwire.broker.handlers.api_call import ApiCall
from coordwire.enums import ErrorCode
from coordwire.messages import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    ClientQuotaRecord,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)
from coordwire.messages.alter_client_quotas import (
    AlterClientQuotasResponseEntityData,
    AlterClientQuotasResponseEntryData,
    OpData,
)
from coordwire.messages.describe_client_quotas import ComponentData, EntityData, EntryData, ValueData
from coordwire.messages.metadata_log import EntityData as QuotaPart

# --- quotas ---


_EXACT, _DEFAULT, _ANY = 0, 1, 2
_MATCHES = {_EXACT: "EXACT", _DEFAULT: "DEFAULT", _ANY: "SPECIFIED"}
_CLIENT_KEYS = frozenset(
    {"producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"}
)
_IP_KEYS = frozenset({"connection_creation_rate"})
_KEYS = {
    frozenset({"user"}): _CLIENT_KEYS,
    frozenset({"client-id"}): _CLIENT_KEYS,
    frozenset({"user", "client-id"}): _CLIENT_KEYS,
    frozenset({"ip"}): _IP_KEYS,
}
"""Which quotas an entity may have, by the kinds of its parts."""

_KINDS = ("user", "client-id", "ip")


def describe_quotas(call: ApiCall) -> DescribeClientQuotasResponse:
    request: DescribeClientQuotasRequest = call.request
    components: dict[str, ComponentData] = {}
    for component in request.components:
        kind, exact = component.entity_type, component.match_type == _EXACT
        match_name = _MATCHES.get(component.match_type)
        if match_name is None:
            return _refused(ErrorCode.INVALID_REQUEST, f"Unknown match type {component.match_type}")
        if exact and component.match is None:
            message = f"Request specified MATCH_TYPE_{match_name}, but set match string to null."
            return _refused(ErrorCode.INVALID_REQUEST, message)
        if not exact and component.match is not None:
            message = f"Request specified MATCH_TYPE_{match_name}, but also specified a match string."
            return _refused(ErrorCode.INVALID_REQUEST, message)
        if not kind:
            return _refused(ErrorCode.INVALID_REQUEST, "Invalid empty entity type.")
        if kind in components:
            message = f"Entity type {kind} cannot appear more than once in the filter."
            return _refused(ErrorCode.INVALID_REQUEST, message)
        if kind not in _KINDS:
            return _refused(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        components[kind] = component
    if "ip" in components and len(components) > 1:
        return _refused(
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination. IP filter component should not be used with user"
            " or clientId filter component.",
        )
    return DescribeClientQuotasResponse(
        entries=[
            EntryData(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                values=[ValueData(key=key, value=value) for key, value in quotas.items()],
            )
            for entity, quotas in call.cluster.quotas.items()
            if _matches(dict(entity), components, request.strict)
        ],
    )


def _refused(code: ErrorCode, message: str) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=int(code), error_message=message, entries=None)


def _matches(entity: dict[str, str | None], components: dict[str, ComponentData], strict: bool) -> bool:
    if strict and len(entity) != len(components):
        return False
    return all(
        kind in entity and (component.match_type == _ANY or entity[kind] == component.match)
        for kind, component in components.items()
    )


def alter_quotas(call: ApiCall) -> AlterClientQuotasResponse:
    request: AlterClientQuotasRequest = call.request
    entries = []
    for entry in request.entries:
        parts = {part.entity_type: part.entity_name for part in entry.entity}
        error, reason = ErrorCode.INVALID_REQUEST, _entity_error(parts, entry.ops)
        if reason is None and not request.validate_only:
            error, reason = ErrorCode.KAFKA_STORAGE_ERROR, call.change(_quota_records(parts, entry.ops))
        entries.append(
            AlterClientQuotasResponseEntryData(
                error_code=int(ErrorCode.NONE if reason is None else error),
                error_message=reason,
                entity=[
                    AlterClientQuotasResponseEntityData(entity_type=kind, entity_name=name)
                    for kind, name in parts.items()
                ],
            )
        )
    return AlterClientQuotasResponse(entries=entries)


def _quota_records(parts: Mapping[str, str | None], changes: Sequence[OpData]) -> list[ClientQuotaRecord]:
    entity = [QuotaPart(entity_type=kind, entity_name=name) for kind, name in parts.items()]
    return [
        ClientQuotaRecord(entity=entity, key=change.key, value=change.value, remove=change.remove)
        for change in changes
    ]


def _entity_error(parts: Mapping[str, str | None], changes: Sequence[OpData]) -> str | None:
    """Why Kafka does not take such changes of an entity; None if it does."""
    if not parts:
        return "Invalid empty client quota entity"
    for kind, name in parts.items():
        if kind not in _KINDS:
            return f"Unhandled client quota entity type: {kind}"
        if name == "":
            return f"Empty {kind} not supported"
    keys = _KEYS.get(frozenset(parts))
    if keys is None:
        return "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
    address = parts.get("ip")
    if address is not None and not _is_host(address):
        return f"{address} is not a valid IP or resolvable host."
    if len({change.key for change in changes}) != len(changes):
        named = ", ".join(f"{kind}={name}" for kind, name in parts.items())
        return f"Ignoring duplicate entity ClientQuotaEntity(entries={{{named}}})"
    return _bad_changes(keys, [(change.key, change.value) for change in changes if not change.remove])


def _is_host(text: str) -> bool:
    """Whether a text is an address; of names only that of the own host is resolved."""
    try:
        ip_address(text)
    except ValueError:
        return text == "localhost"
    return True


def _bad_changes(keys: Iterable[str], changes: list[tuple[str, float]]) -> str | None:
    for key, value in changes:
        if key not in keys:
            return f"Invalid configuration key {key}"
        if not math.isfinite(value):
            return f"Quota {key} must be a finite number"
        if not value > 0:
            return f"Quota {key} must be greater than 0"
        if key not in ("request_percentage", "controller_mutation_rate") and value != int(value):
            return f"{key} cannot be a fractional value."
    return None


# --- metrics ---


_SUBSCRIPTION = 1
_PUSH_INTERVAL_MS = 300_000
_LARGEST = 1 << 20
_COMPRESSIONS = (4, 3, 1, 2)
"""zstd, lz4, gzip, snappy."""


def telemetry_subscriptions(call: ApiCall) -> GetTelemetrySubscriptionsResponse:
    request: GetTelemetrySubscriptionsRequest = call.request
    known = request.client_instance_id
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=known if known.int else call.cluster.new_uuid(),
        subscription_id=_SUBSCRIPTION,
        accepted_compression_types=list(_COMPRESSIONS),
        push_interval_ms=_PUSH_INTERVAL_MS,
        telemetry_max_bytes=_LARGEST,
        delta_temporality=True,
        requested_metrics=[],
    )


def push_telemetry(call: ApiCall) -> PushTelemetryResponse:
    request: PushTelemetryRequest = call.request
    error = ErrorCode.NONE
    if not request.client_instance_id.int:
        error = ErrorCode.INVALID_REQUEST
    elif request.subscription_id != _SUBSCRIPTION:
        error = ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    elif len(request.metrics) > _LARGEST:
        error = ErrorCode.TELEMETRY_TOO_LARGE
    return PushTelemetryResponse(error_code=int(error))
