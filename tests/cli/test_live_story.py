"""Timelines while they happen: lines before the end, a line of progress on a terminal, then the story."""

from __future__ import annotations

import os
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from coordwire.broker import Broker
from coordwire.cli.timeline import live_story
from coordwire.cli.timeline.live_story import COMMIT_HOLD, HOLD, LiveStory
from coordwire.cli.timeline.story import StoryFormat
from coordwire.messages import LeaveGroupRequest
from coordwire.messages.leave_group import MemberIdentity
from coordwire.timeline.events import ErrorMet, GroupEvent, MemberJoined, OffsetCommitted
from tests.broker.blocking_peer import BlockingPeer
from tests.cli.terminals import ERASE, WAIT, Terminal, on_terminal, visible

pytest.importorskip("rich", reason="rich isn't installed: pip install 'coordwire[cli]'")

DATA = Path(__file__).parent.parent / "data"
JOINED = r"^ +\d\d:\d\d:\d\d\.\d{3} +\d+ +\+ #1 \(till-3\) is in"
STATUS = r"1 connection, \d+ frames, 1 group, last rebalance \d+ s ago.*; Ctrl-C for the story"
STORY = r"^In at the end \(1\)|^No longer in \(1\)"


def is_free_of_broken_words(text: str, width: int) -> bool:
    """Whether each line fits, and none that is too long was cut."""
    progress = [part for part in re.split(r"\r\x1b\[K|\n", text) if "Ctrl-C for" in part]
    assert len(progress) > 1
    return all(len(line) <= width for line in visible(text)) and all(len(line) < width for line in progress)


def use(bootstrap: str, terminal: Terminal) -> None:
    """Be a member of a group, and leave it once the terminal shows so."""
    with BlockingPeer(bootstrap, "till-3") as peer:
        member = peer.join("payments", "orders", 1)
        terminal.wait_for(JOINED)
        terminal.wait_for(r"generation 1 steady after")
        terminal.wait_for(STATUS)
        identity = MemberIdentity(member_id=member.member_id)
        peer.ask(LeaveGroupRequest(group_id="payments", members=[identity]), 3)
        terminal.wait_for(r"^ .* - #1 \(till-3\) left")


def check(text: str, width: int) -> None:
    """What a terminal of a width shows, from the start to the end."""
    before, interrupt, after = text.partition("^C")
    assert interrupt
    assert not re.search(STORY, before, re.MULTILINE)
    assert before.count("── payments ──") == 1
    assert len(re.findall(STORY, after, re.MULTILINE)) == 1
    assert "Ctrl-C for the story" not in "".join(visible(after))
    assert ERASE in before
    assert not [line for line in visible(before)[:-1] if "Ctrl-C for the story" in line]
    assert is_free_of_broken_words(text, width)


@pytest.mark.parametrize("width", [80, 140])
def test_serve_shows_lines_as_they_settle(width: int) -> None:
    words = ["serve", "--port", "0", "--topic", "orders", "--timeline"]
    with on_terminal(*words, columns=width) as terminal:
        use(terminal.wait_for(r"^127\.0\.0\.1:\d+$")[0], terminal)
        assert terminal.interrupt() == 0
        check(terminal.text, width)


def test_notes_of_serve_are_above_the_line() -> None:
    with on_terminal("serve", "--port", "0", "--timeline", columns=80) as terminal:
        bootstrap = terminal.wait_for(r"^127\.0\.0\.1:\d+$")[0]
        with BlockingPeer(bootstrap) as peer:
            peer.join("payments", "orders", 1)
            terminal.wait_for(STATUS)
            peer.socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
            terminal.wait_for(r"^coordwire: refused")
        terminal.interrupt()
        (note,) = (line for line in visible(terminal.text) if "refused" in line)
        assert note.startswith("coordwire: ")


@pytest.mark.parametrize("width", [80, 140])
def test_tap_shows_the_same(width: int) -> None:
    with Broker.in_thread(topics=["orders"]) as broker:
        words = ["tap", "--to", broker.bootstrap, "--listen", "127.0.0.1:0", "--timeline"]
        with on_terminal(*words, columns=width) as terminal:
            use(terminal.wait_for(r"connect to (\S+) for")[1], terminal)
            assert terminal.interrupt() == 0
            check(terminal.text, width)
            assert re.search(r"^coordwire: 1 connections; 3 requests in", terminal.text, re.MULTILINE)


