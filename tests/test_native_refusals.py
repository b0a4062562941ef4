"""What the extension's own functions refuse: wrong arguments, and what is made in another way than it needs.

Rule: each call ends with an error of Python's, never with an answer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from coordwire._speedups import native
from coordwire.capture import frame_walks
from coordwire.capture.connections import Summary
from coordwire.capture.flows import Chunk
from coordwire.capture.plain_lines import PlainJsonLines
from coordwire.capture.tcp.reassembly import HalfStream
from coordwire.codec.program import layout_program, layout_transcriber
from coordwire.connection import kafka
from coordwire.connection.events import RequestReceived, ResponseReceived, SentRequest
from coordwire.connection.receive_buffer import ReceiveBuffer
from coordwire.frames import RequestFrame, request_framer, response_framer
from coordwire.limits import Limits, context
from coordwire.messages import RequestHeader
from coordwire.messages.heartbeat import HeartbeatRequest
from coordwire.messages.join_group import JoinGroupRequest
from coordwire.records import Record, backend, encode_batch

if native is None:
    pytest.skip("no native extension", allow_module_level=True)

N: Any = sys.modules["coordwire._speedups._native"]
Call = Callable[[], Any]
ERRORS = (TypeError, ValueError, RuntimeError, AttributeError, OverflowError, BufferError)


class Weak:
    """Slots, and room for weak references."""

    __slots__ = ("__weakref__", "group_id", "int", "is_safe", "offset", "tags")


class Open:
    """No slots at all."""

    tags = group_id = offset = None


class Small(tuple[int, ...]):
    """A tuple with a dictionary."""


ROW = ("group_id", 9, 0, -1, 1, 0, None, "")


def calls() -> dict[str, Call]:
    layout = JoinGroupRequest._layout_.at(9)
    program: Any = layout_program(layout)
    text: Any = layout_transcriber(layout)
    columns = N.Columns(127, 1 << 16, False, True)
    codec: Any = backend.codec
    framer: Any = request_framer
    answers = response_framer
    exchange: Any = kafka._exchange
    lines: Any = PlainJsonLines(show_secrets=False).native
    walk: Any = frame_walks.frame_walk(Chunk, {}, Summary())
    body = codec.body(None, None)
    batch = encode_batch([Record(value=b"x")])
    packets: tuple[Any, ...] = ({}, HalfStream, Chunk, False, 1000, 16, 1 << 20, 1, None)
    slots = ReceiveBuffer, SentRequest, RequestReceived, ResponseReceived
    found: dict[str, Call] = {
        "bind without": N.bind,
        "bind a large cost": partial(N.bind, UUID, None, Limits, context, 0, 1 << 30),
        "bind a negative cost": partial(N.bind, UUID, None, Limits, context, 0, -1),
        "bind another id": partial(N.bind, Open, None, Limits, context, 0, 0),
        "bind other limits": partial(N.bind, UUID, None, Open, context, 0, 0),
        "program of an open class": partial(N.Program, Open, True, (ROW,), (), ()),
        "program of many": partial(N.Program, HeartbeatRequest, True, (("group_id",),) * 1001, (), ()),
        "program without": N.Program,
        "decode of nothing": program.decode,
        "decode of text": partial(program.decode, "", 0, 0, 0),
        "decode of a word": partial(program.decode, b"", "0", 0, 0),
        "transcriber without": N.Transcriber,
        "transcriber of text": partial(N.Transcriber, "", ()),
        "transcribe two of one": partial(text.transcribe, b"", 5),
        "transcribe without": text.transcribe,
        "decoder without": N.Decoder,
        "framer without": N.Framer,
        "framer of another": partial(N.Framer, Open, RequestHeader(), True, list),
        "framer of another header": partial(N.Framer, RequestFrame, Open(), True, list),
        "parts of nothing": framer.parts,
        "read of nothing": framer.read,
        "read next of nothing": framer.read_next,
        "write of nothing": framer.write,
        "exchange without": N.Exchange,
        "exchange the wrong way": partial(N.Exchange, answers, framer, *slots),
        "exchange of others": partial(N.Exchange, framer, answers, Weak, *slots[1:]),
        "exchange of dicts": partial(N.Exchange, framer, answers, slots[0], Open, *slots[2:]),
        "slots with words": partial(N.SlotMaker, Weak, ("offset",), word=1),
        "slots of none": partial(N.SlotMaker, Weak, ("nothing",)),
        "slots of open": partial(N.SlotMaker, Open, ("tags",)),
        "slots of a number": partial(N.SlotMaker, int, ("real",)),
        "slots of a number's name": partial(N.SlotMaker, Weak, (5,)),
        "lists of others": partial(N.SlotMaker(Weak, ("offset",)).lists, [Open()]),
        "lists of a number": partial(N.SlotMaker(Weak, ("offset",)).lists, 5),
        "make of none": N.SlotMaker(Weak, ("offset",)).make,
        "codec without": N.Codec,
        "codec of a weak class": partial(N.Codec, Weak),
        "codec of another": partial(N.Codec, int),
        "columns without": N.Columns,
        "columns of text": partial(N.Columns, "", 1, True, True),
        "run of a large buffer": partial(columns.run, batch, 0, None, (1 << 31) - 1),
        "run of words": partial(columns.run, batch, 0, None, "0"),
        "run of a word": partial(columns.run, batch, "0", None, 0),
        "run of a large number": partial(columns.run, batch, 1 << 70, None, 0),
        "span of nothing": columns.span,
        "span of a word": partial(columns.span, batch, "0", 0),
        "span of words": partial(columns.span, batch, 0, "0"),
        "span before": partial(columns.span, batch, -1, 0),
        "span of less": partial(columns.span, batch, 0, -1),
        "span of text": partial(columns.span, "", 0, 0),
        "read of words": partial(codec.read, b"", "1", 0, 0, None),
        "read of text": partial(codec.read, "", 1, 0, 0, None),
        "read of a word as stamp": partial(codec.read, b"", 1, 0, 0, "x"),
        "walk of text": partial(codec.walk, Weak, ""),
        "walk of no class": partial(codec.walk, 5, b""),
        "walk of nothing": codec.walk,
        "know another": partial(codec.know, Weak),
        "records of nothing": codec.records,
        "records of another": partial(codec.records, 5, True),
        "encode of nothing": codec.encode,
        "body of words": partial(codec.body, "1", None),
        "add of words": partial(body.add, [], 1),
        "add of a large number": partial(body.add, (), 1 << 70),
        "packets without": N.PacketWalk,
        "packets with words": partial(N.PacketWalk, *packets, word=1),
        "packets of text": partial(N.PacketWalk(*packets).advance, "", 0, 0),
        "packets of nothing": N.PacketWalk(*packets).advance,
        "frames without": N.FrameWalk,
        "frames with words": partial(N.FrameWalk, word=1),
        "lines without": N.PlainLines,
        "lines with words": partial(N.PlainLines, word=1),
        "line of nothing": lines.line,
        "line of a word": partial(lines.line, None, "6"),
        "line of many digits": partial(lines.line, None, 10),
        "lines of nothing": lines.run,
        "lines of a tuple": partial(lines.run, (), 0, 6, frozenset()),
        "lines of a list": partial(lines.run, [], 0, 6, []),
        "lines of a word": partial(lines.run, [], "0", 6, frozenset()),
        "lines of words": partial(lines.run, [], 0, "6", frozenset()),
        "plain of a number": partial(lines.plain, 5),
        "checksum of text": partial(N.crc32c, ""),
        "checksum after a word": partial(N.crc32c, b"", "0"),
    }  # fmt: skip
    found |= {
        "take of nothing": walk.take,
        "take run of nothing": walk.take_run,
        "take run of a tuple": partial(walk.take_run, (), 0, 5, []),
        "take run for a tuple": partial(walk.take_run, [], 0, 5, ()),
        "take run of a word": partial(walk.take_run, [], "0", 5, []),
        "take run before": partial(walk.take_run, [5], -1, 5, []),
        "take run of words": partial(walk.take_run, [5], 0, "5", []),
        "next of nothing": exchange.next_request,
        "next response of nothing": exchange.next_response,
        "written for nothing": exchange.write_request,
        "response for nothing": exchange.write_response,
    }
    if sys.version_info < (3, 12):  # later a dictionary does not make a tuple larger
        found["packets of small"] = partial(N.PacketWalk, {}, HalfStream, Small, *packets[3:])
    return found


CALLS = calls()


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_is_wrong(name: str) -> None:
    with pytest.raises(ERRORS):
        CALLS[name]()
