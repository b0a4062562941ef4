"""Clients' metrics (KIP-714): no metric is asked for, so none is pushed."""

from __future__ import annotations

from coordwire.broker.handlers.api_call import ApiCall
from coordwire.enums import ErrorCode
from coordwire.messages import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)

__all__ = ["push_telemetry", "telemetry_subscriptions"]

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
