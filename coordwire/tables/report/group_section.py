"""The report's groups: what went wrong, each rebalance with its time and cause, members over time, lag.

Strategy: events are put together by group and input file, so that captures of two clusters, or of both ends,
are not taken for one history; those with most events are shown. Rules: members come in the order of joining,
rebalances in that of time; a line that is thinned keeps its highest and lowest points; notes
say what was left out.
"""

from __future__ import annotations

__all__ = ["sections"]

import posixpath
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from coordwire._quantities import clock, counted, day, duration
from coordwire.tables.report import plots
from coordwire.tables.report.plots import TimeBar, escaped
from coordwire.tables.views import once

if TYPE_CHECKING:
    from coordwire.tables.report.summary import TableRows

MOST_GROUPS = 12
MOST_ROWS = 20_000
MOST_MEMBERS = 24
MOST_REBALANCES = 40
MOST_LINES = 8
MOST_PANELS = 6
MOST_NAMED = 20
"""Topics that are listed as without lag."""

MOST_POINTS = 200
SHORT = 8
"""Characters of a member id that are shown after its client id."""

MICROSECONDS = 1e6
_GROUPS = (
    "time event group_id input_file frame log_offset member_id client_id how generation cause inferred "
    "outcome began ended length_ms members moved last_to_join broker_address seen_in"
)
_LAG = "time group_id input_file frame log_offset topic partition lag"
_ORDER = "time frame log_offset"
LONG_MS = 10_000
"""A rebalance that takes longer is listed with what went wrong."""

_LOST = {
    "session_timeout": "its session ended: it fell silent, or its process ended",
    "removed": "no longer known to the coordinator", "not_rejoined": "did not join again in time",
    "fenced": "another took its place",
}  # fmt: skip
_ENDS = {
    "closed": "its connections were closed by it", "closed_by_broker": "the broker closed its connections",
    "reset": "its connections were reset", "open": "its connection stayed open",
}  # fmt: skip
"""How the connections of a member ended that fell silent."""

_OUTCOMES = {"steady": 1, "superseded": 3, "unfinished": 3}
_OTHER = 7
"""Colours of rebalances by outcome."""

_COLOURS = {
    0: "a member", 1: "a rebalance until all members were assigned", 3: "one superseded, or unfinished",
    _OTHER: "one that changed nothing, or left no member",
}  # fmt: skip

_CAUSES = {
    "first_member": "first member", "static_member_returned": "static member is back",
    "session_timeout": "silent for longer than its session", "leader_rejoined": "the leader joined again",
    "assignment_changed": "the coordinator changed the assignment",
}  # fmt: skip

StoryKey = tuple[str, str]
"""A group and the input file that its events are from."""


def sections(reading: TableRows) -> list[str]:
    """The groups, and how long all their rebalances took."""
    events = {"event": ["memberJoined", "memberLeft", "rebalanceEnded", "brokerAway"]}
    rows = reading.rows("groups", _GROUPS, _ORDER, MOST_ROWS + 1, known=["time"], among=events)
    lag = reading.rows("lag", _LAG, _ORDER, MOST_ROWS + 1, known=["time", "lag"])
    stories: dict[StoryKey, list[Any]] = defaultdict(list)
    lags: dict[StoryKey, list[Any]] = defaultdict(list)
    for row in rows[:MOST_ROWS]:
        stories[row.group_id, row.input_file].append(row)
    for row in lag[:MOST_ROWS]:
        lags[row.group_id, row.input_file].append(row)
    size = {story: (len(stories[story]), len(lags[story])) for story in {**stories, **lags}}
    selected = sorted(sorted(size, key=size.__getitem__, reverse=True)[:MOST_GROUPS])
    parts = ["<h2>Groups</h2>"]
    if not selected:
        parts.append(plots.empty_plot("Groups"))
    else:
        parts.append('<p class="note">Each row is a member, in the order of joining.</p>')
        parts.append(plots.legend(_COLOURS))
    sources = Counter(group for group, _ in size)
    for story in selected:
        parts += _group(story, stories[story], lags[story], more_files=sources[story[0]] - 1)
    parts += _left_out(len(size) - len(selected), rows, lag)
    ended = once(row for row in rows[:MOST_ROWS] if row.event == "rebalanceEnded")
    lengths = [row.length_ms / 1e3 for row in ended if row.length_ms is not None]
    parts += [
        "<h2>Lengths of rebalances</h2>",
        plots.histogram("Lengths of rebalances", lengths, "rebalances"),
    ]
    return parts


