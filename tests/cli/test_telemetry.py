"""`--deep` on client metrics: those of Kafka's Java client in each codec, hostile ones, and no package."""

from __future__ import annotations

import gzip
import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordwire.cli import telemetry
from coordwire.messages import HeartbeatRequest, PushTelemetryRequest
from tests.recorded import DATA

pytest.importorskip("opentelemetry.proto.metrics.v1.metrics_pb2")

REQUESTS = {
    codec: PushTelemetryRequest.decode(bytes.fromhex(request), version=0)
    for codec, request in json.loads((DATA / "telemetry" / "requests.json").read_text()).items()
}
GZIP = 1


def lines(request: PushTelemetryRequest) -> list[str]:
    return ["".join(text for text, _ in line) for line in telemetry.layouts(request)["metrics"](1, 80)]  # type: ignore[operator]


def unknown(request: PushTelemetryRequest) -> str:
    """Why nothing is shown, which both forms say."""
    form = telemetry.forms(request)["metrics"]
    assert form["value"] is None
    (line,) = lines(request)
    assert line == f"  ✗ {form['unknown']}"
    return str(form["unknown"])


@pytest.mark.parametrize("codec", REQUESTS)
def test_what_a_java_client_pushes(codec: str) -> None:
    request = REQUESTS[codec]
    form: dict[str, Any] = telemetry.forms(request)["metrics"]
    assert form["type"] == "MetricsData"
    metrics = [
        metric
        for resource in form["value"]["resourceMetrics"]
        for scope in resource["scopeMetrics"]
        for metric in scope["metrics"]
    ]
    by_name = {metric["name"]: metric for metric in metrics}
    (point,) = by_name["org.apache.kafka.consumer.fetch.manager.records.lead.min"]["gauge"]["dataPoints"]
    assert point["asDouble"] == 10.0
    shown = lines(request)
    assert len(shown) == telemetry.MOST_LINES + 1
    assert shown[-1] == f"  … {len(metrics) - telemetry.MOST_LINES} more values"
    assert '  - org.apache.kafka.consumer.fetch.manager.bytes.consumed.total {topic: "orders"}  0.0' in shown
    assert shown[:-1] == sorted(shown[:-1])


@given(st.sampled_from(sorted(REQUESTS)), st.data())
def test_damaged_metrics_have_a_reason(codec: str, data: st.DataObject) -> None:
    request = REQUESTS[codec]
    metrics = bytearray(request.metrics)
    for _ in range(data.draw(st.integers(1, 3))):
        metrics[data.draw(st.integers(0, len(metrics) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(metrics)))
    damaged = PushTelemetryRequest(compression_type=request.compression_type, metrics=bytes(metrics[:cut]))
    form = telemetry.forms(damaged)["metrics"]
    assert form["value"] is not None or form["unknown"]
    assert all(line.isprintable() for line in lines(damaged))


def test_what_is_refused() -> None:
    bomb = gzip.compress(bytes(telemetry.MOST_BYTES + 1))
    assert "more than 1048576" in unknown(PushTelemetryRequest(compression_type=GZIP, metrics=bomb))
    assert "1,048,576" in unknown(PushTelemetryRequest(metrics=bytes(telemetry.MOST_BYTES + 1)))
    assert unknown(PushTelemetryRequest(compression_type=7)) == "compression type 7 is unknown"
    assert unknown(PushTelemetryRequest(metrics=b"\xff")).startswith("not OpenTelemetry's metrics")


def test_other_messages_have_none() -> None:
    assert telemetry.forms(HeartbeatRequest()) == telemetry.layouts(HeartbeatRequest()) == {}


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.proto.metrics.v1.metrics_pb2", None)
    assert "coordwire[otlp]" in unknown(REQUESTS["gzip"])
