"""A capture that several tasks share: the same tables as one task makes, whatever the split."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

from coordwire.capture import frame_decoding
from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.formats.pcap import as_pcap
from coordwire.capture.reader import Capture
from coordwire.errors import UnreadableRange
from coordwire.frames import encode_request, encode_response
from coordwire.messages import HeartbeatRequest, HeartbeatResponse
from coordwire.tables import pipeline
from coordwire.tables.options import Options
from coordwire.tables.pipeline.engine import Progress, as_tasks
from coordwire.tables.pipeline.units import Job, Unit, run_units
from coordwire.tables.readers import splits
from coordwire.tables.readers.files import find_files, open_stream
from coordwire.tables.readers.sources import SOURCES, plan, read
from coordwire.tables.readers.splits import DealtFrames, Part
from tests.capture.build import pcap
from tests.capture.samples import traffic
from tests.growth import assert_linear
from tests.tables.in_process import InProcess
from tests.tables.pipeline_steps import leftovers, run, run_unit, table_rows
from tests.tables.test_captures import CAPTURES, frames, rotated

TABLES = ("files", "frames", "errors", "groups", "offset_commits", "lag", "traffic", "quarantine")
GROUP = CAPTURES / "confluent__rdmock__group-range.pcap"


@pytest.fixture(autouse=True)
def small_stripes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splits, "STRIPE", 2_000)


@pytest.fixture
def shares(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many shares each capture has, as the plan says it."""
    count = [1]
    monkeypatch.setattr(splits, "shares_of", lambda size, split_size, stories=False: count[0])
    return count


