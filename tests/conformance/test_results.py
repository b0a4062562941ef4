"""Results of conformance runs: which cases are selected, lists of known failures, and reports."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from coordwire.conformance.reports import MOST_NAMED, as_json, as_junit, summary
from coordwire.conformance.results import CaseResult, CaseVerdict, KnownFailures, Results, is_selected

LIST = "# ours\na/1  # the first\na/2\n\nb/1\n"


def results(known: str = "", *, patterns: tuple[str, ...] = (), **verdicts: CaseVerdict) -> Results:
    """Results by the cases' addresses, with _ for a slash."""
    made = Results("broker", "a broker 1.0", KnownFailures(known), patterns)
    made.extend(CaseResult(name.replace("_", "/"), one, "why") for name, one in verdicts.items())
    return made


@pytest.mark.parametrize(
    ("address", "pattern", "is_there"),
    [
        ("groups/classic/join/1", "groups", True),
        ("groups/classic/join/1", "groups/classic/", True),
        ("groups/classic/join/1", "groups/*/join", True),
        ("groups/classic/join/1", "groups/classic/join/1", True),
        ("groups/classic/join/10", "groups/classic/join/1", False),
        ("groups/classic", "groups/classic/join", False),
        ("groups/classic/join/1", "group", False),
    ],
)
def test_addresses_name_what_is_below_them(address: str, pattern: str, is_there: bool) -> None:
    assert is_selected(address, [pattern]) == is_there
    assert is_selected(address, ["other", pattern]) == is_there
    assert is_selected(address, [])


def test_an_unlisted_failure_fails_the_run() -> None:
    made = results(a_1=CaseVerdict.FAIL, a_2=CaseVerdict.PASS)
    assert not made.passed
    assert [one.address for one in made.unexpected] == ["a/1"]
    assert results("a/1", a_1=CaseVerdict.FAIL, a_2=CaseVerdict.PARTIAL).passed


@pytest.mark.parametrize("verdict", [one for one in CaseVerdict if one is not CaseVerdict.FAIL])
def test_a_listed_case_that_does_not_fail_fails_the_run(verdict: CaseVerdict) -> None:
    made = results("a/1", a_1=verdict)
    assert not made.passed
    assert made.stale == [("a/1", f"the verdict is {verdict}")]


def test_a_listed_case_that_is_not_there_fails_the_run_unless_it_was_not_selected() -> None:
    assert results("b/1", a_1=CaseVerdict.PASS).stale == [("b/1", "there is no such case")]
    assert results("b/1", patterns=("a",), a_1=CaseVerdict.PASS).passed


def test_the_corrected_list_keeps_comments_and_what_was_not_run() -> None:
    made = results(LIST, patterns=("a",), a_1=CaseVerdict.FAIL, a_2=CaseVerdict.PASS, a_3=CaseVerdict.FAIL)
    corrected = made.known.corrected(made)
    assert corrected == "# ours\na/1  # the first\n\nb/1\na/3\n"
    made.known = KnownFailures(corrected)
    assert made.passed
    assert made.known.corrected(made) == corrected


def test_a_recommended_case_fails_no_run() -> None:
    made = Results("broker", "x")
    made.extend([CaseResult("a/1", CaseVerdict.FAIL, "late", recommended=True)])
    assert made.passed
    assert "not as recommended: 1" in list(summary(made))
    assert 'skipped message="recommended: late"' in as_junit(made)


def test_a_summary_fits_a_terminal() -> None:
    made = results("b/1")
    made.extend(CaseResult(f"a/{number}", CaseVerdict.FAIL, "why") for number in range(MOST_NAMED + 5))
    lines = list(summary(made))
    assert [line for line in lines if len(line) > 80] == []
    assert lines[2].split() == ["a", "0", "0", "0", str(MOST_NAMED + 5), "0"]
    assert "  … and 5 more" in lines
    assert "  b/1: there is no such case" in lines
    assert lines[-1] == "failed"
    assert list(summary(results("a/1", a_1=CaseVerdict.FAIL)))[-1] == "passed, 1 known failure"


def test_what_an_implementation_says_is_escaped() -> None:
    made = Results("broker", '<evil>\x1b[2J"')
    made.extend([CaseResult("a/1", CaseVerdict.FAIL, "\x1b[2J<&\x00", output="\x1b]0;<x>\nline")])
    assert "\x1b" not in "".join(summary(made))
    root = ElementTree.fromstring(as_junit(made))
    assert root.get("name") == '<evil>\\x1b[2J"'
    (failure,) = root.iter("failure")
    assert failure.get("message") == "\\x1b[2J<&\\x00"
    assert root.findtext("testcase/system-err") == "\\x1b]0;<x>\nline"


def test_reports_have_every_case() -> None:
    made = results("a/1\nb/2", a_1=CaseVerdict.FAIL, a_2=CaseVerdict.FAIL, c_1=CaseVerdict.SKIPPED)
    form = json.loads(as_json(made))
    assert (form["subject"], form["passed"]) == ("a broker 1.0", False)
    assert form["counts"]["a"]["fail"] == 2
    assert [(one["address"], one["verdict"], one["known"]) for one in form["cases"]] == [
        ("a/1", "fail", True),
        ("a/2", "fail", False),
        ("c/1", "skipped", False),
    ]
    root = ElementTree.fromstring(as_junit(made))
    assert (root.get("tests"), root.get("failures")) == ("4", "2")
    assert [one.get("name") for one in root.iter("testcase") if one.find("failure") is not None] == ["2", "2"]
    assert len(list(root.iter("skipped"))) == 2
