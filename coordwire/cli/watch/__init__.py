"""`coordwire watch`: what happens to a live cluster's groups, from its `__consumer_offsets`.

    watch BROKER                        a screen that updates; into a pipe a line of JSON an event
    watch BROKER --metrics :9400        the same for Prometheus

Strategy: offsets_follower.py reads the log through `coordwire.client`, the reader of coordinators' logs makes
events of it, group_board.py sums them up, metrics_server.py gives the sums to Prometheus. Rules: nothing is
written to the cluster. What the log has is exact: members, generations, assignments, commits, and lag as of
the last look at the partitions' ends. What it has not: heartbeats, requests and their errors, so that the
cause of a rebalance is inferred, and who was slow is not known; `coordwire tap` sees these. It ends by
Ctrl-C, or after --rounds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coordwire.capture.printable import shown
from coordwire.cli import Failure
from coordwire.cli.terminal import chosen_format

if TYPE_CHECKING:
    from coordwire.cli.watch.group_board import GroupBoard
    from coordwire.client import ClientSettings, SyncClient

__all__ = ["configure", "run"]

_NOTE = (
    "from the log: members, commits and lag are exact, causes are inferred; coordwire tap sees the requests"
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("broker", metavar="BROKER", help="host:port, or several: host:port,host:port")
    parser.add_argument("--group", action="append", metavar="ID", help="only this group; repeatable")
    parser.add_argument("--config", metavar="FILE", type=Path, help="Kafka's client.properties")
    parser.add_argument("--format", choices=("screen", "json"), help="screen on a terminal, json in a pipe")
    parser.add_argument(
        "--metrics",
        metavar="[HOST]:PORT",
        help="serve the sums to Prometheus, on loopback unless HOST is given",
    )
    parser.add_argument("--rounds", type=int, metavar="N", help="end after so many looks at the log")


def run(options: argparse.Namespace) -> int:
    from coordwire.client import ClientError, SettingsError, connect_sync, read_properties, settings_of

    try:
        properties = {} if options.config is None else read_properties(options.config)
        settings = settings_of(properties, bootstrap=options.broker)
    except SettingsError as error:
        raise Failure(f"watch: {error}") from None
    try:
        with connect_sync(settings) as client:
            _watch(client, options, settings)
    except ClientError as error:
        raise Failure(f"watch: {shown(str(error))}") from None
    return 0


def _watch(client: SyncClient, options: argparse.Namespace, settings: ClientSettings) -> None:
    from coordwire.cli.timeline.json_lines import TimelineJsonFormat
    from coordwire.cli.watch.group_board import GroupBoard
    from coordwire.cli.watch.offsets_follower import OffsetsFollower, end_offsets
    from coordwire.timeline.from_log.events import log_timeline

    board, rounds = GroupBoard(), 0
    names: dict[str, str] = {}
    follower = OffsetsFollower(client, names)
    follower.start()
    is_screen = chosen_format(options.format, "screen") == "screen"
    lines = None if is_screen else TimelineJsonFormat()
    with _metrics(options) as publish, _screen(board, is_screen) as refresh:

        def round_ended() -> bool:
            nonlocal rounds
            rounds += 1
            places = [(place.topic, place.partition) for place in sorted(board.partitions())]
            if places:
                board.measure(end_offsets(client, places))
            publish(board)
            refresh()
            sys.stdout.flush()
            return options.rounds is None or rounds < options.rounds

        for event in log_timeline(follower.items(round_ended), names):
            if options.group and event.group not in options.group:
                continue
            board.add(event)
            if lines is not None:
                lines.write(event)
        publish(board)


@contextmanager
def _metrics(options: argparse.Namespace) -> Iterator[Callable[[GroupBoard], None]]:
    """A function that hands the sums to Prometheus; it does nothing without --metrics."""
    if options.metrics is None:
        yield lambda board: None
        return
    from coordwire.cli.watch.metrics_server import MetricsServer

    host, _, port = options.metrics.rpartition(":")
    if not port.isdecimal() or int(port) >= 1 << 16:
        raise Failure(f"watch: --metrics: expected [HOST]:PORT, got {options.metrics!r}")
    server = MetricsServer(host.strip("[]") or "127.0.0.1", int(port))
    print(f"coordwire: metrics at http://{host or '127.0.0.1'}:{server.port}/metrics", file=sys.stderr)
    try:

        def publish(board: GroupBoard) -> None:
            server.text = board.metrics()

        yield publish
    finally:
        server.close()


@contextmanager
def _screen(board: GroupBoard, is_wanted: bool) -> Iterator[Callable[[], None]]:
    """A function that shows the board again: in place on a terminal with rich, else a table each time."""
    if not is_wanted:
        yield lambda: None
        return
    from coordwire.cli.terminal import rich_console

    console = rich_console("watch")
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

    def table() -> Any:
        grid = Table(*board.HEAD, box=None, caption=_NOTE, caption_justify="left")
        for cells in board.rows():
            grid.add_row(*(Text(shown(cell)) for cell in cells))
        return grid

    with Live(table(), console=console, auto_refresh=False, transient=False) as live:
        yield lambda: live.update(table(), refresh=True)
