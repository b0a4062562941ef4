"""`coordwire serve`: a broker for tests, until it is interrupted.

Rules: it listens on loopback unless another address is given, with a warning where it needs no
authentication. The addresses that clients take are the first line of the output; connections that were
refused go to standard error. Secrets come from files and the environment. SIGINT and SIGTERM end it in order.

The log on standard error has a line for each message, and no traceback unless it is a fault of the broker; of
messages of one kind a few are shown at once, and how many were left out with the next one of that kind. A
kind is a message with the beginning of its reason.
"""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import logging
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from coordwire.cli import Failure

if TYPE_CHECKING:
    from coordwire.broker.harness.traffic import LiveTraffic
    from coordwire.broker.injection import FaultRule

__all__ = ["PERIOD", "SHOWN", "Repeats", "configure", "read_users", "run"]

SHOWN, PERIOD = 3, 10.0
"""As many messages of one kind are shown in so many seconds."""

_KINDS, _REASON = 1_000, 24

_LEVELS = {-1: logging.ERROR, 0: logging.INFO}


class Repeats(logging.Filter):
    """A filter that passes some messages of each kind. clock: in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._kinds: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.INFO:  # at DEBUG every connection is printed
            return True
        now = self._clock()
        reason = str(record.args[-1])[:_REASON] if isinstance(record.args, tuple) and record.args else ""
        kind = str(record.msg), reason
        if len(self._kinds) > _KINDS:
            self._kinds.clear()
        began, count = self._kinds.get(kind, (now, 0))
        if now - began >= PERIOD:
            record.left_out = max(0, count - SHOWN)
            began, count = now, 0
        self._kinds[kind] = began, count + 1
        return count < SHOWN


class _Lines(logging.Formatter):
    """`coordwire: ` and the message."""

    def format(self, record: logging.LogRecord) -> str:
        text = f"coordwire: {super().format(record)}"
        left_out = getattr(record, "left_out", 0)
        return f"coordwire: {left_out} more like the next line\n{text}" if left_out else text


def configure_log(verbosity: int) -> logging.Handler:
    """Show the broker's messages and asyncio's. verbosity: -1 for errors alone, 0 for refused connections
    too, 1 for all connections."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    handler.addFilter(Repeats())
    level = _LEVELS.get(verbosity, logging.DEBUG)
    for name, least in (("coordwire.broker", level), ("asyncio", max(level, logging.WARNING))):
        logger = logging.getLogger(name)
        logger.setLevel(least)
        logger.addHandler(handler)
        logger.propagate = False
    return handler


def remove_log(handler: logging.Handler) -> None:
    """Remove the handler of `configure_log`."""
    for name in ("coordwire.broker", "asyncio"):
        logger = logging.getLogger(name)
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
        logger.propagate = True


# --- the command ---


USERS = "COORDWIRE_USERS"
KEY_PASSWORD = "COORDWIRE_TLS_KEY_PASSWORD"


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


def tls_context(chain: Path | None, key: Path | None, client_ca: Path | None) -> ssl.SSLContext | None:
    """A server's context; None without a certificate. client_ca: whose certificates clients must have."""
    if chain is None:
        if key is not None or client_ca is not None:
            raise Failure("serve: --tls-key and --tls-client-ca need --tls-cert")
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    password = os.environ.get(KEY_PASSWORD, "")
    try:
        context.load_cert_chain(chain, key, password=lambda: password)
    except (OSError, ValueError) as error:
        reason = f"{error}" if isinstance(error, FileNotFoundError) else _reason(error)
        raise Failure(f"serve: --tls-cert {chain}, --tls-key {key or chain}: {reason}") from None
    if client_ca is not None:
        try:
            context.load_verify_locations(client_ca)
        except OSError as error:
            raise Failure(f"serve: --tls-client-ca {client_ca}: {_reason(error)}") from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return f"not a certificate with its key in PEM, or {KEY_PASSWORD} does not fit"
    return f"{error}"


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
    parser.add_argument("--tls-cert", type=Path, metavar="FILE", help="serve TLS, with this chain in PEM")
    parser.add_argument(
        "--tls-key",
        type=Path,
        metavar="FILE",
        help=f"the certificate's key, if in another file; {KEY_PASSWORD} has its password",
    )
    parser.add_argument(
        "--tls-client-ca", type=Path, metavar="FILE", help="clients need a certificate that this one signed"
    )
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
        "--pcap", type=Path, metavar="FILE", help="write what is sent and received to a capture"
    )
    parser.add_argument(
        "--timeline", action="store_true", help="show what happens to groups, while it happens"
    )
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
    faults = [_fault(text) for text in options.fault]
    if options.nodes < 1:
        raise Failure(f"serve: expected at least 1 node, got {options.nodes}")
    if not 0 <= options.port <= 65536 - options.nodes:
        raise Failure(f"serve: {options.port} is not a port, with {options.nodes} nodes")
    advertised = _advertised(options.advertise, options.nodes)
    settings = _settings(options)
    tls = tls_context(options.tls_cert, options.tls_key, options.tls_client_ca)
    if not options.quiet:
        _warn(options, bool(settings["users"]) or options.tls_client_ca is not None)
    handler = configure_log(1 if options.verbose else -1 if options.quiet else 0)
    try:
        asyncio.run(_serve(options, topics, faults, settings, tls, advertised))
    finally:
        remove_log(handler)
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
    addresses = []
    for address in text.split(","):
        host, _, port = address.strip().rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not (host and port.isdecimal() and 0 < int(port) < 65536):
            raise Failure(f"serve: --advertise: expected HOST:PORT, got {address.strip()!r}")
        addresses.append((host, int(port)))
    if len(addresses) != nodes:
        raise Failure(f"serve: --advertise: expected {nodes} addresses, one a node, got {len(addresses)}")
    return addresses


