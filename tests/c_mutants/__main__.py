"""Makes the changes, runs the tests, and judges what survived."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from pathlib import Path

import tests.c_mutants
from tests.c_mutants.build import build, sources
from tests.c_mutants.places import Change, drawn

EQUIVALENT = Path(__file__).parent / "equivalent.toml"
TESTS = (
    "tests/codec", "tests/records/test_native.py", "tests/records/test_native_batch.py",
    "tests/records/test_native_columns.py", "tests/records/test_columns.py",
    "tests/records/test_malformed.py", "tests/records/test_writing.py", "tests/records/test_bounds.py",
    "tests/capture/test_walks.py", "tests/capture/test_frame_walks.py", "tests/capture/test_plain_lines.py",
    "tests/capture/test_lazy.py", "tests/connection/test_connection.py",
    "tests/conformance/test_recorded_frames.py", "tests/test_failing_allocations.py", "tests/test_rows.py",
    "tests/test_native_refusals.py", "tests/test_frames.py",
)  # fmt: skip
LEFT = ("survived", "unreached")


def judged(verdicts: dict[int, str], changes: dict[int, Change]) -> tuple[list[str], list[str]]:
    """What survived without a reason; the reasons for what did not survive."""
    reasons = tomllib.loads(EQUIVALENT.read_text("utf-8"))
    survivors = {changes[number].name: changes[number] for number, one in verdicts.items() if one in LEFT}
    stale = [
        changes[number].name
        for number, one in verdicts.items()
        if one not in LEFT and changes[number].name in reasons
    ]
    open_ones = [f"{change.line}: {name}" for name, change in survivors.items() if name not in reasons]
    return open_ones, stale


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.c_mutants", description=(tests.c_mutants.__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--count", type=int, default=1000, help="how many changes (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="which of all (%(default)s)")
    parser.add_argument("--only", default="", metavar="WORD", help="of files with this in their names")
    parser.add_argument(
        "--seconds", type=float, default=1e9, help="for all changes, after the tests' own run"
    )
    parser.add_argument("tests", nargs="*", help="(those of the extension)")
    options = parser.parse_args()
    chosen = drawn([one for one in sources() if options.only in one.name], options.count, options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        changes = build(folder, chosen, os.environ.get("CC", "gcc"), ["-O1"])
        print(f"seed {options.seed}: {len(changes)} changes compile, of {len(chosen)}", flush=True)
        task = {"numbers": list(changes), "room": len(chosen), "results": str(folder / "results.json"),
                "seconds": options.seconds}  # fmt: skip
        (folder / "task.json").write_text(json.dumps(task))
        environment = os.environ | {
            "COORDWIRE_IMPL": "c", "HYPOTHESIS_PROFILE": "quick", "PYTHONPATH": "",
            "COORDWIRE_MUTANTS": str(folder / "task.json"),
        }  # fmt: skip
        given = options.tests or TESTS
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
        command += ["-p", "no:faulthandler", "-W", "ignore"]
        subprocess.run(
            [*command, "-p", "tests.c_mutants.runs", *given], cwd=folder, env=environment, check=True
        )
        verdicts = {int(number): one for number, one in json.loads(Path(task["results"]).read_text()).items()}
    found = Counter(verdicts.values())
    print(f"{len(verdicts)} changes: " + ", ".join(f"{count} {one}" for one, count in found.most_common()))
    open_ones, stale = judged(verdicts, changes)
    print(*open_ones, *(f"no longer equivalent: {one}" for one in stale), sep="\n")
    return 1 if open_ones or stale else 0


if __name__ == "__main__":
    sys.exit(main())
