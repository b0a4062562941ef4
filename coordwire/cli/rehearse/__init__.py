"""`coordwire rehearse`: the upgrade of a recorded classic group to the consumer protocol, before it is done.

rehearsal_output.py   the verdict, the table and the advice: as lines, and for programs

Rules: the same command gives the same bytes. Status 0: the upgrade goes through in every order on every
release; 1: it does not; 2: usage or I/O.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from coordwire.cli import Failure, progress
from coordwire.coordinator.releases import RELEASES

if TYPE_CHECKING:
    from coordwire.designs.rehearsal import RecordedGroup, RehearsalConfig
    from coordwire.timeline.from_log.coordinator_log import LogItem

__all__ = ["configure", "run"]

MOST_ORDERS, MOST_MS = 10_000, 86_400_000
_TOPIC = re.compile(r"(.+)=([0-9]{1,6})")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", nargs="+", metavar="FILE|DIR",
        help="captures; segments of __consumer_offsets, or folders with them",
    )  # fmt: skip
    parser.add_argument("--group", metavar="ID", help="the group, if there are several")
    parser.add_argument(
        "--release", action="append", metavar="RELEASE",
        help=f"of the brokers; several by several options ({', '.join(RELEASES)})",
    )  # fmt: skip
    parser.add_argument(
        "--broker", action="append", default=[], metavar="NAME=VALUE",
        help="a broker's setting, as group.consumer.migration.policy=disabled",
    )  # fmt: skip
    parser.add_argument(
        "--partitions", action="append", default=[], metavar="TOPIC=N",
        help="of a topic, where assignments and commits do not show all",
    )  # fmt: skip
    parser.add_argument("--assignor", metavar="NAME", help="the clients' group.remote.assignor (none)")
    parser.add_argument(
        "--orders", type=int, metavar="N",
        help="of restarts, at most (all of up to 5 members, 24 of up to 10)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of orders and latencies (1)")
    parser.add_argument("--away", default="5s", metavar="TIME", help="how long a restart takes (5s)")
    parser.add_argument(
        "--pause", default="10s", metavar="TIME", help="from a stable group to the next restart (10s)"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="times in milliseconds")


def run(options: argparse.Namespace) -> int:
    from coordwire.cli.terminal import line_writer
    from coordwire.designs.rehearsal import rehearse
    from coordwire.errors import CoordwireError

    config = _config(options)
    group = _group(options)
    for topic in config.partitions:
        if topic not in group.partitions:
            from coordwire.codec.names import suggestion

            hint = suggestion(topic, group.partitions)
            raise Failure(f"rehearse: --partitions: {group.group_id} does not subscribe to {topic}{hint}")
    progress.quietly()
    try:
        rehearsal = rehearse(
            group, config, on_roll=lambda order, orders: progress.report(group.group_id, order, orders)
        )
    except (ValueError, CoordwireError) as error:
        raise Failure(f"rehearse: {error}") from None
    progress.end()
    write = line_writer()
    if options.format == "json":
        from coordwire.cli.rehearse.rehearsal_output import form

        write([[(json.dumps(form(rehearsal)), "plain")]])
    else:
        from coordwire.cli.rehearse.rehearsal_output import lines

        write(lines(rehearsal))
    return 0 if rehearsal.succeeds else 1


# --- options ---


def _config(options: argparse.Namespace) -> RehearsalConfig:
    from coordwire.designs.rehearsal import RehearsalConfig, RollConfig

    if options.orders is not None and not 1 <= options.orders <= MOST_ORDERS:
        raise Failure(f"rehearse: --orders: expected 1 to {MOST_ORDERS:,}, got {options.orders}")
    return RehearsalConfig(
        releases=_releases(options.release or RELEASES),
        broker=_broker(options.broker),
        orders=options.orders,
        partitions=_partitions(options.partitions),
        roll=RollConfig(
            away_ms=_time("--away", options.away), pause_ms=_time("--pause", options.pause),
            assignor=options.assignor, seed=options.seed,
        ),
    )  # fmt: skip


def _releases(names: Sequence[str]) -> tuple[str, ...]:
    from coordwire.coordinator.releases import full_release

    try:
        return tuple(dict.fromkeys(map(full_release, names)))
    except ValueError as error:
        raise Failure(f"rehearse: --release: {error}") from None


def _broker(texts: Sequence[str]) -> dict[str, str]:
    from coordwire.codec.names import suggestion
    from coordwire.coordinator import CoordinatorConfig
    from coordwire.coordinator.config import BROKER_SETTINGS

    settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise Failure(f"rehearse: --broker: expected NAME=VALUE, got {text!r}")
        if name not in BROKER_SETTINGS:
            hint = suggestion(name, BROKER_SETTINGS)
            raise Failure(f"rehearse: --broker: {name} is not a setting of the group coordinator{hint}")
        settings[name] = value
    try:
        CoordinatorConfig().with_settings(settings)
    except ValueError as error:
        raise Failure(f"rehearse: --broker: {error}") from None
    return settings


def _partitions(texts: Sequence[str]) -> dict[str, int]:
    partitions = {}
    for text in texts:
        match = _TOPIC.fullmatch(text)
        if match is None:
            raise Failure(f"rehearse: --partitions: expected TOPIC=N, to 999999, got {text!r}")
        partitions[match[1]] = int(match[2])
    return partitions


def _time(name: str, text: str) -> int:
    from coordwire.testing.fault_plans import parse_time

    time = parse_time(text)
    if time is None or not 0 <= time <= MOST_MS:
        raise Failure(f"rehearse: {name}: expected a time such as 5s, to 24h, got {text!r}")
    return time


# --- the group ---


def _group(options: argparse.Namespace) -> RecordedGroup:
    from coordwire.codec.names import suggestion

    groups = _groups(options.paths)
    progress.end()
    if not groups:
        raise Failure("rehearse: no classic group with members there")
    if options.group is None:
        if len(groups) > 1:
            names = ", ".join(sorted(groups)[:10]) + (" …" if len(groups) > 10 else "")
            raise Failure(f"rehearse: {len(groups)} classic groups there, name one with --group: {names}")
        return next(iter(groups.values()))
    if options.group not in groups:
        hint = suggestion(options.group, groups)
        raise Failure(f"rehearse: --group: no classic group {options.group} with members there{hint}")
    return groups[options.group]


def _groups(paths: Sequence[str]) -> dict[str, RecordedGroup]:
    """The groups of all inputs; the last that has one counts."""
    from coordwire.cli.inputs import failure
    from coordwire.designs.rehearsal import find_groups
    from coordwire.segments.names import file_name

    groups: dict[str, RecordedGroup] = {}
    for path in paths:
        try:
            if Path(path).is_file() and file_name(Path(path).name) is None and _is_capture(path):
                groups |= _captured(path)
            else:
                groups |= find_groups(_items(path))
        except (OSError, ValueError) as error:
            raise failure(path, error) from None
    return groups


def _is_capture(path: str) -> bool:
    """Whether a file is a capture by its content, which may be compressed."""
    from coordwire.cli.inputs import content_kind

    return content_kind(path) in ("pcap", "pcapng", "hex")


def _captured(path: str) -> dict[str, RecordedGroup]:
    from coordwire.capture import Capture
    from coordwire.cli.inputs import opened
    from coordwire.designs.rehearsal import find_captured_groups

    with opened(path) as stream:
        return find_captured_groups(Capture(stream, path, lazy=True).entries())


def _items(path: str) -> Iterator[LogItem]:
    from coordwire.capture.printable import shown
    from coordwire.cli.coordinator_logs import read_log
    from coordwire.cli.inputs import note
    from coordwire.errors import UnreadableRange, counted
    from coordwire.timeline.from_log.files import find_files

    for file in find_files([path]):
        if file.log not in (None, "consumer_offsets"):
            continue
        for item in read_log(file):
            if isinstance(item, UnreadableRange):
                place = f"{counted(item.length, 'byte', ',')} at byte {item.position:,}"
                note(f"{shown(item.file)}: {place} couldn't be read: {item.reason}")
            yield item
