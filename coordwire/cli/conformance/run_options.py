"""What every kind of conformance run shares: its options, its progress, its reports and its status."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

from coordwire.capture.printable import shown
from coordwire.cli import Failure, progress
from coordwire.conformance.matrix import matrix_page
from coordwire.conformance.process import ProcessDied
from coordwire.conformance.reports import as_json, as_junit, summary
from coordwire.conformance.results import CaseResult, KnownFailures, Results


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="ADDRESS",
        help="cases at or below this address; * is any part of it; may be repeated",
    )
    parser.add_argument(
        "--known",
        type=Path,
        metavar="FILE",
        help="addresses of cases that fail, one a line; one that doesn't fail fails the run",
    )
    parser.add_argument("--fix", action="store_true", help="write the file of --known as it should be")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results as JSON")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write all results as JUnit's XML")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write all results as a page")


class ListedCase(Protocol):
    """What is shown of a case, of a broker's or a client's."""

    @property
    def address(self) -> str: ...

    @property
    def document(self) -> str: ...

    @property
    def rule(self) -> str: ...

    @property
    def recommended(self) -> bool: ...


C = TypeVar("C", bound=ListedCase)


def configure_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--list", action="store_true", help="show the cases, and run none")


def is_listed(options: argparse.Namespace, cases: Sequence[C], texts: Callable[[C], Sequence[str]]) -> bool:
    """Whether --list asks for the cases, which are shown then; texts: more lines on one. Raises `Failure`
    where there are none."""
    check_any(options, cases, "case")
    if not options.list:
        return False
    for case in cases:
        level = "recommended" if case.recommended else "required"
        print(f"{case.address}  ({level}, {case.document})")
        print("\n".join(f"    {text}" for text in (case.rule, *texts(case))))
    return True


def check_any(options: argparse.Namespace, selected: Sequence[object], kind: str) -> None:
    """Raise `Failure` where --only selects nothing. kind: of what is selected."""
    if not selected:
        raise Failure(f"conformance: no {kind} has the address {' or '.join(options.only)}")


@contextmanager
def started(kind: str, program: Sequence[str]) -> Iterator[None]:
    """Where a process is started: `Failure` says why it can't be, with the end of its standard error."""
    try:
        yield
    except ProcessDied as error:
        reason = f"conformance: the {kind} doesn't start: {error.reason}"
        raise Failure("\n".join([reason, *error.output.split("\n")]).rstrip()) from None
    except OSError as error:
        raise Failure(f"conformance: {program[0]}: {error.strerror or error}") from None


def known_failures(options: argparse.Namespace) -> KnownFailures:
    """The list of --known; with --fix the file may be missing. Raises `Failure`."""
    if options.known is None:
        if options.fix:
            raise Failure("conformance: --fix needs --known")
        return KnownFailures()
    try:
        return KnownFailures(options.known.read_text("utf-8"))
    except FileNotFoundError:
        if options.fix:
            return KnownFailures()
        raise Failure(f"conformance: {options.known}: there is no such file") from None
    except UnicodeDecodeError:
        raise Failure(f"conformance: {options.known}: not UTF-8") from None


async def collect(results: Results, cases: AsyncIterator[CaseResult], total: int) -> None:
    """Take the results as they come, and show how far the run is."""
    progress.quietly()
    async for result in cases:
        results.cases.append(result)
        progress.report(result.address, len(results.cases), total)
    progress.end()


def finish(results: Results, options: argparse.Namespace) -> int:
    """Write the reports and the list; the status."""
    if options.json is not None:
        options.json.write_text(as_json(results), "utf-8")
    if options.junit is not None:
        options.junit.write_text(as_junit(results), "utf-8")
    if options.html is not None:
        options.html.write_text(matrix_page([results]), "utf-8")
    for line in summary(results):
        print(line)
    if options.fix:
        options.known.write_text(results.known.corrected(results), "utf-8")
        print(f"{shown(str(options.known))} is written: {len(list(results.failures)):,} known failures")
        return 0
    return 0 if results.passed else 1
