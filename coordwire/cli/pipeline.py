"""`coordwire pipeline`: captures and segments into tables, with Spark or processes of this machine.

Strategy: options become those of `coordwire.tables.pipeline.run`. Its engine is Spark, in a session made for
it or the cluster's, or with `--engine local` processes of this machine, which import no Spark. Rules:
standard output has the summary and nothing else; progress goes to standard error, on a terminal only; what
was refused is in the tables, and the status is 1.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

from coordwire.capture.printable import shown
from coordwire.cli import Failure, progress, terminable
from coordwire.dialects import dialect_options
from coordwire.errors import CoordwireError, counted
from coordwire.tables.columns import select_tables
from coordwire.tables.formats import FORMATS, PARQUET
from coordwire.tables.options import Options
from coordwire.tables.pipeline import REPORT, Engine, LocalEngine, PipelineSummary, check
from coordwire.tables.pipeline import run as run_pipeline
from coordwire.tables.pipeline.units import cause
from coordwire.tables.storage.folders import open_output

SUMMARIES = ("text", "json")
MASTER = "local[*]"
CATALOG = "spark.sql.catalogImplementation"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("inputs", nargs="+", metavar="IN", help="captures, segments, folders, globs or URIs")
    parser.add_argument("--out", required=True, metavar="DIR", help="output folder, or a URI")
    parser.add_argument(
        "--engine",
        choices=("spark", "local"),
        default="spark",
        help="what runs the work: Spark (default), or processes of this machine, without Java",
    )
    parser.add_argument(
        "--workers", type=int, metavar="N", help="processes of --engine local (default: one a processor)"
    )
    parser.add_argument("--master", help=f"Spark master URL (default: {MASTER})")
    parser.add_argument(
        "--tables",
        metavar="NAME,…",
        help="write only these tables; segments that none of them needs are not read (default: all)",
    )
    parser.add_argument(
        "--format",
        action="append",
        default=[],
        choices=(*FORMATS, *SUMMARIES),
        metavar="|".join(FORMATS),
        help="format of the tables (default: what they are in, parquet for new ones)",
    )
    parser.add_argument("--summary", choices=SUMMARIES, help="format of the summary (default: text)")
    parser.add_argument(
        "--split-size",
        type=int,
        default=Options().split_size,
        metavar="BYTES",
        help="size of the part that a task reads",
    )
    parser.add_argument("--strict", action="store_true", help="refuse deviations that Apache Kafka accepts")
    parser.add_argument(
        "--show-secrets", action="store_true", help="keep passwords, tokens and keys in the tables"
    )
    parser.add_argument(
        "--no-join-rotated", action="store_true", help="read each file of a rotated capture by itself"
    )
    parser.add_argument(
        "--prune", action="store_true", help="remove the rows of files that were below IN and are gone"
    )
    parser.add_argument(
        "--catalog", metavar="DATABASE", help="also register the tables in this database of Spark's catalog"
    )
    parser.add_argument(
        "--no-report",
        action="store_true",
        help="do not write report.html, the groups' stories and what could not be read",
    )
    parser.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a Spark setting; repeatable"
    )  # fmt: skip
    dialect_options.configure_name(parser)


def run(options: argparse.Namespace) -> int:
    if options.split_size < 1:
        raise Failure("--split-size must be at least 1")
    table_format, options.summary = _formats(options)
    progress.quietly()
    try:
        tables = select_tables(options.tables.split(",") if options.tables else None)
        with _engine(options, table_format) as engine:
            summary = run_pipeline(
                engine, options.inputs, options.out, tables=tables,
                options=Options(
                    split_size=options.split_size, strict=options.strict, show_secrets=options.show_secrets,
                    dialect=options.dialect, join_rotated=not options.no_join_rotated,
                ),
                report=not options.no_report, progress=_report,
                format=table_format,
                prune=options.prune,
            )  # fmt: skip
    except CoordwireError as error:
        raise Failure(shown(error.reason)) from None
    except OSError as error:
        raise Failure(shown(cause(error))) from None
    except Exception as error:
        if type(error).__module__.startswith("pyarrow."):  # what a store or a disk makes it raise
            raise Failure(shown(cause(error))) from None
        if not type(error).__module__.startswith(("pyspark.", "py4j.")):
            raise
        raise Failure(f"Spark failed: {shown(first_line(error))}") from None
    progress.end()
    for notice in summary.notices:
        print(f"coordwire: {shown(notice)}", file=sys.stderr)
    _tell(summary, options)
    return 1 if summary.unread else 0


def _formats(options: argparse.Namespace) -> tuple[str | None, str]:
    """The tables' format, None if it was not named, and the summary's, which --format may name too."""
    tables = {name for name in options.format if name in FORMATS}
    summaries = {name for name in (*options.format, options.summary) if name in SUMMARIES}
    for name, names in (("tables", tables), ("summary", summaries)):
        if len(names) > 1:
            raise Failure(f"expected one format of the {name}, got {' and '.join(sorted(names))}")
    return next(iter(tables), None), next(iter(summaries), "text")


@contextmanager
def _engine(options: argparse.Namespace, table_format: str | None) -> Iterator[Engine]:
    """What the options ask for, ready to work. Raises `Failure` for options of the other one."""
    config = dict(_setting(text) for text in options.conf)
    if options.engine == "local":
        if options.master is not None or config:
            raise Failure("--master and --conf are for Spark: leave them out, or leave out --engine local")
        if options.catalog is not None:
            raise Failure("--catalog is of Spark: leave it out, or leave out --engine local")
        if find_spec("pyarrow") is None:
            raise Failure("tables need pyarrow: pip install 'coordwire[arrow,compression]'")
        check(options.inputs, options.out, table_format)
        with terminable():
            yield LocalEngine(options.workers)
        return
    if options.workers is not None:
        raise Failure("--workers is for --engine local; Spark's are set by --master, as in local[4]")
    if options.catalog is not None:
        if table_format not in (None, PARQUET):
            raise Failure(f"--catalog is for tables in Parquet; those in {table_format} have their own")
        config = {CATALOG: "hive", **config}  # the other one is forgotten when this process ends
    check(options.inputs, options.out, table_format)  # Spark takes seconds to start
    from coordwire.spark.session import session

    with terminable(), quiet_gateway():
        spark = session(options.master or MASTER, config=config)
        try:
            from coordwire.spark.catalog_views import check_place, register_views
            from coordwire.spark.engines import SparkEngine

            if options.catalog is not None:
                check_place(spark, open_output(options.out))
            yield SparkEngine(spark)
            if options.catalog is not None:
                register_views(spark, options.out, options.catalog)
        finally:
            with suppress(Exception):  # Spark may have ended before us
                spark.stop()


@contextmanager
def quiet_gateway() -> Iterator[None]:
    """Keep py4j's traces off standard error: an interrupt while it waits for Java is not a fault."""

    def not_py4j(record: logging.LogRecord) -> bool:
        return Path(record.pathname).parent.name != "py4j"

    root = logging.getLogger()  # py4j logs interrupts there
    root.addFilter(not_py4j)
    try:
        yield
    finally:
        root.removeFilter(not_py4j)


