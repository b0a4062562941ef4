"""Plots as SVG text: bars, lines over time, spans over time.

Strategy: a plot is a string; scales are two small functions; colours come from the page's style sheet by
class (s0 to s7), so that the report has no asset outside of itself. Rules: every text is escaped; a plot of
nothing says so; the number of marks is the caller's to bound.
"""

from __future__ import annotations

__all__ = ["TimeBar", "bars", "histogram", "lines", "spans"]

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from math import floor, log10
from typing import NamedTuple

from coordwire.spark.pipeline.escaping import escaped

WIDTH = 900
LEFT, RIGHT, BAR, GAP, AXIS = 220, 70, 16, 6, 24
COLOURS = 8
HEIGHT = 220


class TimeBar(NamedTuple):
    """A bar from one time to another, in seconds since 1970; label: what a pointer sees; style: its class."""

    start: float
    end: float
    label: str
    style: str = "s0"


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    factor = (end - start) / ((high - low) or 1)
    return lambda value: start + (value - low) * factor


def _svg(height: float, parts: Sequence[str], title: str) -> str:
    head = f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escaped(title)}">'
    return head + f"<title>{escaped(title)}</title>" + "".join(parts) + "</svg>"


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escaped(text)}</text>'


def _rect(x: float, y: float, width: float, style: str, label: str, height: float = BAR) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 1.5):.1f}" height="{height:.1f}" class="{style}">'
        f"<title>{escaped(label)}</title></rect>"
    )


def _short(text: str, most: int = 30) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def nothing(title: str) -> str:
    """Where there is nothing to show."""
    return f'<p class="none">{escaped(title)}: nothing seen.</p>'


def bars(title: str, values: Mapping[str, Sequence[float]], parts: Sequence[str]) -> str:
    """One bar a name, of parts in different colours; values: of each part."""
    if not values:
        return nothing(title)
    scale = _scale(0, max(sum(row) for row in values.values()), LEFT, WIDTH - RIGHT)
    drawn = []
    for index, (name, row) in enumerate(values.items()):
        y, before = index * (BAR + GAP), 0.0
        drawn.append(_text(LEFT - 8, y + 12, _short(name), "name", "end"))
        for number, (value, part) in enumerate(zip(row, parts, strict=True)):
            if value:
                width = scale(before + value) - scale(before)
                label = f"{name}: {value:,g} {part}"
                drawn.append(_rect(scale(before), y, width, f"s{number % COLOURS}", label))
            before += value
        drawn.append(_text(scale(before) + 6, y + 12, f"{before:,g}", "tick"))
    return _svg(len(values) * (BAR + GAP), drawn, title)


def histogram(title: str, values: Sequence[float], unit: str) -> str:
    """How many values lie in each power of ten, in thirds."""
    if not values:
        return nothing(title)
    counts: dict[int, int] = {}
    for value in values:
        place = floor(3 * log10(max(value, 1e-3)))
        counts[place] = counts.get(place, 0) + 1
    rows = {
        f"{10 ** (place / 3):,.3g} to {10 ** ((place + 1) / 3):,.3g} {unit}": [float(counts.get(place, 0))]
        for place in range(min(counts), max(counts) + 1)
    }
    return bars(title, rows, ["rebalances"])


def spans(title: str, rows: Mapping[str, Sequence[TimeBar]]) -> str:
    """One row a name, with bars over time."""
    times = [time for row in rows.values() for span in row for time in span[:2]]
    if not times:
        return nothing(title)
    low, high = min(times), max(times)
    scale = _scale(low, high, LEFT, WIDTH - 10)
    drawn = []
    for index, (name, row) in enumerate(rows.items()):
        y = index * (BAR + GAP)
        drawn.append(_text(LEFT - 8, y + 12, _short(name), "name", "end"))
        for span in row:
            width = scale(span.end) - scale(span.start)
            drawn.append(_rect(scale(span.start), y, width, span.style, span.label))
    bottom = len(rows) * (BAR + GAP)
    drawn += _times(low, high, scale, bottom)
    return _svg(bottom + AXIS, drawn, title)


def lines(title: str, series: Mapping[str, Sequence[tuple[float, float]]], unit: str) -> str:
    """One line a name over time, which is in seconds since 1970."""
    points = [point for row in series.values() for point in row]
    if not points:
        return nothing(title)
    low, high = min(x for x, _ in points), max(x for x, _ in points)
    across = _scale(low, high, 70, WIDTH - 10)
    top = max(y for _, y in points) or 1
    down = _scale(0, top, HEIGHT, 10)
    drawn = [_text(62, 18, f"{top:,g} {unit}", "tick", "end"), _text(62, HEIGHT, "0", "tick", "end")]
    drawn.append(f'<line x1="70" y1="{HEIGHT}" x2="{WIDTH - 10}" y2="{HEIGHT}" class="axis"/>')
    for number, (name, row) in enumerate(series.items()):
        style = f"l{number % COLOURS}"
        path = " ".join(f"{across(x):.1f},{down(y):.1f}" for x, y in row)
        drawn.append(f'<polyline points="{path}" class="{style}"><title>{escaped(name)}</title></polyline>')
        for x, y in row:
            drawn.append(
                f'<circle cx="{across(x):.1f}" cy="{down(y):.1f}" r="2.5" class="s{number % COLOURS}">'
                f"<title>{escaped(name)}: {y:,g} at {_clock(x)}</title></circle>"
            )
    drawn += _times(low, high, across, HEIGHT)
    legend = "".join(
        f'<span class="key"><i class="b{number % COLOURS}"></i>{escaped(name)}</span>'
        for number, name in enumerate(series)
    )
    return _svg(HEIGHT + AXIS, drawn, title) + f'<p class="legend">{legend}</p>'


def _times(low: float, high: float, scale: Callable[[float], float], y: float) -> list[str]:
    """The axis below: its first, middle and last time."""
    marks = [(low, "start"), ((low + high) / 2, "middle"), (high, "end")] if high > low else [(low, "start")]
    return [_text(scale(time), y + 16, _clock(time), "tick", anchor) for time, anchor in marks]


def _clock(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{int(seconds % 1 * 1000):03}"
