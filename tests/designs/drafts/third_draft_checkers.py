"""What draft 3 claims: the coordinator gives ids and partitions, consumers ping, metadata name it; and, for
the ZooKeeper consumer, when a partition may have two owners."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from coordwire.designs.drafts.actions import Noted
from coordwire.designs.drafts.draft_3_broker import GroupMetadata
from coordwire.designs.drafts.draft_settings import DraftError
from coordwire.messages.draft_3 import (
    Draft3JoinGroupResponse,
    Draft3MetadataResponse,
    Draft3PingRequest,
    Draft3PingResponse,
)
from tests.designs.drafts.cluster import Sent, Written

_SESSION_MS = 6_000


def draft_3_ids_are_of_one_consumer(world: Any) -> Iterator[str]:
    """The coordinator gives an id upon joining, each to one consumer; no other one pings with it."""
    if world.draft != 3:
        return
    given: dict[str, str] = {}
    if not any(isinstance(entry.what, Sent) for entry in world.history):
        return
    for one in world.history:
        message = one.what.message if isinstance(one.what, Sent) else one.what
        if isinstance(one.what, Sent) and isinstance(message, Draft3JoinGroupResponse):
            if not message.error_code and (
                not message.consumer_id or given.setdefault(message.consumer_id, one.peer) != one.peer
            ):
                yield f"draft 3: {one.peer} gets the id {message.consumer_id!r} at {one.time}"
        elif isinstance(message, Draft3PingRequest) and given.get(message.consumer_id or "", "") != one.name:
            yield f"draft 3: {one.name} pings as {message.consumer_id!r} at {one.time}"


def draft_3_generations_divide_the_partitions(world: Any) -> Iterator[str]:
    """A coordinator's generations rise by one, and no two members of one own the same partition."""
    if world.draft != 3:
        return
    last: dict[str, int] = {}
    owned: dict[tuple[str, int], set[tuple[str, int]]] = {}
    for entry in world.history:
        if isinstance(entry.what, Noted) and entry.what.name == "Elected":
            last.pop(entry.name, None)
            owned = {key: owner for key, owner in owned.items() if key[0] != entry.name}
        message = entry.what.message if isinstance(entry.what, Sent) else None
        if not isinstance(message, Draft3JoinGroupResponse) or message.error_code:
            continue
        before = last.get(entry.name, message.generation - 1)
        if message.generation not in (before, before + 1):
            yield f"draft 3: generation {message.generation} after {before} at {entry.time}"
        last[entry.name] = message.generation
        parts = {(part.topic or "", part.partition) for part in message.partitions_to_own}
        known = owned.setdefault((entry.name, message.generation), set())
        if parts & known:
            yield f"draft 3: {parts & known} twice in generation {message.generation} at {entry.time}"
        known |= parts


def draft_3_pings_are_answered_by_the_elected(world: Any) -> Iterator[str]:
    """A ping is confirmed by a broker that was elected, for an id of its own that has not failed; or of those
    that were in the group's node when it was elected."""
    if world.draft != 3:
        return
    valid: dict[str, set[str]] = {}
    stored: set[str] = set()
    asked: dict[tuple[str, str], list[str]] = {}
    elected: set[int] = {-1}
    for entry in world.history:
        message = entry.what.message if isinstance(entry.what, Sent) else entry.what
        match message:
            case Written() if message.path.endswith("/metadata"):
                stored = set(GroupMetadata.parse(message.data).members)
            case Noted(name="Elected"):
                valid[entry.name] = set(stored)
                elected.add(int(message.text))
            case Noted(name="ConsumerFailed"):
                valid.setdefault(entry.name, set()).discard(message.text.partition("/")[2])
            case Draft3JoinGroupResponse(error_code=0) if isinstance(entry.what, Sent):
                valid.setdefault(entry.name, set()).add(message.consumer_id or "")
            case Draft3PingRequest() if not isinstance(entry.what, Sent):
                asked.setdefault((entry.peer, entry.name), []).append(message.consumer_id or "")
            case Draft3PingResponse() if isinstance(entry.what, Sent):
                consumer_id = asked[entry.name, entry.peer].pop(0)
                known = consumer_id in valid.get(entry.name, ())
                if not known and message.error_code in (DraftError.NONE, DraftError.REBALANCE_IN_PROGRESS):
                    yield f"draft 3: {entry.name} confirms a ping of {consumer_id!r} at {entry.time}"
            case Draft3MetadataResponse() if not set(message.coordinator_ids) <= elected:
                yield f"draft 3: {entry.name} names {message.coordinator_ids} at {entry.time}"


def draft_3_has_two_owners_after_a_failover_alone(world: Any) -> Iterator[str]:
    """As long as its coordinator lives, a consumer has stopped before its partitions are given away; where
    the next coordinator loads the groups, always."""
    if world.draft != 3 or not hasattr(world, "observer"):
        return
    elections = [
        entry.time
        for entry in world.history
        if isinstance(entry.what, Noted) and entry.what.name == "Elected"
    ]
    for spell in world.observer.spells:
        near = any(0 <= spell.began - time <= 2 * _SESSION_MS for time in elections[1:])
        near = near and world.run.design != "draft-3-loaded"
        if spell.owners and not near:
            yield f"draft 3: {spell.owners} own {spell.partition} from {spell.began} to {spell.ended}"


def d10_two_owners_need_a_session_that_ended(world: Any) -> Iterator[str]:
    """The ZooKeeper consumer: of two owners of a partition, one has lost its session unawares."""
    if world.draft or not hasattr(world, "observer"):
        return
    ended = [(time, noted.text) for time, _, noted in world.run.log if noted.name == "SessionExpired"]
    for spell in world.observer.spells:
        if spell.owners and not any(name in spell.owners and time <= spell.began for time, name in ended):
            yield f"D10: {spell.owners} own {spell.partition} from {spell.began} to {spell.ended}"


THIRD_DRAFT = (
    draft_3_ids_are_of_one_consumer, draft_3_generations_divide_the_partitions,
    draft_3_pings_are_answered_by_the_elected, draft_3_has_two_owners_after_a_failover_alone,
    d10_two_owners_need_a_session_that_ended,
)  # fmt: skip
