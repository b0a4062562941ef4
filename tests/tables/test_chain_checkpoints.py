"""Chains of rotated files that grow are read once: the rows are those of reading the whole chain at once."""

from __future__ import annotations

import json
import lzma
import os
import pickle
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

from coordwire.codec import Struct
from coordwire.tables.options import Options
from coordwire.tables.pipeline import PipelineSummary, capture_rows
from coordwire.tables.readers import chains, files
from coordwire.tables.storage import checkpoints
from coordwire.tables.storage.checkpoints import CHECKPOINT_FORMAT, NoCheckpoint, load_checkpoint
from coordwire.tables.storage.folders import open_output
from tests.recorded import CAPTURES, DATA, RECORDINGS
from tests.tables import pipeline_steps
from tests.tables.pipeline_steps import Crash
from tests.tables.test_captures import HEADER, PACKET

TABLES = ("files", "frames", "errors", "groups", "offset_commits", "lag", "traffic", "quarantine")
GROUP = next(path for path in CAPTURES if path.name == "confluent__rdmock__group-range.pcap")
KILLED = DATA / "outages" / "broker-killed.pcap.xz"
CONSUMER = DATA / "stories" / "consumer-causes.pcap.xz"
INPUTS = [*CAPTURES, *RECORDINGS, DATA / "zookeeper" / "consumers-7005.pcap.xz"]

Rows = dict[str, Counter[str]]


def content(path: Path) -> bytes:
    return lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()


def ends_of(data: bytes) -> list[int]:
    """Where the packets of a capture end."""
    ends, at = [], HEADER
    while at < len(data):
        at += PACKET + int.from_bytes(data[at + 8 : at + 12], "little")
        ends.append(at)
    return ends


def cut(data: bytes, at: list[int]) -> list[bytes]:
    cuts = [HEADER, *at, len(data)]
    return [data[:HEADER] + data[a:b] for a, b in pairwise(cuts)]


class Chain:
    """A capture in files."""

    def __init__(self, folder: Path, parts: list[bytes]) -> None:
        self.folder, self.parts = folder, parts
        folder.mkdir()

    def path(self, number: int) -> Path:
        return self.folder / f"x.pcap{number or ''}"

    def put(self, *numbers: int) -> None:
        for number in numbers:
            self.path(number).write_bytes(self.parts[number])


def run(chain: Chain, out: Path, **named: Any) -> PipelineSummary:
    return pipeline_steps.run(chain.folder, out, tables=TABLES, **named)


def rows(out: Path) -> Rows:
    """All columns of all rows."""
    return {
        table: Counter(repr(sorted(row.items())) for row in pipeline_steps.table_rows(out, table))
        for table in TABLES
    }


def checkpoint_files(out: Path) -> list[Path]:
    return sorted((out / "_manifest" / "checkpoints").glob("*"))


