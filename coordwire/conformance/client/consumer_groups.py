"""Cases: members of consumer groups (KIP-848): epochs, assignments, errors, static members, moves."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from statistics import fmean
from typing import Any
from uuid import uuid4

from coordwire.conformance.client.recovery import ERRORS, gives_up, recovers
from coordwire.conformance.client.stage import GROUP, TOPIC, ClientStage, case
from coordwire.conformance.client.wire import WireExchange

KIP_848, KIP_1082 = "KIP-848", "KIP-1082"
HEARTBEAT = "ConsumerGroupHeartbeat"

# --- errors ---


def _joins_again(stage: ClientStage, refused: WireExchange, last: WireExchange) -> None:
    following = stage.sent(HEARTBEAT, refused)[0].request
    stage.equal("the epoch of the next heartbeat", following.member_epoch, 0)
    stage.true(not following.topic_partitions, "the next heartbeat has partitions")
    stage.equal("the subscription", following.subscribed_topic_names, [TOPIC])


def _is_member(request: Any) -> bool:
    return bool(request.member_epoch > 0)


FINDS, BEATS = ("FindCoordinator", HEARTBEAT), (HEARTBEAT,)
RECOVERIES: list[tuple[str, str, tuple[str, ...], dict[str, Any]]] = [
    (HEARTBEAT, "NOT_COORDINATOR", FINDS, {}),
    (HEARTBEAT, "COORDINATOR_NOT_AVAILABLE", FINDS, {}),
    (HEARTBEAT, "COORDINATOR_LOAD_IN_PROGRESS", BEATS, {}),
    (HEARTBEAT, "NOT_COORDINATOR", FINDS, {"condition": _is_member}),
    (HEARTBEAT, "COORDINATOR_LOAD_IN_PROGRESS", BEATS, {"condition": _is_member}),
    (HEARTBEAT, "FENCED_MEMBER_EPOCH", BEATS, {"condition": _is_member, "check": _joins_again}),
    (HEARTBEAT, "UNKNOWN_MEMBER_ID", BEATS, {"condition": _is_member, "check": _joins_again}),
    ("OffsetFetch", "NOT_COORDINATOR", ("FindCoordinator", "OffsetFetch"), {}),
    ("OffsetFetch", "COORDINATOR_LOAD_IN_PROGRESS", ("OffsetFetch",), {}),
    ("OffsetFetch", "STALE_MEMBER_EPOCH", ("OffsetFetch",), {}),
    ("OffsetCommit", "NOT_COORDINATOR", ("FindCoordinator", "OffsetCommit"), {}),
    ("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", ("OffsetCommit",), {}),
    ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", FINDS, {}),
]
REFUSALS: list[tuple[str, str, dict[str, Any]]] = [
    (HEARTBEAT, "GROUP_AUTHORIZATION_FAILED", {}),
    (HEARTBEAT, "GROUP_MAX_SIZE_REACHED", {}),
    (HEARTBEAT, "UNSUPPORTED_ASSIGNOR", {"group_remote_assignor": "dice"}),
    (HEARTBEAT, "INVALID_REQUEST", {}),
    (HEARTBEAT, "UNRELEASED_INSTANCE_ID", {"group_instance_id": "static"}),
    (HEARTBEAT, "FENCED_INSTANCE_ID", {"group_instance_id": "static"}),
    ("OffsetFetch", "GROUP_AUTHORIZATION_FAILED", {}),
    ("OffsetCommit", "GROUP_AUTHORIZATION_FAILED", {}),
]

for number, (api, error, steps, settings) in enumerate(RECOVERIES, 1):
    joins = error in ("FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID")
    place = "a member" if settings.get("condition") else "the first"
    case(
        f"groups/consumer/recovery/{number}",
        KIP_848,
        f"{api} of {place}: {error}, once" if api == HEARTBEAT else f"{api}: {error}, once",
        "the epoch 0, without partitions" if joins else ", then ".join(steps),
        rule="A member recovers from an error that is not final, by the requests that its error asks for.",
    )(recovers(api, error, steps, protocol="consumer", **settings))

for number, (api, error, settings) in enumerate(REFUSALS, 1):
    case(
        f"groups/consumer/fatal/{number}",
        KIP_848 if api == HEARTBEAT else ERRORS,
        f"{error} to each {api}",
        "an error for the application, and no such request more",
        rule="A member that is refused for good reports it, and doesn't go on asking.",
    )(gives_up(api, error, protocol="consumer", **settings))

# --- epochs ---


async def _consumed(stage: ClientStage, **settings: Any) -> list[WireExchange]:
    """The heartbeats of a member that consumes a record, is stable, consumes another, and leaves."""
    stage.write("one")
    consuming = stage.later(stage.consume(2, protocol="consumer", commit=True, **settings))
    await stage.until(
        lambda: (
            len([exchange for exchange in stage.sent(HEARTBEAT) if exchange.request.member_epoch > 0]) > 2
        ),
        "heartbeats are sent",
    )
    stage.write("two")
    stage.succeeded(await consuming, "one", "two")
    return stage.sent(HEARTBEAT)


@case("groups/consumer/join/1", KIP_848, "a new member", "the epoch 0, topics, a rebalance timeout")
async def case_first_heartbeat(stage: ClientStage) -> None:
    """A first heartbeat has the epoch 0, the whole subscription, a rebalance timeout, and no partitions."""
    first = (await _consumed(stage))[0].request
    stage.equal("the epoch", first.member_epoch, 0)
    stage.equal("the topics", first.subscribed_topic_names, [TOPIC])
    stage.true(first.rebalance_timeout_ms > 0, "there is no rebalance timeout")
    stage.true(not first.topic_partitions, "there are partitions")


@case("groups/consumer/join/2", KIP_1082, "a new member", "an id of its own, the same in all heartbeats")
async def case_own_id(stage: ClientStage) -> None:
    """A member makes its id, and keeps it."""
    ids = {exchange.request.member_id for exchange in await _consumed(stage)}
    stage.equal("member ids", len(ids), 1)
    stage.true(ids != {""}, "the member id is empty")


@case("groups/consumer/epochs/1", KIP_848, "a new epoch", "that in the next heartbeat")
async def case_next_epoch(stage: ClientStage) -> None:
    """A heartbeat has the epoch that the coordinator gave last."""
    beats = [exchange for exchange in await _consumed(stage) if not exchange.errors]
    for before, after in pairwise(beats):
        if after.request.member_epoch >= 0 and before.answered is not None and before.answered <= after.sent:
            stage.equal("the epoch", after.request.member_epoch, before.response.member_epoch)


@case("groups/consumer/epochs/2", KIP_848, "a member that commits", "its epoch in the commit")
async def case_commit_epoch(stage: ClientStage) -> None:
    """A commit has the member's id and epoch."""
    beats = await _consumed(stage)
    epochs = {exchange.response.member_epoch for exchange in beats}
    for commit in stage.sent("OffsetCommit"):
        stage.equal("the member id", commit.request.member_id, beats[0].request.member_id)
        stage.true(
            commit.request.generation_id_or_member_epoch in epochs, "the epoch is not one of the member's"
        )