def _left_out(groups: int, rows: Sequence[Any], lag: Sequence[Any]) -> list[str]:
    sentences = [f"{counted(groups, 'more group')} in the tables"] if groups else []
    for name, table_rows in (("groups", rows), ("lag", lag)):
        if len(table_rows) > MOST_ROWS:
            sentences.append(
                f"the table {name} has more than the first {MOST_ROWS:,} rows, which are shown here"
            )
    return [f'<p class="note">{"; ".join(sentences)}.</p>'] if sentences else []


def _group(story: StoryKey, rows: Sequence[Any], lag: Sequence[Any], *, more_files: int) -> list[str]:
    """A group by one input file. more_files: how many more files have a group of this name."""
    group, input_file = story
    times = [_began(row) if row.event == "rebalanceEnded" else row.time / MICROSECONDS for row in rows]
    times += [row.time / MICROSECONDS for row in lag]
    first, last = min(times), max(times)
    further = counted(more_files, "more file")
    shared = f"; {further} with a group of this name: not to be added up" if more_files else ""
    parts = [
        f"<h3>{escaped(group) or '(no group)'}</h3>",
        f'<p class="note">{escaped(_summed_up(rows))} · {day(first)}, {clock(first)} · '
        f"{escaped(posixpath.basename(input_file))}{shared}</p>",
    ]
    names = _short_names(rows)
    if rows:
        parts += _incidents(rows, names)
        parts += _rebalances(rows, names)
        members, left_out = _members(rows, names)
        parts.append(plots.spans(f"Members and rebalances of {group}", members))
        if left_out:
            parts.append(f'<p class="note">{counted(left_out, "more member")} in the table groups.</p>')
    return parts + _lag(group, lag, first, last)


def _summed_up(rows: Sequence[Any]) -> str:
    """The group's members and rebalances, counted in one line."""
    members = {row.member_id for row in rows if row.event in ("memberJoined", "memberLeft")}
    ended = [row for row in rows if row.event == "rebalanceEnded"]
    lengths = [row.length_ms / 1e3 for row in ended if row.length_ms is not None]
    phrases = [counted(len(members), "member"), counted(len(ended), "rebalance")]
    if lengths:
        phrases.append(f"{duration(sum(lengths))} in all, the longest {duration(max(lengths))}")
    return ", ".join(phrases)


def _short_names(rows: Iterable[Any]) -> dict[str, str]:
    """Member ids as they are shown: the client's name and some characters, where that is unique."""
    clients = {
        row.member_id: row.client_id or "" for row in rows if row.member_id and row.event != "rebalanceEnded"
    }
    short_names: dict[str, str] = {}
    for member, client in clients.items():
        suffix = member.removeprefix(f"{client}-") if client else member
        cut = suffix if len(suffix) <= 2 * SHORT else f"{suffix[:SHORT]}…"
        short_names[member] = f"{client}-{cut}" if client and suffix != client else cut
    names = list(short_names.values())
    return {member: name if names.count(name) == 1 else member for member, name in short_names.items()}


# --- members ---


