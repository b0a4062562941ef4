"""`coordwire explain`: the meaning of each byte of a frame.

Strategy: the hex is read as a capture is (several frames, xxd and Wireshark dumps, size prefix or not), so
that a response after its request is read as its response. Rules: nothing is hidden, since the reader of the
output has given the bytes.
"""

from __future__ import annotations

import argparse
import io
import os
import re
from collections.abc import Iterator
from functools import partial

from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.printable import shown
from coordwire.capture.reader import Capture
from coordwire.cli import Failure
from coordwire.cli.annotated_hex import HexFormat
from coordwire.cli.capture_hints import is_lone_response
from coordwire.cli.inputs import failure, is_piped, note, opened
from coordwire.cli.selection.names import api
from coordwire.connection.dialect import KAFKA
from coordwire.dialects import dialect_options
from coordwire.errors import DecodeError, UnreadableRange
from coordwire.frames import read_response

PREFIX_DIGITS = 8
_HEX = re.compile(r"(?:0[xX])?[0-9a-fA-F\s:,]*")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "hex",
        nargs="*",
        metavar="HEX",
        help="frames or packets in hex; none, or -: hex or frames from standard input",
    )
    parser.add_argument("--response-to", type=api, metavar="API", help="the frames are responses of this API")
    parser.add_argument("--version", type=int, metavar="N", help="API version of the request")
    parser.add_argument("--strict", action="store_true", help="refuse deviations that Apache Kafka accepts")
    parser.set_defaults(usage_error=parser.error)
    dialect_options.configure(parser)


def run(options: argparse.Namespace) -> int:
    if not options.hex:
        if not is_piped():
            options.usage_error("expected HEX, or a pipe to standard input")
        options.hex = ["-"]
    if (options.response_to is None) != (options.version is None):
        raise Failure("explain: --response-to and --version go together")
    if options.response_to is not None and options.dialect != KAFKA:
        raise Failure("explain: a response in another dialect can only be read after its request: give both")
    _refuse_files(options.hex)
    output = HexFormat(show_secrets=True, strict=options.strict)
    status = lone = 0
    for entry in _entries(options):
        if isinstance(entry, UnreadableRange):
            raise Failure(f"explain: {entry.reason}")
        if options.response_to is not None:
            _answer(entry, options.response_to, options.version, options.strict)
        output.write(entry, 0)
        status = max(status, int(entry.error is not None))
        lone += options.response_to is None and is_lone_response(entry)
    if lone and options.dialect == KAFKA:
        frames = "a frame" if lone == 1 else f"{lone:,} frames"
        note(
            f"explain: {frames} may be a response, which does not name its API: give --response-to API "
            "--version N, or its request before it"
        )
    return status


def _entries(options: argparse.Namespace) -> Iterator[Entry]:
    try:
        open_capture = partial(Capture, strict=options.strict, dialect=dialect_options.dialect_of(options))
        if options.hex == ["-"]:
            with opened("-") as stdin:
                yield from open_capture(stdin, "").entries()
        else:
            stream = io.BytesIO(_text(options.hex).encode("utf-8", "replace"))
            yield from open_capture(stream, "", input="hex").entries()
    except DecodeError as error:
        raise Failure(f"explain: {error.reason}") from None
    except OSError as error:
        raise failure("-", error) from None
    except ValueError as error:  # type ids
        raise Failure(f"explain: {error}") from None


def _refuse_files(words: list[str]) -> None:
    """Raise `Failure` for a file's name where hex is expected, with the command that reads files."""
    for word in words:
        if word != "-" and not _HEX.fullmatch(word) and os.path.exists(word):
            name = shown(word)
            raise Failure(
                f"explain: expected hex, and {name} is a file; "
                f"coordwire decode --format hex {name} explains every byte of its frames"
            )


def _text(words: list[str]) -> str:
    """The arguments as a hex text: each a frame, or, where the first is too short for one, all together."""
    digits = sum(char in "0123456789abcdefABCDEF" for char in words[0].removeprefix("0x"))
    return " ".join(words) if digits < PREFIX_DIGITS else "\n\n".join(words)


def _answer(entry: FrameEntry, key: int, version: int, strict: bool) -> None:
    """Read an entry again, as the response to a request that is not in the input."""
    entry.direction, entry.api_key, entry.api_version = "response", key, version
    entry.error = None
    entry.correlation_id = int.from_bytes(entry.body[:4], "big", signed=True)
    try:
        entry.deviations = read_response(entry.body, key, version, strict=strict).deviations
    except DecodeError as error:
        entry.error = error