def first_line(error: BaseException) -> str:
    """What an error of Spark's says before its traces."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise Failure(f"--conf {shown(text)}: expected KEY=VALUE")
    return key, value


def _report(task_count: int, total: int) -> None:
    """Say how far the job has come."""
    progress.tell(lambda: f"{task_count:,} of {counted(total, 'task')}")


def _tell(summary: PipelineSummary, options: argparse.Namespace) -> None:
    if options.summary == "json":
        print(json.dumps(asdict(summary)))
        return
    rate = summary.bytes / summary.seconds / 1e6 if summary.seconds else 0.0
    print(f"files     {summary.files:>14,}   {summary.bytes:,} bytes")
    print(f"frames    {summary.frames:>14,}   {summary.refused:,} refused")
    print(f"batches   {summary.batches:>14,}")
    print(f"records   {summary.records:>14,}")
    ranges = "range" if summary.bad_ranges == 1 else "ranges"
    print(
        f"unreadable{summary.bad_ranges:>14,}   {ranges}, {summary.quarantined_bytes:,} bytes in quarantine"
    )
    print(f"seconds   {summary.seconds:>14,.1f}   {rate:,.1f} MB/s")
    if summary.reused:
        print(f"{summary.reused:,} of {summary.units:,} units were complete before")
    contents = "the tables" if options.no_report else f"the tables and {REPORT}"
    print(f"{contents} are in {shown(options.out)}")
