"""The states of a client's connection, and which follows which.

             data                handler              answer later
    IDLE ------------> RUNNING <-------> HANDLING ------> WAITING ---------> QUEUED, IDLE or DRAINING
      ^                 | ^ |                               (no answer yet)
      |   nothing left  | | | its turn ends, more to do
      +-----------------+ | +---------------------> QUEUED ---- its next turn ----> RUNNING
      |                   | answers were not taken
      |                   +---------------------> DRAINING --- all were taken ---> QUEUED or IDLE
      | memory is there   | a large frame has begun
      +---- STARVED <-----+
                                                   CLOSED: from each state; nothing leaves it

Data that comes when the broker has much to do leads from IDLE to QUEUED, or DRAINING.

Rules: data is read in IDLE; in any other state it is kept, and reading pauses. Whether the transport reads,
and whether its buffer is empty, are the transport's states and not these.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class LinkState(Enum):
    """The states of a connection: what it waits for.

    IDLE: more bytes. QUEUED: its turn. RUNNING: nothing, its requests are handled. HANDLING: a handler, which
    runs. WAITING: an answer, which comes later. DRAINING: the client, which has not taken its answers.
    STARVED: memory for a large frame. CLOSED: its end.
    """

    IDLE = "idle"
    QUEUED = "queued"
    RUNNING = "running"
    HANDLING = "handling"
    WAITING = "waiting"
    DRAINING = "draining"
    STARVED = "starved"
    CLOSED = "closed"


_S = LinkState

TRANSITIONS: Mapping[LinkState, frozenset[LinkState]] = {
    _S.IDLE: frozenset({_S.RUNNING, _S.QUEUED, _S.DRAINING, _S.CLOSED}),
    _S.QUEUED: frozenset({_S.RUNNING, _S.CLOSED}),
    _S.RUNNING: frozenset({_S.IDLE, _S.QUEUED, _S.HANDLING, _S.DRAINING, _S.STARVED, _S.CLOSED}),
    _S.HANDLING: frozenset({_S.RUNNING, _S.WAITING, _S.CLOSED}),
    _S.WAITING: frozenset({_S.IDLE, _S.QUEUED, _S.DRAINING, _S.CLOSED}),
    _S.DRAINING: frozenset({_S.IDLE, _S.QUEUED, _S.CLOSED}),
    _S.STARVED: frozenset({_S.IDLE, _S.CLOSED}),
    _S.CLOSED: frozenset(),
}
"""The states that may follow each."""
