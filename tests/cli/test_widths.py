"""Each command at three widths, on a terminal and in a pipe: the same words, none broken, no line too wide.

Strategy: a command runs in this process with a pseudo-terminal as its output, then with a pipe. A line of a
pipe may be wider than the width that is asked for: it is one line for programs that read lines.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable
from io import TextIOWrapper
from pathlib import Path
from threading import Thread

import pytest

from coordwire.cli.__main__ import COMMANDS, main
from tests.cli.conftest import CAPTURES, Run
from tests.cli.terminals import fcntl, pty, termios, visible

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


@pytest.mark.parametrize("words", SCREENS, ids=lambda words: " ".join(Path(str(word)).name for word in words))
def test_a_screen(
    words: tuple[object, ...], run: Run, on_terminal: OnTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    for width in WIDTHS:
        screen = on_terminal(words, width)
        assert max(map(len, screen.split("\n"))) <= width
        monkeypatch.setenv("COLUMNS", str(width))
        result = run(*words)
        piped = result.text + result.err
        assert whole(screen) == whole(piped)
        fitting = [word for word in words_of(piped) if len(word) < width - 40]
        assert not set(fitting) - set(words_of(screen))
        assert len(fitting) > 3
