"""Bugs planted into the small client, one for each case that must find it.

Rules: a plant is a client that somebody could write: one that gives up where it should ask again, asks on
where it should give up, or has a bug of `Habits.bugs`.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordwire.conformance.client import (
    classic_groups,
    consumer_groups,
    framing,
    offsets,
    records,
    transactions,
)
from coordwire.conformance.client.transactions import pairs_of
from tests.conformance.small_links import AGAIN, FAIL, FINE, Habits


def gives_up(api: str, error: str) -> Habits:
    return Habits(errors={(api, error): FAIL})


def asks_on(api: str, error: str) -> Habits:
    return Habits(errors={(api, error): AGAIN})


def bug(*names: str) -> Habits:
    return Habits(frozenset(names))


def numbered(folder: str, plants: Iterable[Habits]) -> dict[str, Habits]:
    return {f"{folder}/{number}": plant for number, plant in enumerate(plants, 1)}


BEAT = "ConsumerGroupHeartbeat"
MOVED = [(api, "NOT_COORDINATOR") for api in ("Heartbeat", BEAT, "OffsetCommit")]
IDS = {
    ("SyncGroup", "REBALANCE_IN_PROGRESS"): "forgets its id",
    ("Heartbeat", "REBALANCE_IN_PROGRESS"): "forgets its id",
    ("Heartbeat", "UNKNOWN_MEMBER_ID"): "keeps its id",
    (BEAT, "FENCED_MEMBER_EPOCH"): "keeps its epoch",
    (BEAT, "UNKNOWN_MEMBER_ID"): "keeps its partitions",
}
"""Errors after which the small client can join again wrongly."""


def rejoins(api: str, error: str) -> Habits:
    name = IDS.get((api, error))
    return bug(name) if name else gives_up(api, error)


PLANTS: dict[str, Habits] = {
    **numbered("groups/classic/recovery", (rejoins(row[0], row[1]) for row in classic_groups.RECOVERIES)),
    **numbered("groups/classic/fatal", (asks_on(row[0], row[1]) for row in classic_groups.REFUSALS)),
    **numbered("groups/consumer/recovery", (rejoins(row[0], row[1]) for row in consumer_groups.RECOVERIES)),
    **numbered("groups/consumer/fatal", (asks_on(row[0], row[1]) for row in consumer_groups.REFUSALS)),
    **numbered("offsets/fetch", [
        *(gives_up("OffsetFetch", error) for error in offsets.RETRIED_FETCHES),
        *(asks_on("OffsetFetch", error) for error in offsets.FATAL_FETCHES),
    ]),
    **numbered("offsets/commit", [
        *(gives_up("OffsetCommit", error) for error in offsets.RETRIED_COMMITS),
        *(asks_on("OffsetCommit", error) for error in offsets.FATAL_COMMITS),
        *(asks_on("OffsetCommit", error) for error in offsets.LOST_GENERATIONS),
    ]),
    **numbered("produce/retriable", (gives_up("Produce", error) for error in records.RETRIED)),
    **numbered("produce/fatal", (asks_on("Produce", error) for error in records.REPORTED)),
    **numbered("fetch/recovery", (gives_up(row[0], row[1]) for row in records.FETCHES)),
    **numbered("fetch/session", [bug("sessions for ever")] * 2),
    **numbered("throttle/wait", [bug("no throttling")] * 6),
    **numbered("transactions/recovery", (gives_up(*row) for row in pairs_of(transactions.RECOVERIES))),
    **numbered("transactions/failure", (asks_on(*row) for row in pairs_of(transactions.FAILURES))),
    **numbered("versions/older", (bug(f"newest {row[0]}") for row in framing.OLDER)),
    **numbered("framing/tags", [bug("no unknown tags")] * 17),
    **numbered("framing/pieces", [bug("whole answers")] * 5),
    **numbered("framing/cut", [bug("no new connection")] * 13),
    "groups/classic/join/1": bug("no given id"),
    "groups/classic/join/2": bug("newest JoinGroup"),
    "groups/classic/assignment/1": bug("assigns all to each"),
    "groups/classic/assignment/2": bug("every partition"),
    "groups/classic/generation/1": bug("first epoch in commits"),
    "groups/classic/session/1": bug("no heartbeats"),
    "groups/classic/leave/1": bug("never leaves"),
    "groups/classic/static/1": bug("static members leave"),
    "groups/classic/static/2": bug("no name"),
    "groups/classic/static/3": bug("no name"),
    "groups/classic/moves/1": Habits(errors=dict.fromkeys(MOVED, FAIL)),
    "groups/classic/moves/2": bug("no search after the end"),
    "groups/classic/moves/3": bug("no new connection"),
    "groups/consumer/join/1": bug("no rebalance timeout"),
    "groups/consumer/join/2": bug("new ids"),
    "groups/consumer/epochs/1": bug("epochs from 0"),
    "groups/consumer/epochs/2": bug("first epoch in commits"),
    "groups/consumer/epochs/3": bug("own interval"),
    "groups/consumer/leave/1": bug("never leaves"),
    "groups/consumer/leave/2": bug("static members leave"),
    "groups/consumer/static/1": bug("no name"),
    "groups/consumer/assignment/1": bug("no acknowledgement"),
    "groups/consumer/assignment/2": bug("never gives back"),
    "groups/consumer/assignment/3": bug("no acknowledgement"),
    "groups/consumer/moves/1": Habits(errors=dict.fromkeys(MOVED, FAIL)),
    "groups/consumer/moves/2": bug("no new connection"),
    "produce/idempotence/1": bug("sequence from 1"),
    "produce/idempotence/2": bug("no producer id"),
    "produce/idempotence/3": gives_up("Produce", "DUPLICATE_SEQUENCE_NUMBER"),
    "produce/idempotence/4": gives_up("InitProducerId", "COORDINATOR_LOAD_IN_PROGRESS"),
    "produce/idempotence/5": Habits(errors={("Produce", "NOT_ENOUGH_REPLICAS"): FINE}),
    "produce/acks/1": bug("acks 1"),
    "leaders/produce/1": bug("one node"),
    "leaders/produce/2": bug("no refresh"),
    "leaders/fetch/1": bug("no refresh"),
    "leaders/fetch/2": bug("no refresh"),
    "leaders/bootstrap/1": bug("one bootstrap"),
    "fetch/reset/1": gives_up("Fetch", "OFFSET_OUT_OF_RANGE"),
    "fetch/reset/2": bug("reset without a policy"),
    "fetch/reset/3": bug("always earliest"),
    "fetch/large/1": bug("no large answers"),
    "fetch/gaps/1": bug("offsets without gaps"),
    "fetch/checksum/1": bug("no checksums"),
    "versions/refused/1": bug("no fallback"),
    "versions/refused/2": bug("no fallback"),
    "versions/newer/1": bug("the broker's newest"),
    "versions/newer/2": bug("known APIs alone"),
    "versions/none/1": bug("any version"),
    "versions/none/2": bug("any version"),
    "versions/connections/1": bug("first versions"),
    "framing/size/1": bug("no wrong sizes"),
    "framing/correlation/1": bug("any correlation id"),
    "framing/correlation/2": bug("one correlation id"),
    "transactions/order/1": bug("no partitions added"),
    "transactions/order/2": bug("no transactional id"),
    "transactions/batches/1": bug("no transactional batches"),
    "transactions/coordinator/1": bug("one coordinator"),
    "transactions/coordinator/2": gives_up("EndTxn", "NOT_COORDINATOR"),
    "transactions/abort/1": bug("always commit"),
    "transactions/restart/1": bug("its first epoch"),
    "transactions/lost/1": bug("no new connection"),
    "transactions/isolation/1": bug("aborted records"),
    "transactions/isolation/2": bug("markers are records"),
    "transactions/isolation/3": bug("offsets without gaps"),
}  # fmt: skip
