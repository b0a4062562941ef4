"""The story for an operator: what went wrong, a line a rebalance, who is in; at several widths.

The recordings are those of tests/data/stories and tests/data/outages; what the story sums up is held to the
events in JSON.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coordwire.timeline.events import Cause, MemberJoined, Moved, Outcome, RebalanceEnded
from coordwire.timeline.story.incidents import incidents
from coordwire.timeline.story.member_numbers import MemberNumbers
from coordwire.timeline.story.rebalance_table import TableRow, causes, cells, folded, rows, table
from tests.cli.conftest import Run
from tests.cli.conftest import run as run

DATA = Path(__file__).parent.parent / "data"
RECORDINGS = [
    *(DATA / "stories" / f"{name}.pcap.xz" for name in ("classic-static", "consumer-deleted", "conversions")),
    DATA / "outages" / "broker-killed.pcap.xz",
]
AWAY = RECORDINGS[-1]
WIDTHS = (80, 100, 140)
SECOND = 1_000_000_000


@pytest.fixture(autouse=True)
def rich_is_there() -> None:
    pytest.importorskip("rich", reason="rich isn't installed: pip install 'coordwire[cli]'")


def blocks(text: str) -> dict[str, list[str]]:
    """The lines below each group's title, by its id."""
    result = {}
    for part in re.split(r"^── ", text, flags=re.MULTILINE)[1:]:
        title, *lines = part.rstrip("\n").split("\n")
        result[title.split()[0]] = lines
    return result


def section(lines: list[str], name: str) -> list[str]:
    """The lines below a heading, until the next."""
    at = next((at for at, line in enumerate(lines) if line.startswith(name)), None)
    if at is None:
        return []
    remaining = lines[at + 1 :]
    return remaining[
        : next((end for end, line in enumerate(remaining) if not line.startswith("   ")), len(remaining))
    ]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name.partition(".")[0])
