"""Our enums = Kafka's: the same names, numbers, and errors that may be retried."""

from __future__ import annotations

import pytest

from coordwire import enums
from coordwire.enums import ErrorCode, OpenEnum
from tests.interop.conftest import give_up
from tests.interop.enums import JAVA, constants, enum_drift, unknown_enums
from tests.interop.java_oracle import JavaOracle, oracle
from tests.interop.maven import COMPLETE, CURRENT, PREVIOUS, Unavailable, jars

pytestmark = pytest.mark.maven

OURS_ONLY: dict[type[OpenEnum], set[str]] = {enums.AcknowledgeType: {"GAP"}}
"""Numbers that Kafka writes without a name."""


@pytest.fixture(scope="module")
def kafka() -> JavaOracle:
    try:
        return oracle(CURRENT)
    except Unavailable as error:
        give_up(error)


@pytest.mark.parametrize("enum", JAVA, ids=lambda enum: enum.__name__)
def test_kafka_has_the_same(kafka: JavaOracle, enum: type[OpenEnum]) -> None:
    others = (oracle(COMPLETE, "apps"), oracle(PREVIOUS))
    theirs = next(filter(None, (constants(one, enum) for one in (kafka, *others))), None)
    assert theirs is not None
    extra = OURS_ONLY.get(enum, set())
    assert {one.name: one.value for one in enum if one.name not in extra} == {
        name: number for name, (number, _) in theirs.items()
    }
    if enum is ErrorCode:
        assert {code.name for code in ErrorCode if code.retriable} == {
            name for name, (_, retry) in theirs.items() if retry
        }


def test_no_drift(kafka: JavaOracle) -> None:
    assert list(enum_drift(kafka)) == []
    assert all("unknown to us" not in line for line in enum_drift(oracle(PREVIOUS)))


def test_drift_is_told(kafka: JavaOracle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.interop.enums.JAVA", {enums.ElectionType: JAVA[enums.AclOperation]})
    lines = list(enum_drift(kafka))
    assert "ElectionType 0: UNKNOWN, ours PREFERRED" in lines
    assert "ElectionType 2: unknown to us; ALL" in lines


def test_an_enum_without_ours_is_told(kafka: JavaOracle, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = jars(CURRENT)
    assert list(unknown_enums(folder, kafka)) == []
    fewer = {enum: names for enum, names in JAVA.items() if enum is not enums.ElectionType}
    monkeypatch.setattr("tests.interop.enums.JAVA", fewer)
    assert list(unknown_enums(folder, kafka)) == [
        "org.apache.kafka.common.ElectionType: unknown to us; PREFERRED 0, UNCLEAN 1"
    ]
