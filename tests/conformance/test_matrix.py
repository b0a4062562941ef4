"""The page of several implementations' results: what it shows, that it is bounded, and that nothing of a
result becomes markup."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from coordwire.cli.conformance import matrix as command
from coordwire.conformance import matrix
from coordwire.conformance.matrix import matrix_page
from coordwire.conformance.reports import as_json, from_json
from coordwire.conformance.results import CaseResult, CaseVerdict, KnownFailures, Results
from tests.cli.conftest import Run, run

__all__ = ["run"]

JOIN = "groups/classic/join/"


def results(subject: str, *verdicts: CaseVerdict, known: str = "", kind: str = "broker") -> Results:
    """Results of the cases groups/classic/join/1 and so on."""
    made = Results(kind, subject, KnownFailures(known))
    for number, verdict in enumerate(verdicts, 1):
        reason = f"why {number}" if verdict is CaseVerdict.FAIL else ""
        made.cases.append(CaseResult(f"{JOIN}{number}", verdict, reason))
    return made


class Rows(HTMLParser):
    """The texts of a page's cells, a list for each row; and the names of all elements."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tags: set[str] = set()
        self._is_inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self._is_inside = True
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self._is_inside &= tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._is_inside:
            self.rows[-1][-1] += data


def test_the_matrix_has_a_column_for_each_run() -> None:
    first = results("ours 1", CaseVerdict.STRICT_PASS, CaseVerdict.FAIL, known=f"{JOIN}2")
    second = results("theirs 2", CaseVerdict.SKIPPED, CaseVerdict.PASS, CaseVerdict.PARTIAL)
    page = matrix_page([first, second])
    rows = Rows(page).rows
    assert ["1", "ours 1"] in [row[:2] for row in rows]
    assert ["1", "0", "0", "1", "0", "1"] in [row[4:] for row in rows]
    assert ["case", "1", "2"] in rows
    assert ["groups/classic/join", "1/2", "2/2"] in rows
    marks = {row[0][:2].strip(): row[1:] for row in rows if row[0][:2] in ("1 ", "2 ", "3 ")}
    assert marks == {"1": ["✓", "–"], "2": ["✗", "+"], "3": ["", "~"]}
    assert [f"{JOIN}2", "known", "why 2"] in rows
    assert first.date.strftime("%Y-%m-%d %H:%M UTC") in page


def test_a_recommended_case_is_marked_so() -> None:
    made = Results("client", "x")
    made.cases.append(CaseResult("produce/acks/1", CaseVerdict.FAIL, "late", recommended=True))
    page = matrix_page([made])
    assert '<td class="fair" title="late">!</td>' in page
    assert '<td class="good">0/1</td>' in page
    assert ["produce/acks/1", "recommended", "late"] in Rows(page).rows


def test_kinds_stand_apart_and_have_their_own_rules() -> None:
    passed = CaseVerdict.PASS
    page = matrix_page([results("b", passed), results("c", passed, kind="client")])
    assert page.index("<h2>Brokers</h2>") < page.index("<h2>Clients</h2>")
    rules = re.findall(r"<b>1</b> ([^<]+)</td>", page)
    assert len(rules) == len(set(rules)) == 2
    assert all(rule.endswith(".") for rule in rules)


def test_nothing_of_a_result_becomes_markup() -> None:
    evil = "<script>alert(1)</script>\x1b[2J\"'><img src=x>\ud800"
    made = Results("codec", evil, notes=[evil], suite=evil)
    made.cases += [CaseResult(f"{evil}/1", CaseVerdict.FAIL, evil), CaseResult(evil, CaseVerdict.PASS, evil)]
    page = matrix_page([made])
    page.encode()
    assert "\x1b" not in page
    assert Rows(page).tags.isdisjoint({"script", "img", "link", "a"})
    assert not re.search(r"https?:|url\(|@import", page)


def test_of_very_many_cases_those_have_a_row_that_somebody_does_not_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(matrix, "MOST_CASES", 3)
    monkeypatch.setattr(matrix, "MOST_FAILURES", 2)
    made = Results("codec", "x")
    for number in range(9):
        verdict = CaseVerdict.PASS if number < 5 else CaseVerdict.FAIL
        made.cases.append(CaseResult(f"hostile/join/v1/{number}/size", verdict))
    page = matrix_page([made])
    rows = Rows(page).rows
    assert ["hostile/join", "5/9"] in rows
    assert [row[0].strip() for row in rows if row[0].startswith("v1/")] == [f"v1/{n}/size" for n in (5, 6, 7)]
    assert "1 more such cases have none" in page
    assert "and 2 more" in page


def test_results_are_read_as_they_were_written() -> None:
    made = results("ours 1", CaseVerdict.STRICT_PASS, CaseVerdict.FAIL, known=f"{JOIN}2")
    made.notes.append("a note")
    made.cases.append(CaseResult("a/1", CaseVerdict.FAIL, "late", 0.5, recommended=True))
    text = as_json(made)
    again = from_json(text.encode())
    assert as_json(again) == text.replace('"seconds": 0.5', '"seconds": 0.0')


def changed(**values: Any) -> bytes:
    return json.dumps(json.loads(as_json(results("x", CaseVerdict.FAIL))) | values).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"", b"[]", b"1", b"{}", b"\xff", b"[" * 100_000, changed(kind="other"), changed(kind=[]),
        changed(date="today"), changed(date="0001-01-01T00:00:00+14:00"), changed(cases=[1]),
        changed(cases=[{}]), changed(cases={}), changed(notes=None),
        changed(cases=[{"address": 1, "level": "", "verdict": "pass", "reason": "", "known": False}]),
        changed(cases=[{"address": "", "level": "", "verdict": "good", "reason": "", "known": False}]),
    ],
)  # fmt: skip
def test_what_is_no_result_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not the results of a run"):
        from_json(data)


def test_saved_results_become_a_page(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ours.json").write_text(as_json(results("ours 1", CaseVerdict.PASS)))
    (tmp_path / "theirs.json").write_text(as_json(results("theirs 2", CaseVerdict.FAIL)))
    page = tmp_path / "page.html"
    done = run("conformance", "matrix", tmp_path / "ours.json", tmp_path / "theirs.json", "--html", page)
    assert (done.status, done.err) == (0, "")
    assert done.text.endswith("page.html is written: 2 runs\n")
    assert "ours 1" in page.read_text("utf-8")
    (tmp_path / "bad.json").write_text("{}")
    monkeypatch.setattr(command, "LARGEST", 1_000)
    (tmp_path / "long.json").write_text(" " * 1_001)
    for name, reason in [
        ("bad.json", "bad.json: not the results of a run"),
        ("long.json", "long.json: more than 1,000 bytes"),
        ("none.json", "none.json"),
    ]:
        done = run("conformance", "matrix", tmp_path / name, "--html", page)
        assert (done.status, done.out) == (2, b"")
        assert reason in done.err


def test_a_run_writes_its_own_page(run: Run, tmp_path: Path) -> None:
    from coordwire.broker import Broker

    page = tmp_path / "page.html"
    with Broker.in_thread() as broker:
        words = ("--only", "groups/classic/leave", "--name", "our broker 1", "--html", page)
        done = run("conformance", "broker", broker.bootstrap, *words)
    assert done.status == 0
    assert done.text.startswith("our broker 1\n")
    assert ["1", "our broker 1"] in [row[:2] for row in Rows(page.read_text("utf-8")).rows]
