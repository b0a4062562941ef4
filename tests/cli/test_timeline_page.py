"""`coordwire timeline --format html`: one page with the stories that a terminal shows."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from coordwire.cli.timeline.html_page import HtmlFormat
from coordwire.timeline.events import MemberLeft
from tests.cli.conftest import Run

ROOT = Path(__file__).parents[2]
CAUSES = "tests/data/stories/classic-causes.pcap.xz"
OUTAGE = "tests/data/outages/broker-killed.pcap.xz"


class Texts(HTMLParser):
    """What a page says, and the addresses that it names."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.words += data.split()

    @property
    def text(self) -> str:
        return " ".join(self.words)


def test_a_page_has_the_story_and_its_picture(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    told = run("timeline", CAUSES)
    made = run("timeline", "--format", "html", CAUSES)
    assert made.status == 0
    page = Texts(made.text)
    assert made.text.startswith("<!doctype html>")
    assert page.tags.count("svg") == 1
    assert page.addresses == []
    verdict = " ".join(told.text.partition("UTC ──\n")[2].partition("7 rebalances")[0].split())
    assert verdict.startswith("1 incident, at 06:53:39.5")
    assert verdict in page.text
    assert f"Next: coordwire timeline {CAUSES} --rebalance 6" in page.text


def test_several_groups_begin_with_the_worst_incident(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = Texts(run("timeline", "--format", "html", OUTAGE).text)
    assert "3 groups: 12 incidents in 3 of them, the worst in cls at 15:16:12.2" in page.text
    assert page.tags.count("svg") == 3
    assert "--group cls --rebalance 4" in page.text
    one = Texts(run("timeline", "--format", "html", "--group", "shr", OUTAGE).text)
    assert one.tags.count("svg") == 1
    assert "shr · share group" not in one.text


def test_a_page_without_a_group_says_so(run: Run, tmp_path: Path) -> None:
    empty = tmp_path / "empty.hex"
    empty.write_text("0000000a 0012 0000 00000001 ffff\n")
    made = run("timeline", "--format", "html", str(empty))
    assert "No group." in Texts(made.text).text


@pytest.mark.parametrize("option", ["--events", "--summary", "--errors", "--live", "--rebalance=1"])
def test_a_page_is_the_whole_story(run: Run, option: str) -> None:
    made = run("timeline", "--format", "html", option, str(ROOT / CAUSES))
    assert made.status == 2
    assert f"leave {option.partition('=')[0]} out" in made.err
    assert made.text == ""


def test_names_lose_their_markup(capsys: pytest.CaptureFixture[str]) -> None:
    page = HtmlFormat("coordwire timeline <x>")
    page.write(
        MemberLeft(
            group="<script>g", source="s", number=2, packet=None, time_ns=10**18, cluster=None,
            member_id="<b>m", client_id="<i>c", instance_id=None, how="left", reason=None, inferred=False,
        )
    )  # fmt: skip
    page.finish()
    made = capsys.readouterr().out
    assert "<script" not in made
    assert "<b>m" not in made
    assert "<i>" not in made
    assert "&lt;script&gt;g" in made
    assert "timeline &lt;x&gt;" in made
