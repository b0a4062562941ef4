"""The report's page: what it says of groups, lag, errors, refusals; what is escaped, bounded and said."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordwire.errors import CoordwireError
from coordwire.tables.columns import TABLES
from coordwire.tables.readers.group_rows import event_rows
from coordwire.tables.report import group_section, plots
from coordwire.tables.report.page import page
from coordwire.tables.report.summary import PipelineSummary, TableRows, summary_of
from coordwire.tables.storage.manifest_file import _as_note
from coordwire.timeline.events import GroupEvent, Leaving, MemberJoined, MemberLeft, RebalanceEnded
from coordwire.timeline.story import contents, markup, story_page
from coordwire.timeline.story.rebalance_table import HEADS

START = 1_795_249_012_000_000
"""2026-11-21 08:16:52 UTC, in microseconds."""

SECOND = 1_000_000
EVIL = "</td><script>alert(1)</script>\"'><img src=x onerror=alert(1)>\x1b[31m\u202e"


class Tables(TableRows):
    """Rows of tables that are in memory."""

    def __init__(self, **tables: list[SimpleNamespace]) -> None:
        self._tables = tables

    def rows(self, name: str, columns: str, order: str, most: int, **selected: object) -> list[Any]:
        table = self._tables.get(name, [])
        for row in table:
            assert set(columns.split()) <= set(vars(row)), name
        return sorted(table, key=lambda row: [getattr(row, name) for name in order.split()])[:most]


def row(event: GroupEvent) -> SimpleNamespace:
    """An event's row of the table groups."""
    names = [column.name for column in TABLES["groups"]]
    values = event_rows(type(event), names, "capture")(event)
    return SimpleNamespace(**dict(zip(names, values, strict=True)))


def place(seconds: float, group: str = "payments", source: str = "/captures/a.pcap") -> dict[str, Any]:
    time_ns = (START + round(seconds * SECOND)) * 1_000
    return {"group": group, "time_ns": time_ns, "source": source, "number": 1}


def joined(seconds: float, member: str, **where: str) -> SimpleNamespace:
    join = MemberJoined(
        **place(seconds, **where), kind="classic", member_id=member, client_id=member[:4], host=None
    )  # fmt: skip
    return row(join)


def member_left(seconds: float, member: str, how: Leaving = "left", **where: str) -> SimpleNamespace:
    return row(MemberLeft(**place(seconds, **where), member_id=member, client_id=member[:4], how=how))


def rebalance(begin: float, length: float, generation: int, **values: Any) -> SimpleNamespace:
    where = place(
        begin + length, **{name: values.pop(name) for name in ("group", "source") if name in values}
    )
    defaults: dict[str, Any] = {
        "kind": "classic", "outcome": "steady", "cause": "new_member", "member_id": "till-b",
        "inferred": False, "detail": "", "began_ns": place(begin)["time_ns"], "joined_ns": None,
        "ended_ns": where["time_ns"], "length_ns": round(length * 1e9), "generation_before": generation - 1,
        "generation": generation, "protocol": None, "leader": None, "members": ("till-a", "till-b"),
        "last_to_join": None, "assignments": (), "moved": (),
    }  # fmt: skip
    return row(RebalanceEnded(**where, **defaults | values))


def lag(seconds: float, topic: str, partition: int, records: int, **values: Any) -> SimpleNamespace:
    row = {"time": START + round(seconds * SECOND), "group_id": "payments", "input_file": "/captures/a.pcap"}
    form: dict[str, Any] = {
        **row,
        "frame": 1,
        "log_offset": None,
        "packet": 7,
        "topic": topic,
        "partition": partition,
        "committed_offset": 100,
        "end_offset": 100 + records,
        "lag": records,
        "reason": "committed_beyond_end" if records < 0 else None,
        "cluster_id": None,
    }
    return SimpleNamespace(**form | values)


