"""A capture's requests, sent again to a cluster, and the answers compared with those of the capture.

    replay.py        the order, the connections, the answers
    identifiers.py   ids and epochs that the cluster gives again: member ids, producer ids, generations
    differences.py   what of two answers differs, and where

Rules: whatever the capture or the cluster says ends in a difference or a `CoordwireError`; waits have a time
limit; what is kept is bounded.
"""

from typing import TYPE_CHECKING

from coordwire._lazy import exports

if TYPE_CHECKING:
    from coordwire.replay.differences import Difference
    from coordwire.replay.replay import Replay, ReplayedRequest, ReplayTotals

_LAZY = {
    "Difference": "differences",
    "Replay": "replay",
    "ReplayTotals": "replay",
    "ReplayedRequest": "replay",
}

__all__ = ["Difference", "Replay", "ReplayTotals", "ReplayedRequest"]

__getattr__, __dir__ = exports(__name__, __all__, _LAZY)
