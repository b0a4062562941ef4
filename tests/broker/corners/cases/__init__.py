"""All cases, by name."""

from tests.broker.corners.cases import (  # noqa: F401
    classic_groups,
    connections,
    consumer_groups,
    features,
    first_contact,
    metadata,
    offsets,
    operators,
    produce_and_fetch,
    security,
    settings,
    share_groups,
    streams_groups,
    topics,
    transactions,
)
from tests.broker.corners.script import CASES

__all__ = ["CASES"]