@case("groups/consumer/epochs/3", KIP_848, "an interval of 800 ms", "a heartbeat about every 800 ms")
async def case_interval(stage: ClientStage) -> None:
    """Heartbeats of a stable member come at the interval that the coordinator asks for: on average a quarter
    less at most, and not all after more than twice as much. One that a busy machine delays is not a fault."""

    def slower(exchange: WireExchange) -> None:
        exchange.response.heartbeat_interval_ms = 800
        exchange.write()

    stage.wire.rule(HEARTBEAT, slower, times=None)
    stage.write("one")
    consuming = stage.later(stage.consume(2, protocol="consumer"))
    await stage.until(
        lambda: (
            len([exchange for exchange in stage.sent(HEARTBEAT) if not exchange.request.topic_partitions]) > 3
        ),
        "heartbeats are sent",
    )
    stage.write("two")
    stage.succeeded(await consuming, "one", "two")
    beats = [exchange for exchange in stage.sent(HEARTBEAT) if exchange.request.member_epoch > 0]
    stable = [exchange for exchange in beats if exchange.request.topic_partitions is None]
    gaps = [after.sent - before.sent for before, after in pairwise(stable)]
    stage.true(bool(gaps), "there are no heartbeats without partitions")
    stage.true(fmean(gaps) >= 0.6, f"a heartbeat each {fmean(gaps):.2f} s, for 0.8")
    stage.true(min(gaps) <= 1.6, f"no heartbeat before {min(gaps):.2f} s, for 0.8")


