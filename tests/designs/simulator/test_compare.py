"""The comparison of the designs, small: its tables and plots, and the file and the page that have them."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.designs.simulator.compare import (
    BEGIN,
    END,
    FIGURES,
    PAGE,
    PLOTS,
    Comparison,
    cells_of,
    compare,
    differences,
    ended_coordinator,
    groups_table,
    of_groups,
    of_size,
    write,
)
from tests.designs.simulator.comparison_plots import bars, curves

SOME = ("zookeeper", "consumer")


def test_a_small_comparison(tmp_path: Path) -> None:
    once = compare(1, [2], designs=SOME)
    assert compare(1, [2], designs=SOME) == once
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}old\n{END}after\n")
    write(once, page, tmp_path / "plots")
    text = page.read_text()
    assert text.startswith(f"before\n{BEGIN}\n| 1 fault plans, each with each design | zookeeper | draft-1 |")
    assert text.endswith(f"\n{END}after\n")
    write(once, page, tmp_path / "plots")
    assert page.read_text() == text
    assert "old" not in text
    assert {path.name for path in (tmp_path / "plots").iterdir()} == set(once.plots)
    for plot in once.plots.values():
        result = "".join(ElementTree.fromstring(plot).itertext())
        assert all(design in result for design in SOME)


def test_the_page_and_its_plots_are_those_of_the_command() -> None:
    assert BEGIN in FIGURES.read_text()
    assert END in FIGURES.read_text()
    for path in PLOTS.iterdir():
        assert f"plots/{path.name}" in PAGE.read_text()


def test_another_figure_in_the_page_is_found() -> None:
    text = compare(0, [2], designs=SOME).text
    assert len(cells_of(text)) == 10 * 10
    assert differences(text, text, SOME) == []
    (line,) = differences(text.replace("| 2 | 84 |", "| 2 | 85 |"), text, SOME)
    assert line.endswith("/ 2 / zookeeper: 85, the page has 84")


def test_share_and_streams_groups_are_compared() -> None:
    """Who reads a share group's messages is not simulated: those have no figure."""
    found = cells_of(compare(1, [2], designs=("share", "streams")).text)
    plans = {
        (row, design): cell for (heading, row, design), cell in found.items() if "fault plans" in heading
    }
    missing = [
        {row.partition(",")[0] for (row, name), cell in plans.items() if (name, cell) == (design, "–")}
        for design in ("share", "streams")
    ]
    assert missing[0] - missing[1] == {
        "messages delivered twice",
        "messages never delivered",
        "of them passed over for good",
    }
    quiet = {
        design: cell for (heading, _, design), cell in found.items() if heading.startswith("**Messages of")
    }
    assert (quiet["share"], quiet["streams"], quiet["consumer"]) == ("12", "17", "–")


def test_a_page_without_marks_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("text\n")
    with pytest.raises(SystemExit, match="lacks the marks"):
        write(Comparison("", {}), page, tmp_path / "plots")
    assert page.read_text() == "text\n"
    assert not (tmp_path / "plots").exists()


def test_one_more_consumer_costs_zookeepers_consumers_more_than_a_coordinators() -> None:
    herd = {members: of_size("zookeeper", members) for members in (3, 6)}
    today = {members: of_size("consumer", members) for members in (3, 6)}
    assert [herd[members].watches for members in (3, 6)] == [2, 5]
    assert herd[6].join > 2 * herd[3].join
    assert today[6].join < today[3].join + 30
    assert today[6].join < herd[6].join / 3


def test_a_coordinator_that_is_shut_down_is_replaced_at_once() -> None:
    """The detailed design's order: its elector is closed first."""
    (crashed, unread), (departed, less) = (ended_coordinator("draft-2", text) for text in ("crash", "leave"))
    assert departed < 100 < 3_000 < crashed
    assert less < unread / 4


def test_many_groups_share_the_brokers() -> None:
    alone, shared = (of_groups("draft-3-loaded", subsets) for subsets in (1, 12))
    assert (alone["links"], shared["links"]) == (72, 18)
    assert shared["groups"] <= alone["groups"] // 2
    assert "| 18 | 18 | 18 | 18 |" in groups_table(lambda design, subsets: shared)


def test_plots_take_zeros_and_odd_names() -> None:
    sample = curves("a < b", "x & y", {"one": [(2, 0), (5000, 3)], "<two>": []})
    assert ElementTree.fromstring(sample).attrib["aria-label"] == "a < b"
    assert ElementTree.fromstring(bars("none", ("p",), {})) is not None
    assert curves("none", "x", {}) == curves("none", "x", {})