class Page(HTMLParser):
    """Texts of a page by kind of element: `tables` of rows of cells, `names` of bars, `heads`, `tips`."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.names: list[str] = []
        self.ticks: list[str] = []
        self.heads: list[str] = []
        self.tips: list[str] = []
        self.notes: list[str] = []
        self.panels: list[str] = []
        self.tags: set[str] = set()
        self.bold: list[str] = []
        self._open: list[str] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        kind = values.get("class") or ""
        self.tags.add(tag)
        assert not {name for name in values if name.startswith("on")} | (values.keys() & {"src", "href"})
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self._open = self.tables[-1][-1]
        elif tag in ("h2", "h3", "h4"):
            self._open = self.heads
        elif tag == "b":
            self._open = self.bold
        elif tag == "title":
            self._open = self.tips
        elif kind == "name":
            self._open = self.names
        elif kind.startswith("tick"):
            self._open = self.ticks
        elif kind in ("note", "none"):
            self._open = self.notes
        elif kind == "lines":
            self.panels.append(values["aria-label"] or "")
            return
        else:
            return
        if self._open is not None:
            self._open.append("")

    def handle_endtag(self, tag: str) -> None:
        self._open = None

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self._open[-1] += data


def make_page(summary: PipelineSummary | None = None, **tables: list[SimpleNamespace]) -> Page:
    return Page(page(Tables(**tables), summary or PipelineSummary(files=1)))


def test_a_group_is_told_as_on_a_terminal() -> None:
    """Verdict, incidents, each rebalance, members; nothing before them."""
    rows = [
        joined(0, "till-a"), joined(1, "till-b"), rebalance(1, 0.5, 1), rebalance(2, 11, 2),
        member_left(20, "till-b", "session_timeout"), rebalance(20, 4, 3, outcome="unfinished"),
    ]  # fmt: skip
    actual = make_page(groups=rows)
    incidents, table, within, former = actual.tables
    assert incidents == [
        ["08:16:54.0", "rebalance 2 to 2 (#2 (till) joins) took 11.0 s"],
        ["08:17:12.0", "#2 (till) fell silent; out at 08:17:12.0"],
        ["08:17:12.0", "rebalance 3 to 3 (#2 (till) joins) was not over when the input ends, after 4 s"],
    ]
    assert table[0] == list(HEADS)
    assert [row[1:4] for row in table[1:]] == [
        ["08:16:53.0", "500 ms", "#2 (till) joins"],
        ["08:16:54.0", "11.0 s", "#2 (till) joins"],
        ["08:17:12.0", "4 s", "#2 (till) joins; not over"],
    ]
    assert [line[0] for line in within + former] == ["#1", "#2"]
    assert actual.heads == [
        "Groups", "payments", "Incidents", "Rebalances (3)", "In at the end (1)", "No longer in (1)",
        "Lengths of rebalances", "What was read", "Frames by API", "Errors by API", "Refused frames",
        "Quarantine",
    ]  # fmt: skip
    assert "Next: coordwire timeline /captures/a.pcap --group payments --rebalance 2" in actual.notes
    assert (
        actual.bold[0]
        == "3 incidents, the worst at 08:16:54.0: rebalance 2 to 2 (#2 (till) joins) took 11.0 s"
    )


def test_rows_of_earlier_runs_have_no_events() -> None:
    rows = [joined(0, "till-a"), joined(1, "till-b")]
    rows[1].body = None
    actual = make_page(groups=rows)
    assert "1 event of a run before the tables had whole events: not shown here." in actual.notes
    assert actual.tables[0] == [["#1", "till · till-a · since 08:16:52.0"]]
    rows[1].body = '{"event": "memberJoined"}'
    with pytest.raises(CoordwireError, match="expected an event's JSON"):
        make_page(groups=rows)


def test_bins_are_labelled_in_round_lengths() -> None:
    names = Page(plots.histogram("Lengths", [0.0001, 0.0021, 4.6, 4.999, 1e6], "rebalances")).names
    assert names[:3] == ["under 1 ms", "1 to 2 ms", "2 to 5 ms"]
    assert names[-1] == "1 d and more"
    assert "2 to 5 s" in names
    assert not [name for name in names if re.search(r"\d\.\d|e[+-]", name)]


@given(st.floats(0, 2e9), st.floats(0, 1e8))
def test_ticks_are_few_round_and_inside(low: float, length: float) -> None:
    ticks = plots._time_ticks(low, low + length)
    assert 1 <= len(ticks) <= plots.TICKS + 1
    assert all(low - 1e-6 <= tick <= low + length + 1e-6 for tick in ticks)
    heights = plots._number_ticks(length)
    assert heights[0] == 0
    assert heights[-1] >= length
    assert len(heights) <= 6


def test_lag_has_a_panel_for_each_group_and_topic() -> None:
    rows = [
        lag(n, topic, partition, n * 10)
        for n in range(5)
        for topic in ("pay", "orders")
        for partition in (0, 1)
    ]
    rows += [
        lag(0, "quiet", 0, 0),
        lag(1, "pay", 0, 7, group_id="other"),
        lag(1, "pay", 0, 7, input_file="/b.pcap"),
        lag(2, "beyond", 3, -99_998_839, group_id="other"),
    ]
    actual = make_page(lag=rows)
    assert actual.panels == [
        "Lag of other in pay",
        "Lag of payments in pay",  # of the other capture
        "Lag of payments in orders",
        "Lag of payments in pay",
    ]
    assert "40 records at most in one partition, 80 at the end in all" in actual.notes
    assert (
        sum("1 more file with a group of this name: not to be added up" in note for note in actual.notes) == 2
    )
    assert "No lag in quiet." in actual.notes
    assert "Committed beyond the end at last: beyond-3 by 99,998,839." in actual.notes
    assert {"08:16:52", "08:16:54"} <= set(actual.ticks)
    assert "orders-1: 40 records at 08:16:56.000" in actual.tips


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=2000))
def test_thinned_lines_keep_their_peaks(values: list[int]) -> None:
    points = [(float(x), float(y)) for x, y in enumerate(values)]
    remaining = group_section.thinned(points)
    assert len(remaining) <= group_section.MOST_POINTS + 2
    assert remaining[0] == points[0]
    assert remaining[-1] == points[-1]
    assert {max(y for _, y in remaining), min(y for _, y in remaining)} == {max(values), min(values)}
    assert remaining == sorted(set(remaining))


def test_errors_have_their_codes_and_names() -> None:
    summary = PipelineSummary(error_codes={"Heartbeat": {27: 24, 25: 2}, "Fetch": {9999: 3}})
    [table] = make_page(summary).tables
    assert table[0] == ["API", "code", "error", "responses", "meaning"]
    assert [row[:4] for row in table[1:]] == [
        ["Heartbeat", "27", "REBALANCE_IN_PROGRESS", "24"],
        ["Fetch", "9999", "UNKNOWN_9999", "3"],
        ["Heartbeat", "25", "UNKNOWN_MEMBER_ID", "2"],
    ]
    assert "rebalances" in table[1][4]


@pytest.mark.parametrize("counts", [[["Fetch", 3, 1]], [], None])
def test_notes_may_count_errors(counts: list[Any] | None) -> None:
    """Those of earlier runs don't."""
    note: dict[str, Any] = {
        "unit": "u", "kind": "capture", "paths": ["/a"], "files": [], "rows": {}, "proofs": {},
        "units_rows": 1, "read_bytes": 1, "quarantined_bytes": 0, "bad_ranges": 0, "refused": 0,
        "apis": [["Fetch", False, 1]],
    }  # fmt: skip
    if counts is not None:
        note["error_codes"] = counts
    summary = summary_of({}, {"u": _as_note("u", note)})
    assert summary.error_codes == ({"Fetch": {3: 1}} if counts else {})
    other_values: list[Any] = [{}, [["Fetch", "3", 1]], [["Fetch", 3]], [3], [["Fetch", True, 1]]]
    for wrong in other_values:
        with pytest.raises(CoordwireError, match="not as the pipeline writes it"):
            _as_note("u", note | {"error_codes": wrong})