def test_into_a_pipe_go_plain_lines_at_once() -> None:
    with Broker.in_thread(topics=["orders"]) as broker:
        command = [sys.executable, "-m", "coordwire", "tap", "--to", broker.bootstrap]
        command += ["--listen", "127.0.0.1:0", "--timeline"]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
        )
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            bootstrap = process.stderr.readline().split()[4]
            with BlockingPeer(bootstrap, "till-3") as peer:
                peer.join("payments", "orders", 1)
                assert select.select([process.stdout], [], [], WAIT)[0]  # before it is interrupted
                before = [process.stdout.readline() for _ in range(3)]
            process.send_signal(signal.SIGINT)
            remainder, errors = process.communicate(timeout=WAIT)
        finally:
            process.kill()
            process.communicate()
    assert before[0].startswith("── payments ──")
    assert re.search(JOINED, before[2])
    assert re.search(STORY, remainder, re.MULTILINE)
    assert "\x1b" not in "".join([*before, remainder, errors])
    assert "Ctrl-C for" not in errors
    assert process.returncode == 0


CAPTURING = """#!/bin/sh
# Writes a capture, and ends when it is interrupted.
trap 'exit 0' INT
/bin/cat {file}
: > {ready}
while :; do /bin/sleep 0.05; done
"""


@contextmanager
def interface(folder: Path) -> Iterator[dict[str, str]]:
    """The environment in which an interface has the traffic of a capture."""
    program = folder / "dumpcap"
    capture = DATA / "captures" / "kpy__tansu__group-range.pcap"
    program.write_text(
        CAPTURING.format(file=shlex.quote(str(capture)), ready=shlex.quote(str(folder / "ready")))
    )
    program.chmod(0o755)
    yield {"PATH": f"{folder}:{os.environ['PATH']}"}


@pytest.mark.parametrize("option", ["--events", "--summary", None])
def test_an_interface_on_a_terminal(tmp_path: Path, option: str | None) -> None:
    words = ["timeline", "-i", "eth7", *([option] if option else [])]
    with interface(tmp_path) as env, on_terminal(*words, columns=80, env=env) as terminal:
        terminal.wait_for(r"^11 connections, 128 frames, 1 group, .*Ctrl-C for the story")
        if option != "--summary":
            terminal.wait_for(r"generation 2 steady")
        if option == "--events":
            terminal.wait_for(r"commits ")
        assert terminal.interrupt() == 0
        before, _, after = terminal.text.partition("^C")
        assert ("is in" in before) == (option != "--summary")
        assert ("commits " in before) == (option == "--events")
        assert ("In at the end" in after or "No longer in" in after) == (option is None)
        assert after.count("── g-kpy-range") == 1
        assert "3 members joined" in after
        assert "is in" not in after  # it was printed


def test_standard_input_that_is_live() -> None:
    capture = (DATA / "captures" / "kpy__tansu__group-range.pcap").read_bytes()
    command = [sys.executable, "-m", "coordwire", "timeline", "--live", "-"]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    for words, first in (
        (command, "── g-kpy-range ──"),
        ([*command, "--format=json", "--rebalances"], '{"event":'),
    ):
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=buffered)
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(capture)
            process.stdin.flush()
            assert select.select([process.stdout], [], [], WAIT)[0]  # before the input ends
            assert process.stdout.readline().decode().startswith(first)
        finally:
            process.communicate(timeout=WAIT)
        assert process.returncode == 0


# --- what waits, and for how long ---


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(live_story, "monotonic", lambda: self.now)


def joined(member: str, time_ns: int, group: str = "g") -> MemberJoined:
    return MemberJoined(
        group=group, time_ns=time_ns, source="c", number=time_ns, kind="classic", member_id=member,
        client_id=member, host=None,
    )  # fmt: skip


def committed(offset: int) -> OffsetCommitted:
    return OffsetCommitted(
        group="g", time_ns=offset, source="c", number=offset, member_id="m", client_id="m", generation=1,
        topic="t", partition=0, offset=offset, leader_epoch=-1, metadata=None,
    )  # fmt: skip


def failed(number: int) -> ErrorMet:
    return ErrorMet(
        group="g", time_ns=number, source="c", number=number, api="Heartbeat", error_code=25, member_id="m",
        client_id="m",
    )  # fmt: skip


def failed_by(member_id: str, number: int) -> ErrorMet:
    return replace(failed(number), member_id=member_id, client_id=member_id)


