"""The report's plots: bars, and lines over time.

Strategy: shapes are SVG, stretched to the available width; texts (names, ticks, values) are HTML, placed in
percent, so that text has one size on every width. Colours come from the page's style sheet by class (s0 to
s7), so that the report has no asset outside of itself. Rules: a plot of nothing says so; ticks are at round
times and numbers; the caller bounds the number of marks. The style
sheet (`page.css`) fetches nothing; below 640 pixels names go above their bars and every other tick is left
out; wide tables scroll by themselves.
"""

from __future__ import annotations

__all__ = ["bars", "empty_plot", "histogram", "legend", "lines"]

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from coordwire._quantities import clock, day, duration_range
from coordwire.timeline.story.markup import escaped

WIDTH, HEIGHT, BAR = 1000, 180, 14
"""Of drawings, before they are stretched."""

COLOURS = 8
TICKS = 6
_STEPS = (
    1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5,
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
)  # fmt: skip
"""Between ticks, in seconds; beyond a day in days."""

_EDGES = (
    0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600,
    7200, 18_000, 43_200, 86_400,
)  # fmt: skip
"""Where the bins of lengths of time begin, in seconds."""


def empty_plot(title: str) -> str:
    """A note in place of a plot that would be empty."""
    return f'<p class="none">{escaped(title)}: nothing seen.</p>'


def bars(title: str, values: Mapping[str, Sequence[float]], parts: Sequence[str]) -> str:
    """One bar a name, of parts in different colours; values: of each part."""
    if not values:
        return empty_plot(title)
    scale = _scale(0, max(sum(row) for row in values.values()), 0, WIDTH)
    rows = []
    for name, row in values.items():
        shapes, before = [], 0.0
        for number, (value, part) in enumerate(zip(row, parts, strict=True)):
            if value:
                x, width = scale(before), scale(before + value) - scale(before)
                shapes.append(_rect(x, width, f"s{number % COLOURS}", f"{name}: {value:,g} {part}"))
            before += value
        rows.append(_row(name, "".join(shapes), f"{before:,g}"))
    return _rows(title, rows) + (legend(dict(enumerate(parts))) if len(parts) > 1 else "")


def histogram(title: str, seconds: Sequence[float], noun: str) -> str:
    """How many lengths of time are in each bin; empty bins in between are shown."""
    if not seconds:
        return empty_plot(title)
    counts = Counter(bisect_right(_EDGES, max(value, 0)) - 1 for value in seconds)
    names = [*(duration_range(low, high) for low, high in pairwise(_EDGES)), "1 d and more"]
    places = range(min(counts), max(counts) + 1)
    return bars(title, {names[place]: [float(counts[place])] for place in places}, [noun])


def lines(
    title: str, series: Mapping[str, Sequence[tuple[float, float]]], unit: str, low: float, high: float
) -> str:
    """One line a name over time, which is in seconds since 1970, from `low` to `high`."""
    points = [point for row in series.values() for point in row]
    if not points:
        return empty_plot(title)
    across = _scale(low, high, 0, WIDTH)
    heights = _number_ticks(max(y for _, y in points))
    down = _scale(0, heights[-1], HEIGHT - 4, 4)
    ticks = _time_ticks(low, high)
    shapes = [_grid(across, ticks, HEIGHT)]
    shapes += [f'<path class="grid" d="M0 {down(y):.1f}H{WIDTH}"/>' for y in heights]
    for number, (name, row) in enumerate(series.items()):
        style = f"l{number % COLOURS}"
        path = " ".join(f"{across(x):.1f},{down(y):.1f}" for x, y in row)
        shapes.append(f'<polyline points="{path}" class="{style}"><title>{escaped(name)}</title></polyline>')
        shapes += [
            f'<path class="dot {style}" d="M{across(x):.1f} {down(y):.1f}h0">'
            f"<title>{escaped(name)}: {y:,g} {unit} at {clock(x)}</title></path>"
            for x, y in row
        ]
    labels = "".join(f'<span style="top:{100 * down(y) / HEIGHT:.1f}%">{y:,g}</span>' for y in heights)
    return (
        f'<figure class="lines" role="img" aria-label="{escaped(title)}">'
        f'<div class="left">{labels}</div><div class="plot">{_svg(HEIGHT, "".join(shapes))}</div>'
        f"{_axis(across, ticks)}</figure>{legend(dict(enumerate(series)))}"
    )


# --- parts ---


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    factor = (end - start) / ((high - low) or 1)
    return lambda value: start + (value - low) * factor


def _svg(height: float, shapes: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height}" preserveAspectRatio="none">{shapes}</svg>'


def _rect(x: float, width: float, style: str, label: str) -> str:
    """A bar; a very short one is wide enough to be seen, and within the drawing."""
    wide = max(width, 3)
    return (
        f'<rect x="{min(x, WIDTH - wide):.1f}" width="{wide:.1f}" height="{BAR}" class="{style}">'
        f"<title>{escaped(label)}</title></rect>"
    )


def _grid(scale: Callable[[float], float], ticks: Sequence[float], height: float) -> str:
    return "".join(f'<path class="grid" d="M{scale(tick):.1f} 0V{height}"/>' for tick in ticks)


def _rows(title: str, rows: Iterable[str]) -> str:
    return f'<figure class="rows" role="img" aria-label="{escaped(title)}">{"".join(rows)}</figure>'


def _row(name: str, shapes: str, value: str = "") -> str:
    return (
        f'<div class="name" title="{escaped(name)}">{escaped(name)}</div>'
        f'<div class="track">{_svg(BAR, shapes)}</div><div class="value">{escaped(value)}</div>'
    )


def legend(names: Mapping[int, str]) -> str:
    """What the colours of these numbers mean."""
    keys = "".join(
        f'<span class="key"><i class="b{number % COLOURS}"></i>{escaped(name)}</span>'
        for number, name in names.items()
    )
    return f'<p class="legend">{keys}</p>'


def _axis(scale: Callable[[float], float], ticks: Sequence[float]) -> str:
    """The times below a plot; where several days are, with their dates."""
    step = ticks[1] - ticks[0] if len(ticks) > 1 else 1.0
    decimals = min(max(math.ceil(-math.log10(step)), 0), 6)
    days = {day(tick) for tick in ticks}
    marks = []
    for number, tick in enumerate(ticks):
        text = clock(tick + step * 1e-3, decimals) if step < 86_400 else day(tick)
        if len(days) > 1 and step < 86_400:
            text = f"{day(tick)[5:]} {text[:5]}"
        at = scale(tick) / WIDTH
        edge = " first" if at < 0.06 else " last" if at > 0.94 else ""
        parity = " odd" if number % 2 else ""
        marks.append(f'<span class="tick{edge}{parity}" style="left:{100 * at:.2f}%">{escaped(text)}</span>')
    return f'<div class="axis">{"".join(marks)}</div>'


def _time_ticks(low: float, high: float) -> list[float]:
    """Round times from the first to the last, at most `TICKS` and one more; at least one."""
    length = high - low
    step: float = next(
        (step for step in _STEPS if length / step <= TICKS), 86_400 * math.ceil(length / TICKS / 86_400)
    )
    first = math.ceil(low / step)
    ticks = [number * step for number in range(first, math.floor(high / step) + 1)]
    return ticks[: TICKS + 1] or [low]


def _number_ticks(high: float) -> list[float]:
    """Round numbers from 0 to at least the highest, at most five."""
    step = 1.0
    while high / step > 4:
        step *= 2.5 if f"{step:e}"[0] == "2" else 2
    return [number * step for number in range(max(math.ceil(high / step), 1) + 1)]
