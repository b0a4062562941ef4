"""The seed documents: what they demand, the code that does it, and the test that needs it.

    python -m tests.designs.seeds                      write docs/development/seeds.md, as the site does
    python -m tests.designs.seeds words FOLDER         keep the documents' words, from files 000_NAME.txt

Strategy: `tests/data/seeds/demands.toml` has a row for each demand: the words that it begins with, and those
that it ends with where it is longer; code; tests; mutants (`tests/designs/mutants.py` runs them). The
documents are not here: of each of their words 16 bits of a hash are kept, in order, which is enough to find a
quotation of four words or more, and where it is, and not to read the text. Rules: words are of letters, a
Chinese character is a word; numbers of lists, marks and the dots of a comparison of two versions are left
out; quotations are short.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import struct
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
DATA = ROOT / "tests" / "data" / "seeds"
DEMANDS = DATA / "demands.toml"
LAST_RUN = DATA / "last_run.txt"
"""The date on which all mutants were last run and found, and how many there were; missing before the first
such run."""

PAGE = ROOT / "docs" / "development" / "seeds.md"
TESTS = "tests/"
MOST_WORDS = 400
"""Between the first and the last words of a demand."""

WORD = re.compile(r"[A-Za-z]+|[\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True)
class Demand:
    """A row. words: what it begins with in the document; until: what it ends with, or "". code: a module of
    `coordwire` and a name in it ("designs.drafts.machine:Machine.run"). mutants: texts of that code, and what
    breaks the demand in their place. open: why nothing does it."""

    seed: str
    words: str
    until: str = ""
    code: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    mutants: tuple[tuple[str, str], ...] = ()
    open: str = ""


@dataclass(frozen=True, slots=True)
class Seed:
    """A document. title, source: what it is, and where it is."""

    number: str
    title: str
    source: str


def read() -> tuple[list[Seed], list[Demand]]:
    """The documents and the rows, in their order."""
    data = tomllib.loads(DEMANDS.read_text())
    seeds = [Seed(number, one["title"], one["source"]) for number, one in data["seeds"].items()]
    demands = []
    for number in data["seeds"]:
        for row in data.get(f"seed-{number}", ()):
            code, tests = (tuple(row.pop(name, ())) for name in ("code", "tests"))
            changes = tuple((old, new) for old, new in row.pop("mutants", ()))
            demands.append(Demand(number, code=code, tests=tests, mutants=changes, **row))
    return seeds, demands


# --- where a quotation is ---


def words_of(text: str) -> list[bytes]:
    """16 bits of each word's hash."""
    return [hashlib.sha256(word.lower().encode()).digest()[:2] for word in WORD.findall(text)]


def document(number: str) -> list[bytes]:
    data = (DATA / f"{number}.words").read_bytes()
    return [part for (part,) in struct.iter_unpack("2s", data)]


def find(text: str, within: Sequence[bytes], begin: int = 0, end: int | None = None) -> int:
    """The number of the first word of a quotation; -1 if the document does not have it."""
    words = words_of(text)
    last = (len(within) if end is None else min(end, len(within))) - len(words)
    for at in range(begin, last + 1):
        if within[at] == words[0] and list(within[at : at + len(words)]) == words:
            return at
    return -1


def place(demand: Demand, within: Sequence[bytes]) -> tuple[int, int] | None:
    """The first word of a demand, and the one after its last; None if it is not in the document."""
    begin = find(demand.words, within)
    if begin < 0:
        return None
    end = begin + len(words_of(demand.words))
    if demand.until:
        last = find(demand.until, within, end, end + MOST_WORDS)
        if last < 0:
            return None
        end = last + len(words_of(demand.until))
    return begin, end


# --- the page ---


def page(seeds: Sequence[Seed], demands: Sequence[Demand]) -> str:
    """The page, from the rows."""
    last_run = "no run of all of them is on record"
    if LAST_RUN.exists():
        date, count = LAST_RUN.read_text().split()
        last_run = (
            f"the last run of all of them was on {date}: {int(count):,} mutants, each found by its test"
        )
    lines = [
        "# The seed documents, demand by demand", "",
        "This project started from five documents. Each row is something that one of them demands, by the "
        "words that it begins with; the code that does it, in `coordwire`; and a test "
        "that finds every mutant of the row, a small change of that code which breaks what the words demand. "
        "`tests/designs/test_seeds.py` finds every quotation "
        "in its document, every name and every test; `python -m tests.designs.mutants` runs each test "
        f"with each of its mutants; {last_run}. The page is made from "
        "`tests/data/seeds/demands.toml` by `python -m tests.designs.seeds`.",
        "",
        "Not here are sentences without a demand: headings, reasons, examples, code that a sentence beside "
        "it explains, and what is about the Java or Scala of its time alone (sendfile, `NonBlockingChannel`, "
        "classes that were to be merged). A sentence that repeats an earlier one has one row.",
    ]  # fmt: skip
    for seed in seeds:
        rows = [demand for demand in demands if demand.seed == seed.number]
        lines += ["", f"## {seed.title}", "", f"{seed.source}", ""]
        if not rows:
            continue
        lines += ["| the document | code | test |", "|---|---|---|"]
        lines += [_row(row) for row in rows]
    return "\n".join(lines) + "\n"


def _row(demand: Demand) -> str:
    quotation = f"“{demand.words}" + (f" … {demand.until}”" if demand.until else "”")
    if demand.open:
        return f"| {_cell(quotation)} | – | not done: {demand.open} |"
    code = "<br>".join(
        f"`{one.replace(':', '.').removeprefix('designs.')}`" for one in dict.fromkeys(demand.code)
    )
    tests = "<br>".join(f"`{test.rpartition('::')[2]}`" for test in dict.fromkeys(demand.tests))
    return f"| {_cell(quotation)} | {code} | {tests} |"


def _cell(text: str) -> str:
    for mark in "*_[<":
        text = text.replace(mark, "\\" + mark)
    return text.replace("|", "\\|")


# --- the command ---


def keep_words(folder: Path) -> None:
    for path in sorted(folder.glob("0*.txt")):
        (DATA / f"{path.name[:3]}.words").write_bytes(b"".join(words_of(path.read_text())))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("command", nargs="?", choices=["page", "words"], default="page")
    parser.add_argument("argument", nargs="?", default="")
    options = parser.parse_args()
    if options.command == "words":
        keep_words(Path(options.argument))
        return
    PAGE.write_text(page(*read()))


if __name__ == "__main__":
    main()
