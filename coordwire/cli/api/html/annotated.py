"""A frame as a table: where, which bytes, and what they say.

Rules: every byte is shown once, in order, and belongs to one row; a span of many bytes goes over several
lines of its cell.
"""

from __future__ import annotations

from coordwire.cli.api.html.markup import Html, join, table, tag
from coordwire.cli.api.html.samples import Sample
from coordwire.spans import Span, describe

__all__ = ["annotated_frame"]

_WIDTH = 8
_KEY = (
    ("value", "a value"),
    ("length", "a length, count or marker"),
    ("tags", "tagged fields"),
    ("size", "a prefix"),
)


def annotated_frame(sample: Sample) -> Html:
    """A sample's bytes, with what each of them says."""
    origin = tag("p", f"{len(sample.data)} bytes, {sample.origin}.", class_="soft")
    key = tag("p", join(tag("span", says, class_=sort) for sort, says in _KEY), class_="soft key")
    rows = (_row(sample, span) for span in sample.spans)
    return join([origin, table(["offset", "bytes", "type", "what they say"], rows, class_="frame"), key])


def _row(sample: Sample, span: Span) -> Html:
    at = sample.start + span.position
    data = sample.data[at : at + span.length]
    shown = "\n".join(data[row : row + _WIDTH].hex(" ") for row in range(0, len(data), _WIDTH))
    return tag(
        "tr",
        tag("td", str(span.position), class_="at"),
        tag("td", shown, class_="hex"),
        tag("td", span.kind, class_="soft"),
        tag("td", describe(span) if span.sort != "size" else f"{span.path} = {span.value}", class_="says"),
        class_=span.sort,
    )