class Lines:
    """A live story, whose lines are asked for."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *, lists_commits: bool = True) -> None:
        self._capsys = capsys
        self.story = LiveStory(
            StoryFormat(), lambda: (1234, 567_890), lists_events=True, lists_commits=lists_commits
        )

    def add(self, *events: GroupEvent) -> None:
        for event in events:
            self.story.write(event)

    def due(self, now: float) -> list[str]:
        """The words of the lines that are due."""
        self.story._write_due(now)
        return [line[19:] for line in self._capsys.readouterr().out.splitlines() if line[:1] == " "]


def test_events_wait_for_those_that_come_late(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock, lines = Clock(monkeypatch), Lines(capsys)
    lines.add(joined("late", 2_000_000))
    clock.now += HOLD / 2
    lines.add(joined("early", 1_000_000))
    assert lines.due(clock.now) == []
    clock.now += HOLD / 2
    assert [line.split()[:2] for line in lines.due(clock.now)] == [["#1", "(early)"], ["#2", "(late)"]]
    assert lines.due(clock.now + 100) == []


def test_a_number_that_was_printed_stays(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where one comes later that was in before."""
    clock, lines = Clock(monkeypatch), Lines(capsys)
    lines.add(joined("first", 2_000_000))
    assert [line.split()[0] for line in lines.due(clock.now + HOLD)] == ["#1"]
    lines.add(joined("early", 1_000_000), failed_by("first", 3_000_000))
    early, refused = lines.due(clock.now + HOLD)
    assert early.startswith("#2 (early)")
    assert "#1 (first)" in refused


def test_equal_lines_are_one_and_commits_wait_longer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock, lines = Clock(monkeypatch), Lines(capsys)
    lines.add(*map(failed, range(1, 51)))
    (line,) = lines.due(clock.now + HOLD)
    assert "× 50" in line
    lines.add(*map(committed, range(1, 8)))
    assert lines.due(clock.now + HOLD) == []
    (line,) = lines.due(clock.now + COMMIT_HOLD)
    assert "7 times" in line


def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(live_story, "MOST_WAITING", 20)
    Clock(monkeypatch)
    lines = Lines(capsys)
    lines.add(*(joined(f"m{number}", number) for number in range(1, 25)))
    assert lines.story._count == 4
    assert capsys.readouterr().out.count(" is in") == 20


@pytest.mark.parametrize(("by_events", "left_out", "joins"), [(False, 2, 0), (True, 14, 5)])
def test_the_story_keeps_the_latest_events(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    by_events: bool,
    left_out: int,
    joins: int,
) -> None:
    """What is dropped counts in the sums; commits have no part in a story but those."""
    monkeypatch.setattr("coordwire.timeline.story.collected.MOST_EVENTS", 10)
    story = StoryFormat(by_events=by_events)
    for number in range(1, 13):
        story.write(joined(f"m{number}", number))
        story.write(committed(number))
    story.finish()
    out = capsys.readouterr().out
    assert f"{left_out} earlier events" in out
    assert out.count(" is in") == joins
    assert "12 members joined" in out
    assert "12 commits" in out


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 140])
def test_the_line_of_progress_fits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    clock, lines = Clock(monkeypatch), Lines(capsys)
    assert "Ctrl-C" in lines.story._status()
    from coordwire.timeline.events import RebalanceBegan

    lines.add(
        RebalanceBegan(
            group="a-group-of-a-service", time_ns=1, source="c", number=1, kind="classic", cause="unknown",
            member_id=None, inferred=False,
        )
    )  # fmt: skip
    clock.now += 12
    text = lines.story._status()
    assert len(text) < max(width, 21)
    assert text.endswith("Ctrl-C for the story")
    assert ("567,890 frames" in text) == (width > 40)
    assert ("rebalance 12 s ago" in text) == (width > 60)
    assert ("1,234 connections" in text) == (width > 80)
    assert ("in a-group-of-a-service" in text) == (width > 100)


def test_a_reader_that_goes_ends_it_quietly(tmp_path: Path) -> None:
    with interface(tmp_path) as env:
        command = [sys.executable, "-m", "coordwire", "timeline", "-i", "eth7"]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **env},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip
        assert process.stdout is not None
        process.stdout.close()
        while not (tmp_path / "ready").exists():
            time.sleep(0.05)
        time.sleep(2 * HOLD)
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT) == 0
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()
        process.stderr.close()
