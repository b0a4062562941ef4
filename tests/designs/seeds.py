"""The seed documents: what they demand, the code that does it, and the test that fails without that code.

    python -m tests.designs.seeds                      write docs/development/seeds.md, as the site does
    python -m tests.designs.seeds check [SEED|WORDS]   run each row's test without its code; of one document,
                                                       or of the rows that begin so (a quarter of an hour)
    python -m tests.designs.seeds words FOLDER         keep the documents' words, from files 000_NAME.txt

Strategy: `tests/data/seeds/demands.toml` has a row for each demand: the words that it begins with, and those
that it ends with where it is longer; code; tests. The documents are not here: of each of their words 16 bits
of a hash are kept, in order, which is enough to find a quotation of four words or more, and where it is, and
not to read the text. A test runs without its code where a procedure or function is replaced by one that does
nothing. Rules: words are of letters, a Chinese character is a word; numbers of lists, marks and the dots of a
comparison of two versions are left out; quotations are short.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import inspect
import io
import os
import re
import signal
import struct
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
DATA = ROOT / "tests" / "data" / "seeds"
DEMANDS = DATA / "demands.toml"
PAGE = ROOT / "docs" / "development" / "seeds.md"
CODE, TESTS = "coordwire.", "tests/"
MOST_WORDS = 400
"""Between the first and the last words of a demand."""

LONGEST_S = 30
"""A test that lasts longer without its code has failed."""

WORD = re.compile(r"[A-Za-z]+|[\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True)
class Demand:
    """A row. words: what it begins with in the document; until: what it ends with, or "". code: a module of
    `coordwire` and a name in it ("designs.drafts.machine:Machine.run"), the first one is what a test fails
    without, unless it is a class. open: why nothing does it."""

    seed: str
    words: str
    until: str = ""
    code: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
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
            demands.append(Demand(number, code=code, tests=tests, **row))
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


# --- code, and tests without it ---


def resolve(name: str) -> tuple[Any, str, Any]:
    """Where a name of the rows is: its owner, its name there, and what it is. Raises `AttributeError` or
    `ImportError`."""
    module, _, path = name.partition(":")
    owner: Any = importlib.import_module(CODE + module)
    *above, last = path.split(".")
    for part in above:
        owner = getattr(owner, part)
    return owner, last, inspect.getattr_static(owner, last)


def can_be_left_out(name: str) -> bool:
    """Whether a name is a function, a method or a property."""
    result = resolve(name)[2]
    return isinstance(result, property | staticmethod | classmethod) or inspect.isfunction(result)


def leave_out(name: str) -> None:
    """Replace code by what does nothing, wherever it was imported to."""
    owner, last, result = resolve(name)
    function = result.fget if isinstance(result, property) else getattr(result, "__func__", result)
    without: Any = _no_steps if inspect.isgeneratorfunction(function) else _nothing
    if isinstance(result, property):
        without = property(without)
    elif isinstance(result, staticmethod | classmethod):
        without = staticmethod(without)
    setattr(owner, last, without)
    if inspect.ismodule(owner):
        for module in list(sys.modules.values()):
            if getattr(module, last, None) is result:
                setattr(module, last, without)


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _no_steps(*_: Any, **__: Any) -> Iterator[Any]:
    yield from ()


def fails_without(code: str, test: str) -> bool:
    """Whether a test fails, in a process of its own, where this code does nothing. A test that passes with it
    is what the usual run shows."""
    import pytest

    child = os.fork()
    if not child:
        status = 3
        signal.alarm(LONGEST_S)  # code that waits for what does not happen
        try:
            leave_out(code)
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                status = int(
                    pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", TESTS + test])
                )
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) in (1, -signal.SIGALRM)


# --- the page ---


def page(seeds: Sequence[Seed], demands: Sequence[Demand]) -> str:
    """The page, from the rows."""
    lines = [
        "# The seed documents, demand by demand", "",
        "This project started from five documents. Each row is something that one of them demands, by the "
        "words that it begins with; the code that does it, in `coordwire`; and a test "
        "that fails without that code. `tests/designs/test_seeds.py` finds every quotation "
        "in its document, every name and every test; `python -m tests.designs.seeds check` runs each test "
        "with its code replaced by code that does nothing. The page is made from "
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
    code = "<br>".join(f"`{one.replace(':', '.').removeprefix('designs.')}`" for one in demand.code)
    tests = "<br>".join(f"`{test.rpartition('::')[2]}`" for test in demand.tests)
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
    parser.add_argument("command", nargs="?", choices=["page", "check", "words"], default="page")
    parser.add_argument("argument", nargs="?", default="")
    options = parser.parse_args()
    if options.command == "words":
        keep_words(Path(options.argument))
        return
    seeds, demands = read()
    if options.command == "page":
        PAGE.write_text(page(seeds, demands))
        return
    kept = 0
    for demand in demands:
        is_asked = options.argument in demand.seed or demand.words.startswith(options.argument)
        if demand.open or not is_asked or not can_be_left_out(demand.code[0]):
            continue
        for test in demand.tests[:1]:
            if not fails_without(demand.code[0], test):
                kept += 1
                print(f"{demand.seed}: {test} passes without {demand.code[0]}", flush=True)
    print(f"{kept} tests pass without the code of their row")
    raise SystemExit(1 if kept else 0)


if __name__ == "__main__":
    main()
