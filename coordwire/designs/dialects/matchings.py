"""The class of `Matching` that a dialect's connections have: by the headers of its frames."""

from __future__ import annotations

from coordwire.designs.dialects.frames import Dialect
from coordwire.designs.dialects.headed_matching import HeadedMatching
from coordwire.designs.dialects.matching import Matching
from coordwire.designs.dialects.zookeeper_matching import ZooKeeperMatching

__all__ = ["MATCHINGS"]

MATCHINGS: dict[Dialect, type[Matching]] = {
    Dialect.KAFKA_07: Matching,
    Dialect.DRAFT_1: Matching,
    Dialect.DRAFT_2: Matching,
    Dialect.DRAFT_2_IN_08: HeadedMatching,
    Dialect.DRAFT_3: Matching,
    Dialect.ZOOKEEPER: ZooKeeperMatching,
}
