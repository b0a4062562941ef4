"""The service under the plans of seeds: in virtual time, and on brokers in real time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from coordwire.broker import Broker as OwnBroker
from coordwire.broker import BrokerConfig
from coordwire.testing.simulation import parse_plan
from tests.interop.conftest import give_up
from tests.interop.maven import Unavailable
from tests.testing.simulation.real import (
    PARTITIONS,
    RECORDS,
    World,
    compare,
    compare_with_kafka,
    simulated,
    worlds_of,
)

SEEDS = range(2)


def compare_with_ours(folder: Path, worlds: Iterable[World], together: int) -> list[str]:
    with OwnBroker.in_thread(config=BrokerConfig.kafka()) as broker:
        return asyncio.run(compare(broker.bootstrap, worlds, together))


def test_a_plan_in_virtual_time() -> None:
    outcome = simulated(1, parse_plan("3s crash orders-1 for 4s; 5s inject broker-* OffsetCommit delay=3s"))
    assert outcome.committed == dict.fromkeys(range(PARTITIONS), RECORDS // PARTITIONS)
    assert outcome.processed == {index: [0, 1, 2] for index in range(PARTITIONS)}
    assert outcome.owned == [2, 2]


@pytest.mark.long
@pytest.mark.parametrize(
    "brokers", [compare_with_ours, pytest.param(compare_with_kafka, marks=pytest.mark.maven)]
)
def test_the_same_outcome_in_real_time(brokers: Callable[..., list[str]], tmp_path: Path) -> None:
    try:
        assert brokers(tmp_path, worlds_of(SEEDS), len(SEEDS)) == []
    except Unavailable as error:
        give_up(error)
