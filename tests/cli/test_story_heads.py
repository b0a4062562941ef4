"""What a story says of a group at its head, and how it folds commits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from coordwire.cli.timeline.story import StoryFormat
from coordwire.timeline.events import (
    GroupEvent,
    LagMeasured,
    LagReason,
    MemberJoined,
    OffsetCommitted,
    RebalanceBegan,
    RebalanceEnded,
)
from tests.broker_sample import broker_sample
from tests.cli.conftest import Run

CAUSES = Path(__file__).parents[1] / "data" / "stories" / "classic-causes.pcap.xz"
SECOND = 1_000_000_000


def committed(number: int, offset: int, *, partition: int = 0, member: str = "a-1") -> OffsetCommitted:
    return OffsetCommitted(
        group="g", time_ns=number * SECOND, source="x", number=number, packet=None, member_id=member,
        client_id="a", generation=1, topic="t", partition=partition, offset=offset, leader_epoch=-1,
        metadata=None,
    )  # fmt: skip


def lag(number: int, committed: int, end: int, reason: LagReason | None = None) -> LagMeasured:
    return LagMeasured(
        group="g", time_ns=number * SECOND, source="x", number=number, packet=None, topic="t", partition=0,
        committed=committed, end_offset=end, lag=end - committed, reason=reason,
    )  # fmt: skip


def joined(number: int) -> MemberJoined:
    return MemberJoined(
        group="g", time_ns=number * SECOND, source="x", number=number, packet=None, kind="classic",
        member_id="b-1", client_id="b", host=None, instance_id=None, topics=(), protocols=(),
        session_timeout_ms=None, reason=None, rejoined=False,
    )  # fmt: skip


def story(
    events: list[GroupEvent], capsys: pytest.CaptureFixture[str], *, commits: bool = False
) -> list[str]:
    pytest.importorskip("rich", reason="rich isn't installed: pip install 'coordwire[cli]'")
    output = StoryFormat(commits=commits, by_events=True)
    for event in events:
        output.write(event)
    output.finish()
    return [line.strip() for line in capsys.readouterr().out.splitlines()]


def test_commits_of_a_member_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    events: list[GroupEvent] = []
    for number in range(1, 6):
        events += [committed(number, 10 * number), committed(number, 5, partition=1), lag(number, 5, 9)]
        events.append(committed(number, 7, partition=4, member="c-1"))
    events += [joined(6), committed(7, 60), lag(7, 60, 99)]
    lines = story(events, capsys)
    assert [line.partition(".000  ")[2] for line in lines if "-1 commits " in line] == [
        "· a-1 commits 5 times: t-0..1 (lag 4 at last) until 00:00:05.000",
        "· c-1 commits 5 times: t-4 until 00:00:05.000",
        "· a-1 commits t-0 → 60 (lag 39)",
    ]
    names = story(events, capsys, commits=True)
    assert sum("a-1 commits t-0 → " in line for line in names) == 6


def test_refused_commits_and_those_beyond_the_end_are_not_folded(capsys: pytest.CaptureFixture[str]) -> None:
    refused = replace(committed(2, 8), error_code=22)
    events: list[GroupEvent] = [
        committed(1, 5), refused, committed(3, 99_999_999),
        lag(3, 99_999_999, 1_160, "end_seen_earlier"), lag(4, 99_999_999, 1_160, "committed_beyond_end"),
    ]  # fmt: skip
    lines = story(events, capsys)
    assert "committed beyond the end in 1 partition, most in t-0: 99,998,839" in lines
    assert "lag at the end 0" in lines
    damaged = [line.partition("✗ ")[2] for line in lines if "✗" in line]
    assert damaged == [
        "a-1 commits t-0 → 8: ILLEGAL_GENERATION",
        "committed t-0 → 99,999,999, 99,998,839 beyond the end that was last seen, 1,160",
        "committed t-0 → 99,999,999, 99,998,839 beyond its end, 1,160",
    ]


def ended(length_ns: int | None) -> list[GroupEvent]:
    began = RebalanceBegan(
        group="g", time_ns=SECOND, source="x", number=1, packet=None, kind="classic", cause="new_member",
        member_id="a-1", inferred=False, detail="",
    )  # fmt: skip
    over = RebalanceEnded(
        group="g", time_ns=SECOND, source="x", number=1, packet=None, kind="classic", outcome="steady",
        cause="new_member", member_id="a-1", inferred=False, detail="", began_ns=None, joined_ns=None,
        ended_ns=SECOND, length_ns=length_ns, generation_before=1, generation=2, protocol=None, leader=None,
        members=(), last_to_join=None, assignments=(), moved=(), idle=(),
    )  # fmt: skip
    return [began, over]


def test_lengths_that_are_not_known_are_not_said_to_be_0(capsys: pytest.CaptureFixture[str]) -> None:
    unknown, zero, known = ended(None), ended(0), ended(2 * SECOND)
    for events in (unknown, zero):
        lines = story(events, capsys)
        assert "the input does not show how long that took" in lines
        assert not any("0 µs" in line or "0 member" in line for line in lines)
    text = " ".join(story([*unknown, *known], capsys))
    assert "2 s of rebalancing in all, without 1 of unknown length; the longest 2 s: a-1 joins" in text


def test_heads_of_a_log_and_of_a_part_of_a_capture(run: Run) -> None:
    pytest.importorskip("rich", reason="rich isn't installed: pip install 'coordwire[cli]'")
    part = run(
        "timeline", "--format", "story", "--events", "--since", "06:53:41", "--until", "06:53:42", CAUSES
    )
    assert "1 generation, 7 commits in 841 ms\n" in part.text
    log = run("timeline", "--format", "story", broker_sample() / "data")
    assert "the input does not show how long that took" in log.text
    assert "0 µs" not in part.text + log.text
    sums = run("timeline", "--format=json", "--summary", broker_sample() / "data").forms
    assert {form["rebalancingMs"] for form in sums if form["group"] == "orders-classic"} == {None}
