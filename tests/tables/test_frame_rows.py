"""Rows of frames: the short way by the body's text and the long one by the JSON line's form say the same."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import coordwire
from coordwire._speedups import native
from coordwire.capture.body_text import NO_TEXT, body_text
from coordwire.capture.entries import FrameEntry
from coordwire.capture.jsonlines import line
from coordwire.capture.plain_lines import PlainFrames, is_plain
from coordwire.capture.reader import Capture
from coordwire.capture.redaction.entry_secrets import NOTHING, is_harmless, withheld
from coordwire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from coordwire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordwire.tables.columns import FRAMES, arrow_schema
from coordwire.tables.readers import rows as batches
from coordwire.tables.readers.frame_rows import ErrorRows, FrameRows, row_size
from coordwire.tables.readers.rows import Builder
from tests.capture.test_lazy import read
from tests.capture.test_walks import damaged

CAPTURES = sorted((Path(__file__).parents[1] / "data" / "captures").glob("*.pcap"))
NAMES = [column.name for column in FRAMES]
ERRORS = ["error_path", "error_code", "client_id", "group_id", "topic"]

needs_native = pytest.mark.skipif(native is None, reason="the native engine isn't built, or Python is forced")


def frames(data: bytes, input: Any = "frames") -> Iterator[FrameEntry]:
    for entry in Capture(io.BytesIO(data), "x\udcff", input=input).entries():
        assert isinstance(entry, FrameEntry)
        yield entry


def both_ways(entry: FrameEntry) -> Iterator[FrameEntry]:
    """The entry as it is, and as it is where the native engine doesn't run."""
    for asked in (entry, entry.request):
        if asked is not None:
            asked.text = asked.hidden = None
    yield entry
    for asked in (entry, entry.request):
        if asked is not None:
            asked.text, asked.hidden = NO_TEXT, None
    yield entry


def check(entry: FrameEntry) -> None:
    for secrets in (False, True):
        rows, errors = FrameRows(NAMES, show_secrets=secrets), ErrorRows(ERRORS, show_secrets=secrets)
        short, long = (
            (
                list(rows.row(item)),
                [list(row) for row in errors.rows([item])],
                line(item, 9, show_secrets=secrets),
                withheld(item),
            )
            for item in both_ways(entry)
        )
        assert short == long


@needs_native
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_both_ways_are_one(path: Path) -> None:
    with path.open("rb") as stream:
        actual = [item for item in Capture(stream, path.name).entries() if isinstance(item, FrameEntry)]
    for entry in actual:
        check(entry)
    for entry in actual:
        entry.text = None
    short = [entry for entry in actual if body_text(entry)[0] is not None and is_harmless(entry)]
    assert len(short) > 0.6 * sum(entry.error is None and not entry.deviations for entry in actual) > 0


def test_some_columns_are_those_of_all() -> None:
    with CAPTURES[0].open("rb") as stream:
        entries = [item for item in Capture(stream, "x").entries() if isinstance(item, FrameEntry)][:60]
    rows = [dict(zip(NAMES, FrameRows(NAMES, show_secrets=False).row(item), strict=True)) for item in entries]
    for some in (
        ["body", "frame"],
        ["client_address"],
        ["latency_ms", "error_name"],
        ["raw"],
        [],
        NAMES[::-1],
    ):
        made_rows = FrameRows(some, show_secrets=False)
        assert [list(made_rows.row(entry)) for entry in entries] == [
            [row[name] for name in some] for row in rows
        ]


def test_frames_without_times_and_connections() -> None:
    data = coordwire.encode_request(HeartbeatRequest(), version=4, correlation_id=1, client_id="é")
    data += coordwire.encode_response(HeartbeatResponse(error_code=27), version=4, correlation_id=1)
    for entry in frames(data):
        check(entry)
        row = dict(zip(NAMES, FrameRows(NAMES, show_secrets=False).row(entry), strict=True))
        assert (row["time"], row["latency_ms"], row["client_address"], row["client_id"]) == (
            None,
            None,
            None,
            "é",
        )
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


# --- columns ---

