"""Branch coverage of what judges untrusted bytes: `python -m tests.coverage`.

Strategy: the tests of each package run with coverage.py, branches on, in Python (COORDWIRE_IMPL=python) and,
where the extension is built, with C too, as some of the Python code serves C alone; what either reaches
counts. The percentages go to the row of docs/development/proof.json. Rule: of a package only its own tests
count, so that the figure shows what these tests reach.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from coordwire._speedups import native
from tests.proof import ROOT, record

TESTS = {
    "codec": ("codec", "conformance"),
    "records": ("records",),
    "capture": ("capture",),
    "coordinator": ("coordinator",),
}
"""The folders of tests for each package."""


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


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        results = {package: covered(package, Path(folder)) for package in TESTS}
    for package, (percent, branches) in results.items():
        print(f"{package}: {percent:.1f} % of lines and branches, {branches:,} branches")
    stated = "; ".join(f"{package} {percent:.1f} %" for package, (percent, _) in results.items())
    record(
        "coverage", cases=sum(branches for _, branches in results.values()), differences=f"reached: {stated}"
    )


if __name__ == "__main__":
    main()
