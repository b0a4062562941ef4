"""The features of a cluster and their levels (KIP-584), as ApiVersions and the metadata log have them."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["FEATURES", "Feature"]


class Feature(NamedTuple):
    """The levels that are supported, and the one by which the cluster runs: the newest."""

    first: int
    level: int


FEATURES = {
    "group.version": Feature(0, 1),
    "metadata.version": Feature(7, 30),
    "transaction.version": Feature(0, 2),
}
"""As of Kafka 4.3: KIP-848, 4.3-IV0, and KIP-890 with an epoch a transaction."""
