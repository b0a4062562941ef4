"""Which version of an API a request goes in.

Rules: the newest that the broker and coordwire have and that can carry what the request sets. A topic's name
without its id takes a version that has names, though newer versions may ignore them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from coordwire.client.errors import VersionUnavailable
from coordwire.codec import Message
from coordwire.codec.entities import entity_places
from coordwire.errors import NotInVersion
from coordwire.versions import VersionRange, api_name, known_versions

__all__ = ["Fit", "fit_version"]

_NONE = VersionRange(0, -1)
_NO_ID = UUID(int=0)


class Fit(NamedTuple):
    """A version that can carry a request, and the bytes that its message has there."""

    version: int
    size_bytes: int


def fit_version(message: Message, offered: Mapping[int, VersionRange], version: int | None) -> Fit:
    """The version in which a request goes to a broker. offered: the broker's, by api key. version: None for
    the newest that fits.

    Raises `VersionUnavailable`, or `EncodeError` for a value that no version takes.
    """
    key = message.api_key
    assert key is not None
    name, known, had = api_name(key), known_versions(key), offered.get(key, _NONE)
    if not had:
        raise VersionUnavailable(f"the broker does not have {name}")
    common = had & known
    if version is not None:
        common &= VersionRange(version, version)
    if not common:
        expected = "" if version is None else f"; expected one of these, got {version}"
        raise VersionUnavailable(f"the broker has {name} {had}, coordwire has {known}{expected}")
    refusal: NotInVersion | None = None
    last = common.last if version is not None else _last_with_names(message, common.last)
    for candidate in reversed(range(common.first, last + 1)):
        try:
            return Fit(candidate, len(message.encode(version=candidate)))
        except NotInVersion as error:
            refusal = refusal or error
    reason = refusal or "its topics have names and no ids"
    raise VersionUnavailable(f"no version of {name} in {common} can carry the request: {reason}")


def _last_with_names(message: Message, last: int) -> int:
    """The newest version, up to `last`, that has the names of all topics that have no id."""
    for place in entity_places(message, "topic_name"):
        if place.value and place.field.last < last and getattr(place.owner, "topic_id", _NO_ID) == _NO_ID:
            last = place.field.last
    return last
