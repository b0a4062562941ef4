"""The report: one HTML file with everything in it, for people who want to know what happened.

Strategy: the numbers are the run's summary, the plots read a bounded part of the tables: the groups with most
rebalances, their members and lag, errors by API. Rules: nothing is fetched from anywhere; what untrusted
bytes say is escaped; what was left out for room is said.
"""

from __future__ import annotations

__all__ = ["build"]

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from coordwire import __version__
from coordwire.spark.pipeline import svg
from coordwire.spark.pipeline.escaping import escaped
from coordwire.spark.pipeline.summary import PipelineSummary
from coordwire.spark.pipeline.svg import TimeBar
from coordwire.spark.pipeline.tables import table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_GROUPS = 12
MOST_ROWS = 20_000
MOST_MEMBERS = 24
MOST_LINES = 8
MOST_POINTS = 400
MOST_BAD = 50

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2733; --soft: #66707c; --line: #d5dae0; --paper: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6eaf0; --soft: #98a3b0; --line: #3a444f; --paper: #14191f; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 960px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; } h3 { font-size: 1rem; }
.sub, .none, .note { color: var(--soft); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(130px, 1fr)); gap: .75rem; }
.tiles div { border: 1px solid var(--line); border-radius: 8px; padding: .6rem .8rem; }
.tiles b { display: block; font-size: 1.25rem; font-variant-numeric: tabular-nums; }
table { border-collapse: collapse; width: 100%; font-size: .85rem; }
th, td { text-align: left; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere; vertical-align: top; }
svg { width: 100%; height: auto; margin: .5rem 0; }
svg text { font-size: 11px; fill: var(--ink); } svg .tick { fill: var(--soft); }
.axis { stroke: var(--line); } polyline { fill: none; stroke-width: 1.5; }
.key { margin-right: 1rem; white-space: nowrap; } .key i { display: inline-block; width: .7rem;
  height: .7rem; margin-right: .3rem; border-radius: 2px; }
"""
_PALETTE = ("#3b7dd8", "#d9503f", "#2f9e6e", "#c98a14", "#8a5cc2", "#2aa3b8", "#c2558f", "#7a8794")


def build(spark: SparkSession, out: str, summary: PipelineSummary, tables: Sequence[str]) -> str:
    """The page. Reads the tables `groups` and `lag` and `quarantine` in `out`, as far as they are written."""
    reading = _Reading(spark, out, tables)
    colours = "".join(
        f".s{n} {{ fill: {c}; }} .l{n} {{ stroke: {c}; }} .b{n} {{ background: {c}; }} "
        for n, c in enumerate(_PALETTE)
    )
    body = "".join([_numbers(summary), *_groups(reading), _errors(summary), _quarantine(reading, summary)])
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Kafka traffic and logs</title><style>{_STYLE}{colours}</style></head><body>"
        f'<h1>Kafka traffic and logs</h1><p class="sub">{summary.files:,} files, read by coordwire '
        f"{escaped(__version__)}, {now}</p>{body}</body></html>\n"
    )


class _Reading:
    """Bounded parts of the tables."""

    def __init__(self, spark: SparkSession, out: str, tables: Sequence[str]) -> None:
        self._spark = spark
        self._out = out
        self._tables = tables

    def rows(self, name: str, query: str, order: str, most: int = MOST_ROWS) -> list[Any]:
        """The first rows for which the query holds."""
        from pyspark.errors import AnalysisException

        if name not in self._tables:
            return []
        try:
            found = table(self._spark, self._out, name)
        except AnalysisException:  # no file has any of it
            return []
        return found.where(query).orderBy(order).limit(most).collect()


def _numbers(summary: PipelineSummary) -> str:
    tiles = {
        "files": f"{summary.files:,}", "bytes": f"{summary.bytes:,}", "frames": f"{summary.frames:,}",
        "batches": f"{summary.batches:,}", "records": f"{summary.records:,}",
        "refused frames": f"{summary.refused:,}", "bad ranges": f"{summary.bad_ranges:,}",
        "bytes in quarantine": f"{summary.quarantined_bytes:,}", "seconds": f"{summary.seconds:.1f}",
    }  # fmt: skip
    inside = "".join(f"<div><b>{value}</b>{name}</div>" for name, value in tiles.items())
    return f'<div class="tiles">{inside}</div>'


def _groups(reading: _Reading) -> list[str]:
    events = "event in ('memberJoined', 'memberLeft', 'rebalanceEnded') and time is not null"
    rows = reading.rows("groups", events, "time")
    by: dict[str, list[Any]] = {}
    for row in rows:
        by.setdefault(row.group_id, []).append(row)
    chosen = sorted(by, key=lambda group: -len(by[group]))[:MOST_GROUPS]
    lengths = [row.length_ms for row in rows if row.event == "rebalanceEnded" and row.length_ms is not None]
    parts = ["<h2>Groups</h2>", "<p class=note>A row is a member; red is a rebalance.</p>"]
    for group in sorted(chosen):
        parts += [f"<h3>{escaped(group)}</h3>", svg.spans(group, _members(by[group])), _rebalances(by[group])]
    if len(by) > len(chosen):
        parts.append(f'<p class="note">{len(by) - len(chosen)} more groups are in the tables.</p>')
    if not by:
        parts.append(svg.nothing("Groups"))
    parts += ["<h2>Lengths of rebalances</h2>", svg.histogram("Lengths of rebalances", lengths, "ms")]
    return [*parts, *_lag(reading)]


def _members(rows: Iterable[Any]) -> dict[str, list[TimeBar]]:
    """From when to when each member was in, and the group's rebalances."""
    rows = list(rows)
    last = max(row.time.timestamp() for row in rows)
    found: dict[str, list[TimeBar]] = {"rebalances": []}
    since: dict[str, tuple[float, str]] = {}
    for row in rows:
        time = row.time.timestamp()
        if row.event == "rebalanceEnded":
            began = row.began.timestamp() if row.began else time
            ended = row.ended.timestamp() if row.ended else time
            label = f"generation {row.generation}: {row.cause}, {row.outcome}, {row.length_ms or 0:,.0f} ms"
            found["rebalances"].append(TimeBar(began, ended, label, "s1"))
        elif row.event == "memberJoined":
            since.setdefault(row.member_id, (time, row.client_id or row.member_id))
        elif row.member_id in since:
            _was_in(found, since.pop(row.member_id), time, row.member_id, row.how or "left")
    for member, started in since.items():
        _was_in(found, started, last, member, "still in")
    return dict(list(found.items())[: MOST_MEMBERS + 1])


