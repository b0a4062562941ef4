"""Suites that others wrote: `python -m tests.broker.suites` runs them one by one, with what they print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.broker.suites import client_programs, kgo, transaction_histories, word_count
from tests.broker.suites.__main__ import SUITES
from tests.broker.suites.checks import Checks
from tests.interop.maven import Unavailable


def test_a_check_that_fails_is_kept_with_its_cause(capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> None:
        raise AssertionError("expected 1, got 2")

    checks = Checks("some")
    assert checks.run("first", lambda: None)
    assert not checks.run("second", fails)
    assert checks.passed == ["first"]
    assert checks.failures == {"second": "AssertionError: expected 1, got 2"}
    assert "second: failed" in capsys.readouterr().out


def test_the_page_has_the_suites_as_they_are() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "broker.md").read_text()
    assert [name for name in SUITES if name not in page] == []
    for figure in (
        f"{transaction_histories._HISTORIES} histories of {transaction_histories._LENGTH} requests (",
        f"{kgo._RECORDS:,} records",
        f"a million lines, {word_count.expected(word_count._LINES).total():,} words",
    ):
        assert figure in page
    rows = re.findall(r"^\| ([\w-]+) (\S+) \| (\w+) \| passes \| (.*?) \| passes \|", page, re.MULTILINE)
    matrix = [(name, language, kip_848) for name, _, language, kip_848 in rows]
    assert matrix == [
        (client.name, client.language, "not in the client" if client.no_kip_848 else "passes")
        for client in client_programs.CLIENTS
    ]
    versions = {name: version for name, version, _, _ in rows}
    pinned = [client_programs._FRANZ_GO, client_programs._SARAMA]
    assert [f"v{versions['franz-go']}", f"v{versions['sarama']}"] == pinned
    assert [versions["kafkajs"], versions["rdkafka"]] == [client_programs._KAFKAJS, client_programs._CRATE]


@pytest.mark.suites
@pytest.mark.parametrize("name", SUITES)
def test_the_suite_passes(name: str) -> None:
    checks = Checks(name)
    try:
        SUITES[name](checks, ())
    except Unavailable as reason:
        pytest.skip(str(reason))
    assert checks.failures == {}
    assert checks.passed
