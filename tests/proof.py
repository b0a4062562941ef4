"""What coordwire claims, and the runs that show it: `python -m tests.proof [KEY…]`.

Strategy: docs/development/proof.json has a row for each claim, with the command that judges it. Given keys,
their commands run, and how many cases they had, how many differed, the date and the commit are written to the
row; the table of docs/development/proof.md is written from the rows, and its table of recorded cells from
tests/data/wire. Without keys the tables alone are written.
Rules: a case is a test that ran, or what a fuzz target counts itself; a difference is a test that failed. No
figure is written by hand.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from fuzz import night
from tests.recorded import coverage

ROOT = Path(__file__).parent.parent
DATA = ROOT / "docs" / "development" / "proof.json"
PAGE = ROOT / "docs" / "development" / "proof.md"
BEGIN, END = "<!-- rows of proof.json, by python -m tests.proof -->", "<!-- end of the rows -->"
CELLS, END_OF_CELLS = (
    "<!-- cells of tests/data/wire, by python -m tests.proof -->",
    "<!-- end of the cells -->",
)
NIGHTS, END_OF_NIGHTS = "<!-- fuzz.json, by python -m fuzz.night -->", "<!-- end of the nights -->"
HEADINGS = ("claim", "judge", "cases", "differences", "date", "commit", "command")

Row = dict[str, str | int]
"""A row: the texts and numbers of HEADINGS."""


def read() -> dict[str, Row]:
    rows: dict[str, Row] = json.loads(DATA.read_text("utf-8"))
    return rows


def git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def commit() -> str:
    """The commit of the tree, with a plus where files differ from it, but for those of figures."""
    others = [".", ":!docs/development/proof.*", ":!tests/bench/history.csv"]
    return git("rev-parse", "--short=8", "HEAD") + (
        "+" if git("status", "--porcelain", "--", *others) else ""
    )


def record(key: str, **figures: str | int) -> None:
    """Write figures of today to a row, and the table. The commit is that of now, unless it is given."""
    rows = read()
    rows[key].update({"date": f"{datetime.now(UTC):%Y-%m-%d}", "commit": commit()} | figures)
    DATA.write_text(json.dumps(rows, indent=2, ensure_ascii=False) + "\n", "utf-8")
    PAGE.write_text(rendered(PAGE.read_text("utf-8"), rows), "utf-8")


def table(rows: dict[str, Row]) -> str:
    lines = [f"| {' | '.join(HEADINGS)} |", "|---|---|---:|---:|---|---|---|"]
    for row in rows.values():
        figures = {**row, "command": f"`{row['command']}`"}
        if isinstance(row["cases"], int):
            figures["cases"] = f"{row['cases']:,}"
        lines.append(f"| {' | '.join(str(figures[name]) for name in HEADINGS)} |")
    return "\n".join(lines)


def cells() -> str:
    """The recorded cells, a line an API: a cell is a version in one direction."""
    facts = coverage()
    lines = ["| API | versions | recorded cells | brokers | not recorded |", "|---|---|---:|---|---|"]
    known, in_all = 0, 0
    for api, directions in facts["cells"].items():
        kept = [releases for versions in directions.values() for releases in versions.values()]
        versions = list(directions["request"])
        have = sum(map(bool, kept))
        named = [release for release in facts["spoken"] if any(release in releases for releases in kept)]
        reasons = [reason for cell, reason in facts["reasons"].items() if cell.split()[0] == api]
        span = versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"
        lines.append(
            f"| {api} | {span} | {have} of {len(kept)} | {', '.join(named)} | {'; '.join(reasons)} |"
        )
        known, in_all = known + have, in_all + len(kept)
    return "\n".join([*lines, f"| all | | {known} of {in_all} | | |"])


def rendered(page: str, rows: dict[str, Row]) -> str:
    """The page with its tables between their marks."""
    for begin, end, text in (
        (BEGIN, END, table(rows)),
        (CELLS, END_OF_CELLS, cells()),
        (NIGHTS, END_OF_NIGHTS, night.table(night.read())),
    ):
        before, _, remaining = page.partition(begin)
        page = f"{before}{begin}\n{text}\n{end}{remaining.partition(end)[2]}"
    return page


def counts(output: str) -> tuple[int, int]:
    """How many cases a run had, and how many differed, by its last lines."""
    if match := re.findall(r"nothing found in .* s, ([\d,]+) cases", output):
        return sum(int(count.replace(",", "")) for count in match), 0
    if re.search(r"\d errors? in|^ERROR ", output, re.MULTILINE):
        raise ValueError(f"the tests did not run: {output[-300:]}")
    numbers = {word: int(count) for count, word in re.findall(r"(\d+) (passed|failed)\b", output)}
    if not numbers:
        raise ValueError(f"neither tests nor cases in {output[-300:]!r}")
    return sum(numbers.values()), numbers.get("failed", 0)


def measure(key: str) -> bool:
    """Run a row's command and write its figures; whether nothing differed."""
    command = str(read()[key]["command"]).split()
    tree = commit()  # what is imported, whatever is committed while the tests run
    run = subprocess.run(
        [sys.executable, *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if command[2] in ("tests.coverage",):  # writes its own figures
        return run.returncode == 0
    cases, differences = counts(run.stdout)
    record(key, cases=cases, differences=differences, commit=tree)
    print(f"{key}: {cases:,} cases, {differences} differences")
    print(*re.findall(r"^FAILED .*", run.stdout, re.MULTILINE), sep="\n", end="")
    return run.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.proof", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("keys", nargs="*", metavar="KEY", help=", ".join(read()))
    keys = parser.parse_args().keys
    if unknown := set(keys) - set(read()):
        parser.error(f"no such key: {', '.join(sorted(unknown))}")
    PAGE.write_text(rendered(PAGE.read_text("utf-8"), read()), "utf-8")
    results = [measure(key) for key in keys]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
