"""Lines of text for whole messages: those of the slow path, for any message, and in the blocks of a tree."""

from __future__ import annotations

import io
import random
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordwire.capture.formats.pcap import as_pcap
from coordwire.cli import plain_message_lines
from coordwire.cli.decode import tree
from coordwire.cli.decode.tree import TreeFormat
from coordwire.cli.message_lines import MessageLines
from coordwire.cli.plain_message_lines import PlainMessageLines
from coordwire.cli.terminal import plain_text
from coordwire.codec import Message
from coordwire.messages import MetadataRequest
from coordwire.messages.metadata import MetadataRequestTopic
from coordwire.testing import strategies
from tests.capture.test_lazy import broken, read
from tests.capture.test_share import CAPTURES, traffic_rows
from tests.capture.test_walks import damaged
from tests.conformance.engines import MESSAGES

PLAIN = {width: PlainMessageLines(width) for width in (40, 80, 200)}


def slow(message: Message, version: int, width: int) -> list[str]:
    return [plain_text(line) for line in MessageLines(message, version, set(), width).lines()]


@given(st.data(), st.sampled_from(MESSAGES), st.sampled_from(list(PLAIN)))
def test_lines_are_those_of_the_slow_path(data: st.DataObject, cls: Any, width: int) -> None:
    version = data.draw(st.sampled_from(list(cls.versions)))
    message = data.draw(strategies.messages(cls, version=version))
    assert list(PLAIN[width].lines(message, version)) == slow(message, version, width)


def test_beyond_a_number_of_lines_the_others_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_message_lines, "MOST_LINES", 3)
    message = MetadataRequest(topics=[MetadataRequestTopic(name=f"{number}" * 60) for number in range(9)])
    lines = list(PlainMessageLines(80).lines(message, 9))
    assert lines[:3] == slow(message, 9, 80)[:3]
    assert lines[3:] == [f"  … {len(slow(message, 9, 80)) - 3} more lines (--format json shows all)\n"]


def written(data: bytes, *, lazy: bool, show_secrets: bool, is_plain: bool) -> str:
    output = TreeFormat(show_secrets=show_secrets, deep=False)
    output._is_plain = is_plain
    with redirect_stdout(io.StringIO()) as out:
        for entry in read(data, lazy=lazy):
            output.write(entry, 6)
        output.finish()
    assert len(output._bodies) <= tree.MOST_BODIES
    return out.getvalue()


def compare(data: bytes, *, show_secrets: bool) -> None:
    expected = written(data, lazy=False, show_secrets=show_secrets, is_plain=False)
    assert written(data, lazy=True, show_secrets=show_secrets, is_plain=True) == expected
    assert written(data, lazy=False, show_secrets=show_secrets, is_plain=True) == expected


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_trees_of_captures(path: Path) -> None:
    data = path.read_bytes()
    compare(data, show_secrets=False)
    compare(damaged(data, random.Random(path.name)), show_secrets=True)


@pytest.mark.parametrize("seed", range(10))
def test_trees_of_frames_that_are_refused(seed: int) -> None:
    chance = random.Random(seed)
    frames = [(n, c, back, broken(chance, data)) for n, c, back, data in traffic_rows(20)]
    compare(as_pcap(frames), show_secrets=bool(seed % 2))


def test_bodies_that_are_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "MOST_BODIES", 3)
    frames = [(n, c, back, data) for n, c, back, data in traffic_rows(20)]
    compare(as_pcap(frames), show_secrets=False)