@case("groups/consumer/leave/1", KIP_848, "a stable group", "the epoch -1 at the end")
async def case_leaves(stage: ClientStage) -> None:
    """A member that ends says so."""
    stage.equal("the last epoch", (await _consumed(stage))[-1].request.member_epoch, -1)


@case("groups/consumer/leave/2", KIP_848, "a stable group", "the epoch -2 at a static member's end")
async def case_static_leaves(stage: ClientStage) -> None:
    """A static member that ends leaves for a while: its partitions wait for it."""
    beats = await _consumed(stage, group_instance_id="static")
    stage.equal("the last epoch", beats[-1].request.member_epoch, -2)


@case("groups/consumer/static/1", KIP_848, "a static member restarts", "its name, and the epoch 0")
async def case_static_restarts(stage: ClientStage) -> None:
    """A static member that restarts joins by its name, and gets what it had."""
    await _consumed(stage, group_instance_id="static")
    before = stage.sent(HEARTBEAT)[-1]
    stage.write("three")
    stage.succeeded(await stage.consume(1, protocol="consumer", group_instance_id="static"), "three")
    first = stage.first(HEARTBEAT, after=before)
    stage.equal("the name", first.request.instance_id, "static")
    stage.equal("the epoch", first.request.member_epoch, 0)


# --- assignments ---


def _owned(exchange: WireExchange) -> set[int] | None:
    parts = exchange.request.topic_partitions
    return None if parts is None else {index for topic in parts for index in topic.partitions}


class OtherConsumerMember:
    """Another member of the group, which consumes the same topic."""

    def __init__(self, stage: ClientStage) -> None:
        self._stage = stage
        self.id, self.epoch = str(uuid4()), 0
        self.partitions: set[int] = set()

    async def beat(self) -> None:
        """A heartbeat that acknowledges what it was assigned."""
        topic = self._stage.broker.cluster.topics[TOPIC]
        owned = [{"topic_id": topic.id, "partitions": sorted(self.partitions)}] if self.partitions else []
        answer = await self._stage.ask_group(
            HEARTBEAT, 1, member_id=self.id, member_epoch=self.epoch, topic_partitions=owned,
            subscribed_topic_names=[TOPIC], rebalance_timeout_ms=10_000,
        )  # fmt: skip
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.partitions = {
                index for part in answer.assignment.topic_partitions for index in part.partitions
            }


@case(
    "groups/consumer/assignment/1", KIP_848, "an assignment", "a heartbeat that acknowledges it", partitions=3
)
async def case_acknowledges(stage: ClientStage) -> None:
    """A member names the partitions that it was assigned."""
    stage.write("one")
    consuming = stage.later(stage.consume(2, protocol="consumer"))
    await stage.until(
        lambda: any(_owned(exchange) == {0, 1, 2} for exchange in stage.sent(HEARTBEAT)),
        "a heartbeat has the assigned partitions",
    )
    stage.write("two")
    stage.succeeded(await consuming, "one", "two")