def keyed(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


def tables(source: Path, out: Path) -> dict[str, list[str]]:
    run(source, out, tables=TABLES)
    assert not leftovers(out)
    return {name: keyed(table_rows(out, name)) for name in TABLES}


def test_a_capture_has_a_share_for_each_split_size() -> None:
    assert [splits.shares_of(size, 10) for size in (0, 1, 14, 15, 21, 25, 10**6)] == [1, 1, 1, 2, 2, 3, 16]


def test_with_stories_it_has_two_shares_at_most(tmp_path: Path) -> None:
    assert [splits.shares_of(size, 10, stories=True) for size in (0, 4, 5, 100, 10**6)] == [1, 1, 2, 2, 2]
    (tmp_path / "x.pcap").write_bytes(GROUP.read_bytes())
    files = {file.path: file for file in find_files([str(tmp_path)])}
    for tables, expected in ((("frames",), splits.MOST_SHARES), (("frames", "lag"), 2), (("groups",), 2)):
        assert len(pipeline.plan(files, Options(split_size=10), tables)) == expected


def entries_of(data: bytes) -> list[Entry]:
    return list(Capture(io.BytesIO(data), "x", lazy=True).entries())


def test_the_first_share_has_no_frames_where_stories_are_made() -> None:
    entries = entries_of(traffic(100))
    for count, expected in ((1, len(entries)), (2, 0), (3, 0)):
        assert len(DealtFrames(0, count, stories=True).own(entries)) == expected


@pytest.mark.parametrize("stories", [False, True])
def test_frames_are_dealt_out_in_stripes(monkeypatch: pytest.MonkeyPatch, stories: bool) -> None:
    """Each is in one share, whatever lists they come in, and what is no frame is in the first one."""
    monkeypatch.setattr(splits, "STRIPE", 1_000)
    rng = random.Random(5)
    bodies = [bytes(rng.choice((0, 1, 744, 1_744, 5_000, rng.randrange(3_000)))) for _ in range(300)]
    entries: list[Entry] = [
        FrameEntry(capture="x", number=number, flow="", time_ns=0, direction="request", body=body)
        for number, body in enumerate(bodies)
    ]
    entries.insert(7, UnreadableRange(0, 1, "lost"))
    for count in (1, 2, 3, 7):
        first = 1 if stories and count > 1 else 0
        expected: list[list[Entry]] = [[] for _ in range(count)]
        dealt = 0
        for entry in entries:
            if isinstance(entry, FrameEntry):
                expected[first + dealt // 1_000 % (count - first)].append(entry)
                dealt += splits.FRAME + len(entry.body)
            else:
                expected[0].append(entry)
        for index in range(count):
            share = DealtFrames(index, count, stories=stories)
            lists = [entries[:5], [], *([entry] for entry in entries[5:90]), entries[90:]]
            assert [one for part in lists for one in share.own(part)] == expected[index]


@pytest.mark.parametrize(("index", "count"), [(-1, 2), (2, 2), (0, 0)])
def test_no_such_share(index: int, count: int) -> None:
    with pytest.raises(ValueError, match="expected a share from 0"):
        DealtFrames(index, count)


def test_what_is_not_of_the_share_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splits, "STRIPE", 20_000)
    data, decoded = traffic(900), [0]
    fill_in = frame_decoding._fill_in

    def counted(entry: FrameEntry, *, strict: bool) -> bool:
        decoded[0] += 1
        return fill_in(entry, strict=strict)

    monkeypatch.setattr(frame_decoding, "_fill_in", counted)
    total = len(entries_of(data))
    for count in (1, 2, 4):
        decoded[0] = 0
        sizes = []
        for index in range(count):
            own = DealtFrames(index, count).own(entries_of(data))
            sizes.append(len(own))
            assert all(isinstance(entry, FrameEntry) and entry.message is not None for entry in own)
        assert sum(sizes) == total
        assert max(sizes) < 1.2 * min(sizes)
        # Those too whose answer is in another share than they are.
        assert total <= decoded[0] < 1.3 * total


def test_all_captures_as_a_data_source(shares: list[int]) -> None:
    options = Options(paths=(str(CAPTURES),))
    expected = keyed(frames(options))
    for count in (2, 3, 7):
        shares[0] = count
        groups = plan(SOURCES["kafka-capture"], options)
        assert sum(len(group) for group in groups) == count * len(list(CAPTURES.glob("*.pcap")))
        assert keyed(frames(options)) == expected


def test_all_tables_of_all_captures(tmp_path: Path, shares: list[int]) -> None:
    expected = tables(CAPTURES, tmp_path / "whole")
    assert expected["groups"]
    assert expected["lag"]
    shares[0] = 3
    assert tables(CAPTURES, tmp_path / "shared") == expected


class InTasks:
    """`Engine` for one worker, in this process."""

    def run_units(self, units: Sequence[Unit], job: Job, progress: Progress | None) -> None:
        for task in as_tasks(units, 1, job.options.split_size):
            run_units(task, job)


def test_the_shares_of_a_task_are_read_at_once(
    tmp_path: Path, shares: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def counted(path: str) -> BinaryIO:
        opened.append(path)
        return open_stream(path)

    monkeypatch.setattr("coordwire.tables.readers.captures.open_stream", counted)
    source = tmp_path / "in"
    source.mkdir()
    for name in ("a.pcap", "b.pcap"):
        (source / name).write_bytes(GROUP.read_bytes())

    def tables_of(engine: InProcess | InTasks, names: Sequence[str]) -> tuple[int, Any]:
        opened.clear()
        out = tmp_path / f"{type(engine).__name__}-{shares[0]}-{len(names)}"
        pipeline.run(engine, [str(source)], str(out), tables=names, report=False)
        notes = json.loads((out / "manifest.json").read_text())["units"]
        keys = ("rows", "units_rows", "read_bytes", "quarantined_bytes", "refused", "apis", "error_codes")
        numbers = {unit: [note[key] for key in keys] for unit, note in notes.items()}
        return len(opened), (numbers, {name: keyed(table_rows(out, name)) for name in names})

    for shares[0], names, times in ((2, TABLES, 1), (2, ("frames", "errors"), 2), (3, TABLES, 3)):
        apart = tables_of(InProcess(), names)
        assert apart[0] == 2 * shares[0]
        assert tables_of(InTasks(), names) == (2 * times, apart[1])


def test_the_shares_of_a_capture_have_a_task_unless_a_worker_is_idle() -> None:
    def tasks(
        captures: int, workers: int, kind: Literal["capture", "segment"] = "capture", first: int = 0
    ) -> list[int]:
        size = 100 << 20
        parts = [
            Part(
                kind,
                f"{number}.pcap",
                size,
                share * size // 2,
                size // 2 * (share + 1),
                share=share,
                shares=2,
            )
            for number in range(captures)
            for share in (0, 1)
        ]
        units = [Unit("", part) for part in parts[first:]]
        return [len(task) for task in as_tasks(units, workers, 128 << 20)]

    assert tasks(1, 1) == [2]
    assert tasks(1, 2) == [1, 1]
    assert tasks(2, 2) == [2, 2]
    assert tasks(3, 4) == [1] * 6
    assert tasks(2, 1, first=1) == [1, 2]
    assert tasks(1, 1, "segment") == [1, 1]


@pytest.mark.growth
def test_units_become_tasks_in_linear_time() -> None:
    def units(n: int) -> list[Unit]:
        ends = [(0, 50, 0), (50, 100, 1)]
        return [
            Unit("", Part("capture", f"{number}.pcap", 100, start, end, share=share, shares=2))
            for number in range(n)
            for start, end, share in ends
        ]

    assert_linear(units, lambda made_units: as_tasks(made_units, 4, 128 << 20), 300)


def test_a_rotated_capture_with_a_damaged_middle(tmp_path: Path, shares: list[int]) -> None:
    names = ["x.pcap", "x.pcap1", "x.pcap2"]
    folder = rotated(tmp_path / "in", names)
    middle = bytearray((folder / names[1]).read_bytes())
    middle[len(middle) // 2 : len(middle) // 2 + 40] = bytes(40)
    (folder / names[1]).write_bytes(middle)
    expected = tables(folder, tmp_path / "1")
    assert expected["quarantine"]
    for count in (2, 3, 7):
        shares[0] = count
        assert tables(folder, tmp_path / str(count)) == expected


def fifty_connections() -> Iterator[tuple[int, int, bool, bytes]]:
    """Heartbeats, short and long, and some that are refused; all answers have an error code."""
    for number in range(400):
        request = HeartbeatRequest(group_id="g" * (3 + number % 3 * 200), generation_id=1, member_id="m")
        data = encode_request(request, version=4, correlation_id=number)
        if number % 61 == 7:
            data = data[:-1] + b"\x7f"  # tags that aren't there
        yield number, number % 50, False, data
        if number >= 50:
            response = HeartbeatResponse(error_code=27)
            yield number, number % 50, True, encode_response(response, version=4, correlation_id=number - 50)


def test_a_cut_ring_of_fifty_connections(tmp_path: Path, shares: list[int]) -> None:
    """Frames of all of them, refused ones, and what the end cuts off, are in one share each."""
    folder = rotated(tmp_path / "in", ["x.pcap2", "x.pcap0", "x.pcap1"], as_pcap(fifty_connections()))
    last = folder / "x.pcap1"
    last.write_bytes(last.read_bytes()[:-30])
    expected = tables(folder, tmp_path / "1")
    assert len(expected["frames"]) == 749
    assert len(expected["errors"]) > 300
    assert expected["quarantine"]
    for count in (2, 5):
        shares[0] = count
        assert tables(folder, tmp_path / str(count)) == expected


def test_a_rerun_with_another_split_leaves_every_row_once(tmp_path: Path, shares: list[int]) -> None:
    source = tmp_path / "in"
    source.mkdir()
    (source / GROUP.name).write_bytes(GROUP.read_bytes())
    expected = tables(source, tmp_path / "out")
    worked: list[int] = []

    def work(unit: Unit, *arguments: Any) -> object:
        worked.append(unit.part.share)
        return run_unit(unit, *arguments)

    for count in (3, 2, 1, 2):
        shares[0] = count
        summary = run(source, tmp_path / "out", tables=TABLES, work=work)
        assert worked == list(range(count))
        assert summary.frames == len(expected["frames"])
        assert {name: keyed(table_rows(tmp_path / "out", name)) for name in TABLES} == expected
        worked.clear()
        assert run(source, tmp_path / "out", tables=TABLES, work=work).reused == count
        assert not worked


def test_what_is_no_capture_is_reported_once(tmp_path: Path, shares: list[int]) -> None:
    (tmp_path / "x.pcap").write_bytes(b"\x01" * 100_000)
    (tmp_path / "cut.pcap").write_bytes(pcap([b"\0" * 60])[:-5])
    expected = tables(tmp_path, tmp_path.parent / f"{tmp_path.name}-1")["quarantine"]
    assert len(expected) == 2
    shares[0] = 3
    assert tables(tmp_path, tmp_path.parent / f"{tmp_path.name}-3")["quarantine"] == expected


def test_the_source_of_quarantine_reads_a_capture_once(tmp_path: Path, shares: list[int]) -> None:
    shares[0] = 3
    (tmp_path / "x.pcap").write_bytes(b"\x01" * 100_000)
    options, source = Options(paths=(str(tmp_path),)), SOURCES["kafka-quarantine"]
    groups = plan(source, options)
    assert [part.shares for group in groups for part in group] == [1]
    assert (
        sum(batch.num_rows for group in groups for batch in read(source, group, options, ["input_file"])) == 1
    )


def test_a_file_that_cannot_be_read_is_reported_by_each_share(
    tmp_path: Path, shares: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each may fail on its own; together their ranges are the file, which is one where both are read at
    once."""
    (tmp_path / "x.pcap").write_bytes(GROUP.read_bytes())
    shares[0] = 2

    def broken(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("coordwire.tables.readers.captures.open_stream", broken)
    size = GROUP.stat().st_size
    for work, expected in ((run_unit, [(0, size // 2), (size // 2, size)]), (None, [(0, size)])):
        out = tmp_path.parent / f"{tmp_path.name}-{len(expected)}"
        run(tmp_path, out, tables=TABLES, work=work)
        ranges = sorted((row["position"], row["end_position"]) for row in table_rows(out, "quarantine"))
        assert ranges == expected
