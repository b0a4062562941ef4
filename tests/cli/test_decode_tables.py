"""`coordwire decode --out`: the pipeline's tables without Spark, and nobody's files overwritten."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from coordwire.capture.formats.pcap import as_pcap
from coordwire.cli.decode import tables
from coordwire.frames import encode_request
from coordwire.messages import HeartbeatRequest
from coordwire.tables import local as owned_files
from coordwire.tables.columns import TABLES, Column
from coordwire.tables.local import TABLES_OF_CAPTURES, CsvTable
from coordwire.tables.storage.unit_attempt import Sink

from .conftest import Run

CAPTURES = Path(__file__).parents[1] / "data" / "captures"
GROUP = CAPTURES / "confluent__rdmock__group-range.pcap"
SMALL = CAPTURES / "kpy__rdmock__apiversions-fallback.pcap"
CSV = [f"{table}.csv" for table in TABLES_OF_CAPTURES]


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_frames_in_csv_are_those_of_json(run: Run, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in run("decode", "--format", "json", GROUP, SMALL).out.splitlines()]
    ended = run("decode", "--format", "csv", "--out", tmp_path / "t", GROUP, SMALL)
    assert (ended.status, ended.err) == (1, "")  # frames were refused
    rows = read(tmp_path / "t" / "frames.csv")
    assert f"frames.csv               {len(rows):,} rows" in ended.out.decode()
    assert list(rows[0]) == [column.name for column in TABLES["frames"]]
    for row, line in zip(rows, lines, strict=True):
        assert (row["input_file"], row["frame"], row["flow"]) == (
            line["capture"],
            str(line["frame"]),
            line["flow"],
        )
        assert row["time"] == line["time"]
        assert (row["api"], row["direction"]) == (line["api"] or "", line["direction"])
        assert json.loads(row["body"] or "null") == line["body"]
        assert (row["error_reason"] or None) == (line["error"] and line["error"]["reason"])
        assert row["raw"] == line.get("raw", "")


FORMULAS = ['=HYPERLINK("http://x","a")', "+1+1", "-2+3", "@SUM(1)", "\t=1", "\r\n=1", "=", "-"]


def test_no_text_is_a_formula(run: Run, tmp_path: Path) -> None:
    wires = []
    for number, text in enumerate(FORMULAS):
        request = HeartbeatRequest(group_id=text, generation_id=-1, member_id=text)
        wire = encode_request(request, version=4, correlation_id=1, client_id=text)
        wires.append((10**18 + number, number, False, wire))
    (tmp_path / "x.pcap").write_bytes(as_pcap(wires))
    fields = "group,member,clientId,generationId,body.generationId"
    columns = run("decode", "--format", "csv", "--fields", fields, tmp_path / "x.pcap").out.decode()
    rows = list(csv.reader(columns.splitlines()))[1:]
    assert [row[2] for row in rows] == ["'" + text for text in FORMULAS[:4]] + [
        "\\t=1", "\\r\\n=1", "'=", "'-",
    ]  # fmt: skip
    assert {cell for row in rows for cell in row[3:]} == {"-1"}
    run("decode", "--format", "csv", "--out", tmp_path / "t", tmp_path / "x.pcap")
    for name in CSV:
        for line in read(tmp_path / "t" / name):
            for cell in line.values():
                assert not cell.startswith(("=", "+", "@", "\t", "\r", "\n"))
                assert cell[:1] != "-" or cell[1:].isdecimal()
    assert [row["client_id"] for row in read(tmp_path / "t" / "frames.csv")] == [
        f"'{text}" for text in FORMULAS
    ]


def test_errors_have_a_table_of_their_own(run: Run, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in run("decode", "--format", "json", GROUP).out.splitlines()]
    run("decode", "--format", "csv", "--out", tmp_path, GROUP)
    rows = read(tmp_path / "errors.csv")
    assert list(rows[0]) == [column.name for column in TABLES["errors"]]
    firsts: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        firsts.setdefault((row["frame"], row["error_code"]), row)
    assert [
        (row["frame"], row["error_name"], row["error_path"], row["client_address"]) for row in firsts.values()
    ] == [
        (str(line["frame"]), error["error"], error["path"], line["client"])
        for line in lines
        for error in line.get("errors", ())
    ]
    frames = {row["frame"]: row for row in read(tmp_path / "frames.csv")}
    assert {row["frame"] for row in rows} == {
        frame for frame, row in frames.items() if row["error_code"] not in ("", "0")
    }


def test_stories_are_those_of_the_timeline(run: Run, tmp_path: Path) -> None:
    response = [json.loads(line) for line in run("timeline", "--format", "json", GROUP).out.splitlines()]
    run("decode", "--format", "csv", "--out", tmp_path, GROUP)
    rows = {name: read(tmp_path / f"{name}.csv") for name in ("groups", "offset_commits", "lag")}
    assert sum(map(len, rows.values())) == len(response) > 20
    events = [line for line in response if line["event"] not in ("offsetCommitted", "lagMeasured")]
    assert [row["event"] for row in rows["groups"]] == [line["event"] for line in events]
    ended = next(row for row in rows["groups"] if row["event"] == "rebalanceEnded")
    assert json.loads(ended["members"])
    assert float(ended["length_ms"]) > 0
    assert [row["committed_offset"] for row in rows["offset_commits"]] == [
        str(line["offset"]) for line in response if line["event"] == "offsetCommitted"
    ]


def test_filters_choose_frames_and_leave_stories_whole(run: Run, tmp_path: Path) -> None:
    run("decode", "--format", "csv", "--out", tmp_path / "all", GROUP)
    run("decode", "--format", "csv", "--out", tmp_path / "some", "--api", "Heartbeat", GROUP)
    assert {row["api"] for row in read(tmp_path / "some" / "frames.csv")} == {"Heartbeat"}
    assert read(tmp_path / "some" / "groups.csv") == read(tmp_path / "all" / "groups.csv")


def test_parquet_has_the_rows_and_types_of_the_pipelines_reader(run: Run, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    from coordwire.tables.columns import arrow_schema
    from coordwire.tables.options import Options
    from coordwire.tables.readers.captures import read_frames
    from coordwire.tables.readers.splits import Part

    run("decode", "--out", tmp_path, GROUP)  # parquet is the default
    results = pyarrow.parquet.read_table(tmp_path / "frames.parquet")
    part = Part("capture", str(GROUP), 0, 0, 0)
    names = [column.name for column in TABLES["frames"]]
    assert results.equals(pa.Table.from_batches(read_frames(part, Options(), names)))
    for table in TABLES_OF_CAPTURES:
        schema = pyarrow.parquet.read_schema(tmp_path / f"{table}.parquet")
        assert schema.remove_metadata().equals(arrow_schema(TABLES[table]))


def test_unreadable_ranges_are_in_quarantine(run: Run, tmp_path: Path) -> None:
    pcap = GROUP.read_bytes()
    broken = tmp_path / "broken.pcap"
    broken.write_bytes(pcap[:20_000] + pcap[26_000:])
    lines = [json.loads(line) for line in run("decode", "--format", "json", broken).out.splitlines()]
    damaged = [line for line in lines if line["frame"] is None]
    assert run("decode", "--format", "csv", "--out", tmp_path / "t", broken).status == 1
    rows = read(tmp_path / "t" / "quarantine.csv")
    assert [(int(row["position"]), row["reason"]) for row in rows] == [
        (line["error"]["position"], line["error"]["reason"]) for line in damaged
    ]
    assert damaged


def test_rotated_captures_are_read_as_one(run: Run, tmp_path: Path) -> None:
    data = GROUP.read_bytes()
    at = 24
    while at < len(data) // 2:  # the records' ends
        at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
    (tmp_path / "ring_00001_20261121021000.pcap").write_bytes(data[:24] + data[at:])
    (tmp_path / "ring_00002_20261121020000.pcap").write_bytes(data[:at])  # by its number the later one
    run("decode", "--format", "csv", "--out", tmp_path / "one", GROUP)
    later, first = sorted(tmp_path.glob("*.pcap"))
    run("decode", "--format", "csv", "--out", tmp_path / "two", later, first)
    item, two = read(tmp_path / "one" / "frames.csv"), read(tmp_path / "two" / "frames.csv")
    assert {row.pop("input_file") for row in two} == {str(first)}
    assert {row.pop("input_file") for row in item} == {str(GROUP)}
    assert item == two
    (tmp_path / "ring_00003_20261121022000.pcap").mkdir()
    ended = run("decode", "--format", "csv", "--out", tmp_path / "two", *sorted(tmp_path.glob("*.pcap")))
    assert ended.status == 2
    assert "ring_00003_20261121022000.pcap: no capture in 0 files" in ended.err
    assert len(read(tmp_path / "two" / "frames.csv")) == len(two)


def test_an_input_that_fails_costs_only_itself(run: Run, tmp_path: Path) -> None:
    junk = tmp_path / "junk.pcap"
    junk.write_bytes(b"\xa1\xb2\xc3\xd4" + bytes(30))
    ended = run("decode", "--format", "csv", "--out", tmp_path / "t", tmp_path / "none", junk, GROUP)
    assert ended.status == 2
    assert "none: No such file" in ended.err
    run("decode", "--format", "csv", "--out", tmp_path / "u", GROUP)
    assert read(tmp_path / "t" / "groups.csv") == read(tmp_path / "u" / "groups.csv")


def test_ours_are_replaced(run: Run, tmp_path: Path) -> None:
    run("decode", "--format", "csv", "--out", tmp_path, GROUP)
    first = files(tmp_path)
    assert set(first) == {*CSV, owned_files.LIST}
    (tmp_path / "notes.txt").write_text("mine")
    assert run("decode", "--format", "csv", "--out", tmp_path, SMALL).status in (0, 1)
    second = files(tmp_path)
    assert second.keys() == {*first, "notes.txt"}
    assert second["frames.csv"] != first["frames.csv"]
    assert run("decode", "--format", "csv", "--out", tmp_path, GROUP).err == ""
    assert files(tmp_path) == first | {"notes.txt": b"mine"}


@pytest.mark.parametrize("manner", ["foreign", "changed", "same size", "link", "folder"])
def test_what_is_not_ours_is_never_overwritten(run: Run, tmp_path: Path, manner: str) -> None:
    out, target = tmp_path / "out", tmp_path / "target"
    target.write_text("theirs")
    out.mkdir()
    lag = out / "lag.csv"
    if manner in ("changed", "same size"):
        run("decode", "--format", "csv", "--out", out, GROUP)
        lag.write_bytes(lag.read_bytes()[:-2] + (b"\r\r" if manner == "same size" else b"\r\n,\r\n"))
    elif manner == "link":
        lag.symlink_to(target)
    elif manner == "folder":
        lag.mkdir()
    else:
        lag.write_text("time,theirs")
    before = files(out)
    ended = run("decode", "--format", "csv", "--out", out, SMALL)
    assert ended.status == 2
    assert "has files that coordwire decode did not write, or that changed since: lag.csv;" in ended.err
    assert files(out) == before
    assert target.read_text() == "theirs"


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"made_by": "coordwire decode", "format": 1, "files": {"lag.csv": 3}}', "[" * 9999],
)
def test_a_list_that_is_not_ours_is_refused(run: Run, tmp_path: Path, text: str) -> None:
    (tmp_path / owned_files.LIST).write_text(text)
    ended = run("decode", "--format", "csv", "--out", tmp_path, SMALL)
    assert ended.status == 2
    assert "is not as coordwire decode writes it" in ended.err
    assert files(tmp_path) == {owned_files.LIST: text.encode()}


def test_a_file_that_appears_meanwhile_stays(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = owned_files.OwnedFiles.check

    def late(self: owned_files.OwnedFiles, names: Any) -> None:
        checked(self, names)
        if (tmp_path / owned_files.LIST).exists() or list(tmp_path.glob(".lag*")):
            (tmp_path / "lag.csv").write_text("theirs")

    monkeypatch.setattr(owned_files.OwnedFiles, "check", late)
    ended = run("decode", "--format", "csv", "--out", tmp_path, SMALL)
    assert ended.status == 2
    assert "lag.csv appeared while the tables were written; nothing was overwritten" in ended.err
    assert (tmp_path / "lag.csv").read_text() == "theirs"
    assert not list(tmp_path.glob(".*.part"))


def test_an_interrupt_leaves_nothing(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: CsvTable) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(CsvTable, "close", interrupted)
    assert run("decode", "--format", "csv", "--out", tmp_path / "t", SMALL).status == 130
    assert files(tmp_path) == {}


def test_options_that_do_not_go_together(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments, message in (
        (("--format", "parquet"), "--format parquet needs --out DIR"),
        (("--format", "tree", "--out", tmp_path), "expected --format parquet or csv, got tree"),
        (("--deep", "--out", tmp_path), "--deep has no place in tables"),
        (("--fields", "api", "--out", tmp_path), "--fields chooses columns for standard output"),
    ):
        ended = run("decode", *arguments, SMALL)
        assert (ended.status, ended.out) == (2, b"")
        assert message in ended.err
    monkeypatch.setattr(tables, "find_spec", lambda name: None)
    ended = run("decode", "--format", "parquet", "--out", tmp_path / "t", SMALL)
    assert "Parquet needs pyarrow: pip install 'coordwire[arrow]' (--format csv does without)" in ended.err
    assert not (tmp_path / "t").exists()


def test_segments_are_the_pipelines(run: Run, tmp_path: Path) -> None:
    from coordwire.records import Record, encode_batch

    log = tmp_path / "0.log"
    log.write_bytes(encode_batch([Record(value=b"v")]))
    ended = run("decode", "--format", "csv", "--out", tmp_path / "t", log, SMALL)
    assert ended.status == 2
    assert "0.log: a log segment: coordwire pipeline makes tables of those" in ended.err
    assert read(tmp_path / "t" / "frames.csv")


def test_csv_needs_neither_spark_nor_pyarrow(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(('pyspark', 'pyarrow', 'py4j')))\n"
        "from coordwire.cli.__main__ import main\n"
        f"raise SystemExit(main(['decode', '--format', 'csv', '--out', {str(tmp_path)!r}, {str(SMALL)!r}]))\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ended.returncode in (0, 1), ended.stderr
    assert read(tmp_path / "frames.csv")


def test_cells(tmp_path: Path) -> None:
    types = ["string", "string", "string", "binary", "boolean", "int", "double", "timestamp", "array<string>"]
    with (tmp_path / "cells.csv").open("wb") as stream:
        table = CsvTable(Sink(stream), [Column(f"c{n}", type, "") for n, type in enumerate(types)])
        table.add([None, "", 'a,"b"\r\n', b"\xff\0", True, -1, 0.1, 1, ["x", "é,"]], 9)
        table.add(["\udc80", " x", "é", b"", False, None, None, None, []], 9)
        table.close()
    assert (tmp_path / "cells.csv").read_bytes().decode().splitlines(keepends=True)[1:] == [
        ',"","a,""b""\r\n', '",ff00,true,-1,0.1,1970-01-01T00:00:00.000001Z,"[""x"",""\\u00e9,""]"\r\n',
        '\\udc80," x",é,,false,,,,[]\r\n',
    ]  # fmt: skip


def test_a_folder_that_cannot_be_written(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    ended = run("decode", "--format", "csv", "--out", tmp_path / "file", SMALL)
    assert (ended.status, ended.out) == (2, b"")
    assert "Not a directory" in ended.err