def frame(number: int, path: str, reason: str = "trailing bytes") -> SimpleNamespace:
    return SimpleNamespace(
        input_file="/captures/a.pcap", frame=number, time=START, direction="response", api="Fetch",
        error_reason=reason, error_path=path,
    )  # fmt: skip


def test_refusals_have_their_reasons_and_first_places() -> None:
    refused = [frame(7, "topics[3].name"), frame(9, "topics[12].name"), frame(11, "", "the length is -2")]
    [table] = make_page(PipelineSummary(refused=4), frames=refused).tables
    assert table[1:] == [
        ["Fetch", "response", "topics[].name", "trailing bytes", "2", "/captures/a.pcap frame 7",
         "2026-11-21 08:16:52.000"],
        ["Fetch", "response", "", "the length is -2", "1", "/captures/a.pcap frame 11",
         "2026-11-21 08:16:52.000"],
    ]  # fmt: skip
    assert "1 more frame in the table." in make_page(PipelineSummary(refused=4), frames=refused).notes
    alone = make_page(PipelineSummary(refused=4)).notes
    assert "4 frames; the reasons are in the table frames, which isn't written." in alone


def test_quarantine_sums_up_by_reason() -> None:
    rows = [
        SimpleNamespace(
            input_file="/a.log", flow=None, position=at, end_position=at + 1500, reason="a bad checksum"
        )
        for at in (4000, 0)
    ]
    [table] = make_page(PipelineSummary(bad_ranges=2), quarantine=rows).tables
    assert table[1] == ["/a.log", "", "a bad checksum", "2", "3 kB", "0"]


