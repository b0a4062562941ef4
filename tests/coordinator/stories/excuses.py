"""What no frame shows, so that a timeline isn't asked for it: each is counted, and printed."""

from __future__ import annotations

NEVER_ANSWERED = "a member that was never answered"
"""Its client died before the answer, and no leader's answer lists it: whether it was let in isn't said."""

SHIFTED = "a session that a move or a failed write shifted"
"""Sessions begin anew when a coordinator loads the group. Frames show when it was away, not when it was back,
and a move between two frames not at all; how a member that is silent meanwhile goes is off by a session at
most."""

BACK = "a static member that was back before its removal showed"
"""It joins under its name, and the answer is the same whether it was out or not."""

EMPTIED = "a generation that was gone before its members reported"
"""The last answer gave them their shares; who took them up would say so in the next request."""

REPLACED = "a static member that was replaced before the others reported"
"""The coordinator counted the member, the timeline its heir: the frames of the end have both."""

HASTY = "a steady generation that is told as superseded by the next"
"""Mostly not all members had reported what they have by then; else the next followed within a heartbeat, as
with a pattern that is resolved."""

OUTLIVED = "a member that a timer from before a conversion took out"
"""The join phase that an upgrade ended has a timer, which Kafka leaves: after the downgrade it takes out who
has not joined, in a steady group, and no rebalance begins with that. So it does where the upgrade failed."""

FORGOTTEN = "a leaving that a move took back"
"""No record of a classic group says it before the next generation is written, so that the member is in again
once the group is loaded; its client has stopped, and sends nothing."""

REFUSED = "a leaving that was refused, since it could not be written"
"""The client is gone for itself, the member stays; nobody sends a request for it any more."""

UNWRITTEN = "a rebalance whose beginning could not be written"
"""It is begun by a member, taken back, and begun again by the next one, before anybody is answered."""

AWAY = "partitions that waited for a static member which had left for now"
"""The others have all that they were given; that a target has more for them, no answer says."""

UNREPORTED = "a share that a member was given, and never reported"
"""The coordinator counts it once it is given; that it was taken up would be in the member's next request."""

TAKEN_BACK = "a member that was let in before its group's first record, which could not be written"
"""It was answered as a member, and is one for a timeline; the coordinator forgot the group, and it."""

UNRELEASED = "partitions that waited for an owner which no frame names"
"""Another member had them by an answer that was refused or superseded; that a share lacks them shows when it
is completed."""

STANDBY = "standby tasks that waited for a process which had them in another role"
"""The member had all that it was given, and reported it; that a target has more standby tasks for it, no
answer says."""

OVERTAKEN = "a static member's return that another's rebalance overtook"
"""The heir's place is written first; what comes in those milliseconds begins the rebalance, and both are
answered with its generation."""

EXCUSES = (
    NEVER_ANSWERED, SHIFTED, BACK, EMPTIED, REPLACED, FORGOTTEN, REFUSED, UNWRITTEN, AWAY, UNREPORTED,
    TAKEN_BACK, OUTLIVED, UNRELEASED, STANDBY, OVERTAKEN, HASTY,
)  # fmt: skip