FEW_FRAMES = [
    entry
    for path in CAPTURES
    for entry in list(Capture(io.BytesIO(path.read_bytes()), path.name, lazy=True).entries())[:40]
    if isinstance(entry, FrameEntry)
]


def one_by_one(entries: list[FrameEntry], most: int, *, secrets: bool) -> list[pyarrow.RecordBatch | None]:
    rows, builder = FrameRows(NAMES, show_secrets=secrets), Builder(arrow_schema(FRAMES), most)
    actual = [builder.add(rows.row(entry), row_size(entry)) for entry in entries]
    return [item for item in (*actual, builder.take()) if item is not None]


def by_columns(
    entries: list[FrameEntry], most: int, cuts: list[int], *, secrets: bool
) -> list[pyarrow.RecordBatch | None]:
    rows, builder = FrameRows(NAMES, show_secrets=secrets), Builder(arrow_schema(FRAMES), most)
    edges = [0, *sorted(cuts), len(entries)]
    parts = [entries[first:last] for first, last in pairwise(edges)]
    actual = [batch for part in parts for batch in rows.add(part, builder)]
    return [item for item in (*actual, builder.take()) if item is not None]


@pytest.mark.parametrize("secrets", [False, True])
def test_frames_are_judged_together_as_alone(secrets: bool) -> None:
    """Of frames that aren't decoded yet, and of damaged ones; the texts that are kept are the same, too."""
    judge = PlainFrames(show_secrets=secrets)
    for path in CAPTURES:
        for data in (path.read_bytes(), damaged(path.read_bytes(), random.Random(path.name))):
            together, alone = (
                [entry for entry in read(data, lazy=lazy) if isinstance(entry, FrameEntry)]
                for lazy in (True, False)
            )
            flags = [is_plain(entry, show_secrets=secrets) for entry in alone]
            assert judge.flags(together) == flags
            assert [entry.text or NO_TEXT for entry in together] == [entry.text for entry in alone]
            assert any(flags) == (native is not None)


@pytest.mark.parametrize("secrets", [False, True])
def test_columns_hold_what_rows_hold(secrets: bool) -> None:
    for path in CAPTURES:
        with path.open("rb") as stream:
            actual = [item for item in Capture(stream, path.name).entries() if isinstance(item, FrameEntry)]
        cuts = list(range(0, len(actual), 64))
        expected = one_by_one(actual, 1 << 20, secrets=secrets)
        assert by_columns(actual, 1 << 20, cuts, secrets=secrets) == expected


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    selected=st.lists(st.integers(0, len(FEW_FRAMES) - 1), min_size=1, max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=6),
    long=st.lists(st.integers(0, 60), max_size=4),
    times=st.dictionaries(st.integers(0, 60), st.sampled_from([None, -1, 0, 1 << 62]), max_size=3),
    most=st.sampled_from([1, 2_000, 20_000, 1 << 22]),
    rows=st.sampled_from([1, 7, 20_000]),
    secrets=st.booleans(),
)
def test_columns_of_any_frames_hold_what_rows_hold(
    selected: list[int], cuts: list[int], long: list[int], times: dict[int, int | None], most: int, rows: int,
    secrets: bool,
) -> None:  # fmt: skip
    """Frames without a text, or without a time that can be, among others; batches that end anywhere."""
    entries = [FEW_FRAMES[item] for item in selected]
    before = [(entry, entry.text, entry.time_ns) for entry in entries]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "MOST_ROWS", rows)
        for at in long:
            if at < len(entries):
                assert entries[at].deviations is not None  # it is decoded
                entries[at].text, entries[at].hidden = NO_TEXT, None
        for at, time_ns in times.items():
            if at < len(entries):
                entries[at].time_ns = time_ns
        cuts = [item for item in cuts if item <= len(entries)]
        try:
            assert by_columns(entries, most, cuts, secrets=secrets) == one_by_one(
                entries, most, secrets=secrets
            )
        finally:
            for entry, text, time_ns in reversed(before):
                entry.text, entry.time_ns, entry.hidden = text, time_ns, None