def test_hostile_texts_are_only_texts() -> None:
    where = {"group": EVIL, "source": EVIL}
    rows = [
        joined(0, EVIL, **where), member_left(1, EVIL, "session_timeout", **where),
        rebalance(0, 1, 1, member_id=EVIL, last_to_join=EVIL, detail=EVIL, cause="member_rejoined", **where),
    ]  # fmt: skip
    lagging = [lag(0, EVIL, 0, 5, group_id=EVIL, input_file=EVIL)]
    refused = [frame(1, EVIL, EVIL)]
    damaged = [SimpleNamespace(input_file=EVIL, flow=EVIL, position=0, end_position=1, reason=EVIL)]
    summary = PipelineSummary(refused=1, bad_ranges=1, apis={EVIL: (1, 1)}, error_codes={EVIL: {27: 1}})
    text = page(Tables(groups=rows, lag=lagging, frames=refused, quarantine=damaged), summary)
    actual = Page(text)  # refuses attributes that do something
    assert actual.tags.isdisjoint({"script", "img", "a", "link", "iframe", "object"})
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert EVIL.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e") in actual.heads


def test_several_groups_begin_with_the_worst_incident_of_all() -> None:
    quiet = [joined(0, "m", group="quiet")]
    lost = [joined(0, "till-a"), joined(1, "till-b"), member_left(20, "till-b", "session_timeout")]
    text = page(Tables(groups=[*quiet, *lost]), PipelineSummary(files=1))
    head, _, below = text.partition("<h2>Groups</h2>")[2].partition("</b></p>")
    assert head == "<p><b>2 groups: 1 incident in payments at 08:17:12.0: #2 (till) fell silent"
    assert below.startswith("<h3>")
    alone = page(Tables(groups=lost), PipelineSummary(files=1))
    assert alone.partition("<h2>Groups</h2>")[2].startswith("<h3>")
    none = page(Tables(groups=[*quiet, joined(0, "m", group="still")]), PipelineSummary(files=1))
    assert "<p><b>2 groups: no incident</b></p>" in none


