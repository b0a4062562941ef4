"""Captures as parts: rotated ones joined, frames as rows, and what is not a capture."""

from __future__ import annotations

import gzip
import lzma
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

import pyarrow

import coordwire
from coordwire._speedups import native
from coordwire.capture.entries import ConnectionSign, Entry, FrameEntry
from coordwire.capture.plain_lines import PlainFrames
from coordwire.cli.__main__ import main
from coordwire.errors import DecodeError
from coordwire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from coordwire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from coordwire.records import Record, encode_batch
from coordwire.tables.columns import ERRORS, FRAMES
from coordwire.tables.options import Options, parse_options
from coordwire.tables.readers.captures import read_errors, read_frames
from coordwire.tables.readers.sources import SOURCES, plan, read
from coordwire.tables.readers.splits import Part
from tests.tables.pipeline_steps import run, table_rows

CAPTURES = Path(__file__).parents[1] / "data" / "captures"
STORIES = Path(__file__).parents[1] / "data" / "stories"
HEADER, PACKET = 24, 16
NAMES = [column.name for column in FRAMES if column.name != "input_file"]


def frames(options: Options) -> list[dict[str, Any]]:
    source = SOURCES["kafka-capture"]
    return [
        row
        for group in plan(source, options)
        for batch in read(source, group, options, NAMES)
        for row in batch.to_pylist()
    ]


def errors(options: Options, names: list[str]) -> list[dict[str, Any]]:
    source = SOURCES["kafka-errors"]
    groups = plan(source, options)
    return [
        row for group in groups for batch in read(source, group, options, names) for row in batch.to_pylist()
    ]


def test_errors_are_those_of_the_frames() -> None:
    options = Options(paths=(str(CAPTURES / "kpy__tansu__group-range.pcap"),))
    rows = {row["frame"]: row for row in frames(options)}
    actual = errors(options, [column.name for column in ERRORS])
    assert actual
    assert {row["frame"] for row in actual} == {frame for frame, row in rows.items() if row["error_code"]}
    for row in actual:
        frame = rows[row["frame"]]
        assert all(
            row[name] == frame[name] for name in ("time", "api", "api_version", "client_id", "client_address")
        )
        assert (row["error_code"], row["error_name"]) == (frame["error_code"], frame["error_name"])
        assert frame["flow"] == f"{row['broker_address']} > {row['client_address']}"
        assert row["group_id"] or row["api"] not in ("Heartbeat", "JoinGroup", "SyncGroup")
    assert {row["error_name"] for row in rows.values()} > {None, "NONE"}
    assert all(row["error_code"] is None for row in rows.values() if row["direction"] == "request")
    middle = actual[-1]["time"]
    later = Options(paths=options.paths, starting_timestamp=int(middle.timestamp() * 1000))
    assert errors(later, ["time"]) == [{"time": row["time"]} for row in actual if row["time"] >= middle]


def test_what_is_withheld_has_no_errors(tmp_path: Path) -> None:
    request = SaslHandshakeRequest(mechanism="PLAIN")
    encoded = coordwire.encode_request(request, version=1, correlation_id=1, client_id="c")
    response = SaslHandshakeResponse(error_code=33, mechanisms=["SCRAM-SHA-256"])
    authenticate = SaslAuthenticateRequest(auth_bytes=b"\0user\0secret")
    answer = SaslAuthenticateResponse(error_code=58, error_message="denied", auth_bytes=b"e=other-error")
    (tmp_path / "frames").write_bytes(
        encoded
        + coordwire.encode_response(response, version=1, correlation_id=1)
        + coordwire.encode_request(authenticate, version=1, correlation_id=2, client_id="c")
        + cut(coordwire.encode_response(answer, version=1, correlation_id=2))
    )
    for show_secrets in (False, True):
        part = Part("capture", str(tmp_path / "frames"), 0, 0, 0)
        options = Options(show_secrets=show_secrets)
        (batch,) = read_errors(part, options, ["error_name", "error_message"])
        assert isinstance(batch, pyarrow.RecordBatch)
        assert (
            batch.to_pylist()
            == [
                {"error_name": "UNSUPPORTED_SASL_MECHANISM", "error_message": None},
                {"error_name": "SASL_AUTHENTICATION_FAILED", "error_message": "denied"},
            ][: 1 + show_secrets]
        )


FIVE_FILES = [f"x_{number:05}_2024013111{number:02}00.pcap" for number in range(5)]
IN = ("memberJoined", "memberFound")


def cut(frame: bytes) -> bytes:
    """A frame without its last byte."""
    return (int.from_bytes(frame[:4], "big") - 1).to_bytes(4, "big") + frame[4:-1]


def rotated(folder: Path, names: list[str], complete: bytes = b"") -> Path:
    """A capture cut between packets, as tcpdump -C does."""
    complete = complete or (CAPTURES / "kpy__tansu__group-range.pcap").read_bytes()
    folder.mkdir()
    cuts, at = [HEADER], HEADER
    while at < len(complete):
        at += PACKET + int.from_bytes(complete[at + 8 : at + 12], "little")
        if at - cuts[-1] > len(complete) // len(names):
            cuts.append(at)
    for name, start, end in zip(names, cuts, [*cuts[1 : len(names)], len(complete)], strict=True):
        (folder / name).write_bytes(complete[:HEADER] + complete[start:end])
    return folder