def _was_in(
    found: dict[str, list[TimeBar]], started: tuple[float, str], end: float, member: str, how: str
) -> None:
    start, client = started
    found.setdefault(member, []).append(TimeBar(start, end, f"{client} ({member}): {how}", "s0"))


def _rebalances(rows: Iterable[Any]) -> str:
    ended = [row for row in rows if row.event == "rebalanceEnded"]
    longest = sorted(ended, key=lambda row: -(row.length_ms or 0))[:5]
    return _table(
        ["generation", "cause", "who", "outcome", "length", "partitions moved"],
        [
            [str(row.generation if row.generation is not None else "–"), row.cause or "", row.member_id or "",
             row.outcome or "", "–" if row.length_ms is None else f"{row.length_ms:,.0f} ms",
             str(row.moved or 0)]
            for row in longest
        ],
    )  # fmt: skip


def _lag(reading: _Reading) -> list[str]:
    series: dict[str, list[tuple[float, float]]] = {}
    for row in reading.rows("lag", "time is not null", "time"):
        name = f"{row.group_id}: {row.topic}-{row.partition}"
        series.setdefault(name, []).append((row.time.timestamp(), float(row.lag)))
    most = sorted(series, key=lambda name: -max(y for _, y in series[name]))[:MOST_LINES]
    chosen = {name: _thinned(series[name]) for name in most}
    return ["<h2>Commit lag</h2>", svg.lines("Commit lag", chosen, "records")]


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    step = -(-len(points) // MOST_POINTS)
    return points[::step]


def _errors(summary: PipelineSummary) -> str:
    counted = {api: (good - bad, bad) for api, (good, bad) in summary.apis.items()}
    ordered = dict(sorted(counted.items(), key=lambda item: (-item[1][1], -item[1][0])))
    return "<h2>Frames by API</h2><p class=note>Red was refused.</p>" + svg.bars(
        "Frames by API", ordered, ["read", "refused"]
    )


def _quarantine(reading: _Reading, summary: PipelineSummary) -> str:
    rows = reading.rows("quarantine", "true", "path", MOST_BAD)
    shown = _table(
        ["file", "flow", "bytes", "reason"],
        [[row.path, row.flow or "", f"{row.start:,} to {row.end:,}", row.reason] for row in rows],
    )
    more = summary.bad_ranges - len(rows)
    rest = f'<p class="note">{more:,} more are in the table.</p>' if more > 0 and rows else ""
    return "<h2>Quarantine</h2>" + (shown + rest if rows else svg.nothing("Unreadable bytes"))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    rows = list(rows)
    if not rows:
        return ""
    top = "".join(f"<th>{escaped(name)}</th>" for name in head)
    inside = "".join(f"<tr>{''.join(f'<td>{escaped(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{inside}</tbody></table>"