def _members(rows: Sequence[Any], names: dict[str, str]) -> tuple[dict[str, list[TimeBar]], int]:
    """The bars of each member's times in the group, in the order of joining, after those of the group's
    rebalances; and how many members were left out."""
    first, last = rows[0].time / MICROSECONDS, rows[-1].time / MICROSECONDS
    rebalances: list[TimeBar] = []
    bars: dict[str, list[TimeBar]] = {}
    since: dict[str, tuple[float, str]] = {}
    for row in rows:
        time = row.time / MICROSECONDS
        if row.event == "rebalanceEnded":
            rebalances.append(_rebalance_bar(row, time))
            continue
        if row.event == "brokerAway":
            continue
        member = row.member_id or ""
        if row.event == "memberJoined":
            bars.setdefault(member, [])
            since.setdefault(member, (time, f"joined {clock(time)}"))
        else:
            start, joined = since.pop(member, (first, "was in before"))
            ending = (row.how or "left").replace("_", " ")
            label = f"{names.get(member, member)}: {joined}, {ending} {clock(time)}"
            bars.setdefault(member, []).append(TimeBar(start, time, label))
    for member, (start, joined) in since.items():
        bars[member].append(TimeBar(start, last, f"{names.get(member, member)}: {joined}, still in"))
    selected = {names.get(member, member): bars[member] for member in list(bars)[:MOST_MEMBERS]}
    return {"rebalances": rebalances} | selected, max(0, len(bars) - MOST_MEMBERS)


def _rebalance_bar(row: Any, time: float) -> TimeBar:
    began = time if row.began is None else row.began / MICROSECONDS
    ended = time if row.ended is None else row.ended / MICROSECONDS
    length = "" if row.length_ms is None else f", {duration(row.length_ms / 1e3)}"
    label = f"generation {_number(row.generation)}: {_cause(row)}, {_outcome(row)}{length}"
    return TimeBar(began, ended, label, f"s{_OUTCOMES.get(row.outcome, _OTHER)}")


# --- what went wrong ---


def _incidents(rows: Iterable[Any], names: dict[str, str]) -> list[str]:
    """Members that went without leaving, brokers that were away, and rebalances that were long or not
    finished, by time."""
    incidents: list[tuple[float, str, str]] = []
    for row in rows:
        lost = _LOST.get(row.how or "") if row.event == "memberLeft" else None
        if lost is not None:
            name = names.get(row.member_id, row.member_id or "")
            ending = _ENDS.get(row.outcome or "")
            incidents.append((row.time / MICROSECONDS, name, f"{lost}; {ending}" if ending else lost))
        elif row.event == "brokerAway":
            length = "" if row.length_ms is None else f" for {duration(row.length_ms / 1e3)}"
            incidents.append((row.time / MICROSECONDS, "", f"broker {row.broker_address} was away{length}"))
        elif row.event == "rebalanceEnded" and (
            (row.length_ms or 0) > LONG_MS or row.outcome == "unfinished"
        ):
            length = "" if row.length_ms is None else f" after {duration(row.length_ms / 1e3)}"
            text = f"the rebalance to {_number(row.generation)}: {_outcome(row)}{length}"
            incidents.append((_began(row), "", text))
    if not incidents:
        return []
    lines = [[clock(time), name, text] for time, name, text in sorted(incidents)]
    table = plots.table(["time", "member", "incident"], lines[:MOST_REBALANCES], long=(2,))
    if len(lines) > MOST_REBALANCES:
        table += f'<p class="note">The first {MOST_REBALANCES} of {len(lines):,}.</p>'
    return [table]


# --- rebalances ---


def _rebalances(rows: Iterable[Any], names: dict[str, str]) -> list[str]:
    """The group's rebalances in the order of time; of very many the longest."""
    ended = [row for row in rows if row.event == "rebalanceEnded"]
    longest = sorted(ended, key=lambda row: -(row.length_ms or 0))[:MOST_REBALANCES]
    table = plots.table(
        ["time", "length", "generation", "cause", "who", "outcome", "members", "moved", "last to join"],
        [
            [clock(_began(row)), "–" if row.length_ms is None else duration(row.length_ms / 1e3),
             _number(row.generation), _cause(row), names.get(row.member_id, row.member_id or ""),
             _outcome(row), str(len(row.members or ())), str(row.moved or 0),
             names.get(row.last_to_join, row.last_to_join or "")]
            for row in sorted(longest, key=_began)
        ],
        numbers=(1, 2, 6, 7),
        long=(3,),
    )  # fmt: skip
    if len(ended) > len(longest):
        table += f'<p class="note">The {len(longest)} longest of {counted(len(ended), "rebalance")}.</p>'
    return [table]


