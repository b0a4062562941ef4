"""A tap: the way between clients and a cluster, on which every frame is seen and can be changed.

    tap.py                  Tap: a listener for each broker; TapThread
    link.py                 one client's connection with its connection to the broker
    link_side.py            one of the two sockets of a link: bytes to frames, memory, turns
    frame_reading.py        which frames have to be read, and their messages; what is kept of requests
                            until their answers come
    addresses.py            which local port is for which broker; addresses in responses
    tapped_call.py          a request that rules take, and its answer
    topic_ids.py            names of topics by id, partitions of fetch sessions
    script.py               functions of the user, called for each frame; the frames as they leave them
    harness.py              KafkaTap: a tap as the fixture `kafka_tap` gives it
    counts.py               frames in, out, changed and why

Rules: a frame that need not change passes byte for byte; both sides are untrusted; what is held is bounded,
and counted over all connections.
"""

from typing import TYPE_CHECKING

from coordwire._lazy import exports

if TYPE_CHECKING:
    from coordwire.tap.addresses import TooManyBrokers
    from coordwire.tap.counts import TapCounts
    from coordwire.tap.harness import KafkaTap
    from coordwire.tap.script import FaultyScript, Script, TappedExchange
    from coordwire.tap.tap import Tap, TapThread

_LAZY = {
    "FaultyScript": "script",
    "KafkaTap": "harness",
    "Script": "script",
    "Tap": "tap",
    "TapCounts": "counts",
    "TapThread": "tap",
    "TappedExchange": "script",
    "TooManyBrokers": "addresses",
}

__all__ = [
    "FaultyScript",
    "KafkaTap",
    "Script",
    "Tap",
    "TapCounts",
    "TapThread",
    "TappedExchange",
    "TooManyBrokers",
]

__getattr__, __dir__ = exports(__name__, __all__, _LAZY)
