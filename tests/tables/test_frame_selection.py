"""Frames chosen by options: just the rows that a filter of all rows keeps, in every reader of captures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

from coordwire.errors import CoordwireError
from coordwire.tables.options import Options, parse_options
from coordwire.tables.pipeline.units import as_units
from coordwire.tables.readers.files import File
from coordwire.tables.readers.sources import SOURCES, plan, read
from coordwire.tables.readers.splits import Part
from tests.tables.pipeline_steps import run, table_rows

CAPTURES = Path(__file__).parents[1] / "data" / "captures"
CAPTURE = CAPTURES / "kpy__tansu__group-range.pcap"


def rows(source: str, path: Path = CAPTURE, **texts: str) -> list[dict[str, Any]]:
    options = parse_options({"path": str(path), **texts})
    columns = [column.name for column in SOURCES[source].columns]
    parts = [part for group in plan(SOURCES[source], options) for part in group]
    return [row for batch in read(SOURCES[source], parts, options, columns) for row in batch.to_pylist()]


def test_rows_of_chosen_frames_are_those_of_all_that_match() -> None:
    frames, errors = rows("kafka-capture"), rows("kafka-errors")
    chosen = rows("kafka-capture", apis="Fetch, Heartbeat", directions="response")
    expected = [
        row for row in frames if row["api"] in ("Fetch", "Heartbeat") and row["direction"] == "response"
    ]
    assert 0 < len(chosen) < len(frames)
    assert chosen == expected
    client = frames[0]["client_id"]
    for options in ({"clientIds": client}, {"clientIds": f"x,{client}", "apis": "SyncGroup"}, {"apis": "x"}):
        names = {"clientIds": "client_id", "apis": "api"}
        for source, all_rows in (("kafka-capture", frames), ("kafka-errors", errors)):
            assert rows(source, **options) == [
                row
                for row in all_rows
                if all(row[names[name]] in value.split(",") for name, value in options.items())
            ]


def test_frames_of_a_group_and_their_answers() -> None:
    frames = rows("kafka-capture")
    group = "g-kpy-range"
    requests = {
        (row["flow"], row["correlation_id"])
        for row in frames
        if row["direction"] == "request" and f'"{group}"' in (row["body"] or "")
    }
    chosen = rows("kafka-capture", groups=group)
    assert requests
    assert {
        (row["flow"], row["correlation_id"]) for row in chosen if row["direction"] == "request"
    } == requests
    assert sum(row["direction"] == "response" for row in chosen) == len(requests)
    assert rows("kafka-capture", groups="none") == []


def test_a_withheld_client_is_not_found() -> None:
    """A password that is read as the header of a request, and withheld."""
    hidden = 0
    for path in sorted((CAPTURES.parent / "secrets").glob("*.pcap")):
        shown = rows("kafka-capture", path, showSecrets="true")
        plain = {row["frame"]: row["client_id"] for row in rows("kafka-capture", path)}
        for row in shown:
            if row["client_id"] is not None and plain[row["frame"]] is None:
                hidden += 1
                found = rows("kafka-capture", path, clientIds=row["client_id"])
                assert row["frame"] not in [other["frame"] for other in found]
    assert hidden


def test_the_pipelines_tables_have_the_chosen_frames(tmp_path: Path) -> None:
    run(CAPTURE, tmp_path / "out", tables=("frames", "errors"), options=Options(apis=("JoinGroup",)))
    frames = table_rows(tmp_path / "out", "frames")
    assert {row["api"] for row in frames} == {"JoinGroup"}
    assert len(frames) == sum(row["api"] == "JoinGroup" for row in rows("kafka-capture"))
    assert {row["api"] for row in table_rows(tmp_path / "out", "errors")} <= {"JoinGroup"}


def test_a_choice_is_of_other_rows() -> None:
    file = File("/in/a.pcap", 10, 20)
    names = {
        as_units([Part("capture", file.path, 10, 0, 10)], {file.path: file}, options, ["frames"])[0].name
        for options in (Options(), Options(apis=("Fetch",)), Options(directions=("request",)))
    }
    assert len(names) == 3


def test_no_other_direction() -> None:
    with pytest.raises(CoordwireError, match="option directions = 'up': expected request or response"):
        parse_options({"directions": "up"})
