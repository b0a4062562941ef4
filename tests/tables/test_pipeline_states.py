"""Runs, kills, full disks, and a user at work in the same folder, in any order; Spark isn't needed.

After each step, whatever it was: the user's files are there unchanged, and what a note names is readable.
After a run that ends well: each record is in the tables once, and nothing half-written is left.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

import pyarrow.parquet
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from coordwire.errors import CoordwireError
from coordwire.tables.options import Options
from coordwire.tables.pipeline.ledger import Ledger
from coordwire.tables.storage.folders import open_output
from coordwire.tables.storage.run_lock import InUse
from tests.tables import pipeline_steps
from tests.tables.pipeline_steps import Crash

TOPICS = ("orders", "pay")
FOLDERS = ("", "records", "records/date=2023-11-14", "records/date=2023-11-14/topic-orders", "files", "lag",
           "_manifest", "_manifest/attempts", "_manifest/writing")  # fmt: skip
STEPS = st.integers(1, 160)


class Runs(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.place = Path(tempfile.mkdtemp(prefix="coordwire-states-"))
        self.inputs, self.out, self.elsewhere = (self.place / name for name in ("in", "out", "elsewhere"))
        self.elsewhere.mkdir()
        (self.elsewhere / "keep.txt").write_text("mine")
        self.user_files: dict[Path, bytes | str] = {self.elsewhere / "keep.txt": b"mine"}
        self.sizes = dict.fromkeys(TOPICS, 1)
        self.number = 0
        self.reasons: list[str] = []
        self.split = 1 << 20
        self.grow("orders")

    def teardown(self) -> None:
        shutil.rmtree(getattr(self, "place", "nothing"), ignore_errors=True)

    # --- the pipeline ---

    def _run(self, work: pipeline_steps.Work = pipeline_steps.run_unit) -> None:
        pipeline_steps.run(self.inputs, self.out, work=work, options=Options(split_size=self.split))

    def _assert_whole(self) -> None:
        expected = [
            (topic, 0, n) for topic in TOPICS for n in range(self.sizes[topic] if self._has(topic) else 0)
        ]
        assert pipeline_steps.record_keys(self.out) == expected
        user_paths = {str(path) for path in self.user_files}
        assert not [
            name for name in pipeline_steps.leftovers(self.out) if str(self.out / name) not in user_paths
        ]
        named = {
            name
            for table in pipeline_steps.TABLES
            for name in Ledger(open_output(str(self.out))).named_files(table)[0]
        }
        own = {
            name for name in pipeline_steps.parquet_files(self.out) if str(self.out / name) not in user_paths
        }
        assert own == named

    def _has(self, topic: str) -> bool:
        return (self.inputs / f"{topic}-0").exists()

    @rule(topic=st.sampled_from(TOPICS))
    def grow(self, topic: str) -> None:
        self.sizes[topic] += 1
        pipeline_steps.put_segment(self.inputs, topic, 0, range(self.sizes[topic]))

    @rule(split=st.sampled_from([1 << 20, 100]))
    def cut(self, split: int) -> None:
        self.split = split

    @rule()
    def run(self) -> None:
        self._run()
        self._assert_whole()

    @rule(step=STEPS)
    def killed(self, step: int) -> None:
        with pipeline_steps.steps(pipeline_steps.crash_at(step)):
            try:
                self._run()
            except Crash:
                return
        self._assert_whole()

    @rule(step=STEPS)
    def disk_full(self, step: int) -> None:
        with pipeline_steps.steps(full_from=step):
            try:
                self._run()
            except (OSError, CoordwireError) as error:
                self.reasons.append(str(error))
                return
        self._assert_whole()

    @rule(step=STEPS)
    def a_second_run_meanwhile(self, step: int) -> None:
        def at(count: int) -> None:
            if count == step:
                with suppress(InUse):
                    self._run()

        with pipeline_steps.steps(at):
            self._run()
        self._assert_whole()

    @rule(step=STEPS)
    def two_attempts_at_each_unit(self, step: int) -> None:
        def work(unit: object, *arguments: object) -> None:
            def at(count: int) -> None:
                if count == step % 40 + 1:
                    pipeline_steps.run_unit(unit, *arguments)  # type: ignore[arg-type]

            with pipeline_steps.steps(at):
                pipeline_steps.run_unit(unit, *arguments)  # type: ignore[arg-type]

        self._run(work)
        self._assert_whole()

    # --- the user ---

    def _own_files(self) -> list[Path]:
        user_paths = set(self.user_files)
        return [path for path in sorted(self.out.rglob("records/**/*.parquet"))
                if path not in user_paths and path.is_file() and not path.is_symlink()]  # fmt: skip

    def _free(self, folder: str, name: str) -> Path:
        self.number += 1
        path = self.out / folder / name.replace("N", str(self.number))
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    @precondition(lambda self: (self.out / "manifest.json").exists())
    @rule(
        folder=st.sampled_from(FOLDERS),
        name=st.sampled_from(["thesis-N.txt", "part-N.parquet", "N.part", "N.json"]),
    )
    def put_a_file(self, folder: str, name: str) -> None:
        path = self._free(folder, name)
        path.write_bytes(b"mine")
        self.user_files[path] = b"mine"

    @precondition(lambda self: (self.out / "manifest.json").exists() and self._own_files())
    @rule(folder=st.sampled_from(FOLDERS), data=st.data())
    def copy_one_of_ours(self, folder: str, data: st.DataObject) -> None:
        """Beside ours under another name, or under the same elsewhere."""
        own = data.draw(st.sampled_from(self._own_files()))
        path = self._free(folder, data.draw(st.sampled_from([f"copy-N-{own.name}", own.name])))
        if not path.exists():
            shutil.copy2(own, path)
            self.user_files[path] = own.read_bytes()

    @precondition(lambda self: (self.out / "manifest.json").exists() and self._own_files())
    @rule(data=st.data(), same_size=st.booleans())
    def remove_one_of_ours(self, data: st.DataObject, same_size: bool) -> None:
        data.draw(st.sampled_from(self._own_files())).unlink()

    @precondition(lambda self: (self.out / "manifest.json").exists() and self._own_files())
    @rule(data=st.data())
    def change_one_of_ours(self, data: st.DataObject) -> None:
        path = data.draw(st.sampled_from(self._own_files()))
        self.user_files[path] = path.read_bytes() + b"mine"
        path.write_bytes(path.read_bytes() + b"mine")

    @precondition(lambda self: (self.out / "manifest.json").exists())
    @rule(folder=st.sampled_from(FOLDERS))
    def put_a_link(self, folder: str) -> None:
        path = self._free(folder, "link-N")
        path.symlink_to(self.elsewhere)
        self.user_files[path] = str(self.elsewhere)

    # --- always ---

    @invariant()
    def a_failure_names_its_cause(self) -> None:
        assert all("No space left on device" in reason for reason in getattr(self, "reasons", []))

    @invariant()
    def what_the_user_has_is_there(self) -> None:
        for path, content in getattr(self, "user_files", {}).items():
            assert path.is_symlink() == isinstance(content, str)
            assert (str(path.readlink()) if isinstance(content, str) else path.read_bytes()) == content
        if hasattr(self, "elsewhere"):
            assert [path.name for path in self.elsewhere.iterdir()] == ["keep.txt"]

    @invariant()
    def what_is_noted_is_readable(self) -> None:
        if hasattr(self, "out") and self.out.exists():
            for note in Ledger(open_output(str(self.out))).complete_units().values():
                for name in note["files"]:
                    pyarrow.parquet.read_metadata(self.out / name)


Runs.TestCase.settings = settings(
    max_examples=8,
    stateful_step_count=10,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # runs are too slow to shrink by
)
TestRuns = Runs.TestCase
