"""`coordwire decode --out DIR`: captures into tables on this machine, without Spark.

Strategy: columns and rows are those of the pipeline (`coordwire.tables`); one file a table holds the rows of
all inputs (`coordwire.tables.local`). Rules: nothing is overwritten that coordwire can't prove to have
written; the files appear when all inputs were read, or not at all; what the tables lack is reported on
standard error.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, BinaryIO

from coordwire.capture.printable import shown
from coordwire.cli import Failure, progress, terminable
from coordwire.cli.inputs import opened
from coordwire.dialects import dialect_options
from coordwire.errors import CoordwireError, DecodeError

if TYPE_CHECKING:
    from coordwire.tables.local import TablesFormat

FORMATS = ("csv", "parquet")


def configure(parser: argparse._ActionsContainer) -> None:
    """--out."""
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="write tables of frames, errors, groups, commits, lag and quarantine into this folder, as "
        "--format parquet (default) or csv; filters choose the frames",
    )


def writes_tables(options: argparse.Namespace) -> bool:
    """Whether tables are to be written. Raises `Failure` for options that don't go together."""
    if options.out is None:
        if options.format == "parquet":
            raise Failure("--format parquet needs --out DIR, the folder to write the tables into")
        return False
    if options.format not in (None, *FORMATS):
        raise Failure(f"--out writes tables: expected --format parquet or csv, got {options.format}")
    if options.fields is not None:
        raise Failure("--fields chooses columns for standard output; the tables of --out have their own")
    if options.jobs > 1:
        raise Failure("--jobs has no place with --out: use coordwire pipeline --engine local --workers N")
    if options.deep:
        raise Failure("--deep has no place in tables: use --format json or tree, without --out")
    if options.format != "csv" and find_spec("pyarrow") is None:
        raise Failure("Parquet needs pyarrow: pip install 'coordwire[arrow]' (--format csv does without)")
    return True


@contextmanager
def writing(options: argparse.Namespace) -> Iterator[TablesFormat]:
    """Gives the format that gathers the rows; its files are put into their places at the end, or removed if
    that was not reached."""
    from coordwire.tables.local import OwnedFiles, TablesFormat

    try:
        with terminable(), OwnedFiles(options.out) as files:
            output = TablesFormat(
                files,
                options.format or "parquet",
                show_secrets=options.show_secrets,
                dialect=dialect_options.dialect_of(options) or dialect_options.alternative_of(options),
            )
            progress.quietly()
            yield output
            progress.end()
            output.close()
            files.publish()
            output.report()
    except CoordwireError as error:
        raise Failure(shown(error.reason)) from None
    except OSError as error:
        raise Failure(f"{shown(options.out)}: {error.strerror or error}") from None


@contextmanager
def opened_chain(names: Sequence[str]) -> Iterator[BinaryIO]:
    """The files of a rotated capture as one stream; those that can't be opened are left out, and a `Failure`
    at the end says so."""
    from coordwire.tables.readers.captures import joined

    troubles: list[str] = []

    def opener(path: str) -> BinaryIO:
        try:
            return stack.enter_context(opened(path))
        except Failure as trouble:
            troubles.append(str(trouble))
            raise OSError(str(trouble)) from None

    def failed(path: str, error: OSError | DecodeError) -> None:
        if isinstance(error, DecodeError):  # compressed content that ends early
            troubles.append(f"{shown(path)}: {error.reason}")

    with ExitStack() as stack, joined(names, failed, opener) as stream:
        yield stream
    if troubles:
        raise Failure("; ".join(troubles))
