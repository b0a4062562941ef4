"""coordwire = Apache Kafka's own classes, for every message in every version: the same bytes, the same JSON.

Strategy: Hypothesis values, some with unknown tagged fields, and values at the edges of all fields. Kafka
reads our bytes, and must leave none over, write them again, and say what they mean in the JSON that we write;
it reads our JSON, and must write our bytes.

Rules: 20 examples a cell, 200 with HYPOTHESIS_PROFILE=thorough. Skipped where there is no JDK, no Maven or no
net; fails instead with COORDWIRE_INTEROP=required.
"""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from coordwire.codec import Message, Request, Response
from coordwire.jsonform import from_json, to_json
from coordwire.messages import HeartbeatRequest
from coordwire.testing import strategies
from coordwire.versions import header_version
from tests.conformance.counts import arrays, tags
from tests.conformance.test_reserved_tags import CASES
from tests.interop.cells import (
    CELLS,
    GREATEST,
    RECORDS,
    as_kafka,
    drop_great_tags,
    java_name,
    judge,
    without_tags,
)
from tests.interop.conftest import JUDGED, give_up
from tests.interop.edges import EDGES, edge
from tests.interop.java_oracle import Command, JavaOracle, Refused, oracle
from tests.interop.maven import CURRENT, PREVIOUS, Unavailable

pytestmark = pytest.mark.maven

COUNTS = arrays() | tags()
PHASES = set(Phase) - {Phase.explain}
EXAMPLES = 200 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 20


@pytest.fixture(scope="session")
def kafka() -> tuple[JavaOracle, JavaOracle]:
    """The current release's classes and the previous ones'."""
    try:
        return oracle(CURRENT), oracle(PREVIOUS)
    except Unavailable as error:
        give_up(error)


def text(form: object) -> str:
    """Names in their order, and 1 apart from 1.0."""
    return json.dumps(form, ensure_ascii=False)


cells = pytest.mark.parametrize(
    ("cls", "version"), [pytest.param(c, v, id=f"{c.__name__}-v{v}") for c, v in CELLS]
)


@pytest.mark.usefixtures("kafka")
@cells
def test_kafka_agrees(cls: type[Message], version: int) -> None:
    asked = judge(cls, version)
    assert asked is not None, "no release has this version"

    @settings(max_examples=EXAMPLES, phases=PHASES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(strategies.messages(cls, version=version, nan=True))
    def agrees(message: Message) -> None:
        drop_great_tags(message)
        agree(asked, message, version)

    agrees()
    JUDGED[asked.release].append(EXAMPLES)


@pytest.mark.usefixtures("kafka")
@cells
def test_kafka_agrees_at_the_edges(cls: type[Message], version: int) -> None:
    asked = judge(cls, version)
    assert asked is not None, "no release has this version"
    for which in EDGES:
        agree(asked, edge(cls, version, which), version)


def agree(asked: JavaOracle, message: Message, version: int) -> None:
    """Kafka's bytes and JSON are ours, both ways."""
    cls = type(message)
    wire, form = message.encode(version=version), to_json(message, version=version)
    readable = without_tags(cls, form)
    plain = from_json(cls, readable, version=version)
    name = java_name(cls)
    read, written = asked.ask(
        [Command("B", name, version, wire), Command("J", name, version, text(readable).encode())]
    )
    assert not isinstance(read, Refused), read
    assert not isinstance(written, Refused), written
    output, again, remaining = read
    assert remaining == b"0"
    assert again.hex() == wire.hex()
    assert text(json.loads(output)) == text(as_kafka(cls, form))
    assert written[0].hex() == plain.encode(version=version).hex()
    assert cls.decode(written[0], version=version) == plain


@pytest.mark.usefixtures("kafka")
def test_the_tags_that_kafka_refuses() -> None:
    """Kafka keeps unknown tags as Java's ints."""
    asked = oracle(CURRENT)
    for tag, complaint in [
        (GREATEST - 1, None),
        (GREATEST, "as an undefined tag"),
        (GREATEST + 1, "raw tag"),
    ]:
        wire = HeartbeatRequest(tags={tag: b"x"}).encode(version=4)
        assert HeartbeatRequest.decode(wire, version=4).tags == {tag: b"x"}
        (result,) = asked.ask([Command("B", "HeartbeatRequestData", 4, wire)])
        if complaint is None:
            assert not isinstance(result, Refused)
            assert result[1] == wire
        else:
            assert isinstance(result, Refused)
            assert complaint in result.reason


@pytest.mark.usefixtures("kafka")
@pytest.mark.parametrize("name", COUNTS)
def test_the_counts_that_kafka_refuses(name: str) -> None:
    count = COUNTS[name]
    java = java_name(count.message)
    (beyond,) = oracle(CURRENT).ask([Command("B", java, count.version, count.beyond)])
    assert isinstance(beyond, Refused)
    assert "the maximum" in beyond.reason
    (valid,) = oracle(CURRENT).ask([Command("B", java, count.version, count.valid)])
    assert not isinstance(valid, Refused), valid
    assert valid[1:] == [count.valid, b"0"]


@pytest.mark.usefixtures("kafka")
@pytest.mark.parametrize(("cls", "version", "tag", "having", "wire"), CASES)
def test_kafka_refuses_the_tags_of_other_versions(
    cls: type[Message], version: int, tag: int, having: list[int], wire: bytes
) -> None:
    """A class refuses the numbers of the fields that it knows; one that is older keeps them as unknown."""
    asked = judge(cls, version)
    if asked is None:
        pytest.skip("its class isn't in kafka-clients")
    known = asked.versions(java_name(cls)) or ()
    assert set(having) & set(known), f"no release that has version {version} has tag {tag}, of {having}"
    (result,) = asked.ask([Command("B", java_name(cls), version, wire)])
    assert isinstance(result, Refused), f"Kafka {asked.release} reads tag {tag} in version {version}"
    assert f"Tag {tag} is not valid for version {version}" in result.reason


@pytest.mark.parametrize(
    ("cls", "version"),
    [pytest.param(c, v, id=f"{c.__name__}-v{v}") for c, v in CELLS if issubclass(c, Request)],
)
def test_kafka_agrees_on_the_headers(
    cls: type[Request[Response]], version: int, kafka: tuple[JavaOracle, JavaOracle]
) -> None:
    asked = judge(cls, version)
    assert asked is not None
    assert cls.api_key is not None
    (headers,) = asked.ask([Command("H", java_name(cls), version)])
    assert not isinstance(headers, Refused), headers.reason
    ours = [header_version(cls.api_key, version, direction) for direction in ("request", "response")]
    assert ours == list(map(int, headers))


def test_every_message_is_judged() -> None:
    assert {cls.api_key for cls, _ in CELLS} == {None, *range(95)}
    assert len({cls for cls, _ in CELLS}) == 2 * 95 + 2 + 11 + len(RECORDS)
