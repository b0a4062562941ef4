"""Each command at three widths, on a terminal and in a pipe: the same words, none broken, no line too wide.

Strategy: a command runs in this process with a pseudo-terminal as its output, then with a pipe. A line of a
pipe may be wider than the width that is asked for: it is one line for programs that read lines.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable, Iterator
from contextlib import chdir
from io import TextIOWrapper
from itertools import takewhile
from pathlib import Path
from shutil import rmtree
from threading import Thread

import pytest

from coordwire.cli.__main__ import COMMANDS, main
from tests.broker_sample import broker_sample
from tests.cli.conftest import CAPTURES, Result, Run
from tests.cli.terminals import fcntl, pty, termios, visible
from tests.segments.build import log, write
from tests.timeline.logs import kafkas_segment

pytest.importorskip("rich", reason="rich isn't installed: pip install 'coordwire[cli]'")

DATA = CAPTURES.parent
CAPTURE = CAPTURES / "kpy__tansu__group-range.pcap"
STORY = DATA / "outages" / "broker-killed.pcap.xz"
WIDTHS = (80, 100, 140)
_STYLES = re.compile(r"\x1b\[[0-9;]*m")

SCREENS: tuple[tuple[object, ...], ...] = (
    ("api",),
    ("api", "FetchRequest", "17"),
    ("api", "JoinGroup"),
    ("api", "OffsetCommit"),
    ("api", "errors"),
    ("decode", CAPTURE),
    ("decode", "--format", "line", CAPTURE),
    ("decode", "--format", "hex", "--packets", "57-60", CAPTURE),
    ("explain", "0000000e0012000000000007000474696c6c"),
    ("timeline", STORY),
    ("timeline", "--rebalance", "1", STORY),
    ("timeline", "--summary", STORY),
    ("timeline", "--events", STORY),
    ("timeline", "--commits", CAPTURE),
    ("simulate", "consumer", "--duration", "20s"),
    ("rehearse", str(broker_sample() / "data")),
    ("simulate", "draft-1", "--duration", "12s", "--flow", "1s-3s"),
    ("simulate", "draft-3", "--duration", "20s", "--seeds", "3"),
    ("nonsense",),
    ("timeline", "--rebalance", "99", STORY),
    ("timeline", "nowhere.pcap"),
    ("decode", "--format", "lin", CAPTURE),
    ("decode", "--filter", "a-name-that-no-frame-has == 'a text that is long enough for two lines'", CAPTURE),
    ("serve", "--help"),
    *((command, "--help") for command in COMMANDS),
)  # fmt: skip

OnTerminal = Callable[..., str]


@pytest.fixture
def on_terminal(monkeypatch: pytest.MonkeyPatch) -> OnTerminal:
    """What a terminal of a width shows of a command."""

    def run(words: tuple[object, ...], width: int) -> str:
        reader, writer = pty.openpty()
        fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
        parts: list[bytes] = []
        thread = Thread(target=_read_all, args=(reader, parts))
        thread.start()
        try:
            with TextIOWrapper(os.fdopen(writer, "wb", buffering=0), encoding="utf-8") as screen:
                monkeypatch.setattr("sys.stdout", screen)
                monkeypatch.setattr("sys.stderr", screen)
                monkeypatch.setenv("TERM", "xterm")
                monkeypatch.setenv("COLUMNS", str(width))
                main([str(word) for word in words])
        finally:
            monkeypatch.undo()
            thread.join()
            os.close(reader)
        return "\n".join(visible(_STYLES.sub("", b"".join(parts).decode()).replace("\r\n", "\n")))

    return run


def _read_all(reader: int, parts: list[bytes]) -> None:
    try:
        while part := os.read(reader, 1 << 16):
            parts.append(part)
    except OSError:  # Linux says so when the other side is closed
        pass


def words_of(text: str) -> list[str]:
    return re.sub("(?m)^# ", "", text).replace("─", " ").split()


def whole(text: str) -> str:
    return "".join(words_of(text))


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[None]:
    """The working directory: a broker's folder, `broker`; a damaged segment, `orders-0`; `bare-0` without
    indexes; logs of coordinators."""
    (tmp_path / "broker").symlink_to(broker_sample() / "data")
    damaged = bytearray(b"".join(log(4)))
    damaged[150] ^= 1
    write(tmp_path, bytes(damaged))
    write(tmp_path, b"".join(log(4)), name="bare-0")
    for name in ("consumer_offsets", "transaction_state"):
        write(tmp_path, kafkas_segment(name), name=f"__{name}-7")
    with chdir(tmp_path):
        yield


OF_LOGS = (
    "segment dump broker/transactions-0",
    "segment dump --batches broker/transactions-0",
    "segment dump --deep broker/__consumer_offsets-0",
    "segment dump orders-0",
    f"segment dump broker/transactions-0/{9:020}.snapshot",
    f"segment dump broker/transactions-0/{9:020}.txnindex",
    "segment verify broker",
    "segment verify orders-0",
    "segment recover orders-0 --out saved",
    "segment index bare-0 --out indexes",
    "segment index --check orders-0",
    "offsets __consumer_offsets-7",
    "offsets __transaction_state-7",
    "offsets --latest broker",
    "offsets --lag broker",
)

TABLES = {
    "segment dump broker/codec-none-0/leader-epoch-checkpoint": ("epoch", "startOffset"),
    f"segment dump broker/transactions-0/{9:020}.snapshot": ("producerId", "lastOffset", "offsetDelta"),
    f"segment dump broker/transactions-0/{9:020}.txnindex": ("entry", "producerId", "lastOffset"),
    "offsets --lag broker": ("committed", "end", "lag"),
    "simulate draft-1 --duration 12s --seeds 3": ("seed", "assigned", "messages"),
}
"""Commands and columns of numbers in their tables."""


@pytest.mark.parametrize("words", SCREENS, ids=lambda words: " ".join(Path(str(word)).name for word in words))
def test_a_screen(
    words: tuple[object, ...], run: Run, on_terminal: OnTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    for width in WIDTHS:
        screen = on_terminal(words, width)
        monkeypatch.setenv("COLUMNS", str(width))
        compare(screen, run(*words), width)


@pytest.mark.parametrize("line", OF_LOGS)
@pytest.mark.usefixtures("logs")
def test_a_screen_of_logs(
    line: str, run: Run, on_terminal: OnTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    for width in WIDTHS:
        screen = on_terminal(line.split(), width)
        for folder in ("saved", "indexes"):
            rmtree(folder, ignore_errors=True)
        monkeypatch.setenv("COLUMNS", str(width))
        compare(screen, run(*line.split()), width)
        for folder in ("saved", "indexes"):
            rmtree(folder, ignore_errors=True)


def compare(screen: str, result: Result, width: int) -> None:
    """A terminal shows the words that a pipe gets, each of them whole."""
    assert max(map(len, screen.split("\n"))) <= width
    piped = result.text + result.err
    assert whole(screen) == whole(piped)
    fitting = [word for word in words_of(piped) if len(word) < width - 40]
    assert not set(fitting) - set(words_of(screen))
    assert len(fitting) > 3


@pytest.mark.parametrize(("line", "names"), TABLES.items())
@pytest.mark.usefixtures("logs")
def test_numbers_align(line: str, names: tuple[str, ...], on_terminal: OnTerminal) -> None:
    """Each is right below its column's name. A row may go on in a second line, as its header does."""
    for width in WIDTHS:
        screen = on_terminal(line.split(), width).split("\n")
        at = next(at for at, shown in enumerate(screen) if all(name in shown for name in names))
        height = 1 if any(char.isdigit() for char in screen[at + 1]) else 2
        rows = list(takewhile(str.strip, screen[at + height :]))[::height]
        assert len(rows) > 1
        for name in names:
            end = screen[at].index(name) + len(name)
            for row in rows:
                assert row[end - 1 : end].strip(), (name, row)
                assert row[end : end + 1] in ("", " "), (name, row)