def test_no_line_is_wider_than_the_terminal(
    path: Path, width: int, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    story = run("timeline", "--format", "story", path).text
    lines = [line for line in story.splitlines() if str(path.parent) not in line]
    assert max(map(len, lines)) <= width
    numbered = run("timeline", "--format", "story", "--rebalance", "1", path).text
    below = [line for line in numbered.splitlines() if str(path.parent) not in line]
    assert max(map(len, below)) <= width


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name.partition(".")[0])
def test_the_table_and_the_members_are_those_of_the_events(
    path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    events = run("timeline", "--format=json", path).forms
    story = blocks(run("timeline", "--format", "story", path).text)
    groups = {event["group"] for event in events if event["event"] == "memberJoined"}
    assert groups <= set(story)
    for group in groups:
        own = [event for event in events if event["group"] == group]
        ended = [event for event in own if event["event"] == "rebalanceEnded"]
        table = section(story[group], "Rebalances")[3:]
        chained = sum(event["outcome"] == "superseded" for event in ended)
        assert len(ended) - chained <= len(table) <= len(ended)
        shown_packets = {int(row.split()[-1]) for row in table}
        assert {event["packet"] for event in ended if event["outcome"] != "superseded"} <= shown_packets
        within = set(in_at_the_end(own))
        listed = [line for line in section(story[group], "In at the end") if re.match(r"   #\d+ ", line)]
        assert len(listed) == len(within)
        ids = {event["memberId"] for event in own if event["event"] in ("memberJoined", "memberLeft")}
        gone = [line for line in section(story[group], "No longer in") if re.match(r"   #\d+ ", line)]
        assert len(listed) + len(gone) == len(ids)


def in_at_the_end(events: list[dict[str, Any]]) -> dict[str, Any]:
    within: dict[str, Any] = {}
    for event in sorted(events, key=lambda event: event["time"]):
        if event["event"] == "memberJoined":
            if event["instanceId"] is not None:
                within = {
                    name: join for name, join in within.items() if join["instanceId"] != event["instanceId"]
                }
            within[event["memberId"]] = event
        elif event["event"] == "memberLeft" and event["how"] != "left_for_now":
            within.pop(event["memberId"], None)
    return within


def test_incidents_come_first_and_name_what_shows_them(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    lines = blocks(run("timeline", "--format", "story", "--group", "cls", AWAY).text)["cls"]
    heads = [line for line in lines if not line.startswith(" ")]
    assert [head.split(" (")[0] for head in heads] == [
        "Incidents", "Rebalances", "In at the end", "No longer in",
        f"Next: coordwire timeline {AWAY} --group cls --rebalance 4",
    ]  # fmt: skip
    assert lines[0].startswith(
        "   6 incidents, the worst at 15:16:12.2: #4 (c3) not heard since the broker ended the connection"
    )
    text = re.sub(r"\s+", " ", " ".join(section(lines, "Incidents")))
    assert "15:15:37.0 the coordinator 127.0.0.1:43367 was away for 11.4 s: it ended 25 connections" in text
    assert (
        "#3 (c1) fell silent, connection open (last packet 7256); out at 15:16:45.7 (last request 6 s before)"
        in text
    )
    assert (
        "out at 15:15:54.4 (last request 17.6 s before) orders-2..5 had no consumer for up to 17.8 s" in text
    )
    assert "orders-0..2 had no consumer for up to 6.01 s, 3 more for 8 ms or less" in text
    assert "NOT_COORDINATOR" not in text


@pytest.mark.parametrize("words", [(), ("--summary",), ("--events",)])
def test_several_groups_begin_with_the_worst_incident_of_all(run: Run, words: tuple[str, ...]) -> None:
    """Its group, when it was, who, and what it cost, in the words of that group's own verdict."""
    _, *lines = run("timeline", *words, AWAY).text.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("──"))
    text = " ".join(" ".join(lines[:first]).split())
    head, at, worst = text.partition("the worst in cls at ")
    assert (head, at) == ("3 groups: 12 incidents in 3 of them, ", "the worst in cls at ")
    assert worst.startswith("15:16:12.2: #4 (c3) not heard since")
    assert worst.endswith("orders-3..5 had no consumer for up to 23.0 s")
    own = {name: " ".join(" ".join(block).split()) for name, block in blocks("\n".join(lines)).items()}
    assert f"incidents, the worst at {worst} " in own["cls"]
    one = run("timeline", *words, "--group", "new", AWAY).text
    assert " groups: " not in one


def test_a_rebalance_in_full_has_assignments_and_its_number(run: Run) -> None:
    story = run("timeline", "--format", "story", "--group", "cls", "--rebalance", "5", AWAY).text
    assert "Rebalance 5 of 7: #3 (c1) timed out" in story
    assert re.search(r"#5 \(c3\) +orders-0\.\.5  \+3", story)
    assert "it has 4 rebalances" in run("timeline", "--rebalance", "5", AWAY).text
    beyond = run("timeline", "--rebalance", "8", AWAY)
    assert (beyond.status, beyond.out) == (2, b"")
    known = "new has 1 to 4, cls has 1 to 7, shr has 1 to 4"
    assert beyond.err == f"coordwire: timeline: no rebalance 8: {known}\n"
    assert run("timeline", "--rebalance", "0", AWAY).status == 2


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name.partition(".")[0])
def test_each_rebalance_has_a_number_by_which_it_is_found(path: Path, run: Run) -> None:
    """A row of several has the numbers of all, each of which names that row."""
    ended = [
        form for form in run("timeline", "--format=json", path).forms if form["event"] == "rebalanceEnded"
    ]
    for group, lines in blocks(run("timeline", "--format", "story", path).text).items():
        names = [line.split()[0] for line in section(lines, "Rebalances") if re.match(r" +\d[\d–]*  ", line)]
        spans = [[int(number) for number in name.split("–")] for name in names]
        numbers = [number for span in spans for number in range(span[0], span[-1] + 1)]
        outcomes = [form["outcome"] for form in ended if form["group"] == group]
        assert numbers == list(range(1, len(outcomes) + 1))
        idle = outcomes.count("not_needed")
        title = f"Rebalances ({len(outcomes) - idle}" + (f", and {idle} not needed)" if idle else ")")
        assert title in lines
        for name, span in zip(names, spans, strict=True):
            several = "s" if len(span) > 1 else ""
            for number in {span[0], span[-1]}:
                full = run("timeline", "--group", group, "--rebalance", number, path).text
                assert f"Rebalance{several} {name} of {len(outcomes)}: " in full


