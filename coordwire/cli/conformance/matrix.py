"""`coordwire conformance matrix RESULTS… --html FILE`: saved results of several implementations as a page.

Rules: results are untrusted: a file has at most `LARGEST` bytes of content, and all but results is refused.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from coordwire.capture.printable import shown
from coordwire.cli import Failure
from coordwire.cli.inputs import opened
from coordwire.conformance.matrix import matrix_page
from coordwire.conformance.reports import from_json
from coordwire.conformance.results import Results
from coordwire.errors import counted

LARGEST = 64 << 20


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "results", nargs="+", type=Path, metavar="RESULTS", help="a file that --json of a run has written"
    )
    parser.add_argument("--html", type=Path, required=True, metavar="FILE", help="where the page is written")


def run(options: argparse.Namespace) -> int:
    runs = [_read(path) for path in options.results]
    options.html.write_text(matrix_page(runs), "utf-8")
    print(f"{shown(str(options.html))} is written: {counted(len(runs), 'run')}")
    return 0


def _read(path: Path) -> Results:
    with opened(str(path)) as stream:
        data = stream.read(LARGEST + 1)
    try:
        if len(data) > LARGEST:
            raise ValueError(f"more than {LARGEST:,} bytes")
        return from_json(data)
    except ValueError as error:
        raise Failure(f"conformance: {shown(str(path))}: {error}") from None
