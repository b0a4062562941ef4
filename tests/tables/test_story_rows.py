"""The tables of groups hold what `coordwire timeline` tells of the same captures.

Strategy: the command's JSON lines, as rows of the tables, are compared with the rows that the pipeline's
units write (which Spark's and the local engine's workers run) and with those of `coordwire decode --out`.
"""

from __future__ import annotations

import csv
import json
import lzma
import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

from coordwire.cli.__main__ import main
from coordwire.tables import pipeline
from coordwire.tables.columns import TABLES
from coordwire.tables.readers.group_rows import STORIES
from tests.tables import pipeline_steps
from tests.tables.in_process import InProcess

DATA = Path(__file__).parents[1] / "data"
NAMES = sorted(path.name.removesuffix(".pcap.xz") for path in (DATA / "stories").glob("*.pcap.xz"))
FEW = ("classic-restart", "consumer-restart", "share-causes", "classic-static")
Row = tuple[tuple[str, str], ...]

TABLE_OF = {"offsetCommitted": "offset_commits", "lagMeasured": "lag"}
RENAMED = {
    "group_id": "group",
    "time_ns": "time",
    "length_ms": "lengthMs",
    "generation_before": "generationBefore",
    "input_file": "source",
    "frame": "number",
}
AWAY = {"began": "time", "ended": "until", "broker_address": "broker"}


@pytest.fixture(
    params=[*FEW, *(pytest.param(name, marks=pytest.mark.slow) for name in NAMES if name not in FEW)]
)
def capture(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"{request.param}.pcap"
    path.write_bytes(lzma.decompress((DATA / "stories" / f"{request.param}.pcap.xz").read_bytes()))
    return path


@pytest.fixture(params=sorted((DATA / "captures").glob("*.pcap")), ids=lambda path: str(path.stem))
def small_capture(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


def told(path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Counter[Row]]:
    """What the command tells, as rows."""
    main(["timeline", "--format", "json", str(path)])
    rows: dict[str, Counter[Row]] = {name: Counter() for name in STORIES}
    for line in capsys.readouterr().out.splitlines():
        form = json.loads(line) | {"body": line}
        table = TABLE_OF.get(form["event"], "groups")
        rows[table][_row({column.name: _of(form, column.name) for column in TABLES[table]})] += 1
    return rows


def _of(form: dict[str, Any], column: str) -> Any:
    """A column's value by an event's JSON."""
    if column in ("seen_in", "log_offset"):
        return "capture" if column == "seen_in" else None
    if column == "committed_offset":
        return form["offset"] if form["event"] == "offsetCommitted" else form["committed"]
    if form["event"] == "coordinatorFound" and column in ("broker_id", "broker_address", "host"):
        address = f"[{form['host']}]" if ":" in form["host"] else form["host"]
        return {"broker_id": form["nodeId"], "broker_address": f"{address}:{form['port']}"}.get(column)
    if form["event"] in ("brokerAway", "coordinatorStalled"):
        if column == "length_ms":
            times = [_micros(form[name]) for name in ("until", "time")]
            return None if times[0] is None else (times[0] - (times[1] or 0)) / 1000
        column = AWAY.get(column, column)
    if form["event"] == "memberLeft" and column == "outcome":
        return (form["ending"] or {}).get("how")
    if column == "moved":
        return len(form["moved"]) if isinstance(form.get("moved"), list) else None
    camel = re.sub("_([a-z])", lambda match: match[1].upper(), column)
    value = form.get(RENAMED.get(column, camel))
    if column in ("members", "topics"):
        return value if isinstance(value, list) else []
    return value


def _micros(time: str | None) -> int | None:
    """An ISO time with any decimals, in microseconds since 1970; None for none."""
    if not time:
        return None
    head, _, decimals = time.removesuffix("Z").partition(".")
    seconds = int(datetime.fromisoformat(head).replace(tzinfo=UTC).timestamp())
    return seconds * 1_000_000 + int(f"{decimals}000000"[:6])


def _row(values: dict[str, Any]) -> Row:
    """Values as texts that do not depend on where they were read. Lengths are whole microseconds."""
    texts = []
    for name, value in sorted(values.items()):
        if name in ("time", "began", "ended"):
            value = _micros(value) if isinstance(value, str) else value
        elif name == "length_ms" and value not in (None, ""):
            value = round(float(value), 2)
        elif name in ("members", "topics"):
            value = json.dumps(json.loads(value) if isinstance(value, str) else value)
        elif isinstance(value, bool):
            value = str(value).lower()
        texts.append((name, "" if value is None else str(value)))
    return tuple(texts)


def in_tables(path: Path, out: Path, make: Callable[[], Any] = InProcess) -> dict[str, Counter[Row]]:
    """The rows that the pipeline writes."""
    pipeline.run(make(), [str(path)], str(out), tables=STORIES, report=False)
    return {
        name: Counter(_row(dict(_plain(row, name))) for row in pipeline_steps.table_rows(out, name))
        for name in STORIES
    }


def _plain(row: dict[str, Any], table: str) -> Iterator[tuple[str, Any]]:
    """The table's own columns, times in microseconds since 1970; a folder of its files may be one more."""
    for column in TABLES[table]:
        value = row[column.name]
        if isinstance(value, datetime):
            delta = value.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
            value = (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds
        yield column.name, value


def in_csv(path: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Counter[Row]]:
    """The rows that `coordwire decode` writes."""
    main(["decode", "--format", "csv", "--out", str(out), str(path)])
    capsys.readouterr()
    rows = {}
    for name in STORIES:
        with (out / f"{name}.csv").open(newline="") as file:
            rows[name] = Counter(map(_row, csv.DictReader(file)))
    return rows


def same(actual: dict[str, Counter[Row]], expected: dict[str, Counter[Row]]) -> None:
    for name in STORIES:
        extra, missing = actual[name] - expected[name], expected[name] - actual[name]
        assert (sorted(extra), sorted(missing)) == ([], [])


def check(path: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Counter[Row]]:
    expected = told(path, capsys)
    same(in_tables(path, out / "pipeline"), expected)
    same(in_csv(path, out / "csv", capsys), expected)
    return expected


def test_recorded_stories(capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = check(capture, tmp_path, capsys)["groups"]
    assert rows.total() > 10
    if "restart" in capture.name:
        assert any(("event", "brokerAway") in row for row in rows)


def test_other_captures(small_capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check(small_capture, tmp_path, capsys)
