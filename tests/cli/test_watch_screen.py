"""What `coordwire watch` shows on a screen, of any width and height, and while it runs on a terminal."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from coordwire.broker import Broker
from coordwire.broker.harness.traffic import LiveTraffic
from coordwire.cli.watch.board_screen import BoardScreen
from coordwire.cli.watch.group_board import GroupBoard
from coordwire.cli.watch.problems import Problems, ProblemSubject
from coordwire.tap import Tap
from coordwire.timeline.events import MemberJoined, OffsetCommitted, RebalanceBegan, TopicPartition
from tests.broker.blocking_peer import BlockingPeer
from tests.cli.terminals import on_terminal, visible

SECOND = 1_000_000_000
NOON = 1_700_000_000 // 86_400 * 86_400 * SECOND + 12 * 3_600 * SECOND
LONG = "a-group-with-a-name-that-is-longer-than-its-column-of-the-table"


class Watched:
    """A screen of a board, at a time that is set."""

    def __init__(self) -> None:
        self.now_ns = NOON
        self.board = GroupBoard()
        self.problems = Problems(lambda: self.now_ns)
        self.screen = BoardScreen(
            self.board, self.problems, lambda: "cluster X at broker-1:9092", lambda: self.now_ns
        )

    def joins(self, group: str, member: str, client: str) -> None:
        self.board.add(
            MemberJoined(
                group=group, time_ns=NOON, source="log", number=1, kind="classic", member_id=member,
                client_id=client, host=None,
            )
        )  # fmt: skip

    def commits(self, group: str, offset: int) -> None:
        self.board.add(
            OffsetCommitted(
                group=group, time_ns=NOON, source="log", number=1, member_id=None, client_id=None,
                generation=-1, topic="t", partition=0, offset=offset, leader_epoch=-1, metadata=None,
            )
        )  # fmt: skip

    def rebalances(self, group: str, member: str) -> None:
        self.board.add(
            RebalanceBegan(
                group=group, time_ns=NOON, source="log", number=1, kind="classic", cause="session_timeout",
                member_id=member, inferred=True,
            )
        )  # fmt: skip

    def lines(self, width: int, height: int | None = None) -> list[str]:
        return ["".join(text for text, _ in line) for line in self.screen.lines(width, height)]


@pytest.fixture
def watched() -> Watched:
    watched = Watched()
    for number in range(12):
        watched.joins("payments", f"till-{number}-715172d3-365b-4bfd", f"till-{number}")
    watched.rebalances("payments", "till-3-715172d3-365b-4bfd")
    watched.joins(LONG, "m-1", "m")
    watched.commits("payments", 1_234_567)
    watched.board.measure({TopicPartition("t", 0): 1_234_667})
    watched.screen.read()
    return watched


@pytest.mark.parametrize("width", [70, 80, 140])
def test_nothing_is_cut_off(watched: Watched, width: int) -> None:
    lines = watched.lines(width)
    assert max(map(len, lines)) <= width
    text = " ".join(" ".join(lines).split())
    words = "presumably #4 (till-3) was silent for longer than its session timeout (from the log)"
    for part in (
        "cluster X at broker-1:9092, 2 groups", "12:00:00 UTC, as read 0.0 s ago; Ctrl-C quits",
        f"classic group; last rebalance 12:00:00.0: {words}",
        "in: #1 (till-0), #2 (till-1), #3 (till-2)", "and 4 more", LONG,
    ):  # fmt: skip
        assert part in text, text
    (head,) = (line for line in lines if line.startswith("group "))
    assert head.split() == [
        "group",
        "members",
        "rebalances",
        "no",
        "consumer",
        "commits",
        "lag",
        "late",
        "by",
    ]
    (row,) = (line for line in lines if line.startswith("payments "))
    assert row.split() == ["payments", "12", "1", "-", "1", "100", "-"]
    assert len(row) == len(head)


def test_what_is_too_high_is_counted(watched: Watched) -> None:
    whole = watched.lines(80)
    lines = watched.lines(80, len(whole) - 1)
    assert len(lines) < len(whole)
    assert "… 1 more group: --group ID shows one alone" in lines
    assert lines[:2] == whole[:2]
    assert lines[-2:] == whole[-2:]
    assert "… 2 more groups: --group ID shows one alone" in watched.lines(80, 6)


def test_what_is_shown_is_as_old_as_what_was_read(watched: Watched) -> None:
    watched.now_ns += 3 * SECOND
    assert watched.lines(80)[1] == "12:00:03 UTC, as read 3.0 s ago; Ctrl-C quits"
    watched.screen.read()
    assert "as read 0.0 s ago" in watched.lines(80)[1]
    watched.problems.begin(ProblemSubject("broker", node=1), "it does not answer")
    watched.problems.begin(ProblemSubject("end", "t", 0), "no leader")
    watched.now_ns += 200 * SECOND
    watched.screen.read()
    lines = watched.lines(80)
    assert "as read 3 min 20 s ago" in lines[1]
    assert "not seen since 2023-11-14T12:00:03Z: broker 1: it does not answer" in lines


@pytest.mark.parametrize("width", [80, 140])
def test_on_a_terminal_beside_a_tap(width: int, tmp_path: Path) -> None:
    pytest.importorskip("rich", reason="rich isn't installed: pip install 'coordwire[cli]'")
    path = tmp_path / "tapped.pcapng"
    with Broker.in_thread(topics=["orders"]) as broker:
        recording = LiveTraffic(path.open("wb"), pcapng=True)
        with (
            Tap.in_thread(broker.bootstrap, traffic=recording) as tap,
            on_terminal("watch", broker.bootstrap, "--tap", str(path), columns=width) as terminal,
            BlockingPeer(tap.bootstrap, "till-3") as tapped,
            BlockingPeer(broker.bootstrap, "till-4") as other,
        ):
            tapped.join("payments", "orders", 1)
            other.join("audit", "orders", 1)
            terminal.wait_for(
                r"last rebalance [\d:.]+: #1 \(till-3\) is the\s+first\s+member\s+\(seen by the\s+tap\)"
            )
            words = r"presumably\s+#1\s+\(till-4\)\s+is the\s+first\s+member\s+\(from the\s+log\)"
            terminal.wait_for(rf"last rebalance [\d:.]+: {words}")
            terminal.wait_for(rf"^cluster \S{{22}} at {re.escape(broker.bootstrap)}, \d groups?$")
            first_clock = terminal.wait_for(r"(\d\d:\d\d:\d\d) UTC, as read \d+\.\d s ago; Ctrl-C quits$")[1]
            time.sleep(1.1)
            terminal.wait_for(rf"(?!{first_clock})\d\d:\d\d:\d\d UTC, as read")
            assert terminal.interrupt() == 130
        recording.close()
    assert max(map(len, visible(terminal.text))) <= width
