"""The command line: recorded traffic for people and for pipes, and back to bytes.

Commands, a module or a package each (`__main__.py` picks one and imports it alone, so that it starts fast):

    decode/         frames of captures: as trees, lines, JSON, annotated hex, columns
    encode.py       JSON lines back to bytes
    explain.py      the bytes of one frame
    timeline/       what happened to groups
    segment/        log segments: dump, verify, recover, index
    offsets/        the logs of coordinators
    pipeline.py     tables, with Spark or without
    serve.py        a broker for tests
    tap.py          what passes between clients and a cluster
    replay.py       a capture's requests, sent again
    call/           a request to a cluster, and its answer
    watch/          the groups of a live cluster, from their log
    simulate/       designs in virtual time
    rehearse/       the upgrade of a classic group, before it is done
    conformance/    implementations in any language, judged
    api/            the reference of the protocol, as text, JSON and pages
    mcp.py          an agent's tools over recorded traffic; bound_command.py: what they run
    completion.py   scripts for shells

Shared by commands:

    inputs.py             opens files, decompressed, and finds the captures in a folder
    live_capture.py       captures an interface
    listening.py          what the commands that listen share; cluster_options.py: those that connect
    coordinator_logs.py   reads the logs of coordinators
    selection/            which entries the user asks for
    message_lines.py      a message as lines; record_sets.py: the record sets in it
    embedded_json.py      messages inside bytes, as JSON; telemetry.py: client metrics
    annotated_hex.py      a frame as annotated hex
    capture_hints.py      why a capture shows no frames
    terminal.py           styles, widths, colours, encodings; progress.py: how far a command has come

Rules: a command has `configure(parser)` and `run(options) -> status`. Standard output holds results and
nothing else, standard error holds notes. Exit status 0: all was decoded; 1: something was refused, and the
output says what; 2: usage or I/O (a `Failure`, never a traceback). Everything streams; no part of the input
is left out silently.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

FURTHER = "further options"
"""The title of a group of options that `--help-all` shows and `--help` does not."""


class Failure(Exception):
    """The end of a command with status 2; its text goes to standard error."""


@contextmanager
def terminable() -> Iterator[None]:
    """Raise `SystemExit` in the block when SIGTERM comes, so that unfinished output is removed, as after an
    interrupt. The exit status is that of a process which the signal ended; the earlier handler comes back.
    Without effect outside of the main thread."""
    import signal  # which most commands do without
    import threading

    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
