"""The features of a cluster and their levels (KIP-584), as ApiVersions and the metadata log have them."""

from __future__ import annotations

from collections.abc import ItemsView, Mapping
from typing import NamedTuple

__all__ = ["FEATURES", "METADATA_VERSION", "Feature", "FeatureLevels"]


METADATA_VERSION = "metadata.version"


class Feature(NamedTuple):
    """The levels that are supported: the first, and the newest, by which a new cluster runs."""

    first: int
    level: int


FEATURES = {
    "group.version": Feature(0, 1),
    METADATA_VERSION: Feature(7, 30),
    "share.version": Feature(0, 1),
    "streams.version": Feature(0, 1),
    "transaction.version": Feature(0, 2),
}
"""As of Kafka 4.3: KIP-848, 4.3-IV0, KIP-932, KIP-1071, and KIP-890 with an epoch a transaction."""


class FeatureLevels:
    """The finalized levels of a cluster. epoch: raised with each change."""

    def __init__(self) -> None:
        self.epoch = 1
        self._levels = {name: feature.level for name, feature in FEATURES.items()}

    def __getitem__(self, name: str) -> int:
        return self._levels[name]

    def items(self) -> ItemsView[str, int]:
        return self._levels.items()

    def update(self, levels: Mapping[str, int]) -> None:
        """Finalize levels of known features."""
        if any(self._levels[name] != level for name, level in levels.items()):
            self._levels.update(levels)
            self.epoch += 1
