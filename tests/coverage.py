"""Branch coverage of what judges untrusted bytes: `python -m tests.coverage [PACKAGE…]`.

Strategy: the tests of each package run with coverage.py, branches on, in Python (COORDWIRE_IMPL=python) and,
where the extension is built, with C too, as some of the Python code serves C alone; what either reaches
counts. The percentages go to the row of docs/development/proof.json, which keeps those of packages that did
not run. Rule: of a package only its own tests count, so that the figure shows what these tests reach.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from coordwire._speedups import native
from tests.proof import ROOT, read, record

TESTS = {
    "codec": ("codec", "conformance"),
    "records": ("records",),
    "capture": ("capture",),
    "coordinator": ("coordinator",),
    "connection": ("connection",),
    "frames": ("test_frames.py", "test_wire.py"),
    "jsonform": ("test_jsonform.py",),
    "segments": ("segments",),
}
"""The folders and files of tests for each package."""


def covered(package: str, folder: Path) -> tuple[float, int]:
    """Percent of a package's lines and branches that its tests reach, and the branches there are."""
    report = folder / f"report-{package}.json"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--cov-branch"]
    command += ["--cov-append", f"--cov=coordwire.{package}", f"--cov-report=json:{report}"]
    command += [f"tests/{name}" for name in TESTS[package]]
    for implementation in ("python", "c") if native is not None else ("python",):
        environment = os.environ | {
            "COORDWIRE_IMPL": implementation, "HYPOTHESIS_PROFILE": "quick",
            "COVERAGE_FILE": str(folder / package),
        }  # fmt: skip
        subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    totals = json.loads(report.read_text())["totals"]
    return totals["percent_covered"], totals["num_branches"]


def stated(text: str) -> dict[str, str]:
    """The percentages of a row, by package."""
    return dict(re.findall(r"(\w+) ([\d.]+) %", text))


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.coverage", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=f"of {', '.join(TESTS)} (all)")
    packages = parser.parse_args().packages or list(TESTS)
    if unknown := set(packages) - set(TESTS):
        parser.error(f"no such package: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory() as folder:
        results = {package: covered(package, Path(folder)) for package in packages}
    row = read()["coverage"]
    figures = stated(str(row["differences"]))
    new = set(results) - set(figures)
    for package, (percent, branches) in results.items():
        print(f"{package}: {percent:.1f} % of lines and branches, {branches:,} branches")
        figures[package] = f"{percent:.1f}"
    everything = set(results) == set(TESTS)
    counted = sum(results[package][1] for package in (results if everything else new))
    record(
        "coverage",
        cases=counted if everything else int(row["cases"]) + counted,
        differences="reached: " + "; ".join(f"{package} {percent} %" for package, percent in figures.items()),
    )


if __name__ == "__main__":
    main()
