"""Rows of frames: the short way by the body's text and the long one by the JSON line's form say the same."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import coordwire
from coordwire._speedups import native
from coordwire.capture.body_text import NO_TEXT, body_text
from coordwire.capture.entries import FrameEntry
from coordwire.capture.jsonlines import line
from coordwire.capture.reader import Capture
from coordwire.capture.redaction.withheld import NOTHING, is_harmless, withheld
from coordwire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from coordwire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordwire.spark.columns import FRAMES
from coordwire.spark.readers.frame_rows import ErrorRows, FrameRows

CAPTURES = sorted((Path(__file__).parents[1] / "data" / "captures").glob("*.pcap"))
NAMES = [column.name for column in FRAMES]
ERRORS = ["path", "error_code", "client_id", "group_id", "topic"]

needs_native = pytest.mark.skipif(native is None, reason="the native engine isn't built, or Python is forced")


def frames(data: bytes, input: Any = "frames") -> Iterator[FrameEntry]:
    for entry in Capture(io.BytesIO(data), "x\udcff", input=input).entries():
        assert isinstance(entry, FrameEntry)
        yield entry


def both_ways(entry: FrameEntry) -> Iterator[FrameEntry]:
    """The entry as it is, and as it is where the native engine doesn't run."""
    for asked in (entry, entry.request):
        if asked is not None:
            asked.text = None
    yield entry
    for asked in (entry, entry.request):
        if asked is not None:
            asked.text = NO_TEXT
    yield entry


def check(entry: FrameEntry) -> None:
    for secrets in (False, True):
        rows, errors = FrameRows(NAMES, show_secrets=secrets), ErrorRows(ERRORS, show_secrets=secrets)
        short, long = (
            (list(rows.row(one)), list(errors.rows(one)), line(one, 9, show_secrets=secrets), withheld(one))
            for one in both_ways(entry)
        )
        assert short == long


@needs_native
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_both_ways_are_one(path: Path) -> None:
    with path.open("rb") as stream:
        found = [one for one in Capture(stream, path.name).entries() if isinstance(one, FrameEntry)]
    for entry in found:
        check(entry)
    for entry in found:
        entry.text = None
    short = [entry for entry in found if body_text(entry)[0] is not None and is_harmless(entry)]
    assert len(short) > 0.6 * sum(entry.error is None and not entry.deviations for entry in found) > 0


def test_some_columns_are_those_of_all() -> None:
    with CAPTURES[0].open("rb") as stream:
        entries = [one for one in Capture(stream, "x").entries() if isinstance(one, FrameEntry)][:60]
    rows = [dict(zip(NAMES, FrameRows(NAMES, show_secrets=False).row(one), strict=True)) for one in entries]
    for some in (["body", "frame"], ["client"], ["latency_ms", "error_name"], ["raw"], [], NAMES[::-1]):
        made = FrameRows(some, show_secrets=False)
        assert [list(made.row(entry)) for entry in entries] == [[row[name] for name in some] for row in rows]


def test_frames_without_times_and_connections() -> None:
    data = coordwire.encode_request(HeartbeatRequest(), version=4, correlation_id=1, client_id="é")
    data += coordwire.encode_response(HeartbeatResponse(error_code=27), version=4, correlation_id=1)
    for entry in frames(data):
        check(entry)
        row = dict(zip(NAMES, FrameRows(NAMES, show_secrets=False).row(entry), strict=True))
        assert (row["time"], row["latency_ms"], row["client"], row["client_id"]) == (None, None, None, "é")
        for time_ns in (-1, 0, 10**18, 1 << 62, 1 << 80):
            entry.time_ns = time_ns
            check(entry)


@needs_native
@pytest.mark.parametrize("asked", [True, False])
def test_the_metadata_log_is_looked_into(asked: bool) -> None:
    """Its records may hold secrets, whether its name is in the request or in the answer."""
    name = "__cluster_metadata"
    topic = FetchTopic(topic=name if asked else "t", partitions=[FetchPartition()])
    partition = PartitionData(records=b"not records")
    answer = FetchableTopicResponse(topic="t" if asked else name, partitions=[partition])
    data = coordwire.encode_request(FetchRequest(topics=[topic]), version=12, correlation_id=1)
    data += coordwire.encode_response(FetchResponse(responses=[answer]), version=12, correlation_id=1)
    request, response = frames(data)
    assert is_harmless(request)
    assert not is_harmless(response)
    assert withheld(response) != NOTHING
    assert not json.loads(line(response, 9, show_secrets=False))["body"]["responses"][0]["partitions"][0][
        "records"
    ]
    check(response)


@needs_native
def test_metadata_that_is_not_as_we_write_it_is_kept_as_it_came() -> None:
    data = coordwire.encode_request(FetchRequest(), version=15, correlation_id=1)
    asked = data[:-1] + b"\1\0\1\0"  # the cluster id, null as without it
    asked = (len(asked) - 4).to_bytes(4, "big") + asked[4:]
    (entry,) = frames(asked)
    check(entry)
    assert FrameRows(["raw"], show_secrets=False).row(entry)[0] == asked[4:]


def test_a_client_id_that_may_hide_a_secret_is_null() -> None:
    """As in the JSON line: one that isn't printable, of a request that was refused."""
    data = coordwire.encode_request(HeartbeatRequest(), version=4, correlation_id=1, client_id="a\0password")
    cut = (len(data) - 5).to_bytes(4, "big") + data[4:-1]
    (entry,) = frames(cut)
    assert entry.error is not None
    for names in (["client_id"], NAMES):
        row = dict(zip(names, FrameRows(names, show_secrets=False).row(entry), strict=True))
        assert row["client_id"] is None
        row = dict(zip(names, FrameRows(names, show_secrets=True).row(entry), strict=True))
        assert row["client_id"] == "a\0password"
