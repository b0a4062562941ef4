"""`coordwire conformance broker`: Apache Kafka and our broker pass every case, and every case finds a bug.

Strategy: the bugs are those of `broker_plants`, a tap or a relay before our broker. Rules: a case without a
plant fails the tests; a run leaves nothing, and touches nothing that it didn't make.
"""

from __future__ import annotations

import asyncio
import json
import re
import struct
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from coordwire import ErrorCode
from coordwire.broker import Broker, BrokerConfig
from coordwire.client import ClientSettings, addresses, connect_sync
from coordwire.conformance.broker import authentication, framing, stage
from coordwire.conformance.broker.run import judged, selected
from coordwire.conformance.broker.stage import BrokerCase
from coordwire.conformance.results import CaseResult, CaseVerdict
from coordwire.messages import ListGroupsRequest, MetadataRequest, OffsetCommitRequest, OffsetFetchRequest
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.messages.offset_fetch import OffsetFetchRequestTopic
from coordwire.tap import Tap
from tests.cli.conftest import Run, run
from tests.conformance import (
    broker_plants,
    classic_plants,
    consumer_plants,
    list_plants,
    log_plants,
    offset_plants,
    share_plants,
    streams_plants,
    topic_plants,
    transaction_plants,
)
from tests.conformance.broker_plants import BYTE_PLANTS, Planted, Relay, script, swaps
from tests.interop.broker import Broker as Kafka
from tests.interop.broker import Java
from tests.interop.conftest import give_up
from tests.interop.maven import COMPLETE, CURRENT, PREVIOUS, Unavailable

__all__ = ["run"]

MODULES = (
    broker_plants,
    classic_plants,
    consumer_plants,
    list_plants,
    log_plants,
    offset_plants,
    share_plants,
    streams_plants,
    topic_plants,
    transaction_plants,
)
PLANTS = {name: plant for module in MODULES for name, plant in module.PLANTS.items()}
EVERY = {case.address: case for case in selected(())}
CASES = {address: case for address, case in EVERY.items() if case.play.__module__ != authentication.__name__}
"""Those that a listener without SASL has: `test_secured_broker` has the others."""


async def results_of(bootstrap: str, cases: Iterable[BrokerCase]) -> list[CaseResult]:
    settings = ClientSettings(bootstrap=addresses(bootstrap), retries=20)
    return [result async for result in judged(settings, list(cases))]


def test_addresses_are_unique_and_cases_say_what_they_are_about() -> None:
    every = selected(())
    assert len(every) == len(EVERY) > 400
    for case in every:
        assert re.fullmatch(r"[a-z]+(/[a-z]+)+/[1-9][0-9]*", case.address)
        assert re.match(r"KIP-\d+$|https://kafka\.apache\.org/", case.document)
        assert case.question
        assert case.answer
        assert case.rule.endswith(".")


def test_the_page_says_how_many_there_are() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "conformance.md").read_text()
    assert f"in {len(EVERY)} cases" in page


def test_a_member_that_cannot_be_removed_keeps_no_other() -> None:
    async def play(bootstrap: str) -> None:
        async with stage.Stage(ClientSettings(bootstrap=addresses(bootstrap), retries=0), "prefix") as played:
            for _ in range(2):
                await played.ask(
                    "JoinGroup", at=3, group_id=played.group(), session_timeout_ms=10_000,
                    rebalance_timeout_ms=10_000, protocol_type="consumer", protocols=[{"name": "range"}],
                )  # fmt: skip

    with Broker.in_thread() as broker:
        broker.faults.add("LeaveGroup group=prefix-group-0 disconnect")
        asyncio.run(play(broker.bootstrap))
        assert state_of_groups(broker.bootstrap) == ["prefix-group-0"]


def state_of_groups(bootstrap: str) -> list[str]:
    with connect_sync(bootstrap) as client:
        return sorted(group.group_id for group in client.request(ListGroupsRequest()).groups)


def state(bootstrap: str) -> dict[str, Any]:
    """What a cluster has, but for the coordinators' logs."""
    with connect_sync(bootstrap) as client:
        topics = client.request(MetadataRequest(topics=None)).topics
        groups = client.request(ListGroupsRequest()).groups
        mine = [OffsetFetchRequestTopic(name="mine", partition_indexes=[0])]
        offsets = client.request(OffsetFetchRequest(group_id="mine", topics=mine), version=7)
    return {
        "topics": sorted(topic.name for topic in topics if not topic.is_internal),
        "groups": sorted(group.group_id for group in groups),
        "offset": offsets.topics[0].partitions[0].committed_offset,
    }


def commit(bootstrap: str) -> None:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=3)
    topics = [OffsetCommitRequestTopic(name="mine", partitions=[partition])]
    with connect_sync(bootstrap) as client:
        client.request(OffsetCommitRequest(group_id="mine", topics=topics), version=7)


def test_our_broker_passes_and_is_left_as_it_was(run: Run, tmp_path: Path) -> None:
    report = tmp_path / "out.json"
    with Broker.in_thread(topics={"mine": 1}) as broker:
        commit(broker.bootstrap)
        before = state(broker.bootstrap)
        result = run("conformance", "broker", broker.bootstrap, "--json", report)
        assert state(broker.bootstrap) == before
    assert before == {"topics": ["mine"], "groups": ["mine"], "offset": 3}
    assert (result.status, result.err) == (0, "")
    assert result.text.splitlines()[-1] == "passed"
    cases = json.loads(report.read_text())["cases"]
    expected = dict.fromkeys(EVERY, "skipped") | dict.fromkeys(CASES, "strict pass")
    assert {case["address"]: case["verdict"] for case in cases} == expected


