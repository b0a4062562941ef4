"""`coordwire encode`: the JSON lines of `decode`, back to the bytes that they came from.

Strategy: a line's `raw` is its bytes, where it has one; else the bytes are encoded from the header's keys and
the body. Rules: a line that cannot be encoded is reported with its number, the path and the reason, and the
other lines are written; a redacted line is refused, since its bytes would differ, and so is a line that gives
a key twice. A line longer than `LONGEST_LINE` is refused.
"""

from __future__ import annotations

import argparse
import io
import json
import struct
import sys
from binascii import a2b_base64
from typing import Any, BinaryIO

from coordwire.capture.formats.compressed import MAGIC, fault_of
from coordwire.capture.input_format import is_capture
from coordwire.capture.printable import shown
from coordwire.cli import Failure
from coordwire.cli.inputs import failure, is_piped, opened
from coordwire.codec import Message
from coordwire.connection.dialect import KAFKA, Direction
from coordwire.dialects import find_call
from coordwire.dialects.frames import HeadedCall
from coordwire.errors import EncodeError, OutOfRange, WrongType
from coordwire.frames import encode_request, encode_response
from coordwire.jsonform import from_json
from coordwire.messages import find_message
from coordwire.versions import header_version

_SIZE = struct.Struct(">i").pack


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="JSON lines of decode (default, and -: standard input)"
    )
    parser.set_defaults(usage_error=parser.error)
    parser.add_argument(
        "--to", choices=("hex", "frames"), default="hex", help="one frame a line in hex (default), or binary"
    )


LONGEST_LINE = 512 << 20
"""Bytes of a line: twice what the largest frame takes in hex, and more."""

LONGEST_NUMBER = 40
"""Digits of a whole number; no field has half of them."""

LONGEST_KEY = 100
LONGEST_MESSAGE = 500
"""Characters of what is said of a line."""


class _NotAFrame(Exception):
    """A line that reports an unreadable range."""


def run(options: argparse.Namespace) -> int:
    status = 0
    if options.file is None:
        if not is_piped():
            options.usage_error("expected a FILE, or a pipe to standard input")
        options.file = "-"
    with opened(options.file) as stream:
        head = stream.peek(MAGIC)[:MAGIC] if isinstance(stream, io.BufferedReader) else b""
        if is_capture(head):
            name = shown(options.file)
            raise Failure(f"{name}: a capture; encode reads the lines of decode --format json {name}")
        number = 0
        while True:
            try:
                line, is_complete = _next_line(stream)
            except OSError as error:
                raise failure(options.file, error) from None
            if not line:
                if fault := fault_of(stream):
                    _say(f"after line {number}: {fault}")
                return 1 if fault else status
            number += 1
            if line.isspace():
                continue
            try:
                if not is_complete:
                    raise OutOfRange(f"a line of more than {LONGEST_LINE:,} bytes")
                frame = encode_line(line)
            except _NotAFrame:
                _say(f"line {number}: skipped: not a frame, but bytes that could not be read")
            except EncodeError as error:
                foreign = number == 1 and line[:1] != b"{"
                hint = "; decode writes such lines with --format json" if foreign else ""
                _say(f"line {number}: {error}{hint}")
                status = 1
            else:
                _write(frame, options.to)


def _next_line(stream: BinaryIO) -> tuple[bytes, bool]:
    """The next line, and whether it is complete; the end of a line that is too long is skipped."""
    line = stream.readline(LONGEST_LINE + 1)
    if len(line) <= LONGEST_LINE:
        return line, True
    end = line
    while end and not end.endswith(b"\n"):
        end = stream.readline(1 << 20)
    return line[:1], False


def _say(text: str) -> None:
    short = text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]}…"
    print(f"coordwire: {shown(short)}", file=sys.stderr)


def _write(frame: bytes, to: str) -> None:
    if to == "hex":
        sys.stdout.write(frame.hex() + "\n")
    else:
        sys.stdout.buffer.write(frame)


def encode_line(line: bytes) -> bytes:
    """A line's frame, size prefix included. Raises `EncodeError`, or `_NotAFrame` for an unreadable
    range."""
    try:
        return _encoded(_parsed(line))
    except RecursionError:
        raise WrongType("not a line of decode: nested too deeply") from None


def _parsed(line: bytes) -> object:
    try:
        return json.loads(line, object_pairs_hook=_object, parse_int=_integer)
    except ValueError as error:
        raise WrongType(f"not JSON: {error}") from None


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    form = dict(pairs)
    if len(form) < len(pairs):
        keys: set[str] = set()
        twice = next(key for key, _ in pairs if key in keys or keys.add(key))  # type: ignore[func-returns-value]
        raise WrongType(f'the key "{twice[:LONGEST_KEY]}" occurs twice')
    return form


