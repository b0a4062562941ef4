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
from coordwire.conformance.process import AskedProcess
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
    run_options.configure_list(parser)
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
    if run_options.is_listed(
        options, cases, lambda case: (f"broker: {case.broker}", f"client: {case.answer}")
    ):
        return 0
    if not options.program:
        raise Failure("conformance: expected what starts the client, after --")
    known = run_options.known_failures(options)
    return run_options.finish(asyncio.run(_run(options, cases, known)), options)


async def _run(options: argparse.Namespace, cases: Sequence[ClientCase], known: KnownFailures) -> Results:
    from coordwire.conformance.client.run import judged

    with run_options.started("client", options.program):
        async with AsyncExitStack() as stack:
            clients = [
                await stack.enter_async_context(
                    AskedProcess(options.program, kind="client", timeout=options.timeout)
                )
                for _ in range(min(options.jobs, len(cases)))
            ]
            results = Results("client", clients[0].name or "a client without a name", known, options.only)
            await run_options.collect(results, judged(clients, cases), len(cases))
    starts = sum(client.starts for client in clients) - len(clients)
    if starts:
        results.notes.append(f"the client was started again {starts:,} times")
    return results
