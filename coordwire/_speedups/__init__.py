"""The native half, where it was built, and which half runs.

    module.c              the extension module: joins the parts below
    slots.c               where classes made in Python have their slots; their objects from all values
    rows.py               objects of which there are millions, made by it or without it

    messages/             runs the generated field tables
      engine.c              the types, and the objects of Python that the engine needs
      dispatch.c            what is in the classes as `decode` and `encode`
      frames.c              size, header and message in one call
      exchange.c            a connection's steps: exchange_receive.c: events from bytes;
                            exchange_send.c: bytes from messages
      program.c             a table as the engine keeps it, checked, with the offsets of the slots
      decode.c              bytes to objects
      encode.c              objects to bytes; value_writers.h: values without parts; writer.c: the buffer
      transcriber.c         a table's facts for its JSON text; transcribe.c: bytes to that text;
                            json_text.c: the buffer and single values
      defaults.c            which fields have their defaults
      budgets.c             the budgets of a decode; sizes.c: the least that a field takes
      freelist.c            objects and lists, made and freed
      intern.c              texts, numbers and ids that repeat
    records/
      record_codec.c        the type `Codec`, its methods, the checksum's functions
      codec_object.c        its life; types.c: types and slots
      walk.c                from batch to batch
      batch.c               one batch, opened
      run.c                 bytes to Record, each when it is asked for; run_batch.c: the batch of a run
      builder.c             a batch that records are appended to
      encode_batch.c        a whole batch in one call
      body.c                Record to bytes; header_writer.c: its headers
      record_parser.c       one record's parts
    arrow/                bytes to Arrow's columns
      columns_object.c      the types `Columns` and `Memory`
      columns.c             batches to columns; rows.c: records to columns; headers.c: their headers
      memory.c              the memory of columns
    capture/
      packets.c             ordinary packets of a capture to the chunks of their streams
      packet_records.c      pcap and pcapng; packet_headers.c: from the link layer to TCP
      frame_walk.c          chunks that hold one frame each to lazy entries; frame_walk_object.c: its type
      plain_lines.c         the JSON lines of plain frames
    crc32c/
      crc32c.c              the checksum, by the processor's instruction, or else the package

Strategy: the extension is optional; without it everything works in Python. `native` is the extension module
where it runs and None where Python does. Rules: it runs on the versions of CPython that it is tested on, with
the interpreter's lock (module.h says why), and Python everywhere else; `COORDWIRE_IMPL=python|c` forces one
and fails, with the reason, where it is missing; what one half refuses the other refuses too; the native half
never words a refusal: the interpreter in `coordwire.codec` and the strict reader in `coordwire.records` do.
No file calls one that calls it; record_parser.c and the files that fill columns know nothing of CPython.
"""

from __future__ import annotations

__all__ = ["implementation", "native"]

import os
import sys
from types import ModuleType
from typing import Literal

Implementation = Literal["c", "python"]


_OLDEST, _NEWEST = (3, 11), (3, 14)
"""The versions of CPython that the extension is for; module.h has the same."""


def _unsupported() -> str | None:
    """Why the extension isn't for this interpreter; None if it is."""
    name, version = sys.implementation.name, sys.version_info[:2]
    if name != "cpython" or not _OLDEST <= version <= _NEWEST:
        oldest, newest, here = (".".join(map(str, one)) for one in (_OLDEST, _NEWEST, version))
        return f"the native extension is for CPython {oldest} to {newest}, and this is {name} {here}"
    if "free-threading build" in sys.version:
        return "the native extension needs the interpreter's lock, and this is a free-threaded build"
    return None


def _choose(wanted: str | None) -> ModuleType | None:
    if wanted not in (None, "", "c", "python"):
        raise ImportError(f"COORDWIRE_IMPL: expected python or c, got {wanted}")
    if wanted == "python":
        return None
    reason = _unsupported()
    if reason is not None:
        if wanted == "c":
            raise ImportError(f"COORDWIRE_IMPL=c: {reason}", name="coordwire._speedups._native")
        return None
    try:
        from coordwire._speedups import _native
    except ImportError as error:
        if wanted == "c":
            raise ImportError(
                "COORDWIRE_IMPL=c: this install has no native extension (no compiler when it was built?)",
                name="coordwire._speedups._native",
            ) from error
        return None
    return _native


native = _choose(os.environ.get("COORDWIRE_IMPL"))

implementation: Implementation = "python" if native is None else "c"
"""Which codec runs."""
