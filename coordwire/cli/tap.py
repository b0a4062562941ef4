"""`coordwire tap`: ports before a cluster that show, save and break what passes, until it is interrupted.

Rules: it listens on loopback unless another address is given. What it shows goes to standard output, all else
to standard error: where clients connect, connections that ended since something was wrong, and at the end
what passed. A capture never replaces a file, and has no secrets unless they are asked for.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coordwire.cli import Failure, cluster_options
from coordwire.cli.listening import (
    Receivers,
    capture_file,
    configure_log,
    configure_timeline,
    configure_tls,
    fault_rule,
    remove_log,
    report_faults,
    shown_by,
    story_shown,
    tls_context,
)
from coordwire.cli.selection.filters import parsed_condition

if TYPE_CHECKING:
    from coordwire.broker.harness.traffic import LiveTraffic
    from coordwire.broker.injection import FaultHandle, FaultRule
    from coordwire.tap import Tap

_LISTEN = "127.0.0.1:19092"


def configure(parser: argparse.ArgumentParser) -> None:
    cluster_options.configure(parser)
    parser.add_argument(
        "--listen",
        default=_LISTEN,
        metavar="HOST:PORT",
        help="where clients connect to the first broker; the others follow; port 0: any free port "
        f"(default: {_LISTEN})",
    )
    configure_tls(parser)
    group = parser.add_argument_group("what is shown")
    output = group.add_mutually_exclusive_group()
    output.add_argument(
        "--format",
        choices=("line", "tree", "json", "hex"),
        default="line",
        help="show frames, as decode does (default: line)",
    )
    configure_timeline(output)
    output.add_argument("--no-output", action="store_true", help="show neither")
    group.add_argument(
        "--filter", metavar="EXPRESSION", help="show only frames that meet an expression, as in decode"
    )
    group.add_argument(
        "--save",
        type=Path,
        metavar="FILE",
        help="write all that passes to a new capture: pcapng, or pcap if FILE ends in .pcap",
    )
    group.add_argument("--show-secrets", action="store_true", help="show and save passwords, tokens and keys")
    group = parser.add_argument_group("what is changed")
    group.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="RULE",
        help="a fault that some requests meet, such as "
        "'Heartbeat group=g nth=3 error=REBALANCE_IN_PROGRESS'; repeatable",
    )
    group.add_argument(
        "--script",
        type=Path,
        metavar="FILE.py",
        help="Python functions request(exchange) and response(exchange), called for each frame",
    )
    loudness = parser.add_mutually_exclusive_group()
    loudness.add_argument(
        "-v", "--verbose", action="store_true", help="report every new broker, not only ends of connections"
    )
    loudness.add_argument("-q", "--quiet", action="store_true", help="report errors of the tap alone")


def run(options: argparse.Namespace) -> int:
    from coordwire.errors import CoordwireError
    from coordwire.tap import Script, Tap

    faults = [fault_rule(text, options) for text in options.fault]
    if options.filter is not None and (options.timeline or options.no_output):
        raise Failure("tap: --filter selects frames that are shown: not with --timeline or --no-output")
    host, port = _listen(options.listen)
    try:
        tap = Tap(
            cluster_options.settings(options),
            host=host,
            port=port,
            tls=tls_context(options),
            script=None if options.script is None else Script.load(options.script),
            show_secrets=options.show_secrets,
        )
    except CoordwireError as error:
        raise Failure(f"tap: {error}") from None
    if options.filter is not None:
        parsed_condition(options.filter)  # what is wrong with it is reported before anything is started
    live = _receivers(options)
    if live:
        tap.traffic = Receivers(live)
    handler = configure_log(options, "coordwire")
    handles: list[FaultHandle] = []
    try:
        asyncio.run(_tap(options, tap, faults, handles))
    finally:
        remove_log(handler, "coordwire")
        for place in live:
            place.close()
    if not options.quiet:
        _report(tap, handles, live)
    return 0


def _listen(text: str) -> tuple[str, int]:
    """The address of --listen, whose port may be 0. Raises `Failure`."""
    from coordwire.client import SettingsError
    from coordwire.client.settings import address

    try:
        return address(text, any_port=True)
    except SettingsError as error:
        raise Failure(f"tap: --listen: {error}") from None


def _receivers(options: argparse.Namespace) -> list[LiveTraffic]:
    """Where the traffic goes."""
    from coordwire.broker.harness.traffic import LiveTraffic

    places = []
    if options.save is not None:
        try:
            file = capture_file(options.save, "xb")
        except OSError as error:
            raise Failure(f"tap: --save: {error}") from None
        places.append(LiveTraffic(file, pcapng=options.save.suffix != ".pcap"))
    if options.timeline:
        places.append(story_shown(options))
    elif not options.no_output:
        words = ["decode", "--format", options.format]
        if options.filter is not None:
            words.append(f"--filter={options.filter}")
        if options.show_secrets:
            words.append("--show-secrets")
        places.append(shown_by([*words, "-"]))
    return places


async def _tap(
    options: argparse.Namespace, tap: Tap, faults: list[FaultRule], handles: list[FaultHandle]
) -> None:
    handles += [tap.faults.add(rule) for rule in faults]
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # a system without
            loop.add_signal_handler(number, ended.set)
    try:
        await tap.start()
    except OSError as error:
        raise Failure(f"tap: --listen: {error}") from None
    try:
        print(f"coordwire: clients connect to {tap.bootstrap} for {options.to}", file=sys.stderr, flush=True)
        await ended.wait()
    finally:
        await tap.stop()


def _report(tap: Tap, handles: list[FaultHandle], live: list[Any]) -> None:
    """What passed, on standard error."""
    print(f"coordwire: {tap.counts}", file=sys.stderr)
    report_faults(handles)
    for place in live:
        if place.failure is not None and not isinstance(place.failure, BrokenPipeError):
            print(f"coordwire: the capture is not whole: {place.failure}", file=sys.stderr)
        if place.lost:
            print(f"coordwire: {place.lost} connections are not whole in the capture", file=sys.stderr)
