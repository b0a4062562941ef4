"""DescribeClientQuotas and AlterClientQuotas (KIP-546): quotas are kept and described, and not enforced."""

from __future__ import annotations

import math
from collections.abc import Iterable

from coordwire.broker.handlers.api_call import ApiCall
from coordwire.enums import ErrorCode
from coordwire.messages import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from coordwire.messages.alter_client_quotas import (
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponseEntityData,
    AlterClientQuotasResponseEntryData,
)
from coordwire.messages.describe_client_quotas import ComponentData, EntityData, EntryData, ValueData

__all__ = ["alter_quotas", "describe_quotas"]

_EXACT, _DEFAULT, _ANY = 0, 1, 2
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
    asked: dict[str, ComponentData] = {}
    for component in request.components:
        kind, exact = component.entity_type, component.match_type == _EXACT
        if not kind or kind in asked or component.match_type not in (_EXACT, _DEFAULT, _ANY):
            return _refused(ErrorCode.INVALID_REQUEST, f"Unexpected component {kind!r}")
        if exact != (component.match is not None):
            return _refused(ErrorCode.INVALID_REQUEST, f"Unexpected match of component {kind!r}")
        if kind not in _KINDS:
            return _refused(ErrorCode.UNSUPPORTED_VERSION, f"Custom entity type {kind!r} not supported")
        asked[kind] = component
    if "ip" in asked and len(asked) > 1:
        return _refused(ErrorCode.INVALID_REQUEST, "ip does not go with other entity types")
    return DescribeClientQuotasResponse(
        error_message=None,
        entries=[
            EntryData(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                values=[ValueData(key=key, value=value) for key, value in quotas.items()],
            )
            for entity, quotas in call.cluster.quotas.items()
            if _matches(dict(entity), asked, request.strict)
        ],
    )


def _refused(code: ErrorCode, message: str) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=int(code), error_message=message, entries=None)


def _matches(entity: dict[str, str | None], asked: dict[str, ComponentData], strict: bool) -> bool:
    if strict and len(entity) != len(asked):
        return False
    return all(
        kind in entity and (wanted.match_type == _ANY or entity[kind] == wanted.match)
        for kind, wanted in asked.items()
    )


def alter_quotas(call: ApiCall) -> AlterClientQuotasResponse:
    request: AlterClientQuotasRequest = call.request
    entries = []
    for entry in request.entries:
        bad = _bad(entry)
        if bad is None and not request.validate_only:
            entity = tuple(sorted((part.entity_type, part.entity_name) for part in entry.entity))
            quotas = call.cluster.quotas.setdefault(entity, {})
            for change in entry.ops:
                quotas.pop(change.key, None)
                if not change.remove:
                    quotas[change.key] = change.value
            if not quotas:
                del call.cluster.quotas[entity]
        entries.append(
            AlterClientQuotasResponseEntryData(
                error_code=int(ErrorCode.NONE if bad is None else ErrorCode.INVALID_REQUEST),
                error_message=bad,
                entity=[
                    AlterClientQuotasResponseEntityData(
                        entity_type=part.entity_type, entity_name=part.entity_name
                    )
                    for part in entry.entity
                ],
            )
        )
    return AlterClientQuotasResponse(entries=entries)


def _bad(entry: AlterClientQuotasRequestEntryData) -> str | None:
    """Why Kafka does not take such a change; None if it does."""
    kinds = [part.entity_type for part in entry.entity]
    keys = _KEYS.get(frozenset(kinds))
    if keys is None or len(set(kinds)) != len(kinds):
        return f"Invalid client quota entity: {', '.join(kinds) or 'empty'}"
    if any(part.entity_name == "" for part in entry.entity):
        return "Empty entity name not supported"
    return _bad_changes(keys, [(change.key, change.value) for change in entry.ops if not change.remove])


def _bad_changes(keys: Iterable[str], changes: list[tuple[str, float]]) -> str | None:
    for key, value in changes:
        if key not in keys:
            return f"Invalid configuration key {key}"
        if not value > 0 or not math.isfinite(value):
            return f"Quota {key} must be greater than 0"
        if key not in ("request_percentage", "controller_mutation_rate") and value != int(value):
            return f"Quota {key} must be an integral value"
    return None
