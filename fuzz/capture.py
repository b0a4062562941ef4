"""Any bytes are a capture or none: entries that end, or one DecodeError; never another error, and no byte
of a length-prefixed stream goes missing. The lines of plain frames are those of the slow path."""

from __future__ import annotations

import io
from contextlib import redirect_stdout

from hypothesis import given
from hypothesis import strategies as st

from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.jsonlines import line
from coordwire.capture.plain_lines import PlainJsonLines
from coordwire.capture.reader import Capture
from coordwire.cli.decode.line import LineFormat
from coordwire.cli.decode.tree import TreeFormat
from coordwire.cli.selection.names import TopicNames
from coordwire.errors import DecodeError, UnreadableRange
from fuzz._run import main
from fuzz.seeds import CAPTURES, framed

FILES = [path.read_bytes()[:20_000] for path in CAPTURES]
FRAMES = framed()


@st.composite
def inputs(draw: st.DrawFn) -> bytes:
    """A capture, frames or hex with some bytes changed."""
    data = draw(
        st.one_of(
            st.sampled_from(FILES),
            st.lists(st.sampled_from(FRAMES), min_size=1, max_size=5).map(b"".join),
            st.lists(st.sampled_from(FRAMES), min_size=1, max_size=3).map(
                lambda frames: "\n".join(frame.hex() for frame in frames).encode()
            ),
            st.binary(max_size=200),
        )
    )
    changed = bytearray(data)
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, len(changed)))
        changed[at : at + draw(st.integers(0, 4))] = draw(st.binary(max_size=4))
    return bytes(changed)


@given(inputs(), st.booleans(), st.booleans(), st.sampled_from([(), (9092,)]))
def fuzz(data: bytes, strict: bool, lazy: bool, ports: tuple[int, ...]) -> None:
    try:
        capture = Capture(io.BytesIO(data), "fuzz", strict=strict, lazy=lazy, ports=ports)
        entries = list(capture.entries())
    except DecodeError:
        return
    check_lines(entries, show_secrets=strict)
    for entry in entries:
        assert isinstance(entry, (FrameEntry, UnreadableRange))
        if isinstance(entry, FrameEntry) and entry.error is None and not entry.token:
            assert entry.message is not None
    if capture.format == "frames":
        total = sum(e.size + 4 if isinstance(e, FrameEntry) else e.length for e in entries)
        assert total == len(data)


def check_lines(entries: list[Entry], *, show_secrets: bool) -> None:
    """Compare the JSON lines of plain frames with those of the slow path; lines and trees for reading are
    written without an error."""
    plain_line = PlainJsonLines(show_secrets=show_secrets).line
    formats = (
        LineFormat(show_secrets=show_secrets, names=TopicNames()),
        TreeFormat(show_secrets=show_secrets, deep=False),
    )
    for entry in entries:
        assert plain_line(entry, 6) in (None, line(entry, 6, show_secrets=show_secrets))
        with redirect_stdout(io.StringIO()):
            for text_format in formats:
                text_format.write(entry, 6)


if __name__ == "__main__":
    main(fuzz)
