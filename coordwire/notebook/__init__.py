"""Messages, frames and timelines in Jupyter.

    from coordwire.notebook import show
    show(timeline(Capture(stream, "incident").entries()))    # the groups' stories; entries: a table
    frame.message                                            # a message shows itself, as a cell's last line

    tree.py         a message, frame or event to a tree of texts
    rendering.py    many entries to a table, events to stories; trees, tables, stories to HTML and plain text

Strategy: a value first becomes a small, bounded tree, table or story without secrets; the renderings lay
that out. `mimebundle` is the entry point that shows objects in notebooks (`coordwire._display`). Rules: texts
from outside are escaped; nothing is fetched, and the HTML has no script; showing never raises.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, islice
from typing import Any

from coordwire._display import RichDisplay
from coordwire.notebook import rendering
from coordwire.notebook.rendering import DisplayStories, DisplayTable, stories_of, table_of
from coordwire.notebook.tree import DisplayNode, tree_of
from coordwire.timeline.events import GroupEvent

__all__ = ["Shown", "html", "mimebundle", "show", "text"]

MOST_ROWS = 200


def html(value: object) -> str:
    """A message, frame, event or what `show` gives as HTML."""
    return rendering.html(_laid_out(value))


def text(value: object) -> str:
    """A message, frame, event or what `show` gives as plain text."""
    return rendering.text(_laid_out(value))


def mimebundle(value: object) -> dict[str, str]:
    """HTML and plain text by their MIME types. The plain text is part of it, since a notebook would otherwise
    store `repr`, with every secret."""
    laid_out = _laid_out(value)
    return {"text/html": rendering.html(laid_out), "text/plain": rendering.text(laid_out)}


def _laid_out(value: object) -> DisplayNode | DisplayTable | DisplayStories:
    try:
        return value.content if isinstance(value, Shown) else tree_of(value)
    except Exception as error:  # fields may hold anything, as they are a user's to set
        return DisplayNode(type(value).__name__, f"can't be shown: {type(error).__name__}")


class Shown(RichDisplay):
    """Entries as a table, or events as stories. Its `repr` is the plain text."""

    __slots__ = ("content",)

    def __init__(self, content: DisplayTable | DisplayStories) -> None:
        self.content = content

    def __repr__(self) -> str:
        return rendering.text(self.content)


def show(values: Iterable[Any], *, most: int = MOST_ROWS) -> Shown:
    """Group events as the stories of their groups; entries of a capture, frames or messages as a table with
    one row each.

    most: rows at most. At most one value more is taken from an iterator; where there are more values than
    rows, a line below the table says so. Events are all read.
    """
    values = iter(values)
    rows = list(islice(values, most + 1))
    if rows and isinstance(rows[0], GroupEvent):
        return Shown(stories_of(event for event in chain(rows, values) if isinstance(event, GroupEvent)))
    return Shown(table_of(rows[:most], is_cut=len(rows) > most))
