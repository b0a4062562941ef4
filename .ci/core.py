"""Installs the package on each Python that it finds, and runs the core's tests there: `python .ci/core.py`.

Strategy: takes the tree as it is committed. Each Python gets a virtual environment, a wheel built once, and
a tree of tests without the package beside it, so that what is imported is what was installed. Pythons run
in lanes side by side, each first with the extension, then without; on one of them the whole suite may run
anyway (--elsewhere).

Rules: Pythons are the system's own, pyenv's and those of a forge's tool cache, of the versions in
`.ci/pythons`, and newer ones, for which
there is no extension. Whatever could not be found or installed is reported; a test that then cannot run
skips with its reason. The core is everything but Spark, Java and other libraries; Hypothesis draws few
values, and the tests in SLOW and SLOW_FILES, which are about bytes or sources or take long, run only in the
whole suite.
With the extension all of them run on the oldest and the newest Python, those of ENGINE_FOLDERS on those
between; without it all of them run on the suite's Python, those of NEAR_FOLDERS on the oldest and the newest.
Another patch release of the suite's Python runs those of NEAR_FOLDERS with and without it.
A sample (--sample) has the oldest and the newest Python with the folders of KEPT and one in PARTS of the
others and of the files, and one of the Pythons between with those of NEAR_FOLDERS.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = [line for line in (ROOT / ".ci" / "pythons").read_text().splitlines() if not line.startswith("#")]
EXTRAS = ("arrow", "cli", "compression")
FOLDERS = (
    "conformance", "codec", "connection", "records", "segments", "capture", "timeline", "enums", "cli",
    "testing", "notebook", "coordinator", "files", "client",
)  # fmt: skip
ENGINE_FOLDERS = ("conformance", "codec", "records", "segments")
"""What is tested of the native engine on each Python: the rest does not know which engine runs."""
KEPT = ("conformance", "codec", "connection", "records", "enums")
"""What a sample has of the oldest and the newest Python."""

PARTS = 4
"""A sample has one in so many of what it may leave out."""

NEAR_FOLDERS = ("conformance", "codec")
"""What is tested of the Python engines beside a Python that runs everything."""

SLOW = (
    "tests/capture/test_bounds.py::test_memory_is_bounded",
    "tests/codec/test_compiler.py::test_its_code_is_typed",
    "tests/codec/test_message.py::test_a_long_chain_of_messages_in_lists_is_freed",
    "tests/codec/test_native_objects.py::test_a_collection_meanwhile_sees_nothing_half_filled",
    "tests/records/test_compression.py::test_bombs",
    "tests/records/test_native.py::test_nothing_leaks",
    "tests/segments/test_broker.py::test_a_broker_of_its_own",
    "tests/segments/test_old_formats.py::test_a_broker_of_its_own",
    "tests/test_fuzz_targets.py::test_target",
)
SLOW_FILES = (
    "*growth*.py", "*/cli/test_memory.py", "*/conformance/test_broker_cases.py",
    "*/conformance/test_client_cases.py", "*/tests/test_architecture.py", "*/tests/test_c_*.py",
    "*/tests/test_near.py", "*/tests/test_text.py",
)  # fmt: skip
ASK = """
import json, sys, sysconfig
from pathlib import Path
version = ".".join(map(str, sys.version_info[:3]))
print(json.dumps([version, Path(sysconfig.get_path("include"), "Python.h").exists()]))
"""


@dataclass(frozen=True)
class Python:
    """An interpreter: its command, its version of three parts, and whether C can be compiled for it."""

    command: Path
    version: str
    headers: bool

    @property
    def supported(self) -> bool:
        """Whether the extension is for it."""
        return self.version.rpartition(".")[0] in VERSIONS


def commands(version: str) -> Iterator[Path]:
    """Where a Python of a version of two parts may be."""
    system = shutil.which(f"python{version}", path=os.pathsep.join(("/usr/local/bin", "/usr/bin")))
    if system is not None:
        yield Path(system)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"))
    if "RUNNER_TOOL_CACHE" in os.environ:
        yield from sorted(
            Path(os.environ["RUNNER_TOOL_CACHE"]).glob(f"Python/{version}.*/*/bin/python{version}")
        )


def find_pythons() -> list[Python]:
    """The Pythons that are there, each version once; those that are not are reported."""
    newest = int(VERSIONS[-1].rpartition(".")[2])
    found: dict[str, Python] = {}
    for version in (*VERSIONS, f"3.{newest + 1}", f"3.{newest + 2}"):
        here = list(commands(version))
        if not here and version in VERSIONS:
            print(f"not found: Python {version}")
        for command in here:
            number, headers = json.loads(subprocess.check_output([command, "-c", ASK], text=True))
            found.setdefault(number, Python(command, number, headers))
    return list(found.values())


def sampled(names: Sequence[str], key: int | None) -> Sequence[str]:
    """Of some folders or files those of a sample; without a key all of them."""
    if key is None:
        return names
    others = [name for name in names if name not in KEPT]
    return [*(name for name in names if name in KEPT), *others[key % PARTS :: PARTS]]


class Lane:
    """The work on one Python, and its log. key: chooses a sample."""

    def __init__(self, python: Python, folder: Path, key: int | None) -> None:
        self.python, self.folder, self.log, self.key = python, folder, folder / "log.txt", key
        self.report: list[str] = []
        self.failed = False
        folder.mkdir()

    def run(self, *command: str | Path, cwd: Path | None = None, **environment: str) -> bool:
        """Whether a command succeeds; what it prints goes to the log."""
        with self.log.open("a") as log:
            done = subprocess.run(
                command,
                cwd=cwd or self.folder,
                env={**os.environ, **environment},
                stdout=log,
                stderr=log,
                check=False,
            )
        return done.returncode == 0

    def step(self, name: str, done: bool, since: float) -> bool:
        """Report a step, which fails the whole if it was not done."""
        self.failed |= not done
        lines = self.log.read_text().splitlines()
        outcome = lines[-1].strip("= ") if done and name.startswith("tests") else "" if done else "FAILED"
        self.report.append(f"{name}: {time.monotonic() - since:.0f} s {outcome}".rstrip())
        return done

    def install(self) -> bool:
        """Build the wheel and install it with what the tests need, in a virtual environment."""
        since, tree, python = time.monotonic(), self.folder / "tree", self.folder / "venv/bin/python"
        if not self.run(self.python.command, "-m", "venv", "venv"):
            self.report.append("skipped: it makes no virtual environment")
            return False
        pip = (python, "-m", "pip", "--quiet", "--disable-pip-version-check")
        done = self.run("git", "clone", "--quiet", ROOT, tree)
        done = done and self.run(*pip, "wheel", "--no-deps", "--wheel-dir", ".", tree)
        wheel = next(self.folder.glob("*.whl"), self.folder)
        if not self.step("installation", done and self.run(*pip, "install", f"{wheel}[test-core]"), since):
            return False
        for extra in EXTRAS:
            if not self.run(*pip, "install", "--only-binary", ":all:", f"{wheel}[{extra}]"):
                self.report.append(f"not installed: the extra {extra}")
        shutil.rmtree(tree / "coordwire")
        return True

    def test(self, implementation: str, folders: Sequence[str] = FOLDERS) -> None:
        """Run the core's tests with one implementation, in Hypothesis's quick profile (tests/conftest.py)."""
        since, tree = time.monotonic(), self.folder / "tree"
        files = [path for path in tree.glob("tests/test_*.py") if not any(map(path.match, SLOW_FILES))]
        names = [*folders, *sorted(path.name for path in files)]
        paths = [f"tests/{name}" for name in sampled(names, self.key)]
        options = [
            "-q",
            "-p",
            "no:cacheprovider",
            "-m",
            "not spark and not maven and not peers",
            "--with",
            "slow",
        ]
        for test in SLOW:
            options += ["--deselect", test]
        for pattern in SLOW_FILES:
            options += ["--ignore-glob", pattern]
        environment = {"COORDWIRE_IMPL": implementation, "HYPOTHESIS_PROFILE": "quick"}
        python = self.folder / "venv/bin/python"
        done = self.run(python, "-m", "pytest", *options, *paths, cwd=tree, **environment)
        self.step(f"tests, {implementation}", done, since)

    def work(self, elsewhere: str | None, edge: bool) -> Lane:
        """Do all of it. elsewhere: the version on which the whole suite runs anyway, with the extension;
        edge: this is the oldest or the newest Python."""
        version = self.python.version
        here = version == elsewhere
        near = (
            not here and elsewhere is not None and version.rpartition(".")[0] == elsewhere.rpartition(".")[0]
        )
        if self.install():
            if here:
                self.report.append("with the extension, the whole suite")
            elif not self.python.supported:
                self.report.append("the extension is not for this version")
            elif not self.python.headers:
                self.report.append("not tested: the extension, as there are no C headers")
            else:
                between = ENGINE_FOLDERS if self.key is None else NEAR_FOLDERS
                self.test("c", NEAR_FOLDERS if near else FOLDERS if edge else between)
            if here:
                self.test("python")
            elif edge or not self.python.supported or not self.python.headers:
                self.test("python", folders=NEAR_FOLDERS)
        return self


def main() -> None:
    parser = argparse.ArgumentParser(prog="python .ci/core.py", description=__doc__)
    parser.add_argument("--lanes", type=int, default=2, help="Pythons that run side by side (%(default)s)")
    parser.add_argument("--only", help="test one Python, by its version of three parts")
    parser.add_argument("--elsewhere", help="the version of a Python that runs the whole suite anyway")
    parser.add_argument("--sample", metavar="KEY", help="a part, chosen by hexadecimal digits as of a commit")
    options = parser.parse_args()
    key = None if options.sample is None else int(options.sample, 16)
    pythons = [python for python in find_pythons() if options.only in (None, python.version)]
    edges = pythons[:1] + pythons[1:][-1:]
    if key is not None and (between := pythons[1:-1]):
        chosen = between[key % len(between)]
        print(f"a sample: {chosen.version} of {len(between)} Pythons between the oldest and the newest")
        pythons = [python for python in pythons if python in edges or python is chosen]
    print("Pythons:", ", ".join(f"{python.version} ({python.command})" for python in pythons), flush=True)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.lanes) as pool:
        lanes = [Lane(python, Path(folder) / python.version, key) for python in pythons]

        def work(lane: Lane) -> Lane:
            return lane.work(options.elsewhere, lane.python in edges)

        for lane in pool.map(work, lanes):
            print(f"Python {lane.python.version}: " + "; ".join(lane.report), flush=True)
            if lane.failed:
                print(lane.log.read_text())
    if not lanes or any(lane.failed for lane in lanes):
        sys.exit(1)


if __name__ == "__main__":
    main()