def _topic(text: str, default: int) -> tuple[str, int]:
    name, _, count = text.partition(":")
    from coordwire.broker.cluster.topics import bad_name

    reason = bad_name(name)
    if reason is not None:
        raise Failure(f"serve: --topic {text}: {reason}")
    if count and not (count.isdecimal() and 0 < int(count) <= _MOST_PARTITIONS):
        raise Failure(f"serve: --topic {text}: expected 1 to 10000 partitions, got {count!r}")
    return name, int(count or default)


def _fault(text: str) -> FaultRule:
    from coordwire.broker.injection import FaultyRule, parse_fault

    try:
        return parse_fault(text)
    except FaultyRule as error:
        raise Failure(f"serve: --fault: {error}") from None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _Several:
    """Passes traffic on to several receivers."""

    def __init__(self, places: Sequence[LiveTraffic]) -> None:
        self._places = places

    def opened(self, client: tuple[str, int], broker: tuple[str, int]) -> int:
        (number,) = {place.opened(client, broker) for place in self._places}
        return number

    def add(self, connection: int, data: bytes, *, to_client: bool) -> None:
        for place in self._places:
            place.add(connection, data, to_client=to_client)


def _live(options: argparse.Namespace, ports: list[int]) -> list[LiveTraffic]:
    """The receivers of the traffic while the broker runs."""
    from coordwire.broker.harness.traffic import LiveTraffic

    traffic = []
    if options.pcap is not None:
        try:
            traffic.append(LiveTraffic(options.pcap.open("wb")))
        except OSError as error:
            raise Failure(f"serve: --pcap: {error}") from None
    if options.timeline:
        # A process of its own, so that a long story does not hold the broker up.
        command = [sys.executable, "-u", "-m", "coordwire", "timeline", "-"]
        command += [f"--port={port}" for port in ports]
        story = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
        assert story.stdin is not None
        traffic.append(LiveTraffic(cast("BinaryIO", story.stdin), then=story.wait))
    return traffic


async def _serve(
    options: argparse.Namespace,
    topics: dict[str, int],
    faults: list[FaultRule],
    settings: dict[str, Any],
    tls: ssl.SSLContext | None,
    advertised: list[tuple[str, int]],
) -> None:
    from coordwire.broker import Broker, BrokerConfig
    from coordwire.errors import CoordwireError

    try:
        config = replace(BrokerConfig.kafka() if options.kafka_defaults else BrokerConfig(), **settings)
    except ValueError as error:
        raise Failure(f"serve: --as-of: {error}") from None
    broker = Broker(
        topics=topics,
        nodes=options.nodes,
        config=config,
        data=options.data,
        host=options.host,
        port=options.port,
        tls=tls,
        advertised=advertised,
    )
    for rule in faults:
        broker.faults.add(rule)
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
            broker.traffic = _Several(live)
        if advertised:
            listening = ", ".join(f"{host}:{port}" for host, port in broker.listening)
            print(f"coordwire: listens on {listening}", file=sys.stderr)
        print(broker.bootstrap, flush=True)
        await ended.wait()
    finally:
        await broker.stop()
        for traffic in live:
            traffic.close()
            if traffic.lost:
                print(f"coordwire: {traffic.lost} connections are not whole in the capture", file=sys.stderr)