LEAST = {CURRENT: len(CASES), COMPLETE: 690, PREVIOUS: 450}
"""Cases that a release's versions allow."""


@pytest.mark.maven
@pytest.mark.long
@pytest.mark.parametrize("release", [CURRENT, COMPLETE, PREVIOUS])
def test_apache_kafka_passes_and_is_left_as_it_was(release: str, tmp_path: Path) -> None:
    settings = {
        f"{log}.replication.factor": "1"
        for log in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
    }
    try:
        java = Java(release)
    except Unavailable as error:
        give_up(error)
    settings |= {"transaction.state.log.min.isr": "1", "share.coordinator.state.topic.min.isr": "1"}
    (tmp_path / "data").mkdir()
    with Kafka(java, tmp_path / "data", settings) as kafka:
        before = state(kafka.address)
        results = asyncio.run(results_of(kafka.address, CASES.values()))
        after = state(kafka.address)
    passed = [one for one in results if one.verdict is CaseVerdict.STRICT_PASS]
    skipped = [one for one in results if one.verdict is CaseVerdict.SKIPPED]
    assert [(one.address, one.reason) for one in results if one not in passed + skipped] == []
    assert len(passed) >= LEAST[release]
    assert after == before


def cases_at(addresses: str) -> list[BrokerCase]:
    """The cases of a key of the plants."""
    folder, _, numbers = addresses.rpartition("/")
    return [CASES[f"{folder}/{number}"] for number in numbers.split()]


def planted() -> dict[str, tuple[Callable[[], Planted], list[BrokerCase]]]:
    """Each planted bug, and the cases that find it, by name. A case whose answer is an error finds that the
    API that its needs end with answers without one."""
    found = {name: (plant, cases_at(name)) for name, plant in PLANTS.items()}
    own = {case.address for _, cases in found.values() for case in cases} | BYTE_PLANTS.keys()
    for case in CASES.values():
        if case.address not in own and case.answer in ErrorCode.__members__:
            api = case.needs[-1].partition(" ")[0]
            plant = partial(swaps, api, case.answer)
            found.setdefault(f"{api} without {case.answer}", (plant, []))[1].append(case)
    return found


PLANTED = planted()


def test_every_case_has_a_planted_bug() -> None:
    found = [case.address for _, cases in PLANTED.values() for case in cases]
    assert sorted([*found, *BYTE_PLANTS]) == sorted(CASES)
    assert len(PLANTED) + len(BYTE_PLANTS) > 60


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "PATIENCE", 1.5)
    monkeypatch.setattr(framing, "WAIT", 1.0)


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_found(name: str) -> None:
    plant, cases = PLANTED[name]

    async def play() -> list[CaseResult]:
        async with Broker() as broker, Tap(broker.bootstrap, script=script(plant())) as tap:
            return await results_of(tap.bootstrap, cases)

    results = asyncio.run(play())
    assert [one.address for one in results if one.verdict is not CaseVerdict.FAIL] == []
    assert all(one.reason for one in results)


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("address", BYTE_PLANTS)
def test_a_bug_in_bytes_is_found(address: str) -> None:
    async def play() -> list[CaseResult]:
        async with Broker() as broker:
            port = int(broker.bootstrap.rpartition(":")[2])
            async with Relay(port, BYTE_PLANTS[address]) as relay:
                return await results_of(f"127.0.0.1:{relay.port}", [CASES[address]])

    (result,) = asyncio.run(play())
    assert result.verdict is CaseVerdict.FAIL


@pytest.mark.parametrize("error", [TypeError("None"), KeyError("t"), struct.error("short")])
def test_an_answer_of_another_form_fails_a_case_and_no_run(error: Exception) -> None:
    async def play(stage: stage.Stage) -> None:
        raise error

    with Broker.in_thread() as broker:
        case = replace(CASES["framing/order/1"], play=play)
        (result,) = asyncio.run(results_of(broker.bootstrap, [case]))
    assert result.verdict is CaseVerdict.FAIL
    assert "an answer of another form" in result.reason


def test_what_a_broker_lacks_is_skipped(run: Run, tmp_path: Path) -> None:
    report = tmp_path / "out.json"
    with Broker.in_thread(config=BrokerConfig(as_of="3.9")) as broker:
        run("conformance", "broker", broker.bootstrap, "--only", "groups/consumer/join", "--json", report)
    cases = json.loads(report.read_text())["cases"]
    reasons = {case["reason"] for case in cases}
    assert reasons == {f"the broker lacks ConsumerGroupHeartbeat {version}" for version in (0, 1)}


def test_usage(run: Run) -> None:
    result = run("conformance", "broker", "--list", "--only", "groups/classic/join/1")
    assert result.status == 0
    assert result.text.splitlines()[0] == "groups/classic/join/1  (required, KIP-394)"
    for words, reason in [
        ([], "expected the broker's HOST:PORT"),
        (["--only", "nothing", "127.0.0.1:1"], "no case has the address nothing"),
        (["127.0.0.1:1"], "127.0.0.1:1"),
    ]:
        result = run("conformance", "broker", *words)
        assert (result.status, result.out) == (2, b"")
        assert reason in result.err
