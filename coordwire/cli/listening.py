"""The common part of the commands that listen: their log, TLS, faults, and where live traffic goes.

Strategy: what shows traffic is a process of its own, which reads a capture from a pipe, so that a slow
terminal does not hold the connections up. Rules: the log on standard error has a line for each message, and
no traceback unless it is a fault of the program; of messages of one kind a few are shown at once, and how
many were left out with the next one of that kind. A kind is a message with the beginning of its reason.
Secrets come from the environment.
"""

from __future__ import annotations

import argparse
import logging
import os
import ssl
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, cast

from coordwire.capture.printable import shown
from coordwire.cli import Failure, progress

if TYPE_CHECKING:
    from coordwire.broker.harness.traffic import LiveTraffic
    from coordwire.broker.injection import FaultHandle, FaultRule

KEY_PASSWORD = "COORDWIRE_TLS_KEY_PASSWORD"

SHOWN, PERIOD = 3, 10.0
"""As many messages of one kind are shown in so many seconds."""

_KINDS, _REASON = 1_000, 24


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
    """`coordwire: ` and the message, which a peer's text neither leaves nor continues."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return shown(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:
        return "\n".join(map(shown, super().formatException(ei).splitlines()))

    def format(self, record: logging.LogRecord) -> str:
        text = f"coordwire: {super().format(record)}"
        left_out = getattr(record, "left_out", 0)
        return f"coordwire: {left_out} more like the next line\n{text}" if left_out else text


class _Handler(logging.StreamHandler[TextIO]):
    """Writes to standard error, above a line of progress."""

    def emit(self, record: logging.LogRecord) -> None:
        progress.clear()
        super().emit(record)


def configure_log(options: argparse.Namespace, name: str) -> logging.Handler:
    """Show the messages of the logger `name` and asyncio's, as the options -v and -q have it."""
    handler = _Handler(sys.stderr)
    handler.setFormatter(_Lines())
    handler.addFilter(Repeats())
    level = logging.DEBUG if options.verbose else logging.ERROR if options.quiet else logging.INFO
    for logger_name, least in ((name, level), ("asyncio", max(level, logging.WARNING))):
        logger = logging.getLogger(logger_name)
        logger.setLevel(least)
        logger.addHandler(handler)
        logger.propagate = False
    return handler


def remove_log(handler: logging.Handler, name: str) -> None:
    """Remove the handler of `configure_log`."""
    for logger_name in (name, "asyncio"):
        logger = logging.getLogger(logger_name)
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
        logger.propagate = True


# --- TLS ---


def configure_tls(parser: argparse.ArgumentParser) -> None:
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


def tls_context(options: argparse.Namespace) -> ssl.SSLContext | None:
    """The server's context that the options of `configure_tls` describe; None without a certificate."""
    name = options.command
    chain, key, client_ca = options.tls_cert, options.tls_key, options.tls_client_ca
    if chain is None:
        if key is not None or client_ca is not None:
            raise Failure(f"{name}: --tls-key and --tls-client-ca need --tls-cert")
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    password = os.environ.get(KEY_PASSWORD, "")
    try:
        context.load_cert_chain(chain, key, password=lambda: password)
    except (OSError, ValueError) as error:
        reason = f"{error}" if isinstance(error, FileNotFoundError) else _reason(error)
        raise Failure(f"{name}: --tls-cert {chain}, --tls-key {key or chain}: {reason}") from None
    if client_ca is not None:
        try:
            context.load_verify_locations(client_ca)
        except OSError as error:
            raise Failure(f"{name}: --tls-client-ca {client_ca}: {_reason(error)}") from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return f"not a certificate with its key in PEM, or {KEY_PASSWORD} does not fit"
    return f"{error}"


# --- traffic and faults ---


class Receivers:
    """Passes traffic on to several receivers."""

    def __init__(self, places: Sequence[LiveTraffic]) -> None:
        self._places = places

    def opened(self, client: tuple[str, int], broker: tuple[str, int]) -> int:
        (number,) = {place.opened(client, broker) for place in self._places}
        return number

    def add(self, connection: int, data: bytes, *, to_client: bool) -> None:
        for place in self._places:
            place.add(connection, data, to_client=to_client)

    def ended(self, connection: int, *, to_client: bool, aborted: bool) -> None:
        for place in self._places:
            place.ended(connection, to_client=to_client, aborted=aborted)


def capture_file(path: Path, mode: str) -> BinaryIO:
    """Open a capture to write, which only its user can read: a file that exists gets that mode too.

    Raises `OSError`.
    """
    file = open(path, mode, opener=lambda name, flags: os.open(name, flags, 0o600))  # noqa: SIM115
    if os.name == "posix" and stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        os.fchmod(file.fileno(), 0o600)
    return cast("BinaryIO", file)


def shown_by(words: Sequence[str]) -> LiveTraffic:
    """A receiver that another command of this program reads from its standard input, such as `decode -`."""
    from coordwire.broker.harness.traffic import LiveTraffic

    command = [sys.executable, "-u", "-m", "coordwire", *words]
    reader = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    assert reader.stdin is not None
    return LiveTraffic(cast("BinaryIO", reader.stdin), then=reader.wait)


def configure_timeline(container: argparse._ActionsContainer) -> None:
    container.add_argument(
        "--timeline",
        nargs="?",
        const="story",
        choices=("story", "json"),
        help="show what happens to groups while it happens: a line an event, and their story at the end; or "
        "json lines",
    )


def story_shown(options: argparse.Namespace, *words: str) -> LiveTraffic:
    """The receiver for --timeline. words: further options of `coordwire timeline`."""
    progress.share()
    return shown_by(["timeline", "--live", "--format", options.timeline, *words, "-"])


def takes(rule: FaultRule) -> str:
    """Which of the requests that match its conditions a rule takes."""
    first, times = rule.nth, rule.times
    if times is None:
        which = "every request that matches" + (f", from number {first} on" if first > 1 else "")
    elif times == 1:
        which = (
            "the first request that matches" if first == 1 else f"request number {first} of those that match"
        )
    elif first == 1:
        which = f"the first {times} requests that match"
    else:
        which = f"requests number {first} to {first + times - 1} of those that match"
    return f"{which}, with probability {rule.probability:g}" if rule.probability < 1 else which


def report_faults(handles: Sequence[FaultHandle]) -> None:
    """Write on standard error how often each fault was met."""
    progress.clear()
    for handle in handles:
        hits = f"{handle.hits:,} of {handle.matches:,} requests that matched"
        print(f"coordwire: fault {shown(str(handle.rule))}: {hits}", file=sys.stderr)


def fault_rule(text: str, options: argparse.Namespace) -> FaultRule:
    """The rule of an option --fault. Raises `Failure`."""
    from coordwire.broker.injection import FaultyRule, parse_fault

    try:
        return parse_fault(text)
    except FaultyRule as error:
        raise Failure(f"{options.command}: --fault: {error}") from None
