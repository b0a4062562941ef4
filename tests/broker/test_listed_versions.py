"""This broker lists the APIs and features that a broker of the same release of Kafka lists."""

from __future__ import annotations

import pytest

from coordwire.broker import BrokerConfig
from coordwire.coordinator import CoordinatorConfig
from coordwire.coordinator.releases import RELEASES as COORDINATORS
from coordwire.enums import ErrorCode
from coordwire.messages import ApiVersionsRequest, UpdateFeaturesRequest
from coordwire.messages.update_features import FeatureUpdateKey
from coordwire.versions import ApiKey
from tests.broker.core import Core
from tests.broker.listed_versions import RELEASES, Listed, asked, kept_lists, listed
from tests.interop.conftest import give_up
from tests.interop.maven import Unavailable

METRICS = {int(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS), int(ApiKey.PUSH_TELEMETRY)}
"""Kafka lists them with a receiver of clients' metrics only."""

REQUEST = ApiVersionsRequest(client_software_name="test", client_software_version="1")


def ours(config: BrokerConfig) -> Listed:
    return listed(Core(**{name: getattr(config, name) for name in ("as_of", "coordinator")}).ask(REQUEST, 4))


@pytest.mark.parametrize("release", COORDINATORS)
def test_a_release_has_its_versions_and_features(release: str) -> None:
    here = ours(BrokerConfig(coordinator=CoordinatorConfig(release=release)))
    apis = {key: versions for key, versions in here.apis.items() if key not in METRICS}
    assert here._replace(apis=apis) == kept_lists(release)


@pytest.mark.parametrize("release", RELEASES)
def test_an_older_release_has_its_newest_versions_and_its_features(release: str) -> None:
    """Of versions that 4.0 had dropped, and 4.1 has again, the oldest are offered."""
    here, kept = ours(BrokerConfig(as_of=release.rpartition(".")[0])), kept_lists(release)
    assert {key: last for key, (_, last) in here.apis.items() if key not in METRICS} == {
        key: last for key, (_, last) in kept.apis.items()
    }
    assert (here.supported, here.finalized) == (kept.supported, kept.finalized)


def test_the_newest_release_is_the_default() -> None:
    assert ours(BrokerConfig()) == ours(BrokerConfig(coordinator=CoordinatorConfig(release=COORDINATORS[-1])))
    assert ours(BrokerConfig()).finalized == kept_lists(RELEASES[-1]).finalized


def test_a_client_may_name_the_node_that_it_means() -> None:
    core = Core()
    for cluster, node, error in (
        (core.cluster.cluster_id, 1, ErrorCode.NONE),
        (core.cluster.cluster_id, 2, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("another", 1, ErrorCode.REBOOTSTRAP_REQUIRED),
    ):
        REQUEST.cluster_id, REQUEST.node_id = cluster, node
        answer = core.ask(REQUEST, 5)
        assert (answer.error_code, bool(answer.api_keys)) == (error, not error)


def test_the_voters_stay_static() -> None:
    core = Core()
    update = FeatureUpdateKey(feature="kraft.version", max_version_level=1)
    answer = core.ask(UpdateFeaturesRequest(feature_updates=[update]), 2)
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert answer.error_message is not None
    assert "The voters of this quorum are static." in answer.error_message


@pytest.mark.maven
@pytest.mark.parametrize("release", COORDINATORS)
def test_a_real_broker_still_lists_so(release: str) -> None:
    try:
        assert asked(release) == kept_lists(release)
    except Unavailable as error:
        give_up(error)