def _began(row: Any) -> float:
    began: int = row.time if row.began is None else row.began
    return began / MICROSECONDS


def _number(value: int | None) -> str:
    return "–" if value is None else str(value)


def _cause(row: Any) -> str:
    cause = row.cause or "unknown"
    phrase: str = _CAUSES.get(cause, cause.replace("_", " "))
    return f"presumably: {phrase}" if row.inferred and cause != "unknown" else phrase


def _outcome(row: Any) -> str:
    return (row.outcome or "").replace("_", " ")


# --- lag ---


def _lag(group: str, rows: Iterable[Any], first: float, last: float) -> list[str]:
    """A panel for each topic, with a line for each partition."""
    topics: dict[str, dict[int, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    last_lags: dict[tuple[str, int], int] = {}
    for row in rows:
        topics[row.topic][row.partition].append((row.time / MICROSECONDS, float(max(row.lag, 0))))
        last_lags[row.topic, row.partition] = row.lag
    highest = {topic: max(map(_highest, lines.values())) for topic, lines in topics.items()}
    lagging = [topic for topic in topics if highest[topic]]
    parts = _beyond(last_lags)
    for topic in sorted(sorted(lagging, key=lambda topic: -highest[topic])[:MOST_PANELS]):
        lines = topics[topic]
        most = sorted(sorted(lines, key=lambda number: -_highest(lines[number]))[:MOST_LINES])
        last_total = sum(line[-1][1] for line in lines.values())
        sentence = (
            f"{highest[topic]:,.0f} records at most in one partition, {last_total:,.0f} at the end in all"
        )
        if len(lines) > len(most):
            sentence += f"; the {len(most)} highest of {counted(len(lines), 'partition')}"
        points = {f"{topic}-{number}": thinned(lines[number]) for number in most}
        parts += [f"<h4>Lag in {escaped(topic)}</h4>", f'<p class="note">{sentence}</p>']
        parts.append(plots.lines(f"Lag of {group} in {topic}", points, "records", first, last))
    if len(lagging) > MOST_PANELS:
        suffix = counted(len(lagging) - MOST_PANELS, "more topic")
        parts.append(f'<p class="note">{suffix} with a lower lag in the table lag.</p>')
    if level := sorted(topic for topic in topics if not highest[topic]):
        suffix = f" and {len(level) - MOST_NAMED:,} more" if len(level) > MOST_NAMED else ""
        parts.append(f'<p class="note">No lag in {escaped(", ".join(level[:MOST_NAMED]))}{suffix}.</p>')
    return parts


def _beyond(last_lags: Mapping[tuple[str, int], int]) -> list[str]:
    """A note on partitions in which what is committed last is beyond the end."""
    beyond = sorted((lag, partition) for partition, lag in last_lags.items() if lag < 0)
    if not beyond:
        return []
    named = ", ".join(f"{topic}-{number} by {-lag:,}" for lag, (topic, number) in beyond[:MOST_NAMED])
    suffix = f" and {len(beyond) - MOST_NAMED:,} more" if len(beyond) > MOST_NAMED else ""
    return [f'<p class="note">Committed beyond the end at last: {escaped(named)}{suffix}.</p>']


def _highest(line: Sequence[tuple[float, float]]) -> float:
    return max(y for _, y in line)


def thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """About `MOST_POINTS` of them: the first, the last, and the highest and lowest of each part."""
    if len(points) <= MOST_POINTS:
        return list(points)
    step = -(-2 * len(points) // MOST_POINTS)
    indexes = {0, len(points) - 1}
    for start in range(0, len(points), step):
        part = range(start, min(start + step, len(points)))
        indexes |= {min(part, key=lambda i: points[i][1]), max(part, key=lambda i: points[i][1])}
    return [points[index] for index in sorted(indexes)]
