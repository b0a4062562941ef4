"""Lines and branches of the extension's C that tests reach: `python -m tests.c_coverage [--gaps]`.

Strategy: the package is copied to a temporary folder and its extension built there for gcov, without
inlining, so that each line is counted once; TESTS, those that compare C with Python, run over it, and gcov's
JSON says what they reached. Lines that nothing reached, or of whose branches one was never taken, are a gap,
as many as follow each other. Rules: `c_coverage.toml` has the first line of each gap, by file, with the
reason; a gap without a reason fails the run, and so does a reason without a gap.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzz.hardening._builds import build
from tests.proof import ROOT, record

SOURCES = "coordwire/_speedups"
EXCUSES = ROOT / "tests" / "c_coverage.toml"
FLAGS = (
    "-O0",
    "-g",
    "-DNDEBUG",
    "--coverage",
    "-fprofile-abs-path",
    "-Dalways_inline=noinline",
    "-Wno-attributes",
)
TESTS = (
    "tests/codec", "tests/records", "tests/capture", "tests/conformance/test_values.py",
    "tests/conformance/test_hostile.py", "tests/conformance/test_wrong_values.py",
    "tests/conformance/test_recorded_frames.py", "tests/connection/test_connection.py",
    "tests/connection/test_lasting_clients.py", "tests/test_failing_allocations.py", "tests/test_frames.py",
    "tests/test_jsonform.py", "tests/test_native_refusals.py", "tests/test_rows.py", "tests/test_wire.py",
)  # fmt: skip

MACROS = re.compile(r"\b(?:Py_VISIT|Py_CLEAR|OWNS|Py_TRASHCAN_\w+)\(|Py_TRASHCAN_END")
"""What CPython's own macros ask, for NULL and whether a visitor has enough, is not counted as branches."""

Excuses = dict[str, dict[str, str]]
"""Why a line is not reached, by file and by the line's text."""


@dataclass
class Line:
    """How often a line was reached, and each of its branches; of a header, in all files together."""

    count: int = 0
    branches: list[int] = field(default_factory=list)

    def add(self, count: int, branches: list[int]) -> None:
        self.count += count
        missing = len(branches) - len(self.branches)
        self.branches += [0] * missing
        self.branches[: len(branches)] = [
            a + b for a, b in zip(self.branches[: len(branches)], branches, strict=True)
        ]

    @property
    def is_gap(self) -> bool:
        return not self.count or not all(self.branches)


Lines = dict[int, Line]


def merged(reports: Iterator[dict[str, Any]], root: Path) -> dict[str, Lines]:
    """The lines of each source, by its name below SOURCES, of gcov's reports, one of each object file."""
    results: dict[str, Lines] = defaultdict(lambda: defaultdict(Line))
    for report in reports:
        for file in report["files"]:
            path = Path(file["file"])
            if path.is_relative_to(root):
                lines = results[path.relative_to(root).as_posix()]
                texts = path.read_text().splitlines()
                for line in file["lines"]:
                    taken = [branch["count"] for branch in line["branches"]]
                    if MACROS.search(texts[line["line_number"] - 1]):
                        taken = []
                    lines[line["line_number"]].add(line["count"], taken)
    return results


def gaps(files: dict[str, Lines], root: Path) -> Iterator[tuple[str, int, str]]:
    """What was not reached, each stretch of lines once: file, number and text of its first line."""
    for name in sorted(files):
        texts = (root / name).read_text().splitlines()
        before = False
        for number, line in sorted(files[name].items()):
            if line.is_gap and not before:
                yield name, number, texts[number - 1].strip()
            before = line.is_gap


def judged(found: list[tuple[str, int, str]], excuses: Excuses) -> tuple[list[str], list[str]]:
    """The gaps without a reason, and the reasons without a gap."""
    there = {(name, text) for name, _, text in found}
    open_gaps = [
        f"{name}:{number}: {text}" for name, number, text in found if text not in excuses.get(name, {})
    ]
    stale = [f"{name}: {text}" for name in excuses for text in excuses[name] if (name, text) not in there]
    return open_gaps, stale


def measured(folder: Path, tests: tuple[str, ...]) -> dict[str, Lines]:
    """Build for gcov, run the tests, and read what they reached."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    build(folder, os.environ.get("CC", "gcc"), [*FLAGS, f"-I{sysconfig.get_path('include')}"], suffix)
    environment = os.environ | {"COORDWIRE_IMPL": "c", "HYPOTHESIS_PROFILE": "quick", "PYTHONPATH": ""}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", *tests]
    subprocess.run(command, cwd=folder, env=environment, check=True)
    built = folder / SOURCES
    notes = sorted(map(str, built.glob("*.gcda")))
    gcov = ["gcov", "--json-format", "--stdout", "--branch-probabilities", *notes]
    output = subprocess.run(gcov, cwd=built, capture_output=True, text=True, check=True).stdout
    return merged(map(json.loads, output.splitlines()), ROOT / SOURCES)


def reached(files: dict[str, Lines]) -> tuple[int, int, int, int]:
    """Lines reached and in all, branches taken and in all."""
    lines = [line for file in files.values() for line in file.values()]
    taken = [count for line in lines for count in line.branches]
    return sum(line.count > 0 for line in lines), len(lines), sum(map(bool, taken)), len(taken)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.c_coverage", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("tests", nargs="*", default=TESTS, help="(those that compare C with Python)")
    parser.add_argument("--gaps", action="store_true", help="print the gaps with a reason too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = measured(Path(folder), tuple(options.tests))
    for name in sorted(files):
        lines, all_lines, taken, branches = reached({name: files[name]})
        print(f"{name}: {lines} of {all_lines} lines, {taken} of {branches} branches")
    found = list(gaps(files, ROOT / SOURCES))
    excuses: Excuses = tomllib.loads(EXCUSES.read_text("utf-8"))
    open_gaps, stale = judged(found, excuses)
    if options.gaps:
        print(*(f"{name}:{number}: {text}" for name, number, text in found), sep="\n")
    lines, all_lines, taken, branches = reached(files)
    stated = f"lines {100 * lines / all_lines:.1f} %; branches {100 * taken / branches:.1f} %"
    print(f"all: {stated}; {len(found)} gaps, {len(open_gaps)} of them without a reason")
    print(*(f"no reason: {gap}" for gap in open_gaps), *(f"no gap: {one}" for one in stale), sep="\n")
    if options.tests == TESTS:
        record("c-coverage", cases=branches, differences=f"reached: {stated}")
    return 1 if open_gaps or stale else 0


if __name__ == "__main__":
    sys.exit(main())
