"""`coordwire conformance codec -- COMMAND`: a codec as a process, judged with the vectors of the archive."""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from pathlib import Path

from coordwire.cli import Failure, cluster_options
from coordwire.cli.conformance import run_options
from coordwire.conformance.codec.run import judged
from coordwire.conformance.codec.verdicts import Vector, vectors
from coordwire.conformance.process import AskedProcess
from coordwire.conformance.results import KnownFailures, Results

_SIZES = {"": 1, "kb": 1_000, "mb": 1_000_000, "gb": 1_000_000_000}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "program",
        nargs="+",
        metavar="COMMAND",
        help="after --: what starts the codec; it gets a line of JSON a request, and answers with one",
    )
    run_options.configure(parser)
    parser.add_argument(
        "--vectors",
        type=Path,
        required=True,
        metavar="DIR",
        help="the unpacked archive, or conformance/data of a clone",
    )
    parser.add_argument(
        "--timeout",
        type=cluster_options.seconds,
        default=10.0,
        metavar="SECONDS",
        help="for an answer; a codec that takes longer is killed and started again (default: 10)",
    )
    parser.add_argument(
        "--memory",
        type=_size,
        metavar="SIZE",
        help="address space that the codec gets, as 4GB, on Linux (default: no limit)",
    )


def _size(text: str) -> int:
    match = re.fullmatch(r"([0-9]{1,12})([kmg]b)?", text.strip().lower())
    if match is None:
        raise argparse.ArgumentTypeError(f"expected a size such as 4GB, got {text!r}")
    return int(match[1]) * _SIZES[match[2] or ""]


def run(options: argparse.Namespace) -> int:
    if options.memory is not None and not sys.platform.startswith("linux"):
        raise Failure("conformance: --memory: only Linux limits another process's memory")
    known = run_options.known_failures(options)
    selected = _vectors(options)
    return run_options.finish(asyncio.run(_run(options, selected, known)), options)


def _vectors(options: argparse.Namespace) -> list[Vector]:
    try:
        selected = list(vectors(options.vectors, options.only))
    except ValueError as error:
        raise Failure(f"conformance: {options.vectors}: {error}") from None
    except FileNotFoundError as error:
        raise Failure(f"conformance: {error.filename}: there is no such file") from None
    run_options.check_any(options, selected, "vector")
    return selected


async def _run(options: argparse.Namespace, selected: list[Vector], known: KnownFailures) -> Results:
    codec = AskedProcess(options.program, kind="codec", timeout=options.timeout, memory=options.memory)
    with run_options.started("codec", options.program):
        async with codec:
            results = Results("codec", codec.name or "a codec without a name", known, options.only)
            if not codec.memory_is_known:
                results.notes.append("memory was not measured: this system doesn't report it")
            await run_options.collect(results, judged(codec, selected), len(selected))
    if codec.starts > 1:
        results.notes.append(f"the codec was started {codec.starts:,} times")
    return results