def _integer(digits: str) -> int:
    """A whole number. Reading one takes time that grows with the square of its digits."""
    if len(digits) > LONGEST_NUMBER:
        raise OutOfRange(f"a number of {len(digits)} digits is too long")
    return int(digits)


def _encoded(form: object) -> bytes:
    if not isinstance(form, dict):
        raise WrongType(f"expected an object, got {type(form).__name__}")
    if form.get("redacted"):
        names = ", ".join(map(str, form["redacted"])) if isinstance(form["redacted"], list) else "something"
        raise WrongType(f"redacted: {names}; decode with --show-secrets to encode again")
    if "frame" in form and form["frame"] is None:
        raise _NotAFrame
    raw = form.get("raw")
    if raw is not None:
        return _from_raw(raw)
    if form.get("error") is not None:
        raise WrongType("a refused frame can be written from its raw bytes only", "raw")
    return _from_body(form)


def _from_raw(raw: object) -> bytes:
    if not isinstance(raw, str):
        raise WrongType("expected hex digits", "raw")
    try:
        data = bytes.fromhex(raw)
    except ValueError:
        raise OutOfRange("not hex", "raw") from None
    return _SIZE(len(data)) + data


def _from_body(form: dict[str, Any]) -> bytes:
    direction = form.get("direction")
    if direction not in ("request", "response"):
        raise WrongType('expected "request" or "response"', "direction")
    key, version = _int(form, "apiKey", 16), _int(form, "apiVersion", 16)
    if form.get("dialect", KAFKA) != KAFKA:
        return _from_call(form, direction, key, version)
    try:
        cls = find_message(key, direction)
    except KeyError:
        raise OutOfRange(f"no API has the key {key}", "apiKey") from None
    body_version = _int(form, "bodyVersion", 16) if form.get("bodyVersion") is not None else version
    correlation_id = _int(form, "correlationId", 32)
    message = _message(cls, form, body_version)
    tags = _tags(form.get("headerTags"))
    if tags and header_version(key, version, direction) < (2 if direction == "request" else 1):
        raise WrongType(f"the header of version {version} has no tagged fields", "headerTags")
    if direction == "response":
        return encode_response(message, version=body_version, correlation_id=correlation_id, header_tags=tags)
    return encode_request(
        message, version=version, correlation_id=correlation_id, client_id=_client_id(form), header_tags=tags
    )


def _from_call(form: dict[str, Any], direction: Direction, key: int, version: int) -> bytes:
    """A line of another dialect: its name determines the message, its key is the type id."""
    name, dialect = form.get("api"), form["dialect"]
    call = find_call(name, str(dialect), type_id=key)
    if call is None or call.name != name or (direction == "response" and call.response is None):
        raise OutOfRange(f"{name!r} is not a {direction} of the dialect {dialect!r}", "api")
    message = _message(call.message(direction), form, version)
    if not isinstance(call, HeadedCall):
        return call.encode(message, direction, version=version)
    return call.encode(
        message, direction, version=version, correlation_id=_int(form, "correlationId", 32),
        client_id=_client_id(form),
    )  # fmt: skip


def _message(cls: type[Message], form: dict[str, Any], version: int) -> Message:
    body = form.get("body")
    if not isinstance(body, dict):
        raise WrongType("expected an object", "body")
    try:
        return from_json(cls, body, version=version)
    except EncodeError as error:
        error.path = f"body.{error.path}" if error.path else "body"
        raise


def _int(form: dict[str, Any], name: str, bits: int) -> int:
    value = form.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise WrongType("missing" if name not in form else "expected a number", name)
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise OutOfRange(f"{value} is beyond int{bits}", name)
    return value


def _client_id(form: dict[str, Any]) -> str | None:
    client_id = None if form.get("clientIsInherited") else form.get("clientId")
    if client_id is not None and not isinstance(client_id, str):
        raise WrongType("expected a string or null", "clientId")
    return client_id


def _tags(tags: object) -> dict[int, bytes] | None:
    """A header's tagged fields."""
    if tags is None:
        return None
    if not isinstance(tags, dict):
        raise WrongType("expected an object", "headerTags")
    tags_by_number = {}
    for number, data in tags.items():
        path = f"headerTags.{number}"
        if not (number.isascii() and number.isdecimal() and len(number) < 11):
            raise WrongType("expected a tag in decimal digits", path)
        if not isinstance(data, str):
            raise WrongType("expected base64", path)
        try:
            tags_by_number[int(number)] = a2b_base64(data, strict_mode=True)
        except ValueError as error:
            raise OutOfRange(f"not base64: {error}", path) from None
    return tags_by_number