@pytest.mark.parametrize(
    "names",
    [
        ["x.pcap", "x.pcap1", "x.pcap2"],
        ["x.pcap2", "x.pcap0", "x.pcap1"],  # tcpdump -W 3 has begun again
        ["x_99999_20240131115900.pcap", "x_00001_20240131120000.pcap", "x_00002_20240131120100.pcap"],
        ["x_00001_20240131120000.pcap", "x_00002_20240131120100.pcap", "x_00003_20240131120200.pcap"],
    ],
)
def test_rotated_files_are_one_capture(tmp_path: Path, names: list[str]) -> None:
    complete = frames(Options(paths=(str(CAPTURES / "kpy__tansu__group-range.pcap"),)))
    folder = rotated(tmp_path / "in", names)
    assert frames(Options(paths=(str(folder),))) == complete
    assert frames(Options(paths=(str(folder),), join_rotated=False)) != complete


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_compressed_captures(tmp_path: Path, suffix: str) -> None:
    def squeeze(data: bytes) -> bytes:
        return gzip.compress(data) if suffix == ".gz" else lzma.compress(data)

    complete = frames(Options(paths=(str(CAPTURES / "kpy__tansu__group-range.pcap"),)))
    folder = rotated(tmp_path / "in", ["x.pcap", "x.pcap1", "x.pcap2"])
    for path in list(folder.iterdir()):
        path.with_name(path.name + suffix).write_bytes(squeeze(path.read_bytes()))
        path.unlink()
    assert frames(Options(paths=(str(folder),))) == complete
    item = tmp_path / f"one{suffix}"
    item.write_bytes(squeeze((CAPTURES / "kpy__tansu__group-range.pcap").read_bytes()))
    assert frames(Options(paths=(str(item),))) == complete


def test_a_compressed_segment_is_refused_as_that(tmp_path: Path) -> None:
    """It can't be read in parts."""
    path = tmp_path / "00000000000000000000.log.gz"
    path.write_bytes(gzip.compress(encode_batch([Record(0, value=b"v")])))
    with pytest.raises(DecodeError, match="a broker's log segment"):
        frames(parse_options({"path": str(path), "mode": "failfast"}))


def test_only_the_columns_asked_for_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("the body was not asked for")

    monkeypatch.setattr("coordwire.tables.readers.frame_rows.frame_content", never)
    source, options = SOURCES["kafka-capture"], Options(paths=(str(CAPTURES),))
    groups = plan(source, options)
    batches = [batch for group in groups for batch in read(source, group, options, ["api", "size"])]
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert len(rows) == 663
    assert set(rows[0]) == {"api", "size"}


