"""The report's HTML: untrusted texts escaped, and the style sheet.

Rules: neither markup nor a character that isn't printable gets through: such a character is shown as its
escape, since browsers would drop or obey it. The style sheet fetches nothing; colours are variables, so that
dark mode changes them in one place; below 640 pixels names go above their bars and every other tick is left
out; wide tables scroll by themselves.
"""

from __future__ import annotations

__all__ = ["DARK", "LIGHT", "escaped", "style_sheet"]

from html import escape

from coordwire.capture.printable import shown


def escaped(text: str) -> str:
    """Text for an element or an attribute."""
    return escape(shown(text))


LIGHT = {
    "ink": "#1d2733", "soft": "#5a6470", "line": "#d5dae0", "grid": "#e8ebef", "paper": "#ffffff",
    "c0": "#2f6fc4", "c1": "#cf4433", "c2": "#23875a", "c3": "#a8720a", "c4": "#8253bd", "c5": "#1b8798",
    "c6": "#b84a83", "c7": "#6b7683",
}  # fmt: skip
DARK = {
    "ink": "#e6eaf0", "soft": "#a3aebb", "line": "#3a444f", "grid": "#262e37", "paper": "#14191f",
    "c0": "#5d9df0", "c1": "#f0705f", "c2": "#4fc28e", "c3": "#dfa43a", "c4": "#b08be6", "c5": "#4fc0d0",
    "c6": "#e583b4", "c7": "#98a3b0",
}  # fmt: skip
"""Colours by name: text, secondary text, rules, grids, background, and what is drawn."""

_RULES = """
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 1100px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.25rem; margin: 2.5rem 0 .25rem; }
h3 { font-size: 1.05rem; margin: 2rem 0 0; overflow-wrap: anywhere; }
h4 { font-size: .9rem; margin: 1rem 0 0; overflow-wrap: anywhere; }
p { margin: .25rem 0; } .sub, .none, .note { color: var(--soft); overflow-wrap: anywhere; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(120px, 1fr)); gap: .6rem;
  margin-top: 1rem; }
.tiles div { border: 1px solid var(--line); border-radius: 8px; padding: .5rem .75rem; color: var(--soft);
  font-size: .85rem; }
.tiles b { display: block; font-size: 1.2rem; font-variant-numeric: tabular-nums; color: var(--ink); }
.tiles .bad b { color: var(--c1); }
.scroll { overflow-x: auto; margin: .5rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .85rem; }
th, td { text-align: left; padding: .25rem .9rem .25rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; font-variant-numeric: tabular-nums; }
th { color: var(--soft); font-weight: 600; }
.short { white-space: nowrap; max-width: 18rem; overflow: hidden; text-overflow: ellipsis; }
.number { white-space: nowrap; text-align: right; }
.long { min-width: 12rem; overflow-wrap: anywhere; }
svg { display: block; width: 100%; height: 100%; }
.grid { stroke: var(--grid); stroke-width: 1; vector-effect: non-scaling-stroke; fill: none; }
polyline { fill: none; stroke-width: 1.5; vector-effect: non-scaling-stroke; }
.dot { stroke-width: 5; stroke-linecap: round; vector-effect: non-scaling-stroke; fill: none; }
figure { margin: .5rem 0; }
.rows { display: grid; grid-template-columns: fit-content(15rem) 1fr minmax(0, max-content); gap: 4px .6rem;
  align-items: center; font-size: .8rem; }
.name { text-align: right; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.track { height: 14px; } .value { font-variant-numeric: tabular-nums; }
.axis { position: relative; height: 1.3rem; color: var(--soft); font-size: .75rem; }
.tick { position: absolute; transform: translateX(-50%); white-space: nowrap;
  font-variant-numeric: tabular-nums; }
.tick.first { transform: none; } .tick.last { transform: translateX(-100%); }
.lines { display: grid; grid-template-columns: 4rem 1fr; gap: 0 .5rem; }
.lines .left { position: relative; height: 180px; color: var(--soft); font-size: .75rem; }
.lines .left span { position: absolute; right: 0; transform: translateY(-50%); }
.lines .plot { height: 180px; } .lines .axis { grid-column: 2; }
.legend { font-size: .8rem; } .key { display: inline-block; margin-right: 1rem; overflow-wrap: anywhere; }
.key i { display: inline-block; width: .7rem; height: .7rem; margin-right: .3rem; border-radius: 2px; }
@media (max-width: 640px) {
  body { margin: 1rem auto; }
  .rows { grid-template-columns: 1fr minmax(0, max-content); }
  .rows .name { grid-column: 1 / -1; text-align: left; margin-top: .3rem; } .rows .corner { display: none; }
  .tick.odd { display: none; } .lines { grid-template-columns: 3rem 1fr; }
}
"""


def style_sheet() -> str:
    """All of it, with a class of each colour to fill (s), to draw lines (l) and for backgrounds (b)."""
    classes = "".join(
        f".{kind}{n} {{ {css_property}: var(--c{n}); }}\n"
        for kind, css_property in (("s", "fill"), ("l", "stroke"), ("b", "background"))
        for n in range(8)
    )
    dark = f"@media (prefers-color-scheme: dark) {{ :root {{ {_variables(DARK)} }} }}"
    return f":root {{ color-scheme: light dark; {_variables(LIGHT)} }}\n{dark}{_RULES}{classes}"


def _variables(colours: dict[str, str]) -> str:
    return " ".join(f"--{name}: {value};" for name, value in colours.items())
