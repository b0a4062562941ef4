"""Api keys, version ranges, and the choice between them."""

from __future__ import annotations

from coordwire import ApiKey, VersionRange, negotiate
from coordwire.messages import ApiVersionsResponse, HeartbeatRequest, find_message
from coordwire.messages.api_versions import ApiVersion
from coordwire.messages.keys import FACTS
from coordwire.versions import api_name, header_version, known_versions


def offer(*ranges: tuple[int, int, int]) -> ApiVersionsResponse:
    keys = [ApiVersion(api_key=key, min_version=low, max_version=high) for key, low, high in ranges]
    return ApiVersionsResponse(api_keys=keys)


def test_the_newest_common_version_wins() -> None:
    newest = HeartbeatRequest.versions[-1]
    assert negotiate(offer((12, 0, 99), (11, 2, 5), (3, 50, 60), (5000, 0, 1))) == {12: newest, 11: 5}


def test_the_caller_may_want_less() -> None:
    expected = {ApiKey.HEARTBEAT: VersionRange(0, 2), ApiKey.METADATA: VersionRange(0, 12)}
    assert negotiate(offer((12, 0, 99), (11, 2, 5), (3, 3, 13)), expected) == {12: 2, 3: 12}
    assert negotiate(offer((12, 0, 99), (11, 2, 5)), [ApiKey.JOIN_GROUP]) == {11: 5}


def test_a_version_range() -> None:
    both = VersionRange(0, 5) & VersionRange(3, 9)
    assert both == VersionRange(3, 5)
    assert list(both) == [3, 4, 5]
    assert 3 in both
    assert 6 not in both
    assert "x" not in both
    assert not VersionRange(0, 1) & VersionRange(3, 4)
    assert str(both) == "3-5"
    assert str(VersionRange(7, 7)) == "7"


def test_the_headers_that_differ_from_the_rule() -> None:
    assert [header_version(7, version, "request") for version in range(4)] == [0, 1, 1, 2]
    assert {header_version(18, version, "response") for version in range(6)} == {0}
    assert (header_version(5000, 0, "request"), header_version(5000, 0, "response")) == (1, 0)
    assert header_version(12, -1, "request") == 1


def test_the_facts_are_those_of_the_messages() -> None:
    for key, facts in FACTS.items():
        for direction in ("request", "response"):
            cls = find_message(key, direction)
            assert cls.api_key == key
            assert cls.direction == direction
            assert list(known_versions(key)) == list(cls.versions)
            for version in cls.versions:
                flexible = version in cls.flexible_versions
                assert flexible == (facts.flexible is not None and version >= facts.flexible)
                expected = {"request": 2 if flexible else 1, "response": int(flexible and key != 18)}
                if (key, version) != (7, 0):
                    assert header_version(key, version, direction) == expected[direction]
            assert header_version(key, cls.versions[-1] + 1, direction) == header_version(
                key, cls.versions[-1], direction
            )
        assert ApiKey(key).name.replace("_", "").lower() == facts.name.lower()
    assert api_name(11) == "JoinGroup"
    assert api_name(5000) is None
    assert len(FACTS) == 95
