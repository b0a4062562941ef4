"""UpdateFeatures, and what ApiVersions announces after it; documentation of settings."""

from __future__ import annotations

from typing import Any

import pytest

from coordwire.broker.handlers.settings_api import broker_settings
from coordwire.broker.settings.settings import (
    BROKER_DOCUMENTATION,
    GROUP_DOCUMENTATION,
    GROUP_SETTINGS,
    METRICS_DOCUMENTATION,
    METRICS_SETTINGS,
    TOPIC_DOCUMENTATION,
    TOPIC_SETTINGS,
)
from coordwire.enums import ConfigResourceType, ErrorCode
from coordwire.messages import ApiVersionsRequest, DescribeConfigsRequest, UpdateFeaturesRequest
from coordwire.messages.describe_configs import DescribeConfigsResource
from coordwire.messages.update_features import FeatureUpdateKey
from tests.broker.core import Core

UPGRADE, SAFE, UNSAFE = 1, 2, 3
NEWEST = {
    "group.version": 1,
    "metadata.version": 33,
    "share.version": 2,
    "streams.version": 1,
    "transaction.version": 2,
}


def updated(core: Core, *updates: tuple[str, int, int], **more: Any) -> tuple[int, str | None]:
    changes = [
        FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
        for name, level, kind in updates
    ]
    answer = core.ask(UpdateFeaturesRequest(feature_updates=changes, **more), 2)
    return answer.error_code, answer.error_message


def announced(core: Core) -> tuple[int, dict[str, int]]:
    """The epoch and the levels."""
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    answer = core.ask(request, 4)
    assert all(
        finalized_feature.min_version_level == finalized_feature.max_version_level
        for finalized_feature in answer.finalized_features
    )
    levels = {
        finalized_feature.name: finalized_feature.max_version_level
        for finalized_feature in answer.finalized_features
    }
    return answer.finalized_features_epoch, levels


def test_a_new_level_is_announced_with_a_newer_epoch() -> None:
    core = Core()
    epoch, levels = announced(core)
    assert levels == NEWEST
    assert updated(core, ("transaction.version", 1, SAFE), ("group.version", 1, UPGRADE)) == (0, None)
    assert announced(core) == (epoch + 1, NEWEST | {"transaction.version": 1})
    assert updated(core, ("transaction.version", 2, UPGRADE)) == (0, None)
    assert announced(core) == (epoch + 2, NEWEST)


def test_a_feature_of_level_0_is_not_announced_as_finalized() -> None:
    core = Core()
    assert updated(core, ("transaction.version", 0, SAFE)) == (0, None)
    _, levels = announced(core)
    assert levels == {
        "group.version": 1,
        "metadata.version": 33,
        "share.version": 2,
        "streams.version": 1,
    }


@pytest.mark.parametrize(
    ("updates", "more"),
    [
        ([("transaction.version", 1, UNSAFE)], {"validate_only": True}),
        ([("transaction.version", 1, SAFE), ("group.version", 7, UPGRADE)], {}),
        ([("transaction.version", 2, UPGRADE)], {}),
        ([], {}),
    ],
)
def test_what_changes_nothing_leaves_the_epoch(
    updates: list[tuple[str, int, int]], more: dict[str, Any]
) -> None:
    core = Core()
    before = announced(core)
    updated(core, *updates, **more)
    assert announced(core) == before


@pytest.mark.parametrize(
    ("level", "kind", "reason"),
    [
        (34, UPGRADE, "Invalid update version 34 for feature metadata.version."
                      " Local controller 1 only supports versions 7-33"),
        (32, SAFE, "Unsupported metadata.version downgrade from 33 to 32. Refusing to perform the requested"
                   " downgrade because it might delete metadata information."),
        (32, UNSAFE, "Unsupported metadata.version downgrade from 33 to 32. Unsafe metadata downgrade is not"
                     " supported in this version."),
    ],
)  # fmt: skip
def test_metadata_version_has_one_level(level: int, kind: int, reason: str) -> None:
    core = Core()
    before = announced(core)
    code, message = updated(core, ("metadata.version", level, kind))
    assert code == ErrorCode.INVALID_UPDATE_VERSION
    expected = "The update failed for all features since the following feature had an error: "
    assert message == expected + reason
    assert announced(core) == before


# --- documentation ---


def documented(core: Core, kind: ConfigResourceType, name: str, version: int, asked: bool) -> dict[str, Any]:
    resource = DescribeConfigsResource(resource_type=int(kind), resource_name=name, configuration_keys=None)
    request = DescribeConfigsRequest(resources=[resource], include_documentation=asked)
    (result,) = core.ask(request, version).results
    assert result.error_code == 0
    return {config.name: config.documentation for config in result.configs}


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (ConfigResourceType.TOPIC, "orders"),
        (ConfigResourceType.GROUP, "g"),
        (ConfigResourceType.BROKER, "1"),
        (ConfigResourceType.CLIENT_METRICS, "m"),
    ],
)
def test_settings_are_documented_where_it_is_asked_for(
    kind: ConfigResourceType, name: str, version: int
) -> None:
    core = Core(topics={"orders": 1})
    texts = documented(core, kind, name, version, True)
    assert texts
    assert all(texts.values())
    assert set(documented(core, kind, name, version, False).values()) == {None}


def test_each_setting_has_a_documentation() -> None:
    assert TOPIC_DOCUMENTATION.keys() == TOPIC_SETTINGS.keys()
    assert GROUP_DOCUMENTATION.keys() == GROUP_SETTINGS.keys()
    assert METRICS_DOCUMENTATION.keys() == METRICS_SETTINGS.keys()
    assert BROKER_DOCUMENTATION.keys() == broker_settings(Core().cluster, 1).keys()
