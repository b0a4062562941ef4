"""Any bytes are a capture or none: entries that end, or one DecodeError; never another error, and no byte
of a length-prefixed stream goes missing. The JSON lines of plain frames are those of the slow path, and the
lines and trees of lazy entries those of eager ones."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from functools import partial
from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.jsonlines import line
from coordwire.capture.plain_lines import PlainJsonLines
from coordwire.capture.reader import Capture
from coordwire.cli.decode.formats import DecodeFormat
from coordwire.cli.decode.line import LineFormat
from coordwire.cli.decode.tree import TreeFormat
from coordwire.cli.selection.names import TopicNames
from coordwire.errors import DecodeError, UnreadableRange
from fuzz._run import main
from fuzz.seeds import framed
from tests.recorded import CAPTURES

FILES = [path.read_bytes()[:20_000] for path in CAPTURES]
FRAMES = framed()
FORMATS: tuple[Callable[..., DecodeFormat], ...] = (
    partial(LineFormat, names=TopicNames()),
    partial(TreeFormat, deep=False),
)


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


@given(inputs(), st.booleans(), st.sampled_from([(), (9092,)]))
def fuzz(data: bytes, strict: bool, ports: tuple[int, ...]) -> None:
    def read(*, lazy: bool) -> Capture:
        return Capture(io.BytesIO(data), "fuzz", strict=strict, lazy=lazy, ports=ports)

    try:
        capture = read(lazy=False)
        entries = list(capture.entries())
    except DecodeError:
        return
    for entry in chain(entries, read(lazy=True).entries()):
        assert isinstance(entry, (FrameEntry, UnreadableRange))
        if isinstance(entry, FrameEntry) and entry.error is None and not entry.token:
            assert entry.message is not None
    if capture.format == "frames":
        total = sum(e.size + 4 if isinstance(e, FrameEntry) else e.length for e in entries)
        assert total == len(data)
    check_lines(entries, show_secrets=strict)
    check_lines(read(lazy=True).entries(), show_secrets=strict)
    for text_format in FORMATS:
        texts = (written(read(lazy=lazy), text_format(show_secrets=strict)) for lazy in (False, True))
        assert next(texts) == next(texts)


def check_lines(entries: Iterable[Entry], *, show_secrets: bool) -> None:
    """Compare the JSON lines of plain frames with those of the slow path."""
    plain_line = PlainJsonLines(show_secrets=show_secrets).line
    for entry in entries:
        assert plain_line(entry, 6) in (None, line(entry, 6, show_secrets=show_secrets))


def written(capture: Capture, output: DecodeFormat) -> str:
    """What a format for reading has of a capture."""
    with redirect_stdout(io.StringIO()) as text:
        for entry in capture.entries():
            output.write(entry, 6)
        output.finish()
    return text.getvalue()


if __name__ == "__main__":
    main(fuzz)