def test_times_and_secrets(tmp_path: Path) -> None:
    path = str(CAPTURES / "confluent__noida__sasl.pcap")
    all_rows = frames(parse_options({"path": path}))
    middle = all_rows[len(all_rows) // 2]["time_ns"] // 1_000_000
    early = frames(parse_options({"path": path, "endingTimestamp": str(middle)}))
    late = frames(parse_options({"path": path, "startingTimestamp": str(middle)}))
    assert [*early, *late] == all_rows
    assert early
    table = frames(parse_options({"path": path, "showSecrets": "true"}))
    hidden = [row for row in all_rows if row["redacted"]]
    assert hidden
    assert not [row for row in table if row["redacted"]]


def test_frames_that_were_judged_before_are_not_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a capture with frames that deviate, all of it or the second half."""
    path = str(CAPTURES / "confluent__rdmock__group-range.pcap")
    (part,) = (part for group in plan(SOURCES["kafka-capture"], Options(paths=(path,))) for part in group)
    all_rows = frames(Options(paths=(path,)))
    middle = all_rows[len(all_rows) // 2]["time_ns"] // 1_000_000
    judge = PlainFrames(show_secrets=False).flags  # bound before the class loses it
    seen: set[bool] = set()

    def tell(
        entries: Sequence[Entry | ConnectionSign], read: Sequence[FrameEntry], is_known: bool
    ) -> list[bool]:
        assert not is_known
        flags = judge(read)
        seen.update(flags)
        return flags

    for options in (Options(paths=(path,)), Options(paths=(path,), starting_timestamp=middle)):
        expected = frames(options)
        with monkeypatch.context() as patch:
            patch.setattr(PlainFrames, "flags", None)
            batches = list(read_frames(part, options, [*expected[0]], tell=tell))
        assert [row for batch in batches for row in batch.to_pylist()] == expected  # type: ignore[union-attr]
    assert 0 < len(expected) < len(all_rows)
    assert seen == ({False} if native is None else {False, True})


def test_strict_refuses_what_is_otherwise_a_deviation() -> None:
    path = str(CAPTURES / "confluent__rdmock__group-range.pcap")
    rows = frames(parse_options({"path": path}))
    strict = frames(parse_options({"path": path, "strict": "true"}))
    deviating = [row["frame"] for row in rows if row["deviations"]]
    assert deviating
    assert not [row for row in rows if row["deviations"] and row["error_reason"]]
    assert not [row for row in strict if row["deviations"]]
    refused = {row["frame"] for row in strict if row["error_reason"]}
    assert refused == {*deviating, *(row["frame"] for row in rows if row["error_reason"])}


def test_what_is_no_capture(tmp_path: Path) -> None:
    (tmp_path / "x.pcap").write_bytes(b"\x01" * 100_000)
    (tmp_path / "empty.pcap").touch()
    source = SOURCES["kafka-quarantine"]
    for table, remaining in ((False, [None, None]), (True, [0, 65_536])):
        options = Options(paths=(str(tmp_path),), show_secrets=table)
        rows = [
            row
            for group in plan(source, options)
            for batch in read(
                source, group, options, ["input_file", "position", "end_position", "reason", "bytes"]
            )
            for row in batch.to_pylist()
        ]
        assert [(Path(row["input_file"]).name, row["position"], row["end_position"]) for row in rows] == [
            ("empty.pcap", 0, 0), ("x.pcap", 0, 100_000),
        ]  # fmt: skip
        assert [None if row["bytes"] is None else len(row["bytes"]) for row in rows] == remaining
    with pytest.raises(DecodeError, match="not a readable format"):
        frames(Options(paths=(str(tmp_path / "x.pcap"),), mode="failfast"))


def dated(folder: Path, seconds: int, text: str) -> Path:
    """A capture of a group's whole life, cut as `tcpdump -G` does."""
    data = lzma.decompress((STORIES / "classic-causes.pcap.xz").read_bytes())
    folder.mkdir()
    path, until, at = None, 0, HEADER
    while at < len(data):
        end = at + PACKET + int.from_bytes(data[at + 8 : at + 12], "little")
        moment = int.from_bytes(data[at : at + 4], "little")
        if path is None or moment >= until:
            path, until = folder / time.strftime(text, time.gmtime(moment)), moment + seconds
            path.write_bytes(data[:HEADER])
        with path.open("ab") as stream:
            stream.write(data[at:end])
        at = end
    return folder


@pytest.mark.parametrize("text", ["x-%H%M%S.pcap", "x_%Y-%m-%d_%H:%M:%S.pcap"])
def test_files_named_by_a_clock_are_one_capture(tmp_path: Path, text: str) -> None:
    rows = {}
    for name, seconds in (("whole", 1000), ("cut", 4)):
        dated(tmp_path / name, seconds, text)
        run(tmp_path / name, tmp_path / f"{name}-out", tables=("groups", "frames", "offset_commits"))
        rows[name] = [
            {key: value for key, value in row.items() if key not in ("input_file", "body")}
            for table in ("groups", "frames", "offset_commits")
            for row in table_rows(tmp_path / f"{name}-out", table)
        ]
    assert len(list((tmp_path / "cut").iterdir())) == 9
    assert sorted(map(str, rows["cut"])) == sorted(map(str, rows["whole"]))
    assert sum(row.get("event") == "memberJoined" for row in rows["cut"]) == 3


@pytest.mark.parametrize("name", ["kpy__tansu__group-range", "confluent__rdmock__group-range"])
def test_no_member_joins_once_more_in_files_that_are_read_apart(tmp_path: Path, name: str) -> None:
    """In the files after the first a member is found."""
    folder = rotated(tmp_path / "in", FIVE_FILES, (CAPTURES / f"{name}.pcap").read_bytes())
    members: dict[bool, list[tuple[str, str]]] = {}
    for is_joined in (True, False):
        out = tmp_path / f"{is_joined}"
        run(folder, out, tables=("groups",), options=Options(join_rotated=is_joined))
        members[is_joined] = sorted(
            (row["event"], row["member_id"]) for row in table_rows(out, "groups") if row["event"] in IN
        )
    joined, apart = Counter(members[True]), Counter(members[False])
    assert [*joined.values()] == [1, 1, 1]
    found = {row[1]: count for row, count in apart.items() if row[0] == "memberFound"}
    assert apart - Counter({("memberFound", name): count for name, count in found.items()}) <= joined
    assert found.keys() <= {name for _, name in joined}
    assert sum(found.values()) >= 2


def test_the_pipelines_command_leaves_files_apart(tmp_path: Path) -> None:
    folder = dated(tmp_path / "in", 4, "x-%H%M%S.pcap")
    command = ["pipeline", str(folder), "--engine", "local", "--tables", "files", "--no-report"]
    joined: list[int] = []
    for options in ([], ["--no-join-rotated"]):
        assert main([*command, "--out", str(tmp_path / str(len(options))), *options]) in (0, 1)
        files = table_rows(tmp_path / str(len(options)), "files")
        joined.append(sum(row["joined_to"] is not None for row in files))
    assert joined == [8, 0]