def rejoined(number: int, *, cause: Cause = "leader_rejoined", outcome: Outcome = "steady") -> RebalanceEnded:
    """A rebalance in which nothing moves, 3 ms long, a second after the one before."""
    return RebalanceEnded(
        group="g", time_ns=number * SECOND, source="x", number=number, packet=number, kind="classic",
        outcome=outcome, cause=cause, member_id="m", inferred=False, detail="",
        began_ns=number * SECOND - 3_000_000, joined_ns=None, ended_ns=number * SECOND,
        length_ns=3_000_000, generation_before=number - 1, generation=number, protocol=None, leader=None,
        members=("m", "n"), last_to_join=None, assignments=(), moved=(),
    )  # fmt: skip


def test_a_loop_is_one_row() -> None:
    """Of which each rebalance keeps its number; fewer, a pause, and what moves partitions end it."""
    numbers = MemberNumbers.of([])
    loop = [rejoined(number) for number in range(1, 40)]
    loop += [rejoined(number, cause="member_rejoined", outcome="not_needed") for number in range(40, 46)]
    (row,) = folded(rows(loop))
    assert cells(row, numbers)[:4] == [
        "1–45", "00:00:00.9", "135 ms", "45 times: leader m joins again, m joins again; 6 not needed",
    ]  # fmt: skip
    assert [row.name for row in rows(loop)] == [f"{number}" for number in range(1, 46)]
    moved = (Moved("t", 0, None, "m"),)
    for between in (rejoined(20, cause="member_left"), replace(rejoined(20), moved=moved)):
        names = [row.name for row in folded(rows([*loop[:19], between, *loop[20:]]))]
        assert names == ["1–19", "20", "21–45"]
    assert len(folded(rows(loop[:9]))) == 9
    later = [rejoined(number) for number in range(100, 115)]
    assert [row.name for row in folded(rows([*loop, *later]))] == ["1–45", "46–60"]


def test_an_incident_names_a_rebalance_by_its_number_and_its_cause() -> None:
    given_up = rejoined(2, cause="member_left", outcome="superseded")
    unfinished = replace(rejoined(3, outcome="unfinished"), began_ns=2 * SECOND, length_ns=SECOND)
    events = [rejoined(1), given_up, unfinished]
    (incident,) = incidents(events, [], rows(events), MemberNumbers.of([]))
    assert incident.lines == [
        "rebalance 3 to 3 (leader m joins again) was not over when the input ends, after 1 s"
    ]


@pytest.mark.parametrize("width", [60, 72, 80, 100, 200])
def test_a_cause_is_never_cut(width: int) -> None:
    """The packet and the epoch make room for it, and it goes on below."""
    names = [f"member-{number}" for number in range(40)]
    client = "web"
    joins = [
        MemberJoined(
            group="g", time_ns=number, source="x", number=1, kind="classic", member_id=name,
            client_id=f"{client}-{number}", host=None,
        )
        for number, name in enumerate(names)
    ]  # fmt: skip
    numbers = MemberNumbers.of(joins)
    ended = RebalanceEnded(
        group="g", time_ns=99, source="x", number=1, packet=123_456, kind="classic", outcome="unfinished",
        cause="new_member", member_id=names[0], inferred=False, detail="", began_ns=0, joined_ns=None,
        ended_ns=99, length_ns=99, generation_before=1, generation=2, protocol=None, leader=None,
        members=tuple(names), last_to_join=None, assignments=(), moved=(),
    )  # fmt: skip
    row = TableRow(1, [ended], joined=tuple(names))
    lines = ["".join(text for text, _ in pieces) for pieces in table([row], numbers, width)]
    assert max(map(len, lines)) <= max(width, 72)
    letters = re.sub(r"\s", "", "".join(line[22:] for line in lines))
    place = 0
    for word in causes(row, numbers).split():
        assert word in letters[place:]
        place = letters.index(word, place)
    assert ("123456" in letters) is (width > 100)