@case(
    "groups/consumer/assignment/2", KIP_848, "another member joins", "partitions are given back", partitions=2
)
async def case_revokes(stage: ClientStage) -> None:
    """A member from which a partition is taken acknowledges that without leaving, and fetches it no more."""
    stage.write("one")
    consuming = stage.later(stage.consume(2, protocol="consumer", commit=True))
    await stage.until(
        lambda: any(_owned(exchange) == {0, 1} for exchange in stage.sent(HEARTBEAT)),
        "a heartbeat has the assigned partitions",
    )
    peer = OtherConsumerMember(stage)
    given_back: WireExchange | None = None
    for _ in range(80):
        await peer.beat()
        if peer.partitions:
            break
        await asyncio.sleep(0.1)
    stage.true(len(peer.partitions) == 1, "the other member gets no partition")
    for exchange in stage.sent(HEARTBEAT):
        if (owned := _owned(exchange)) is not None and len(owned) == 1:
            given_back = given_back or exchange
    stage.true(given_back is not None, "no heartbeat has the remaining partition alone")
    (remaining,) = {0, 1} - peer.partitions
    stage.write("other's", partition=min(peer.partitions))
    stage.write("two", partition=remaining)
    report = await consuming
    stage.succeeded(report, "one", "two")
    stage.true(
        all(exchange.request.member_epoch != 0 for exchange in stage.sent(HEARTBEAT, given_back)),
        "it joins again",
    )


@case("groups/consumer/assignment/3", KIP_848, "the other member leaves", "its partition too", partitions=2)
async def case_gains(stage: ClientStage) -> None:
    """A member takes partitions that others leave, and begins at their committed offsets."""
    peer = OtherConsumerMember(stage)
    for _ in range(2):
        await peer.beat()
    stage.write("one", partition=0)
    consuming = stage.later(stage.consume(2, protocol="consumer"))
    await stage.until(lambda: bool(stage.sent(HEARTBEAT)), "it joins")
    for _ in range(80):
        await peer.beat()
        if len(peer.partitions) == 1 and any(
            exchange.request.member_epoch > 0 for exchange in stage.sent(HEARTBEAT)
        ):
            break
        await asyncio.sleep(0.1)
    peer.epoch = -1
    await peer.beat()
    await stage.until(
        lambda: any(_owned(exchange) == {0, 1} for exchange in stage.sent(HEARTBEAT)),
        "a heartbeat has both partitions",
    )
    stage.write("two", partition=1)
    report = await consuming
    stage.succeeded(report)
    stage.equal("values", sorted(str(value) for value in report.values), ["one", "two"])


# --- moves ---


@case(
    "groups/consumer/moves/1", KIP_848, "another node becomes the coordinator", "heartbeats to that", nodes=3
)
async def case_moved(stage: ClientStage) -> None:
    """A member finds the new coordinator, and goes on there as the member that it is."""
    stage.write("one")
    consuming = stage.later(stage.consume(2, protocol="consumer", commit=True))
    await stage.until(
        lambda: any(exchange.request.member_epoch > 0 for exchange in stage.sent(HEARTBEAT)),
        "heartbeats are sent",
    )
    beat = stage.sent(HEARTBEAT)[-1]
    target = beat.node % 3 + 1
    stage.broker.moves.coordinator(group=GROUP, to=target)
    await stage.until(
        lambda: any(exchange.node == target for exchange in stage.sent(HEARTBEAT)),
        "heartbeats go to the new coordinator",
    )
    stage.write("two")
    stage.succeeded(await consuming, "one", "two")
    at_target = [exchange for exchange in stage.sent(HEARTBEAT) if exchange.node == target]
    stage.true(all(exchange.request.member_epoch != 0 for exchange in at_target), "it joins again")


@case(
    "groups/consumer/moves/2", KIP_848, "the connection ends at a heartbeat", "the same member, on a new one"
)
async def case_cut(stage: ClientStage) -> None:
    """A member whose connection ends goes on with its id and its epoch."""
    stage.fault(f"{HEARTBEAT} disconnect", _is_member)
    beats = await _consumed(stage)
    stage.equal(
        "times that it joined", len([exchange for exchange in beats if exchange.request.member_epoch == 0]), 1
    )
