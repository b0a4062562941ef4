"""Corner cases are answered as Apache Kafka answers them: by its kept answers, and by the broker itself.

`python -m tests.broker.corners record` renews the kept answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coordwire.broker.handlers import APIS
from coordwire.messages import find_message
from tests.broker.corners.brokers import kafka, ours
from tests.broker.corners.cases import CASES
from tests.broker.corners.differences import differing
from tests.broker.corners.kept import kafkas_answers, reasons
from tests.broker.corners.runner import answers
from tests.broker.corners.script import Ask
from tests.interop.conftest import give_up
from tests.interop.maven import Unavailable

KAFKAS = kafkas_answers()
REASONS = reasons()


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    with ours() as result:
        yield result


@pytest.mark.parametrize("name", CASES)
def test_this_broker_answers_as_kafka_does(name: str, address: tuple[str, int]) -> None:
    results = list(differing(KAFKAS[name], answers(CASES[name], address, KAFKAS[name])))
    if name in REASONS:
        assert results, "it no longer differs: take it out of differences.json"
    else:
        assert not results


def changed_answers(names: Iterable[str]) -> dict[str, list[tuple[str, Any, Any]]]:
    """What a real broker, begun for this, answers otherwise than is kept."""
    with kafka() as real:
        return {
            name: results
            for name in names
            if (results := list(differing(KAFKAS[name], answers(CASES[name], real, KAFKAS[name]))))
        }


@pytest.mark.maven
def test_a_real_broker_still_answers_so() -> None:
    try:
        changed = changed_answers(CASES)
        if changed:  # on a busy machine Kafka's own timers may run out in between, though not twice
            changed = changed_answers(changed)
    except Unavailable as error:
        give_up(error)
    assert not changed


def test_every_case_is_kept_and_every_reason_has_a_case() -> None:
    assert list(KAFKAS) == list(CASES)
    assert len(CASES) >= 200
    assert REASONS.keys() <= CASES.keys()
    assert all(REASONS.values())


def test_every_api_has_a_case() -> None:
    apis = {
        step.api for case in CASES.values() for step in case.steps if isinstance(step, Ask) and step.counts
    }
    keys = {find_message(api, "request").api_key for api in apis}
    assert {int(key) for key in APIS} - {int(key) for key in keys if key is not None} == set()


def test_the_reference_lists_the_differences() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "broker-differences.md"
    text = page.read_text(encoding="utf-8")
    assert f" {len(CASES)} corner cases " in text
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    cases: dict[str, list[str]] = {}
    for name, reason in REASONS.items():
        cases.setdefault(reason, []).append(f"`{name}`")
    assert rows == [f"| {', '.join(names)} | {reason} |" for reason, names in cases.items()]
