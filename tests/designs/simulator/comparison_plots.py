"""Plots of the comparison as SVG files: curves over the size of a group, and bars.

Strategy: plain elements with classes, and a style sheet that follows a light or a dark page. Rules: numbers
are rounded before they are written, so that the same figures are the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import floor, log10

__all__ = ["bars", "curves"]

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 770, 360, 80, 110, 40, 44
COLOURS = ("#4269d0", "#c98500", "#ff725c", "#3ca951", "#a463f2", "#9c6b4e")
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#333}.title{font-weight:600;font-size:14px}"
    ".grid{stroke:#8884;fill:none}.curve{fill:none;stroke-width:2}"
    "@media (prefers-color-scheme:dark){text{fill:#ddd}}"
)
LEAST = 0.01
"""What is smaller is drawn here, where an axis has no 0."""


def curves(title: str, across: str, series: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """One curve a name; both axes are logarithmic."""
    points = [(x, max(y, LEAST)) for row in series.values() for x, y in row]
    x_low, x_high = _decades([x for x, _ in points])
    y_low, y_high = _decades([y for _, y in points])
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def place(x: float, y: float) -> tuple[float, float]:
        return (
            LEFT + (log10(x) - x_low) / (x_high - x_low) * (right - LEFT),
            bottom - (log10(max(y, LEAST)) - y_low) / (y_high - y_low) * (bottom - TOP),
        )

    sample = []
    for power in range(y_low, y_high + 1):
        y = place(1, 10.0**power)[1]
        sample.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{right}"/>')
        sample.append(_text(LEFT - 8, y + 4, f"{10.0**power:,.10g}", "end"))
    for power in range(x_low, x_high + 1):
        x = place(10.0**power, 1)[0]
        sample.append(f'<path class="grid" d="M{x:.1f} {TOP}V{bottom}"/>')
        sample.append(_text(x, bottom + 18, f"{10.0**power:,.10g}", "middle"))
    sample.append(_text((LEFT + right) / 2, HEIGHT - 8, across, "middle"))
    names = []
    for number, (name, row) in enumerate(series.items()):
        if row:
            results = [place(x, y) for x, y in row]
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in results)
            colour = COLOURS[number % len(COLOURS)]
            sample.append(f'<polyline class="curve" stroke="{colour}" points="{path}"/>')
            sample += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in results]
            names.append((results[-1][1], results[-1][0], name, colour))
    last = 0.0
    for y, x, name, colour in sorted(names):
        last = max(y + 4, last + 15)
        sample.append(f'<text x="{x + 8:.1f}" y="{last:.1f}" style="fill:{colour}">{escape(name)}</text>')
    return _svg(title, HEIGHT, sample)


def bars(title: str, parts: Sequence[str], values: Mapping[str, Sequence[float]]) -> str:
    """A group of bars for each name, one bar for each part."""
    most = max((value for row in values.values() for value in row), default=0) or 1.0
    room, thick = WIDTH - LEFT - 40 - RIGHT, 16
    sample, y = [], float(TOP)
    for number, part in enumerate(parts):
        x = LEFT + 20 + 120 * number
        sample.append(f'<rect x="{x}" y="{y:.1f}" width="12" height="12" fill="{COLOURS[number * 2]}"/>')
        sample.append(_text(x + 18, y + 11, part))
    y += 28
    for name, row in values.items():
        sample.append(_text(LEFT + 12, y + thick * len(row) / 2 + 4, name, "end"))
        for number, value in enumerate(row):
            width = max(value / most * room, 1)
            sample.append(
                f'<rect x="{LEFT + 20}" y="{y:.1f}" width="{width:.1f}" height="{thick - 2}" '
                f'fill="{COLOURS[number * 2]}"/>'
            )
            sample.append(_text(LEFT + 26 + width, y + 12, f"{value:.1f}"))
            y += thick
        y += 10
    return _svg(title, round(y + 8), sample)


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """The powers of ten around positive numbers."""
    low, high = floor(log10(min(values, default=1))), -floor(-log10(max(values, default=1)))
    return low, max(high, low + 1)


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(title: str, height: int, drawn: Sequence[str]) -> str:
    body = "\n".join(drawn)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(title)}">\n<style>{STYLE}</style>\n'
        f'<text class="title" x="12" y="20">{escape(title)}</text>\n{body}\n</svg>\n'
    )
