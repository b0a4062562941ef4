"""The features of a cluster (KIP-584) and their levels, as each release of Apache Kafka has them.

Strategy: for each feature the releases that raised the newest level that it supports, and those that raised
the level of a cluster that it formats. Rules: from 4.0 on; clients look for no features before. The quorum
has static voters, which is kraft.version 0, and the cluster is without eligible leader replicas.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from coordwire.broker.settings.released_versions import risen_to

METADATA_VERSION = "metadata.version"
QUORUM_VERSION = "kraft.version"

_OLDEST = {METADATA_VERSION: 7}
"""The oldest levels that are supported, where they are not 0: of metadata.version 3.3-IV3."""


class Feature(NamedTuple):
    """The levels that are supported, the first and the newest, and the one by which a new cluster runs."""

    first: int
    newest: int
    level: int


_METADATA_LEVELS = "4.0:25 4.1:27 4.2:29 4.3:30 4.4:33"
_SUPPORTED = {
    "eligible.leader.replicas.version": "4.0:1",
    "group.version": "4.0:1",
    QUORUM_VERSION: "4.0:1",
    METADATA_VERSION: _METADATA_LEVELS,
    "share.version": "4.1:1 4.4:2",
    "streams.version": "4.2:1",
    "transaction.version": "4.0:2",
}
"""KIP-966, KIP-848, KIP-853, metadata.version, KIP-932 and KIP-1191, KIP-1071, KIP-890."""

_FORMATTED = {
    "group.version": "4.0:1",
    METADATA_VERSION: _METADATA_LEVELS,
    "share.version": "4.2:1 4.4:2",
    "streams.version": "4.2:1",
    "transaction.version": "4.0:2",
}


@cache
def features_of(release: str) -> Mapping[str, Feature]:
    """The features of a release, as "4.4", by name. Raises `ValueError` for one that is not known."""
    return {
        name: Feature(_OLDEST.get(name, 0), newest, risen_to(_FORMATTED.get(name, ""), release) or 0)
        for name, steps in _SUPPORTED.items()
        if (newest := risen_to(steps, release)) is not None
    }
