"""Hours of fuzzing, shared between all targets, in a ledger: `python -m fuzz.night HOURS`.

Strategy: a target runs for SLICE seconds in a process of its own, at the lowest priority, then the target
that has had the least processor time so far; seeds go on where the ledger's last ones ended, so that no
night repeats another. After each slice the ledger has what ran: a night may be stopped at any time, and the
next one resumes. Rules: what is found stays in the ledger, with the command that repeats it, until its line
is taken out; the night goes on with the other targets, and ends with 1. `python -m tests.proof` writes the
ledger's table.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
LEDGER = ROOT / "docs" / "development" / "fuzz.json"
SLICE = 60
NICENESS = 19
SEEDS = 1_000_000
"""Seeds that a slice has to itself."""


@dataclass
class Run:
    """What ran of a target so far: cases, seconds of processor time, slices, and what was found."""

    cases: int = 0
    seconds: float = 0
    slices: int = 0
    finds: list[str] = field(default_factory=list)


Ledger = dict[str, Run]


def targets() -> list[str]:
    """The modules here that have a function `fuzz`."""
    return [
        path.stem
        for path in sorted(Path(__file__).parent.glob("[!_]*.py"))
        if any(isinstance(n, ast.FunctionDef) and n.name == "fuzz" for n in ast.parse(path.read_text()).body)
    ]


def read(path: Path = LEDGER) -> Ledger:
    """The ledger, with a line for each target that there is."""
    kept = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return {name: Run(**kept[name]) if name in kept else Run() for name in targets()}


def write(ledger: Ledger, path: Path = LEDGER) -> None:
    """Replace the ledger at once, so that it is whole whenever a night is stopped."""
    part = path.with_suffix(".part")
    text = json.dumps({name: asdict(run) for name, run in ledger.items()}, indent=2)
    part.write_text(text + "\n", "utf-8")
    part.replace(path)


def add_slice(name: str, run: Run, seconds: float) -> None:
    """Run a target once more, from the seeds after its last ones."""
    seed = run.slices * SEEDS
    command = [sys.executable, "-m", f"fuzz.{name}", "--seconds", f"{seconds:.0f}", "--seed", str(seed)]
    before = _used()
    result = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, preexec_fn=lambda: os.nice(NICENESS)
    )
    run.seconds = round(run.seconds + _used() - before, 1)
    run.slices += 1
    if found := re.search(r"nothing found in .*, ([\d,]+) cases", result.stdout):
        run.cases += int(found[1].replace(",", ""))
    else:
        repeat = re.search(r"repeat it: (.*)", result.stderr)
        run.finds.append(
            repeat[1] if repeat else f"python -m fuzz.{name} --seconds {seconds:.0f} --seed {seed}"
        )


def _used() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def table(ledger: Ledger) -> str:
    """The ledger as a table of the page of proofs."""
    lines = ["| target | cases | hours of processor time | found |", "|---|---:|---:|---|"]
    for name, run in ledger.items():
        found = "<br>".join(f"`{one}`" for one in run.finds)
        lines.append(f"| `fuzz.{name}` | {run.cases:,} | {run.seconds / 3600:.2f} | {found} |")
    cases, seconds = (sum(getattr(run, name) for run in ledger.values()) for name in ("cases", "seconds"))
    finds = sum(len(run.finds) for run in ledger.values())
    return "\n".join([*lines, f"| all | {cases:,} | {seconds / 3600:.2f} | {finds} |"])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz.night", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("hours", type=float, help="for how long, by the clock")
    parser.add_argument(
        "--slice", type=float, default=SLICE, help="seconds of each target in turn (%(default)s)"
    )
    parser.add_argument("--ledger", type=Path, default=LEDGER, help="where it is kept (%(default)s)")
    parser.add_argument("--only", action="append", metavar="TARGET", help="instead of all (repeatable)")
    options = parser.parse_args(arguments)
    ledger = read(options.ledger)
    chosen = options.only or list(ledger)
    if unknown := set(chosen) - set(ledger):
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    found, end = 0, time.monotonic() + 3600 * options.hours
    while chosen and (left := end - time.monotonic()) > 0:
        name = min(chosen, key=lambda one: (ledger[one].seconds, one))
        finds = len(ledger[name].finds)
        add_slice(name, ledger[name], max(1, min(options.slice, left)))
        write(ledger, options.ledger)
        new = ledger[name].finds[finds:]
        if new:  # it would find the same again
            chosen.remove(name)
        found += len(new)
        print(f"{name}: {ledger[name].cases:,} cases" + "".join(f"; FOUND: {one}" for one in new), flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
