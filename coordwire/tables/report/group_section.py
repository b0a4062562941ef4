"""The report's groups: their stories, and their lag over time.

Strategy: events are put together by group, input file and cluster, so that captures of two, or of both ends,
are not taken for one history; each has the story of `coordwire timeline` (`timeline.story`); those with
most events are shown. Rules: a line that is thinned keeps its highest and lowest points; notes say what was
left out.
"""

from __future__ import annotations

__all__ = ["sections"]

import posixpath
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from coordwire._quantities import counted
from coordwire.tables.readers.group_rows import COMMIT_COLUMNS, EVENT_COLUMNS, LAG_COLUMNS, event_of
from coordwire.tables.report import plots
from coordwire.tables.views import once
from coordwire.timeline.events import ClusterFound, GroupEvent
from coordwire.timeline.story.collected import CollectedEvents
from coordwire.timeline.story.contents import StoryContents, common_verdict
from coordwire.timeline.story.markup import escaped
from coordwire.timeline.story.story_page import story_html

if TYPE_CHECKING:
    from coordwire.tables.report.summary import TableRows

MOST_GROUPS = 12
MOST_ROWS = 20_000
MOST_LINES = 8
MOST_PANELS = 6
MOST_NAMED = 20
"""Topics that are listed as without lag."""

MOST_POINTS = 200

MICROSECONDS = 1e6
_ONCE = " event generation length_ms seen_in"
_ORDER = "time frame log_offset"
_READ = {"groups": EVENT_COLUMNS + _ONCE, "lag": LAG_COLUMNS, "offset_commits": COMMIT_COLUMNS}
_KNOWN = {"groups": ["time"], "lag": ["time", "lag"], "offset_commits": ["time"]}

SourceKey = tuple[str, str, str | None]
"""A group, the input file that its events are from, and the cluster where that shows several."""


def sections(reading: TableRows) -> list[str]:
    """The groups, and how long all their rebalances took."""
    rows = {
        name: reading.rows(name, columns, _ORDER, MOST_ROWS + 1, known=_KNOWN[name])
        for name, columns in _READ.items()
    }
    events: dict[SourceKey, list[GroupEvent]] = defaultdict(list)
    lags: dict[SourceKey, list[Any]] = defaultdict(list)
    first_clusters: dict[str, str] = {}
    eventless = 0
    for name in rows:
        for row in rows[name][:MOST_ROWS]:
            event = event_of(name, row)
            if event is None:
                eventless += 1
                continue
            if isinstance(event, ClusterFound):
                first_clusters[row.input_file] = event.cluster or ""
                continue
            events[event.group, row.input_file, event.cluster].append(event)
            if name == "lag":
                lags[event.group, row.input_file, event.cluster].append(row)
    events = _in_first_clusters(events, first_clusters)
    lags = _in_first_clusters(lags, first_clusters)
    stories = {key: _story(events[key], key[2]) for key in events}
    worst_first = sorted(
        stories, key=lambda key: (stories[key].worst_cost_ns, len(events[key])), reverse=True
    )
    selected = sorted(worst_first[:MOST_GROUPS], key=lambda key: (*key[:2], key[2] or ""))
    parts = ["<h2>Groups</h2>"] if selected else []
    sources = Counter(group for group, _ in {key[:2] for key in events})
    if len(stories) > 1:
        parts.append(f"<p><b>{escaped(common_verdict(list(stories.values())))}</b></p>")
    for key in selected:
        parts += _group(key, stories[key], lags[key], more_files=sources[key[0]] - 1)
    parts += _left_out(len(events) - len(selected), rows, eventless)
    ended = once(row for row in rows["groups"][:MOST_ROWS] if row.event == "rebalanceEnded")
    lengths = [row.length_ms / 1e3 for row in ended if row.length_ms is not None]
    if lengths:
        parts += [
            "<h2>Lengths of rebalances</h2>",
            plots.histogram("Lengths of rebalances", lengths, "rebalances"),
        ]
    return parts


def _command(path: str, contents: StoryContents) -> str:
    """A command that shows more of a story."""
    return f"coordwire timeline {shlex.quote(path)}{contents.next_options(names_group=True)}"


def _left_out(groups: int, rows: Mapping[str, Sequence[Any]], eventless: int) -> list[str]:
    sentences = [f"{counted(groups, 'more group')} in the tables"] if groups else []
    for name, table_rows in rows.items():
        if len(table_rows) > MOST_ROWS:
            sentences.append(
                f"the table {name} has more than the first {MOST_ROWS:,} rows, which are shown here"
            )
    if eventless:
        sentences.append(
            f"{counted(eventless, 'event')} of a run before the tables had whole events: not shown here"
        )
    return [f'<p class="note">{"; ".join(sentences)}.</p>'] if sentences else []


def _story(events: Iterable[GroupEvent], cluster: str | None) -> StoryContents:
    """The story of one group."""
    in_order = sorted(events, key=lambda event: event.time_ns or 0)
    (group,) = CollectedEvents(replace(event, cluster=cluster) for event in in_order).groups.values()
    return StoryContents(group)


def _in_first_clusters(
    by_key: Mapping[SourceKey, list[Any]], first_clusters: Mapping[str, str]
) -> dict[SourceKey, list[Any]]:
    """The same, with what came before a file's second cluster among that of the first."""
    every: dict[SourceKey, list[Any]] = defaultdict(list)
    for (group, file, cluster), values in by_key.items():
        every[group, file, cluster or first_clusters.get(file)] += values
    return every


def _group(key: SourceKey, contents: StoryContents, lag: Sequence[Any], *, more_files: int) -> list[str]:
    """A group by one input file. more_files: how many more files have a group of this name."""
    further = counted(more_files, "more file")
    shared = f"; {further} with a group of this name: not to be added up" if more_files else ""
    first_ns, last_ns = contents.totals.first_ns or 0, contents.totals.last_ns or 0
    return [
        story_html(contents, note=f"{posixpath.basename(key[1])}{shared}"),
        *_lag(contents.name, lag, first_ns / 1e9, last_ns / 1e9),
        f'<p class="note">Next: {escaped(_command(key[1], contents))}</p>',
    ]


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
