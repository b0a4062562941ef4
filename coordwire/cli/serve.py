"""`coordwire serve`: a broker for tests, until it is interrupted.

Rules: it listens on loopback unless another address is given, with a warning where it needs no
authentication. The addresses that clients take are the first line of the output; connections that were
refused go to standard error. Secrets come from files and the environment. SIGINT and SIGTERM end it in order.
"""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import os
import signal
import ssl
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coordwire.capture.printable import shown
from coordwire.cli import Failure
from coordwire.cli.listening import (
    Receivers,
    capture_file,
    configure_log,
    configure_timeline,
    configure_tls,
    fault_rule,
    remove_log,
    report_faults,
    story_shown,
    takes,
    tls_context,
)
from coordwire.errors import CoordwireError, counted

if TYPE_CHECKING:
    from coordwire.broker import Broker
    from coordwire.broker.harness.traffic import LiveTraffic
    from coordwire.broker.injection import FaultRule

USERS = "COORDWIRE_USERS"


def read_users(path: Path | None, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Passwords by user, from lines `NAME:PASSWORD` of a file and of the variable `USERS`."""
    users: dict[str, str] = {}
    if path is not None:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise Failure(f"serve: --users: {error}") from None
        users.update(_users(text, f"--users {path}"))
        if not users:
            raise Failure(f"serve: --users {path}: expected lines NAME:PASSWORD, there are none")
    users.update(_users(environment.get(USERS, ""), USERS))
    return users


def _users(text: str, source: str) -> dict[str, str]:
    users = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, separator, password = line.partition(":")
        if not (name.strip() and separator and password):
            raise Failure(
                f"serve: {source}, line {number}: expected NAME:PASSWORD"
            )  # without the line's text
        users[name.strip()] = password
    return users


_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_MOST_PARTITIONS = 10_000


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port",
        type=int,
        default=9092,
        help="port of the first node; the others follow; 0: any free port (default: 9092)",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument(
        "--advertise",
        metavar="HOST:PORT[,…]",
        help="address that clients are given for each node, for instance that of a proxy",
    )
    parser.add_argument("--nodes", type=int, default=1, help="number of brokers in the cluster (default: 1)")
    parser.add_argument(
        "--topic",
        action="append",
        default=[],
        metavar="NAME[:PARTITIONS]",
        help="create a topic at the start",
    )
    parser.add_argument(
        "--no-auto-create", action="store_true", help="do not create the topics that clients ask for"
    )
    parser.add_argument(
        "--partitions",
        type=int,
        default=1,
        metavar="N",
        help="partitions of topics that are created without a number (default: 1)",
    )
    configure_tls(parser)
    parser.add_argument(
        "--users",
        type=Path,
        metavar="FILE",
        help=f"clients authenticate: lines NAME:PASSWORD; or in the environment, as {USERS}",
    )
    parser.add_argument(
        "--sasl",
        metavar="MECHANISM[,…]",
        default="PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        help="mechanisms of authentication: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 (default: all)",
    )
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="RULE",
        help="a fault that some requests meet, such as "
        "'Heartbeat group=g nth=3 error=REBALANCE_IN_PROGRESS'; repeatable",
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="keep the logs in a folder, not in memory")
    parser.add_argument(
        "--as-of", metavar="RELEASE", help="offer the versions of an older Kafka, as 3.9; from 2.0 on"
    )
    parser.add_argument(
        "--coordinator-release",
        metavar="RELEASE",
        help="have groups, APIs and features as this Kafka, as 4.3.1 (default: 4.4.0, the newest)",
    )
    parser.add_argument(
        "--pcap", type=Path, metavar="FILE", help="write what is sent and received to a capture"
    )
    parser.add_argument(
        "--show-secrets", action="store_true", help="write passwords, tokens and keys to it too"
    )
    configure_timeline(parser)
    parser.add_argument(
        "--kafka-defaults", action="store_true", help="use Kafka's own time-outs, delays and retention"
    )
    loudness = parser.add_mutually_exclusive_group()
    loudness.add_argument(
        "-v", "--verbose", action="store_true", help="report every connection, not only those refused"
    )
    loudness.add_argument("-q", "--quiet", action="store_true", help="report errors of the broker alone")


def run(options: argparse.Namespace) -> int:
    topics = dict(_topic(text, options.partitions) for text in options.topic)
    faults = [fault_rule(text, options) for text in options.fault]
    if options.nodes < 1:
        raise Failure(f"serve: expected at least 1 node, got {options.nodes}")
    if not 0 <= options.port <= 65536 - options.nodes:
        raise Failure(f"serve: {options.port} is not a port, with {options.nodes} nodes")
    advertised = _advertised(options.advertise, options.nodes)
    settings = _settings(options)
    tls = tls_context(options)
    if not options.quiet:
        _warn(options, bool(settings["users"]) or options.tls_client_ca is not None)
    handler = configure_log(options, "coordwire.broker")
    try:
        asyncio.run(_serve(options, topics, faults, settings, tls, advertised))
    finally:
        remove_log(handler, "coordwire.broker")
    return 0


def _warn(options: argparse.Namespace, is_closed: bool) -> None:
    """Warn on standard error of options that a user may not have meant."""
    if not _is_loopback(options.host) and not is_closed:
        print(
            f"coordwire: {options.host} can be reached by others, and this broker lets everybody in",
            file=sys.stderr,
        )
    if options.host in ("0.0.0.0", "::") and options.advertise is None:
        print(
            f"coordwire: clients are given {options.host}, which only this machine reaches; see --advertise",
            file=sys.stderr,
        )


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """The fields of `BrokerConfig` that options set."""
    if not 0 < options.partitions <= _MOST_PARTITIONS:
        raise Failure(f"serve: --partitions: expected 1 to {_MOST_PARTITIONS}, got {options.partitions}")
    mechanisms = tuple(name.strip().upper() for name in options.sasl.split(","))
    unknown = [name for name in mechanisms if name not in _MECHANISMS]
    if unknown:
        raise Failure(f"serve: --sasl: expected some of {', '.join(_MECHANISMS)}, got {unknown[0]!r}")
    return {
        "as_of": options.as_of,
        "auto_create_topics": not options.no_auto_create,
        "num_partitions": options.partitions,
        "users": read_users(options.users),
        "sasl_mechanisms": mechanisms,
    }


def _advertised(text: str | None, nodes: int) -> list[tuple[str, int]]:
    """The addresses of --advertise."""
    if text is None:
        return []
    from coordwire.client import SettingsError
    from coordwire.client.settings import address

    try:
        addresses = [address(part) for part in text.split(",")]
    except SettingsError as error:
        raise Failure(f"serve: --advertise: {error}") from None
    if len(addresses) != nodes:
        raise Failure(f"serve: --advertise: expected {nodes} addresses, one a node, got {len(addresses)}")
    return addresses


def _topic(text: str, default: int) -> tuple[str, int]:
    name, _, count = text.partition(":")
    from coordwire.coordinator.topics import bad_name

    reason = bad_name(name)
    if reason is not None:
        raise Failure(f"serve: --topic {text}: {reason}")
    if count and not (count.isdecimal() and 0 < int(count) <= _MOST_PARTITIONS):
        raise Failure(f"serve: --topic {text}: expected 1 to 10000 partitions, got {count!r}")
    return name, int(count or default)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _live(options: argparse.Namespace, ports: list[int]) -> list[LiveTraffic]:
    """The receivers of the traffic while the broker runs."""
    from coordwire.broker.harness.traffic import LiveTraffic

    traffic = []
    if options.pcap is not None:
        try:
            traffic.append(LiveTraffic(capture_file(options.pcap, "wb")))
        except OSError as error:
            raise Failure(f"serve: --pcap: {error}") from None
    if options.timeline:
        traffic.append(story_shown(options, *(f"--port={port}" for port in ports)))
    return traffic


def _introduction(options: argparse.Namespace, broker: Broker) -> Iterator[str]:
    """What runs, how clients connect to it, and what its faults take."""
    place = "in memory" if options.data is None else f"in {shown(str(options.data))}"
    yield f"Kafka for tests: {counted(options.nodes, 'broker')}, {place}; Ctrl-C ends it"
    yield f"connect with bootstrap.servers={broker.bootstrap}"
    protocol = ("SASL_" if broker.config.users else "") + ("SSL" if options.tls_cert else "PLAINTEXT")
    if protocol != "PLAINTEXT":
        yield f"and security.protocol={protocol}"
    for handle in broker.faults.all:
        yield f"fault {shown(str(handle.rule))}: takes {takes(handle.rule)}"


async def _serve(
    options: argparse.Namespace,
    topics: dict[str, int],
    faults: list[FaultRule],
    settings: dict[str, Any],
    tls: ssl.SSLContext | None,
    advertised: list[tuple[str, int]],
) -> None:
    from coordwire.broker import Broker, BrokerConfig

    try:
        config = replace(BrokerConfig.kafka() if options.kafka_defaults else BrokerConfig(), **settings)
    except ValueError as error:
        raise Failure(f"serve: --as-of: {error}") from None
    if options.coordinator_release is not None:
        try:
            coordinator = replace(config.coordinator, release=options.coordinator_release)
        except ValueError as error:
            raise Failure(f"serve: --coordinator-release: {error}") from None
        config = replace(config, coordinator=coordinator)
    broker = Broker(
        topics=topics,
        nodes=options.nodes,
        config=config,
        data=options.data,
        host=options.host,
        port=options.port,
        tls=tls,
        advertised=advertised,
        show_secrets=options.show_secrets,
    )
    handles = [broker.faults.add(rule) for rule in faults]
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # a system without
            loop.add_signal_handler(number, ended.set)
    try:
        await broker.start()
    except CoordwireError as error:
        raise Failure(f"serve: {error.reason}") from None
    live: list[LiveTraffic] = []
    try:
        live += _live(options, [port for _, port in broker.listening])
        if live:
            broker.record(Receivers(live))
        if advertised:
            from coordwire.client.settings import shown_address

            listening = ", ".join(map(shown_address, broker.listening))
            print(f"coordwire: listens on {listening}", file=sys.stderr)
        if not options.quiet:
            for line in _introduction(options, broker):
                print(f"coordwire: {line}", file=sys.stderr, flush=True)
        print(broker.bootstrap, flush=True)
        await ended.wait()
    finally:
        await broker.stop()
        report_faults(handles)
        for traffic in live:
            traffic.close()
            if traffic.lost:
                print(f"coordwire: {traffic.lost} connections are not whole in the capture", file=sys.stderr)
