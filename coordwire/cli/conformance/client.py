"""`coordwire conformance client -- COMMAND`: a client as a process, judged by its requests to a scripted
broker."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from coordwire.cli import Failure, cluster_options
from coordwire.cli.conformance import run_options
from coordwire.conformance.process import AskedProcess, ProcessDied
from coordwire.conformance.results import Results

if TYPE_CHECKING:
    from coordwire.conformance.client.stage import ClientCase
    from coordwire.conformance.results import KnownFailures


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "program",
        nargs="*",
        metavar="COMMAND",
        help="after --: what starts the client; it gets a task a line of JSON, and reports with one",
    )
    parser.add_argument("--list", action="store_true", help="show the cases, and run none")
    parser.add_argument(
        "--jobs",
        type=int,
        choices=range(1, 33),
        default=2,
        metavar="N",
        help="processes of the client, each with one case at a time (default: 2)",
    )
    parser.add_argument(
        "--timeout",
        type=cluster_options.seconds,
        default=30.0,
        metavar="SECONDS",
        help="for the client's start (default: 30)",
    )
    run_options.configure(parser)


def run(options: argparse.Namespace) -> int:
    from coordwire.conformance.client.run import selected

    cases = selected(options.only)
    if not cases:
        raise Failure(f"conformance: no case has the address {' or '.join(options.only)}")
    if options.list:
        _show(cases)
        return 0
    if not options.program:
        raise Failure("conformance: expected what starts the client, after --")
    known = run_options.known_failures(options)
    return run_options.finish(asyncio.run(_run(options, cases, known)), options)


def _show(cases: Sequence[ClientCase]) -> None:
    for case in cases:
        level = "recommended" if case.recommended else "required"
        print(f"{case.address}  ({level}, {case.document})")
        print(f"    {case.rule}\n    broker: {case.broker}\n    client: {case.answer}")


async def _run(options: argparse.Namespace, cases: Sequence[ClientCase], known: KnownFailures) -> Results:
    from coordwire.conformance.client.run import judged

    try:
        async with AsyncExitStack() as stack:
            clients = [
                await stack.enter_async_context(
                    AskedProcess(options.program, kind="client", timeout=options.timeout)
                )
                for _ in range(min(options.jobs, len(cases)))
            ]
            results = Results(clients[0].name or "a client without a name", known, options.only)
            await run_options.collect(results, judged(clients, cases), len(cases))
    except ProcessDied as error:
        raise Failure(run_options.not_started("client", error)) from None
    except OSError as error:
        raise Failure(f"conformance: {options.program[0]}: {error.strerror or error}") from None
    starts = sum(client.starts for client in clients) - len(clients)
    if starts:
        results.notes.append(f"the client was started again {starts:,} times")
    return results
