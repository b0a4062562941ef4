"""`coordwire conformance broker HOST:PORT`: a broker, judged by cases over the network."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from coordwire.capture.printable import shown
from coordwire.cli import Failure
from coordwire.cli.conformance import run_options

if TYPE_CHECKING:
    from coordwire.client import ClientSettings
    from coordwire.conformance.broker.stage import BrokerCase
    from coordwire.conformance.results import KnownFailures, Results


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "broker", metavar="BROKER", nargs="?", help="HOST:PORT, or several: HOST:PORT,HOST:PORT"
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="Kafka's client.properties: TLS, SASL, times"
    )
    parser.add_argument(
        "--name", metavar="TEXT", help="the broker's name and version, for reports (default: its address)"
    )
    run_options.configure_list(parser)
    run_options.configure(parser)


def run(options: argparse.Namespace) -> int:
    from coordwire.client import ClientError
    from coordwire.conformance.broker.run import selected

    cases = selected(options.only)
    if run_options.is_listed(
        options, cases, lambda case: (f"asked: {case.question}", f"Kafka: {case.answer}")
    ):
        return 0
    if options.broker is None:
        raise Failure("conformance: expected the broker's HOST:PORT")
    known = run_options.known_failures(options)
    try:
        results = asyncio.run(_run(options, cases, known))
    except ClientError as error:
        raise Failure(f"conformance: {shown(str(error))}") from None
    return run_options.finish(results, options)


async def _run(options: argparse.Namespace, cases: Sequence[BrokerCase], known: KnownFailures) -> Results:
    from coordwire.conformance.broker.run import judged
    from coordwire.conformance.results import Results

    results = Results("broker", options.name or f"the broker at {options.broker}", known, options.only)
    await run_options.collect(results, judged(_settings(options), cases), len(cases))
    return results


def _settings(options: argparse.Namespace) -> ClientSettings:
    from coordwire.client import ClientSettings, addresses, read_properties, settings_of

    if options.config is None:
        return ClientSettings(bootstrap=addresses(options.broker), retries=20)
    return settings_of(read_properties(options.config), bootstrap=options.broker)
