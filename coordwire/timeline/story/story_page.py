"""A group's story as HTML, for reports and notebooks: the texts of `contents`, and the picture of `lanes`.

Rules: the same texts in the same order as on a terminal, whole; no script, link or image, and colours of the
page around it; of very many rows the first are shown, and a note says how many more there are.
"""

from __future__ import annotations

from coordwire.timeline.story.contents import StoryContents
from coordwire.timeline.story.lanes import lanes_svg
from coordwire.timeline.story.markup import escaped, table
from coordwire.timeline.story.rebalance_table import HEADS, NUMBERS, WHY, cells
from coordwire.timeline.story.wording import clock

__all__ = ["story_html"]

MOST_ROWS = 1_000


def story_html(contents: StoryContents, *, note: str = "", most: int = MOST_ROWS) -> str:
    """The story. note: what is to be said beside the group's protocol, coordinator and times; most: rows of a
    table."""
    facts = (contents.kind, contents.coordinator, contents.times[0], note)
    parts = [
        f"<h3>{escaped(contents.name)}</h3>",
        f'<p class="note">{escaped(" · ".join(filter(None, facts)))}</p>',
    ]
    for at, (text, _) in enumerate(contents.facts()):
        parts.append(f"<p>{escaped(text)}</p>" if at else f"<p><b>{escaped(text)}</b></p>")
    parts.append(lanes_svg(contents))
    if contents.incidents:
        lines = [
            ["" if at else clock(incident.time_ns), text]
            for incident in contents.incidents[:most]
            for at, text in enumerate(incident.lines)
        ]
        parts += ["<h4>Incidents</h4>", table((), lines, long=(1,))]
        parts += _remainder(len(contents.incidents) - most)
    if contents.rows:
        rows = [cells(row, contents.numbers) for row in contents.table_rows[:most]]
        parts += [f"<h4>{contents.rebalances_title()}</h4>", table(HEADS, rows, numbers=NUMBERS, long=(WHY,))]
        parts += _remainder(len(contents.table_rows) - most)
    for title, members, omitted in contents.presence():
        rows = [[member.number, " · ".join(member.notes)] for member in members[:most]]
        parts += [f"<h4>{title}</h4>", table((), rows, long=(1,))]
        parts += _remainder(len(members) + omitted - len(rows))
    return "".join(parts)


def _remainder(number: int) -> list[str]:
    return [f'<p class="note">and {number:,} more</p>'] if number > 0 else []