@pytest.fixture
def chain(tmp_path: Path) -> Chain:
    data = content(GROUP)
    ends = ends_of(data)
    return Chain(tmp_path / "in", cut(data, [ends[len(ends) * part // 6] for part in range(1, 6)]))


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: path.name.partition(".pcap")[0])
def test_rows_of_a_growing_chain_are_those_of_the_whole_chain(tmp_path: Path, path: Path) -> None:
    """The last file may be there in part at first; both units in one task, or each in its own."""
    rng, data = random.Random(path.name), content(path)
    ends = ends_of(data)
    chain = Chain(tmp_path / "in", cut(data, sorted(rng.sample(ends[:-1], rng.randint(1, 6)))))
    out, work = tmp_path / "out", rng.choice((None, pipeline_steps.run_unit))
    options = Options(split_size=rng.choice((1 << 20, 20_000)))
    for number, part in enumerate(chain.parts):
        if rng.random() < 0.3:
            chain.path(number).write_bytes(part[: rng.randrange(HEADER, len(part))])
            run(chain, out, work=work, options=options)
        chain.put(number)
        if rng.random() < 0.7 or part is chain.parts[-1]:
            assert run(chain, out, work=work, options=options).notices == []
    summary = run(chain, tmp_path / "whole")
    assert rows(out) == rows(tmp_path / "whole")
    assert run(chain, out, options=options).reused == 1 + len(settled(out))
    assert summary.frames == rows(out)["frames"].total()


def settled(out: Path) -> list[dict[str, Any]]:
    units = json.loads((out / "manifest.json").read_bytes())["units"]
    return [note for note in units.values() if note.get("stage") == "settled"]


def test_one_more_file_reads_it_and_the_last_one_only(
    chain: Chain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    chain.put(*range(5))
    run(chain, out)
    opened = []
    original = files.open_stream

    def opening(path: str) -> BinaryIO:
        opened.append(path)
        return original(path)

    monkeypatch.setattr(chains, "open_stream", opening)
    chain.put(5)
    summary = run(chain, out)
    assert opened == [str(chain.path(4)), str(chain.path(5))]
    assert (summary.units, summary.reused) == (3, 1)
    assert len(checkpoint_files(out)) == 1
    opened.clear()
    assert run(chain, out).reused == 3
    assert opened == []


def _damaged(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _of_another_version(path: Path) -> None:
    head, _, data = path.read_bytes().partition(b"\n")
    form = json.loads(head)
    form["formats"][0] += 1
    path.write_bytes(json.dumps(form).encode() + b"\n" + data)


class _Hostile:
    def __reduce__(self) -> Any:
        return os.mkdir, ("hostile",)


def _hostile(path: Path) -> None:
    data = pickle.dumps(_Hostile())
    path.write_bytes(json.dumps(checkpoints._head(data)).encode() + b"\n" + data)


def _of_something_else(path: Path) -> None:
    data = pickle.dumps(("x", 1, 2, 3))
    path.write_bytes(json.dumps(checkpoints._head(data)).encode() + b"\n" + data)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (_damaged, "it is damaged"), (Path.unlink, "it is not there"),
        (lambda path: path.write_bytes(b""), "it is damaged"), (_hostile, "expected a class of a checkpoint"),
        (_of_another_version, "it is of another version"), (_of_something_else, "it has something else"),
    ],
)  # fmt: skip
def test_a_checkpoint_that_can_not_be_used_is_told_and_changes_no_row(
    chain: Chain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Any, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "out"
    chain.put(*range(4))
    run(chain, out)
    [path] = checkpoint_files(out)
    spoil(path)
    chain.put(4, 5)
    [notice] = run(chain, out).notices
    assert notice.startswith(f"{chain.path(0)}: what goes on in the next file was read again in the 3 before")
    assert reason in notice
    run(chain, tmp_path / "whole")
    assert rows(out) == rows(tmp_path / "whole")
    assert not (tmp_path / "hostile").exists()


@pytest.mark.parametrize(
    "name", ["builtins.eval", "os.system", "coordwire.capture.reader.struct", "coordwire.tables.stores.Store"]
)
def test_a_checkpoint_makes_only_what_it_may_have(tmp_path: Path, name: str) -> None:
    module, _, attribute = name.rpartition(".")
    data = b"c" + f"{module}\n{attribute}\n".encode() + b"."
    place = tmp_path / "_manifest" / "checkpoints"
    place.mkdir(parents=True)
    (place / ("0" * 24)).write_bytes(json.dumps(checkpoints._head(data)).encode() + b"\n" + data)
    with pytest.raises(NoCheckpoint, match="expected a class of a checkpoint"):
        load_checkpoint(open_output(str(tmp_path)), "0" * 24)


@pytest.mark.parametrize("split_size", [1 << 20, 20_000])
@pytest.mark.parametrize("tables", [TABLES, ("files", "frames", "errors", "quarantine")], ids=len)
@pytest.mark.parametrize("work", [None, pipeline_steps.run_unit], ids=["together", "apart"])
def test_a_file_that_ends_within_a_packet_has_no_checkpoint(
    tmp_path: Path, split_size: int, tables: tuple[str, ...], work: Any
) -> None:
    options = Options(split_size=split_size)
    data = content(GROUP)
    ends = ends_of(data)
    whole = cut(data, [ends[100], ends[200]])
    chain = Chain(tmp_path / "in", [whole[0][:-20], *whole[1:]])
    out = tmp_path / "out"
    named = dict[str, Any](tables=tables, work=work, options=options)
    chain.put(0)
    chain.path(1).write_bytes(chain.parts[1][:9000])
    pipeline_steps.run(chain.folder, out, **named)
    assert checkpoint_files(out) == []
    chain.put(1)
    pipeline_steps.run(chain.folder, out, **named)
    pipeline_steps.run(chain.folder, tmp_path / "first", tables=tables)
    assert rows(out) == rows(tmp_path / "first")
    chain.put(2)
    pipeline_steps.run(chain.folder, out, **named)
    pipeline_steps.run(chain.folder, tmp_path / "whole", tables=tables)
    assert rows(out) == rows(tmp_path / "whole")
    assert rows(out)["quarantine"]


def test_a_state_that_is_too_large_has_no_checkpoint(
    chain: Chain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "MOST", 1000)
    out = tmp_path / "out"
    chain.put(0, 1)
    [notice] = run(chain, out).notices
    assert "there is no checkpoint, so that the capture is read again as a whole" in notice
    assert checkpoint_files(out) == []
    chain.put(2)
    run(chain, out)
    run(chain, tmp_path / "whole")
    assert rows(out) == rows(tmp_path / "whole")


def test_other_options_or_tables_read_the_chain_again(chain: Chain, tmp_path: Path) -> None:
    out = tmp_path / "out"
    chain.put(*range(4))
    run(chain, out)
    chain.put(4, 5)
    for named in [dict[str, Any](options=Options(show_secrets=True)), dict[str, Any](tables=TABLES[:4])]:
        again = tmp_path / "again"
        shutil.copytree(out, again)
        pipeline_steps.run(chain.folder, again, **dict[str, Any](tables=TABLES) | named)
        pipeline_steps.run(chain.folder, tmp_path / "whole", **dict[str, Any](tables=TABLES) | named)
        assert rows(again)["frames"] == rows(tmp_path / "whole")["frames"]
        shutil.rmtree(again)
        shutil.rmtree(tmp_path / "whole")


def test_an_older_file_that_appears_has_the_chain_read_again(chain: Chain, tmp_path: Path) -> None:
    out = tmp_path / "out"
    chain.put(1, 2, 3)
    run(chain, out)
    chain.put(0, 4, 5)
    run(chain, out)
    run(chain, tmp_path / "whole")
    assert rows(out) == rows(tmp_path / "whole")


def test_a_ring_goes_on_from_its_checkpoint_when_the_first_files_are_gone(
    chain: Chain, tmp_path: Path
) -> None:
    """No row is lost or another, though no two files that are read in a run were there in the one before."""
    out = tmp_path / "out"
    chain.put(0, 1)
    for number in range(2, 6):
        run(chain, out)
        chain.put(number)
        chain.path(number - 2).unlink()
    assert run(chain, out).notices == []
    chain.put(*range(6))
    run(chain, tmp_path / "whole")
    found, expected = rows(out), rows(tmp_path / "whole")
    assert {**found, "files": None} == {**expected, "files": None}


def killed(chain: Chain, start: Path, tmp_path: Path) -> Iterator[Path]:
    """Tables of runs that were killed at steps, and run again."""
    with pipeline_steps.steps() as counting:
        run(chain, shutil.copytree(start, tmp_path / "count"))
    for number in range(1, counting.count, max(1, counting.count // 12)):
        out = shutil.copytree(start, tmp_path / f"out-{number}")
        with pytest.raises(Crash), pipeline_steps.steps(pipeline_steps.crash_at(number)):
            run(chain, out)
        yield out


def test_killed_at_any_step(chain: Chain, tmp_path: Path) -> None:
    start = tmp_path / "start"
    chain.put(*range(3))
    run(chain, start)
    chain.put(3, 4)
    run(chain, tmp_path / "whole")
    for out in killed(chain, start, tmp_path):
        run(chain, out)
        assert rows(out) == rows(tmp_path / "whole")
        assert run(chain, out).notices == []


def test_another_process_goes_on(tmp_path: Path) -> None:
    """A process has hashes and addresses of its own."""
    data = content(CONSUMER)
    ends = ends_of(data)
    chain = Chain(tmp_path / "in", cut(data, [ends[len(ends) * part // 4] for part in range(1, 4)]))
    out = tmp_path / "out"
    for number in range(4):
        chain.put(number)
        subprocess.run(
            [sys.executable, "-m", "coordwire", "pipeline", str(chain.folder), "--out", str(out),
             "--no-report", "--tables", ",".join(TABLES), "--workers", "1", "--engine", "local"],
            check=True, capture_output=True, env=os.environ | {"PYTHONHASHSEED": str(number)}, timeout=300,
        )  # fmt: skip
    run(chain, tmp_path / "whole")
    assert rows(out) == rows(tmp_path / "whole")


SHAPES = {
    1: "b845b6bc11d67fd6", 2: "c2054a217a6afb2c", 3: "e6f86692b8dd831c", 4: "e6f86692b8dd831c",
    5: "ce919d1368254a4d",
}  # fmt: skip
"""A digest of the attributes of all objects in a checkpoint, by its format; 4 is one of drafts' groups."""


def test_the_format_is_a_new_one_where_attributes_are_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shapes: dict[str, set[str]] = {}

    class Pickler(checkpoints._Pickler):
        def reducer_override(self, value: Any) -> Any:
            cls = type(value)
            if cls.__module__.startswith("coordwire.") and not issubclass(cls, Struct):
                slots = [name for base in cls.__mro__ for name in getattr(base, "__slots__", ())]
                names = {*slots, *getattr(cls, "_fields", ()), *getattr(value, "__dict__", ())}
                shapes.setdefault(f"{cls.__module__}.{cls.__qualname__}", set()).update(names)
            return super().reducer_override(value)

    monkeypatch.setattr(checkpoints, "_Pickler", Pickler)
    monkeypatch.setattr(capture_rows, "save_checkpoint", checkpoints.save_checkpoint)
    for path in (GROUP, CONSUMER, KILLED):
        data = content(path)
        ends = ends_of(data)
        chain = Chain(tmp_path / path.name, cut(data, [ends[len(ends) // 3], ends[len(ends) // 2]]))
        chain.put(0, 1, 2)
        run(chain, tmp_path / f"{path.name}.out")
    text = json.dumps({name: sorted(names) for name, names in sorted(shapes.items())})
    digest = blake2b(text.encode(), digest_size=8).hexdigest()
    assert SHAPES.get(CHECKPOINT_FORMAT) == digest, "attributes are others: a new CHECKPOINT_FORMAT is due"