def test_groups_with_incidents_are_shown_before_busier_ones() -> None:
    busy = [joined(n, f"m{n}", group=f"busy{g}") for g in range(group_section.MOST_GROUPS) for n in range(9)]
    lost = [joined(0, "till-a"), joined(1, "till-b"), member_left(20, "till-b", "session_timeout")]
    text = page(Tables(groups=[*busy, *lost]), PipelineSummary(files=1))
    assert f"{group_section.MOST_GROUPS + 1} groups: 1 incident in payments at" in text
    assert "<h3>payments" in text
    assert "1 more group in the tables." in text


def test_what_is_left_out_is_said() -> None:
    gone = [joined(n / 10, f"till-{n:03}") for n in range(contents.MOST_GONE + 3)]
    gone += [member_left(20 + n / 10, f"till-{n:03}") for n in range(contents.MOST_GONE + 3)]
    rebalances = [rebalance(n, 0.1, n) for n in range(1, story_page.MOST_ROWS + 6)]
    groups = [joined(0, "m", group=f"g{n}") for n in range(group_section.MOST_GROUPS + 1)]
    lagging = [lag(n, f"t{topic}", part, 1 + part) for n in (0, 1) for topic in range(9) for part in range(9)]
    actual = make_page(groups=[*gone, *rebalances, *groups], lag=lagging)
    assert "and 3 more" in actual.notes
    assert "and 5 more" in actual.notes
    assert "2 more groups in the tables." in actual.notes
    assert "3 more topics with a lower lag in the table lag." in actual.notes
    assert any("the 8 highest of 9 partitions" in note for note in actual.notes)
    assert max(map(len, actual.tables)) == 1 + story_page.MOST_ROWS


def test_more_rows_than_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_section, "MOST_ROWS", 4)
    actual = make_page(groups=[joined(n, f"m{n}") for n in range(9)])
    assert "the table groups has more than the first 4 rows, which are shown here." in actual.notes


def test_times_beyond_the_calendar() -> None:
    rows = [joined(0, "till-a"), member_left(1e12, "till-a")]
    actual = make_page(groups=rows, lag=[lag(0, "t", 0, 1), lag(1e13, "t", 0, 2)])
    assert "Lag of payments in t" in actual.panels


def test_nothing_at_all() -> None:
    actual = make_page(PipelineSummary())
    assert actual.tables == []
    assert "Groups" not in actual.heads
    assert "Error codes in responses: nothing seen." in actual.notes


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


STYLE = Path(markup.__file__).with_name("page.css").read_text("utf-8")
LIGHT, DARK = (
    dict(re.findall(r"--(\w+): (#\w{6});", block)) for block in STYLE.split("\n* {")[0].split("@media")
)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_can_be_told_from_the_background(colours: dict[str, str]) -> None:
    """Contrast as WCAG 2 counts it: 4.5 for texts, 3 for what is drawn."""
    paper = luminance(colours["paper"])
    for name, colour in colours.items():
        light, dark = sorted((luminance(colour), paper), reverse=True)
        contrast = (light + 0.05) / (dark + 0.05)
        if name in ("ink", "soft"):
            assert contrast >= 4.5, name
        elif name.startswith("c"):
            assert contrast >= 3, name
    assert LIGHT.keys() == DARK.keys()


def test_the_style_has_dark_mode_and_narrow_screens() -> None:
    dark = STYLE.partition("@media (prefers-color-scheme: dark)")[2].partition("}")[0]
    assert all(f"--{name}: {value};" in dark for name, value in DARK.items())
    assert "@media (max-width: 640px)" in STYLE
    assert set(re.findall(r"var\(--(\w+)\)", STYLE)) == LIGHT.keys()
    assert "url(" not in STYLE
