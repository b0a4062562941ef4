"""Api keys, version ranges, and which version to speak.

Strategy: facts about APIs come from the generated index, which imports no message. Rules: an api key is an
int everywhere; `ApiKey` names the known ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from coordwire._dataclasses import dataclass
from coordwire.messages.keys import FACTS, ApiKey

if TYPE_CHECKING:
    from coordwire.messages import ApiVersionsResponse

__all__ = [
    "ApiKey", "VersionRange", "api_name", "header_version", "known_versions", "negotiate", "omits_client",
]  # fmt: skip

API_VERSIONS = ApiKey.API_VERSIONS.value
UNSUPPORTED_VERSION = 35
"""The error code with which a broker answers an ApiVersions request that is too new for it (KIP-511)."""


LASTING_CLIENT = 3
"""From this request header on, only a connection's first request names the client (KIP-1313)."""

INSTANCE_ID = 0
"""The tag of the client instance id in such a header; only a connection's first request has it."""

LASTING_CLIENT_KEYS = frozenset(
    key for key, facts in FACTS.items() if max(facts.request_headers.values()) >= LASTING_CLIENT
)
"""The APIs with a version whose requests have such a header: none before Kafka has released one."""


@dataclass(frozen=True, slots=True)
class VersionRange:
    """Versions `first` to `last`, both included; empty if `last` is below `first`.

    >>> from coordwire import VersionRange
    >>> common = VersionRange(0, 9) & VersionRange(5, 12)
    >>> print(common, 9 in common, list(common))
    5-9 True [5, 6, 7, 8, 9]
    """

    first: int
    last: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.first, self.last + 1))

    def __bool__(self) -> bool:
        return self.first <= self.last

    def __and__(self, versions: VersionRange) -> VersionRange:
        """The versions that both have."""
        return VersionRange(max(self.first, versions.first), min(self.last, versions.last))

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


def api_name(key: int) -> str | None:
    """Kafka's name of an api key ("JoinGroup"), None for an unknown one."""
    facts = FACTS.get(key)
    return facts.name if facts else None


def known_versions(key: int) -> VersionRange:
    """The versions of an API that this package encodes and decodes. Raises `KeyError` for an unknown key."""
    facts = FACTS[key]
    return VersionRange(facts.first, facts.last)


def header_version(key: int, version: int, direction: str) -> int:
    """The version of the header before a message ("request" or "response"), as its schema declares it.

    A version beyond the known ones has the header of the newest; an unknown API's requests have header 1, its
    responses header 0.
    """
    facts = FACTS.get(key)
    if facts is None:
        return 1 if direction == "request" else 0
    headers = facts.request_headers if direction == "request" else facts.response_headers
    return next(header for first, header in reversed(headers.items()) if version >= first or not first)


def omits_client(key: int | None, version: int | None) -> bool:
    """Whether a request without a client id is of the client that its connection's first request names."""
    if key not in LASTING_CLIENT_KEYS or key is None or version is None:
        return False
    return header_version(key, version, "request") >= LASTING_CLIENT


def negotiate(
    response: ApiVersionsResponse, wanted: Mapping[int, VersionRange] | Iterable[int] | None = None
) -> dict[int, int]:
    """The newest version of each API that both sides speak, by api key.

    response: the broker's ApiVersions answer (one with error 35 serves too: it may list key 18 only).
    wanted: the APIs to look at, perhaps with the versions that the caller is willing to use; default: all
    that this package knows. APIs without a common version are left out.
    """
    if wanted is None:
        wanted = FACTS
    ranges = wanted if isinstance(wanted, Mapping) else dict.fromkeys(wanted)
    versions: dict[int, int] = {}
    for offered in response.api_keys:
        key = offered.api_key
        if key not in ranges or key not in FACTS:
            continue
        own = ranges[key]
        common = VersionRange(offered.min_version, offered.max_version) & known_versions(key)
        if isinstance(own, VersionRange):
            common &= own
        if common:
            versions[key] = common.last
    return versions
