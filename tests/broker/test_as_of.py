"""A broker that offers the versions of an older Kafka."""

from __future__ import annotations

import pytest

from coordwire.broker import Broker, BrokerConfig
from coordwire.broker.handlers import APIS, offered
from coordwire.broker.settings.released_versions import RELEASES, newest_versions
from coordwire.enums import ErrorCode
from coordwire.messages import ApiVersionsRequest, MetadataRequest
from coordwire.messages.keys import FACTS
from coordwire.versions import ApiKey
from tests.broker.peer import Peer, run

KAFKA_3_9 = {
    0: 11, 1: 17, 2: 9, 3: 12, 8: 9, 9: 9, 10: 6, 11: 9, 12: 4, 13: 5, 14: 5, 15: 5, 16: 5, 17: 1, 18: 4,
    19: 7, 20: 6, 21: 2, 22: 5, 23: 4, 24: 5, 25: 4, 26: 4, 27: 1, 28: 4, 29: 3, 30: 3, 31: 3,
    32: 4, 33: 2, 34: 2, 35: 4, 36: 2,
    37: 3, 38: 3, 39: 2, 40: 2, 41: 3, 42: 2, 43: 2, 44: 1, 45: 0, 46: 0, 47: 0, 48: 1, 49: 1, 50: 0, 51: 0,
    55: 2, 57: 1, 60: 1, 61: 0, 64: 0, 65: 0,
    66: 1, 71: 0, 72: 0, 74: 0, 75: 0, 80: 0, 81: 0,
}  # fmt: skip
"""What kafka-clients 3.9.2 has as the newest stable version of each API that a broker answers."""

KAFKA_4_3 = {
    0: 13, 1: 18, 2: 11, 3: 13, 8: 10, 9: 10, 10: 6, 11: 9, 12: 4, 13: 5, 14: 5, 15: 6, 16: 5, 17: 1, 18: 4,
    19: 7, 20: 6, 21: 2, 22: 5, 23: 4, 24: 5, 25: 4, 26: 5, 27: 2, 28: 5, 29: 3, 30: 3, 31: 3,
    32: 4, 33: 2, 34: 2, 35: 5, 36: 2,
    37: 3, 38: 3, 39: 2, 40: 2, 41: 3, 42: 2, 43: 2, 44: 1, 45: 1, 46: 0, 47: 0, 48: 1, 49: 1, 50: 0, 51: 0,
    55: 2, 57: 2, 60: 2, 61: 0, 64: 0, 65: 0,
    66: 2, 68: 1, 69: 1, 71: 0, 72: 0, 74: 1, 75: 0, 76: 1, 77: 1, 78: 2, 79: 2, 80: 1, 81: 0, 83: 0, 84: 0,
    85: 1, 86: 0, 87: 1, 88: 0, 89: 0, 90: 1, 91: 0, 92: 0,
}  # fmt: skip
"""The same of kafka-clients 4.3.0."""


def test_the_versions_are_those_of_the_release() -> None:
    assert newest_versions("3.9") == KAFKA_3_9
    assert newest_versions("4.3") == KAFKA_4_3
    kafka_4_4 = {key: facts.last - (facts.unstable is not None) for key, facts in FACTS.items()}
    assert newest_versions("4.4") == {key: kafka_4_4[key] for key in APIS}
    assert {int(key): api.last for key, api in APIS.items()} == newest_versions("4.4")


@pytest.mark.parametrize("release", RELEASES)
def test_each_release_offers_what_it_has_and_this_broker_answers(release: str) -> None:
    newest = newest_versions(release)
    apis = offered(release)
    assert apis.keys() <= newest.keys()
    for key, api in apis.items():
        assert api.first <= api.last == min(APIS[key].last, newest[key])
    assert apis.keys() >= {int(key) for key in (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.JOIN_GROUP)}
    assert (ApiKey.CONSUMER_GROUP_HEARTBEAT in apis) == (release >= "4.0")


def test_a_release_that_is_not_known_is_refused() -> None:
    with pytest.raises(ValueError, match=r"expected a release of 2\.0 to 4\.4, got '5\.0'"):
        BrokerConfig(as_of="5.0")


def test_newer_versions_are_not_answered() -> None:
    async def main() -> None:
        config = BrokerConfig(as_of="2.8")
        async with Broker(topics={"orders": 1}, config=config) as broker, Peer(broker) as peer:
            client = ("coordwire", "1")
            request = ApiVersionsRequest(client_software_name=client[0], client_software_version=client[1])
            answer = await peer.ask(request, 3)
            newest = {api_key.api_key: api_key.max_version for api_key in answer.api_keys}
            assert (newest[ApiKey.METADATA], newest[ApiKey.FETCH]) == (11, 12)
            assert answer.supported_features == []
            assert answer.finalized_features == []
            refused = await peer.ask(request, 3)
            assert refused.error_code == 0
            assert (await peer.ask(MetadataRequest(topics=None), 11)).topics
            peer.send(MetadataRequest(topics=None), 12)
            assert await peer.is_closed()

    run(main())


@pytest.mark.parametrize(("release", "own"), [("2.3", []), ("2.8", [(18, 0, 3)])])
def test_a_newer_version_of_api_versions_gets_the_release_s_own(
    release: str, own: list[tuple[int, int, int]]
) -> None:
    """Since Kafka 2.4 (KIP-511); before, nothing."""

    async def main() -> None:
        async with Broker(config=BrokerConfig(as_of=release)) as broker, Peer(broker) as peer:
            request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
            peer.send(request, 4)
            event = None
            while event is None:
                peer.connection.receive_data(await peer.reader.read(1 << 16))
                event = peer.connection.next_event()
            response = getattr(event, "response", None)
            assert response is not None
            assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
            assert [
                (api_key.api_key, api_key.min_version, api_key.max_version) for api_key in response.api_keys
            ] == own

    run(main())
