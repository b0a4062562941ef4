"""`coordwire decode`: recorded traffic, frame by frame.

Strategy: `capture.Capture` gives entries, a filter selects, a format writes; each entry is forgotten once it
is written. Rules: several inputs are read one after the other; one that can't be read costs only itself, and
the status.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, Protocol

from coordwire.capture.detect import sniff
from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.reader import FORMATS, Capture, read_head
from coordwire.cli import Failure, dialect_options, filters, local_tables
from coordwire.cli.inputs import failure, opened, shown
from coordwire.errors import DecodeError, UnreadableRange, counted

SEGMENT = "segment"


class DecodeFormat(Protocol):
    """Writes the entries of captures. One with a method `observe` is shown all of them, before filters."""

    def write(self, entry: Entry, digits: int) -> None:
        """One entry; `digits`: decimals of a second that its time has."""

    def finish(self) -> None:
        """The capture is at its end."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="pcap, pcapng, hex text, frames or a log segment; - for stdin",
    )
    parser.add_argument(
        "--format", choices=("tree", "json", "hex", *local_tables.FORMATS),
        help="default: tree on a terminal, else json lines; csv and parquet are tables (--out)",
    )  # fmt: skip
    local_tables.configure(parser)
    parser.add_argument(
        "--input", choices=(*FORMATS, SEGMENT), help="input format (default: detected from the content)"
    )
    parser.add_argument("--strict", action="store_true", help="refuse deviations that Apache Kafka accepts")
    parser.add_argument("--show-secrets", action="store_true", help="show passwords, tokens and keys")
    parser.add_argument(
        "--port", type=_port, action="append", default=[], metavar="N", help="a broker's port; repeatable"
    )
    dialect_options.configure(parser)
    parser.add_argument(
        "--deep", action="store_true", help="decode opaque bytes whose content is known, such as assignments"
    )
    filters.configure(parser)


def run(options: argparse.Namespace) -> int:
    gc.set_threshold(50_000, 20, 50)  # entries come and go; few are cycles
    if local_tables.wanted(options):
        with local_tables.writing(options) as tables:
            return _all(local_tables.chains(options.files), options, tables)
    return _all([[name] for name in options.files], options, _format(options))


def _all(inputs: Sequence[Sequence[str]], options: argparse.Namespace, output: DecodeFormat) -> int:
    """All inputs, of which each is one file or the files of a rotated capture."""
    status = 0
    for names in inputs:
        try:
            status = max(status, _decode(names, options, output))
        except Failure as trouble:
            sys.stdout.flush()
            print(f"coordwire: {trouble}", file=sys.stderr)
            status = 2
    return status


def _port(text: str) -> int:
    port = int(text) if text.isdecimal() and text.isascii() and len(text) <= 5 else 0
    if not 0 < port < 65536:
        raise argparse.ArgumentTypeError(f"expected a port from 1 to 65535, got {text!r}")
    return port


def _format(options: argparse.Namespace) -> DecodeFormat:
    name = options.format or ("tree" if sys.stdout.isatty() else "json")
    if name == "tree":
        from coordwire.cli.tree import TreeFormat

        return TreeFormat(show_secrets=options.show_secrets, deep=options.deep)
    if name == "hex":
        from coordwire.cli.annotated_hex import HexFormat

        return HexFormat(show_secrets=options.show_secrets, strict=options.strict)
    return DecodeJsonFormat(show_secrets=options.show_secrets, deep=options.deep)


class DecodeJsonFormat:
    """One JSON object a line."""

    def __init__(self, *, show_secrets: bool, deep: bool) -> None:
        from coordwire.capture.jsonlines import line

        self._line = line
        self._show_secrets = show_secrets
        self._opened = _opened if deep else None

    def write(self, entry: Entry, digits: int) -> None:
        sys.stdout.write(self._line(entry, digits, show_secrets=self._show_secrets, opened=self._opened))

    def finish(self) -> None:
        """Nothing is kept."""


def _opened(entry: FrameEntry, show_secrets: bool) -> dict[str, Any]:
    """What hides in a frame's opaque bytes and in its record sets."""
    from coordwire.cli import deep, recordsets

    found = deep.opened(entry, show_secrets=show_secrets)
    if entry.message is not None:
        found |= recordsets.forms(entry.message, show_secrets=show_secrets)
    return found


def _decode(names: Sequence[str], options: argparse.Namespace, output: DecodeFormat) -> int:
    """One input: 1 if something in its output was refused."""
    status, name = 0, names[0]
    observe = getattr(output, "observe", None)
    with opened(name) if len(names) == 1 else local_tables.opened_chain(names) as stream:
        head = _head(name, stream)
        if _is_segment(head, options):
            if observe is not None:
                raise Failure(f"{shown(name)}: a log segment: coordwire pipeline makes tables of those")
            from coordwire.cli.segment.segment_dump import decode

            return decode(name, stream, head, options)
        capture = _guarded(
            name,
            lambda: Capture(
                stream,
                name,
                input=options.input,
                strict=options.strict,
                ports=frozenset(options.port),
                head=head,
                **dialect_options.chosen(options),
            ),
        )
        wanted = filters.Filter(options)
        for entry in _entries(name, capture):
            if observe is not None:
                observe(entry)
            if wanted(entry):
                output.write(entry, capture.tally.digits)
                if isinstance(entry, UnreadableRange) or entry.error is not None:
                    status = 1
        output.finish()
    _notes(name, capture, wanted.passed_over)
    return status


def _head(name: str, stream: BinaryIO) -> bytes:
    try:
        return read_head(stream)
    except OSError as error:
        raise failure(name, error) from None


def _is_segment(head: bytes, options: argparse.Namespace) -> bool:
    if options.input is not None or options.dialect != "kafka":
        return bool(options.input == SEGMENT)
    return sniff(head) == SEGMENT


def _guarded(name: str, make: Callable[[], Capture]) -> Capture:
    try:
        return make()
    except DecodeError as error:
        raise Failure(f"{shown(name)}: {error.reason}") from None
    except OSError as error:
        raise failure(name, error) from None
    except ValueError as error:  # type ids
        raise Failure(str(error)) from None


def _entries(name: str, capture: Capture) -> Iterator[Entry]:
    """The entries; errors of reading are kept apart from errors of writing."""
    try:
        yield from capture.entries()
    except DecodeError as error:
        raise Failure(f"{shown(name)}: {error.reason}") from None
    except OSError as error:
        raise failure(name, error) from None


def _notes(name: str, capture: Capture, passed_over: int) -> None:
    """What the output doesn't show, on standard error."""
    summary = capture.summary
    if summary.connections and not summary.kafka:
        sys.stdout.flush()
        print(
            f"coordwire: {shown(name)}: {counted(summary.connections, 'TCP connection')}, none of them "
            "recognised as Kafka; if one is, name its broker's port with --port",
            file=sys.stderr,
        )
    if passed_over:
        sys.stdout.flush()
        print(
            f"coordwire: {shown(name)}: not shown: {counted(passed_over, 'unreadable or undated part')}, "
            "which filters cannot be applied to",
            file=sys.stderr,
        )
