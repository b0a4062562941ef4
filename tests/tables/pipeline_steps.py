"""The pipeline without Spark: its units one after the other in this process, ended or failed at any step."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from coordwire.records import Record, encode_batch
from coordwire.tables import pipeline
from coordwire.tables.pipeline.engine import Progress
from coordwire.tables.pipeline.ledger import Ledger
from coordwire.tables.pipeline.units import Job, Unit, run_units
from coordwire.tables.storage import folders
from coordwire.tables.storage.folders import open_output
from tests.tables.made_segments import START

TABLES = ("files", "records")


class Crash(BaseException):
    """In the place of kill -9: after it nothing is done any more."""


class Steps:
    """In the place of the module `os`: counts what changes the disk, and calls `at` before each."""

    CHANGES = ("mkdir", "makedirs", "rename", "link", "unlink", "rmdir")

    def __init__(self, at: Callable[[int], None], full_from: int | None = None) -> None:
        self.count = 0
        self.full_from = full_from
        self.dead = False
        self._at = at

    def step(self, action: str) -> None:
        if self.dead:
            raise Crash
        self.count += 1
        if self.full_from is not None and self.count >= self.full_from and action not in ("unlink", "rmdir"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        try:
            self._at(self.count)
        except Crash:
            self.dead = True
            raise

    def __getattr__(self, name: str) -> Any:
        function = getattr(os, name)
        if name not in self.CHANGES:
            return function

        def counted(*arguments: Any, **named: Any) -> Any:
            exists = name in ("mkdir", "makedirs") and _exists(arguments[0], named.get("dir_fd"))
            self.step("unlink" if exists else name)
            return function(*arguments, **named)

        return counted

    def open(self, path: Any, flags: int, *arguments: Any, **named: Any) -> int:
        if flags & os.O_CREAT:
            self.step("create")
        return os.open(path, flags, *arguments, **named)

    def fdopen(self, file: int, mode: str, **named: Any) -> Any:
        stream = os.fdopen(file, mode, **named)
        return _Written(stream, self) if mode == "wb" else stream


def _exists(path: str, folder: int | None) -> bool:
    try:
        os.stat(path, dir_fd=folder)
    except FileNotFoundError:
        return False
    return True


class _Written:
    """A file whose writes are steps; one that fails has written half."""

    def __init__(self, stream: Any, steps: Steps) -> None:
        self._stream = stream
        self._steps = steps

    def write(self, data: Any) -> int:
        if self._steps.dead:  # what pyarrow does when it lets go of a file
            return len(data)
        try:
            self._steps.step("write")
        except BaseException:
            self._stream.write(bytes(data)[: len(data) // 2])
            raise
        written: int = self._stream.write(data)
        return written

    def __enter__(self) -> _Written:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def steps(at: Callable[[int], None] = lambda count: None, full_from: int | None = None) -> Iterator[Steps]:
    """Calls `at` with the number of each step of the pipeline, before it is taken.

    full_from: the step from which on the disk is full.
    """
    counting = Steps(at, full_from)
    with mock.patch.object(folders, "os", counting):
        yield counting


def crash_at(number: int) -> Callable[[int], None]:
    def at(count: int) -> None:
        if count == number:
            raise Crash

    return at


def run_unit(unit: Unit, job: Job) -> dict[str, Any]:
    """A task of one unit; the note that counts."""
    [note] = run_units([unit], job)
    return note


Work = Callable[[Unit, Job], object]


def run(
    inputs: Path | str, out: Path | str, *, work: Work | None = None, **named: Any
) -> pipeline.PipelineSummary:
    """The pipeline with one task for all units; or `work` does one unit, as a task of its own."""
    named.setdefault("tables", TABLES)
    return pipeline.run(_Here(work), [str(inputs)], str(out), report=False, **named)


class _Here(pipeline.LocalEngine):
    """Runs units in this process."""

    def __init__(self, work: Work | None) -> None:
        super().__init__()
        self._work_one = work

    def run_units(self, units: Sequence[Unit], job: Job, progress: Progress | None) -> None:
        if self._work_one is None:
            if units:
                run_units(units, job)
            return
        for unit in units:
            self._work_one(unit, job)


def segment(offsets: Sequence[int]) -> bytes:
    """Batches of one record each."""
    return b"".join(
        encode_batch([Record(timestamp=START + offset, value=b"%d" % offset)], base_offset=offset)
        for offset in offsets
    )


def put_segment(folder: Path, topic: str, number: int, offsets: Sequence[int]) -> Path:
    place = folder / f"{topic}-{number}"
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{0:020}.log"
    path.write_bytes(segment(offsets))
    return path


def table_rows(out: Path | str, table: str) -> list[dict[str, Any]]:
    """The rows of the files that a table consists of."""
    import pyarrow.dataset

    names, _ = Ledger(open_output(str(out))).named_files(table)
    if not names:
        return []
    files = [str(Path(out) / name) for name in names]
    actual = pyarrow.dataset.dataset(files, partition_base_dir=f"{out}/{table}", partitioning="hive")
    rows: list[dict[str, Any]] = actual.to_table().to_pylist()
    return rows


def record_keys(out: Path | str) -> list[tuple[str, int, int]]:
    return sorted((row["topic"], row["partition"], row["log_offset"]) for row in table_rows(out, "records"))


def tree(folder: Path) -> dict[str, bytes | str]:
    """Every file and link below a folder, with its content or target."""
    contents: dict[str, bytes | str] = {}
    for place, inner, names in os.walk(folder):
        for name in [*names, *inner]:
            path = Path(place, name)
            if path.is_symlink():
                contents[str(path)] = os.readlink(path)
            elif path.is_file():
                contents[str(path)] = path.read_bytes()
    return contents


def parquet_files(out: Path) -> set[str]:
    return {str(path.relative_to(out)) for path in out.rglob("*.parquet") if not path.is_symlink()}


def leftovers(out: Path) -> list[str]:
    """What of attempts and unfinished writes is there."""
    actual = [*out.rglob("*.part"), *out.glob("_manifest/attempts/*"), *out.glob("_manifest/runs/*")]
    return sorted(str(path.relative_to(out)) for path in actual)
