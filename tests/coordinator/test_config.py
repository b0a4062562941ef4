"""Settings by Kafka's names: a broker's, and those of a GROUP resource with what is for all groups."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from coordwire.broker.settings.settings import GROUP_SETTINGS
from coordwire.coordinator import (
    ConsumerGroupConfig,
    CoordinatorConfig,
    MigrationPolicy,
    ShareGroupConfig,
    StreamsGroupConfig,
)
from coordwire.coordinator.config import _BROKER_FIELDS, _GROUP_FIELDS
from coordwire.coordinator.releases import RELEASES
from tests.coordinator.oracle import RELEASES as oracle_releases
from tests.coordinator.test_shard import Bench, commit

SETTINGS: dict[str, str | int] = {
    "group.min.session.timeout.ms": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignors": "range, uniform",
    "group.consumer.migration.policy": "upgrade",
    "group.share.session.timeout.ms": "60000",
    "group.share.assignment.interval.ms": 0,
    "group.streams.num.standby.replicas": " 2 ",
    "offsets.retention.minutes": "3",
    "offsets.commit.timeout.ms": "700",
    "log.retention.ms": "ignored, since it is of another part of a broker",
}


def test_a_broker_s_settings_change_what_they_name() -> None:
    base = CoordinatorConfig(share=ShareGroupConfig(heartbeat_interval_ms=9), group_max_size=8)
    assert base.with_settings(SETTINGS) == CoordinatorConfig(
        min_session_timeout_ms=1,
        initial_rebalance_delay_ms=0,
        consumer_assignors=("range", "uniform"),
        migration_policy=MigrationPolicy.UPGRADE,
        share=ShareGroupConfig(session_timeout_ms=60_000, heartbeat_interval_ms=9, assignment_interval_ms=0),
        streams=StreamsGroupConfig(num_standby_replicas=2),
        offsets_retention_ms=180_000,
        write_timeout_ms=700,
        group_max_size=8,
    )
    assert base.with_settings({}) == base


def test_a_group_s_settings_are_merged_with_those_of_all_groups() -> None:
    config = CoordinatorConfig(
        consumer=ConsumerGroupConfig(session_timeout_ms=7), streams=StreamsGroupConfig(session_timeout_ms=8)
    )
    configs = config.group_configs(
        {
            "streams.num.standby.replicas": "1",
            "consumer.heartbeat.interval.ms": "2",
            "share.isolation.level": "read_committed",
        }
    )
    assert configs == (
        ConsumerGroupConfig(session_timeout_ms=7, heartbeat_interval_ms=2),
        StreamsGroupConfig(session_timeout_ms=8, num_standby_replicas=1),
    )
    assert config.group_configs({"share.auto.offset.reset": "earliest"}) == ()
    settings = config.group_settings()
    assert settings["consumer.session.timeout.ms"] == "7"
    assert set(config.group_configs(settings)) == {config.consumer, config.share, config.streams}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("group.share.session.timeout.ms", "0"),
        ("group.share.session.timeout.ms", "-1"),
        ("group.share.session.timeout.ms", ""),
        ("group.share.session.timeout.ms", "1e3"),
        ("group.share.session.timeout.ms", "٣"),
        ("group.share.session.timeout.ms", "9" * 5_000),
        ("group.max.size", str(1 << 31)),
        ("offsets.retention.check.interval.ms", "0"),
        ("group.consumer.assignors", "uniform,,range"),
        ("group.consumer.migration.policy", "sideways"),
    ],
)
def test_a_value_that_a_setting_can_not_have_is_refused(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"for {name}, got "):
        CoordinatorConfig().with_settings({name: value})


def test_the_names_are_those_of_a_broker_and_reach_all_fields() -> None:
    assert set(_GROUP_FIELDS) <= set(GROUP_SETTINGS)
    assert {f"group.{name}" for name in _GROUP_FIELDS} == {
        GROUP_SETTINGS[name].synonym for name in _GROUP_FIELDS
    }
    reached = {*_BROKER_FIELDS.values(), *(kind for kind, _ in _GROUP_FIELDS.values())}
    own = {field.name for field in fields(CoordinatorConfig)}
    # Kafka has no setting for the time of a new member's JoinGroup, and none for what it is.
    assert own - reached == {
        "release",
        "new_member_join_timeout_ms",
        "consumer_groups",
        "share_groups",
        "streams_groups",
    }


def test_a_release_is_whole_or_the_newest_patch_of_a_line() -> None:
    assert CoordinatorConfig(release="4.4.0").release == "4.4.0"
    assert CoordinatorConfig(release="4.3").release == "4.3.1"
    assert replace(CoordinatorConfig(release="4.4"), group_max_size=8).release == "4.4.0"
    for unknown in ("4.2.0", "4.4.9", "4", ""):
        with pytest.raises(ValueError, match=r"expected a release of 4\.3\.0, 4\.3\.1, 4\.4\.0, got "):
            CoordinatorConfig(release=unknown)


def test_the_oracle_knows_each_release() -> None:
    assert oracle_releases == RELEASES


def test_a_write_without_a_time_limit_waits_for_its_outcome() -> None:
    answered: dict[Any, list[int]] = {}
    for limit_ms in (None, 5_000):
        bench = Bench(CoordinatorConfig(write_timeout_ms=limit_ms))
        ticket = bench.send(commit(5), 8)
        for now in (4_999, 5_000, 100_000):
            bench.advance(now)
            answered.setdefault(limit_ms, []).append(len(bench.answers))
        bench.confirm()
        errors = [part.error_code for part in bench.answers[ticket].topics[0].partitions]
        assert errors == [0 if limit_ms is None else 15]  # COORDINATOR_NOT_AVAILABLE
    assert answered == {None: [0, 0, 0], 5_000: [0, 1, 1]}
