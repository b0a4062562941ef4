"""Suites that others wrote: `python -m tests.broker.suites` runs them one by one, with what they print."""

from __future__ import annotations

import pytest

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
