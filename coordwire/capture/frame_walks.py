"""The native walk over frames, as the reader of a capture starts it.

Strategy: where entries are lazy and the native half runs, it takes the chunks that are one frame each of a
conversation in order (`FrameWalk`), and changes the conversation just as Python would. Rules: the reader
calls it for each chunk, and reads the chunks itself that it declines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coordwire._speedups import native
from coordwire.capture import conversation
from coordwire.capture.conversation import Conversation
from coordwire.capture.entries import FrameEntry
from coordwire.capture.flows import Chunk
from coordwire.capture.frame_decoding import LazyEntry, StrictLazyEntry
from coordwire.capture.framing import FrameSplitter
from coordwire.capture.pending_requests import GUESS, REDUCED, AwaitedRequest, PendingRequests
from coordwire.connection.dialect import KAFKA
from coordwire.versions import API_VERSIONS, LASTING_CLIENT_KEYS, omits_client

if TYPE_CHECKING:
    from coordwire._speedups._native import FrameWalk

NEVER = 255


def frame_walk(route: type[tuple[Any, ...]], routes: dict[int, Any], summary: Any) -> FrameWalk | None:
    """The walk over a capture's frames, None where there is no native half.

    route: the class of the routes, whose members are a flow, its link, what cuts it, whether it is the
    client's, its name, the link's early answers and its conversation; routes: by the flows' ids.
    """
    if native is None:
        return None
    kinds = (
        route, FrameSplitter, Conversation, PendingRequests, AwaitedRequest, FrameEntry, type(summary), Chunk,
         LazyEntry, StrictLazyEntry,
    )  # fmt: skip
    declined = conversation.EAGER_ANSWERS | {API_VERSIONS}  # whose body may be of another version
    numbers = conversation.LATEST, REDUCED, GUESS
    eager_keys = conversation.TELLING | (conversation.NAMING - LASTING_CLIENT_KEYS)
    walk: FrameWalk = native.FrameWalk(
        kinds, Conversation._forget, KAFKA, routes, summary,
        _bits(eager_keys), _bits(declined), _first_omitting(), numbers,
    )  # fmt: skip
    return walk


def _first_omitting() -> bytes:
    """By api key, the first version whose requests may leave out their client; `NEVER` where none does."""
    firsts = bytearray([NEVER]) * (max(LASTING_CLIENT_KEYS, default=-1) + 1)
    for key in LASTING_CLIENT_KEYS:
        firsts[key] = next(version for version in range(NEVER) if omits_client(key, version))
    return bytes(firsts)


def _bits(keys: frozenset[int]) -> int:
    """Keys below 64, as the walk is given them."""
    return sum(1 << key for key in keys)
