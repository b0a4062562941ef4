"""Client metrics opened for `--deep`: what PushTelemetry pushes in OpenTelemetry's own form (KIP-714).

Strategy: the bytes are decompressed as the request says and read by the `opentelemetry-proto` package, which
`coordwire[otlp]` brings; JSON is protobuf's own, and people get a line for each value. Rules: what is
decompressed is bounded by `MOST_BYTES`; nothing raises: what isn't readable has its reason in place of its
value, a missing package too.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from coordwire.capture.printable import Pieces, quoted, shown
from coordwire.cli.message_lines import INDENT, Inside
from coordwire.codec import Message
from coordwire.errors import CodecUnavailable, CorruptBatch, LimitExceeded, counted
from coordwire.messages import PushTelemetryRequest
from coordwire.records.compression import CODECS, decompress

MOST_BYTES = 1 << 20
"""Of metrics, decompressed; Kafka's `telemetry.max.bytes` is as much, of compressed ones."""

MOST_LINES = 100
"""Values of one request that people are shown."""

MOST_TEXT = 120
"""Characters of a name or an attribute that people are shown."""

PATH = "metrics"


def forms(message: Message) -> dict[str, Any]:
    """The metrics in a message, as `embedded_json.embedded` has what hides in other bytes."""
    if not isinstance(message, PushTelemetryRequest):
        return {}
    form: dict[str, Any] = {"type": "MetricsData", "version": None, "value": None}
    content = _read(message)
    if isinstance(content, str):
        return {PATH: form | {"unknown": content}}
    from google.protobuf.json_format import MessageToDict

    return {PATH: form | {"value": MessageToDict(content)}}


def layouts(message: Message) -> dict[str, Inside]:
    """For the metrics in a message what lays them out for people."""
    return {PATH: partial(_lines, message)} if isinstance(message, PushTelemetryRequest) else {}


def _read(request: PushTelemetryRequest) -> Any:
    """A MetricsData, or the reason why there is none."""
    if not 0 <= request.compression_type < len(CODECS):
        return f"compression type {request.compression_type} is unknown"
    try:
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
    except ImportError:
        return "it takes opentelemetry-proto: pip install 'coordwire[otlp]'"
    try:
        data = decompress(CODECS[request.compression_type], request.metrics, MOST_BYTES)
        if len(data) > MOST_BYTES:
            return f"more than {MOST_BYTES:,} bytes"
        return MetricsData.FromString(data)
    except (CodecUnavailable, CorruptBatch, LimitExceeded) as error:
        return error.reason if isinstance(error, (CorruptBatch, LimitExceeded)) else str(error)
    except DecodeError as error:
        return f"not OpenTelemetry's metrics: {error}"


def _lines(request: PushTelemetryRequest, depth: int, width: int) -> Iterator[Pieces]:
    content = _read(request)
    if isinstance(content, str):
        yield [(f"{INDENT * depth}✗ {shown(content)}", "error")]
        return
    values = sorted(_values(content))
    for pieces in values[:MOST_LINES]:
        yield [(INDENT * depth, "plain"), ("- ", "note"), *pieces]
    if len(values) > MOST_LINES:
        yield [(f"{INDENT * depth}… {counted(len(values) - MOST_LINES, 'more value', ',')}", "note")]


def _values(content: Any) -> Iterator[Pieces]:
    """consumer.fetch.manager.bytes.total {topic: "orders"}  4,711"""
    for resource in content.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                kind = metric.WhichOneof("data")
                for point in () if kind is None else getattr(metric, kind).data_points:
                    yield [(_text(metric.name), "name"), *_attributes(point), ("  ", "plain"), _value(point)]


def _attributes(point: Any) -> Pieces:
    if not point.attributes:
        return []
    pairs = ", ".join(f"{_text(pair.key)}: {_scalar(pair.value)}" for pair in point.attributes)
    return [(f" {{{pairs}}}", "text")]


def _scalar(value: Any) -> str:
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return quoted(value.string_value, MOST_TEXT)
    return "null" if kind is None else _text(str(getattr(value, kind)))


def _value(point: Any) -> tuple[str, str]:
    if not hasattr(point, "as_int"):  # a distribution
        return (f"{point.count:,} values", "number")
    kind = point.WhichOneof("value")
    return (f"{getattr(point, kind):,}", "number") if kind else ("null", "none")


def _text(text: str) -> str:
    text = shown(text)
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}…"
