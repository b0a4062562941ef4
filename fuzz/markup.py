"""Whatever texts captures hold (names of topics, clients, groups and files, errors): a notebook's HTML and
the pipeline's report have the elements and attributes of harmless texts, and no others."""

from __future__ import annotations

from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from coordwire.errors import Malformed, UnreadableRange
from coordwire.messages import JoinGroupRequest, MetadataResponse
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.metadata import MetadataResponseTopic
from coordwire.notebook import html
from coordwire.tables.report.page import page
from coordwire.tables.report.summary import PipelineSummary, TableRows
from coordwire.timeline.event_json import event_json
from coordwire.timeline.events import (
    EVENTS,
    Assignment,
    Idle,
    MemberJoined,
    MemberLeft,
    RebalanceEnded,
    TopicPartition,
)
from fuzz._run import main

START, SECOND = 1_795_249_012_000_000_000, 1_000_000_000
PARTS = (
    "<script>alert(1)</script>", "</td>", "</style>", "</svg>", "</title>", "-->", "<!--", "<![CDATA[", "]]>",
    '"', "'", "`", "&lt;", "&#60;", "&", "<", ">", "=", " onerror=alert(1) ", "\0", "\r", "\n", "\x1b[31m",
    "\u202e", "\u2066", "\u2028", "\ud800", "\ufffe", "javascript:", "</", "x" * 300,
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(PARTS) | st.text(max_size=4), min_size=1, max_size=8).map("".join)


class Skeleton(HTMLParser):
    """The kinds of elements of a page, each with the names of its attributes; closed as they were opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.kinds: set[tuple[str, tuple[str, ...]]] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.kinds.add((tag, tuple(name for name, _ in attributes)))

    def handle_comment(self, data: str) -> None:
        raise AssertionError("a comment")

    def unknown_decl(self, data: str) -> None:
        raise AssertionError("a declaration")

    def handle_pi(self, data: str) -> None:
        raise AssertionError("a processing instruction")


class Tables:
    """Rows of the pipeline's tables, in memory."""

    def __init__(self, **tables: list[SimpleNamespace]) -> None:
        self._tables = tables

    def rows(self, name: str, columns: str, order: str, most: int, **chosen: object) -> list[Any]:
        return self._tables.get(name, [])[:most]


def report(texts: list[str]) -> str:
    """The report of tables whose texts are these, each in its column."""
    group, member, client, topic, source, reason = texts
    place: dict[str, Any] = {"group": group, "source": source, "number": 1}
    joined = MemberJoined(
        time_ns=START, kind="classic", member_id=member, client_id=client, host=source, instance_id=client,
        topics=(topic,), protocols=(topic,), reason=reason, **place,
    )  # fmt: skip
    assignments = (Assignment(member, (TopicPartition(topic, 0),)),)
    rebalance = RebalanceEnded(
        time_ns=START + SECOND, kind="classic", outcome="steady", cause="new_member", member_id=member,
        inferred=False, detail=reason, began_ns=START, joined_ns=None, ended_ns=START + SECOND,
        length_ns=SECOND, generation_before=0, generation=1, protocol=topic, leader=member,
        members=(member,), last_to_join=member, assignments=assignments, moved=(),
        idle=(Idle(topic, 0, START, START + SECOND),), client_id=client, **place,
    )  # fmt: skip
    left = MemberLeft(time_ns=START, member_id=reason, client_id=client, reason=reason, **place)
    events = [
        SimpleNamespace(
            time=(event.time_ns or 0) // 1_000, group_id=group, input_file=source, frame=1, log_offset=None,
            body=event_json(event), event=EVENTS[type(event)], generation=1, length_ms=1e3, seen_in="wire",
        )
        for event in (joined, left, rebalance)
    ]  # fmt: skip
    lags = [
        {"time": START // 1_000 + at, "group_id": group, "input_file": source, "frame": 1, "packet": None,
         "log_offset": None, "topic": topic, "partition": 0, "committed_offset": 1, "end_offset": 6, "lag": 5,
         "reason": None}
        for at in (0, 1_000_000)
    ]  # fmt: skip
    bad = {"input_file": source, "flow": client, "position": 0, "end_position": 1, "reason": reason}
    tables = Tables(
        groups=events,
        lag=[SimpleNamespace(**row) for row in lags],
        quarantine=[SimpleNamespace(**bad)],
    )
    summary = PipelineSummary(refused=1, bad_ranges=1, apis={topic: (1, 1)}, error_codes={topic: {27: 1}})
    return page(cast("TableRows", tables), summary)


def notebook(texts: list[str]) -> str:
    """What a notebook shows of messages and errors with these texts."""
    group, member, client, topic, source, reason = texts
    protocol = JoinGroupRequestProtocol(name=client, metadata=topic.encode("utf-8", "replace"))
    values = (
        JoinGroupRequest(group_id=group, member_id=member, protocol_type=client, protocols=[protocol]),
        MetadataResponse(topics=[MetadataResponseTopic(name=topic)]),
        UnreadableRange(position=1, length=2, reason=reason, data=b"", flow=source),
        Malformed(reason, 1, topic),
    )
    return "".join(html(value) for value in values)


HARMLESS = (["harmless"] * 6, ["harmless " * 500] * 6)
"""Short texts, and such as are cut."""


@given(st.lists(TEXTS, min_size=6, max_size=6))
def fuzz(texts: list[str]) -> None:
    for write in (report, notebook):
        made = write(texts)
        assert Skeleton(made).kinds <= set().union(*(Skeleton(write(plain)).kinds for plain in HARMLESS))
        assert all(char.isprintable() or char == "\n" for char in made)


if __name__ == "__main__":
    main(fuzz)
