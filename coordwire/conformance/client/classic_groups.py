"""Cases: members of classic groups: joining, heartbeats, assignments, errors, static members, moves."""

from __future__ import annotations

import asyncio
import struct
from collections import Counter
from typing import Any

from coordwire.conformance.client.recovery import ERRORS, gives_up, recovers
from coordwire.conformance.client.stage import GROUP, TOPIC, ClientStage, case
from coordwire.conformance.client.wire import WireExchange
from coordwire.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from coordwire.messages.consumer_protocol import ConsumerProtocolAssignmentTopicPartition

KIP_62, KIP_345, KIP_394 = "KIP-62", "KIP-345", "KIP-394"
GROUPS = "https://kafka.apache.org/protocol#The_Messages_JoinGroup"
VERSION = struct.pack(">h", 0)
TIMES = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000}

# --- errors ---


def _keeps_its_id(stage: ClientStage, refused: WireExchange, last: WireExchange) -> None:
    stage.equal("the member id", last.request.member_id, refused.request.member_id)


def _drops_its_id(stage: ClientStage, refused: WireExchange, last: WireExchange) -> None:
    first = stage.sent("JoinGroup", refused)[0]
    stage.equal("the member id of the next JoinGroup", first.request.member_id, "")


FORGOTTEN: dict[str, Any] = {"is_forgotten": True}
"""A client may try its id once more: a coordinator that has lost the member refuses it again."""

JOINS, FINDS = ("JoinGroup",), ("FindCoordinator", "JoinGroup")
FINDS_ALONE = ("FindCoordinator",)
"""What it asks next may be any of both, and be asked before: its generation may still be there."""

RECOVERIES: list[tuple[str, str, tuple[str, ...], dict[str, Any]]] = [
    ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", FINDS, {}),
    ("JoinGroup", "NOT_COORDINATOR", FINDS, {}),
    ("JoinGroup", "COORDINATOR_NOT_AVAILABLE", FINDS, {}),
    ("JoinGroup", "COORDINATOR_LOAD_IN_PROGRESS", JOINS, {}),
    ("JoinGroup", "REBALANCE_IN_PROGRESS", JOINS, {}),
    (
        "JoinGroup",
        "UNKNOWN_MEMBER_ID",
        JOINS,
        {"condition": lambda request: request.member_id, "check": _drops_its_id},
    ),
    ("SyncGroup", "NOT_COORDINATOR", FINDS_ALONE, {}),
    ("SyncGroup", "COORDINATOR_NOT_AVAILABLE", FINDS_ALONE, {}),
    ("SyncGroup", "REBALANCE_IN_PROGRESS", JOINS, {"check": _keeps_its_id}),
    ("SyncGroup", "ILLEGAL_GENERATION", JOINS, {}),
    ("SyncGroup", "UNKNOWN_MEMBER_ID", JOINS, FORGOTTEN),
    ("Heartbeat", "NOT_COORDINATOR", ("FindCoordinator", "Heartbeat"), {}),
    ("Heartbeat", "COORDINATOR_NOT_AVAILABLE", ("FindCoordinator", "Heartbeat"), {}),
    ("Heartbeat", "REBALANCE_IN_PROGRESS", ("JoinGroup", "SyncGroup"), {"check": _keeps_its_id}),
    ("Heartbeat", "ILLEGAL_GENERATION", ("JoinGroup", "SyncGroup"), {}),
    ("Heartbeat", "UNKNOWN_MEMBER_ID", ("JoinGroup", "SyncGroup"), FORGOTTEN),
]
REFUSALS: list[tuple[str, str, dict[str, Any]]] = [
    ("FindCoordinator", "GROUP_AUTHORIZATION_FAILED", {}),
    ("JoinGroup", "GROUP_AUTHORIZATION_FAILED", {}),
    ("JoinGroup", "INCONSISTENT_GROUP_PROTOCOL", {}),
    ("JoinGroup", "INVALID_SESSION_TIMEOUT", {}),
    ("JoinGroup", "GROUP_MAX_SIZE_REACHED", {}),
    ("JoinGroup", "FENCED_INSTANCE_ID", {"group_instance_id": "static"}),
    ("SyncGroup", "GROUP_AUTHORIZATION_FAILED", {}),
    ("SyncGroup", "FENCED_INSTANCE_ID", {"group_instance_id": "static"}),
    ("Heartbeat", "FENCED_INSTANCE_ID", {"group_instance_id": "static"}),
    ("OffsetCommit", "FENCED_INSTANCE_ID", {"group_instance_id": "static"}),
]

for number, (api, error, steps, settings) in enumerate(RECOVERIES, 1):
    case(
        f"groups/classic/recovery/{number}",
        ERRORS,
        f"{api}: {error}, once",
        f"{', then '.join(steps)}{', without the member id' if error == 'UNKNOWN_MEMBER_ID' else ''}",
        rule="A member recovers from an error that is not final, by the requests that its error asks for.",
    )(recovers(api, error, steps, **settings))

for number, (api, error, settings) in enumerate(REFUSALS, 1):
    case(
        f"groups/classic/fatal/{number}",
        KIP_345 if error == "FENCED_INSTANCE_ID" else ERRORS,
        f"{error} to each {api}",
        "an error for the application, and no such request more",
        rule="A member that is refused for good reports it, and doesn't go on asking.",
    )(gives_up(api, error, **settings))

# --- joining and assignments ---


@case("groups/classic/join/1", KIP_394, "MEMBER_ID_REQUIRED, with an id", "JoinGroup with this id")
async def case_member_id_required(stage: ClientStage) -> None:
    """A new member joins with the id that it was given."""
    stage.write("one")
    stage.succeeded(await stage.consume(1), "one")
    refused = stage.first("JoinGroup", "MEMBER_ID_REQUIRED")
    following = stage.first("JoinGroup", after=refused)
    stage.equal("the first member id", refused.request.member_id, "")
    stage.equal("the member id", following.request.member_id, refused.response.member_id)


@case("groups/classic/join/2", KIP_394, "JoinGroup up to version 3", "JoinGroup 3 or older")
async def case_older_broker(stage: ClientStage) -> None:
    """A coordinator that gives the id with the generation is joined by one request."""

    def limit(exchange: WireExchange) -> None:
        for offered in exchange.response.api_keys:
            if offered.api_key == 11:
                offered.max_version = 3
        exchange.write()

    stage.wire.rule("ApiVersions", limit, times=None)
    stage.write("one")
    stage.succeeded(await stage.consume(1), "one")
    newest = max(exchange.version for exchange in stage.sent("JoinGroup"))
    stage.true(newest <= 3, f"JoinGroup {newest}, where the broker has 3 at most")
    stage.equal("requests", len(stage.sent("JoinGroup")), 1)


class OtherClassicMember:
    """Another member of the group, which consumes the same topic; it has the client's protocols."""

    def __init__(self, stage: ClientStage, protocols: list[str]) -> None:
        subscription = ConsumerProtocolSubscription(topics=[TOPIC])
        metadata = VERSION + subscription.encode(version=0)
        self._stage = stage
        self._protocols = [{"name": name, "metadata": metadata} for name in protocols]
        self.id = ""
        self.answer: Any = None

    async def join(self) -> None:
        values = {**TIMES, "protocol_type": "consumer", "protocols": self._protocols}
        for _ in range(2):  # the first time to get an id
            self.answer = await self._stage.ask_group("JoinGroup", 9, member_id=self.id, **values)
            self.id = self.answer.member_id

    async def synchronize(self, assignments: dict[str, list[int]]) -> None:
        parts = [
            {"member_id": member, "assignment": _assignment(partitions)}
            for member, partitions in assignments.items()
        ]
        await self._stage.ask_group(
            "SyncGroup", 5, member_id=self.id, generation_id=self.answer.generation_id,
            protocol_type="consumer", protocol_name=self.answer.protocol_name, assignments=parts,
        )  # fmt: skip


def _assignment(partitions: list[int]) -> bytes:
    topic = ConsumerProtocolAssignmentTopicPartition(topic=TOPIC, partitions=partitions)
    return VERSION + ConsumerProtocolAssignment(assigned_partitions=[topic]).encode(version=0)


def _assigned(data: bytes) -> list[tuple[str, int]]:
    """The partitions in an assignment, whose later fields don't matter here."""
    assignment = ConsumerProtocolAssignment.decode(data[2:], version=0, strict=False)
    return [
        (topic.topic, partition) for topic in assignment.assigned_partitions for partition in topic.partitions
    ]


@case("groups/classic/assignment/1", GROUPS, "another member joins", "an assignment for both", partitions=4)
async def case_leader(stage: ClientStage) -> None:
    """A leader assigns each partition once, among all members that the coordinator names."""
    stage.write("one")
    consuming = stage.later(stage.consume(2))
    joined = await stage.until_sent("SyncGroup")
    client = stage.first("JoinGroup", after=None).request
    peer = OtherClassicMember(stage, [protocol.name for protocol in client.protocols])
    await peer.join()
    waiting = stage.later(peer.synchronize({}))
    synchronized = await stage.until_sent("SyncGroup", joined)
    await waiting
    parts = synchronized.request.assignments
    stage.equal("assigned members", len(parts), 2)
    counts = Counter(place for part in parts for place in _assigned(part.assignment))
    stage.equal("partitions", counts, Counter((TOPIC, partition) for partition in range(4)))
    for partition in range(4):
        stage.write("two", partition=partition)
    stage.succeeded(await consuming)


@case("groups/classic/assignment/2", GROUPS, "another member leads", "what that has assigned", partitions=2)
async def case_follower(stage: ClientStage) -> None:
    """A member consumes the partitions that its assignment names, and no others."""
    peer = OtherClassicMember(stage, ["range", "roundrobin", "cooperative-sticky", "sticky"])
    await peer.join()
    await peer.synchronize({peer.id: [0, 1]})
    stage.write("other's", partition=0)
    stage.write("one", partition=1)
    consuming = stage.later(stage.consume(1))
    await stage.until(lambda: len(stage.sent("JoinGroup")) > 1, "it joins")
    rejoined = stage.later(peer.join())
    await rejoined
    client = next(member.member_id for member in peer.answer.members if member.member_id != peer.id)
    await peer.synchronize({peer.id: [0], client: [1]})
    stage.succeeded(await consuming, "one")
    fetched = {
        part.partition
        for fetch in stage.sent("Fetch")
        for topic in fetch.request.topics
        for part in topic.partitions
    }
    stage.equal("fetched partitions", fetched, {1})


@case("groups/classic/generation/1", GROUPS, "a rebalance", "commits of the new generation")
async def case_generation(stage: ClientStage) -> None:
    """Heartbeats and commits have the member id and the generation of the last JoinGroup."""
    stage.fault("Heartbeat error=REBALANCE_IN_PROGRESS nth=2")
    stage.write("one")
    consuming = stage.later(stage.consume(2, commit=True))
    await stage.until(lambda: bool(stage.sent("Heartbeat")), "a heartbeat is sent")
    await stage.until(
        lambda: any(exchange.errors for exchange in stage.sent("Heartbeat")), "heartbeats are sent"
    )
    await stage.until_sent(
        "Heartbeat", await stage.until_sent("SyncGroup", stage.first("Heartbeat", "REBALANCE_IN_PROGRESS"))
    )
    stage.write("two")
    stage.succeeded(await consuming, "one", "two")
    joined = stage.sent("JoinGroup")[-1]
    commit, beat = stage.sent("OffsetCommit")[-1].request, stage.sent("Heartbeat")[-1].request
    expected = joined.response.member_id, joined.response.generation_id
    stage.equal("of the commit", (commit.member_id, commit.generation_id_or_member_epoch), expected)
    stage.equal("of the heartbeat", (beat.member_id, beat.generation_id), expected)


@case("groups/classic/session/1", KIP_62, "no records for longer than the session timeout", "heartbeats")
async def case_stays(stage: ClientStage) -> None:
    """A member without work stays in its group: it sends heartbeats within the session timeout."""
    stage.write("one")
    consuming = stage.later(stage.consume(2, session_timeout_ms=4_000, heartbeat_interval_ms=300))
    joined = await stage.until_sent("SyncGroup")
    await asyncio.sleep(5)
    stage.true(not consuming.done(), "the client has left")
    answer = await stage.ask_group(
        "Heartbeat", 4, member_id=joined.request.member_id, generation_id=joined.request.generation_id
    )
    stage.equal("the coordinator's answer for the member", answer.error_code, 0)
    stage.equal("times that it joined", len(stage.sent("SyncGroup")), 1)
    stage.write("two")
    stage.succeeded(await consuming, "one", "two")


@case("groups/classic/leave/1", GROUPS, "a stable group", "LeaveGroup at the end", recommended=True)
async def case_leaves(stage: ClientStage) -> None:
    """A member that ends leaves its group, so that others need not wait for its session timeout."""
    stage.write("one")
    stage.succeeded(await stage.consume(1), "one")
    stage.first("LeaveGroup")


# --- static members ---


@case("groups/classic/static/1", KIP_345, "a stable group", "no LeaveGroup at the end")
async def case_static_stays(stage: ClientStage) -> None:
    """A static member does not leave when it ends, so that its restart begins no rebalance."""
    stage.write("one")
    stage.succeeded(await stage.consume(1, group_instance_id="static"), "one")
    stage.equal("LeaveGroup requests", len(stage.sent("LeaveGroup")), 0)


@case(
    "groups/classic/static/2", KIP_345, "a static member restarts", "JoinGroup with its name, without an id"
)
async def case_static_restarts(stage: ClientStage) -> None:
    """A static member that restarts has its name, and gets its former place in the same generation."""
    stage.write("one")
    stage.succeeded(await stage.consume(1, commit=True, group_instance_id="static"), "one")
    before = stage.sent("JoinGroup")[-1]
    stage.write("two")
    stage.succeeded(await stage.consume(1, commit=True, group_instance_id="static"), "two")
    joined = stage.sent("JoinGroup", before)
    stage.equal("names", {exchange.request.group_instance_id for exchange in joined}, {"static"})
    stage.equal("the first member id", joined[0].request.member_id, "")
    stage.equal("the generation", joined[-1].response.generation_id, before.response.generation_id)


@case("groups/classic/static/3", KIP_345, "a static member", "its name in each request of the group")
async def case_static_name(stage: ClientStage) -> None:
    """A static member's name is in all requests that have a place for it, so that it can be fenced."""
    stage.write("one")
    consuming = stage.later(stage.consume(2, commit=True, group_instance_id="static"))
    await stage.until_sent("Heartbeat")
    stage.write("two")
    stage.succeeded(await consuming, "one", "two")
    for api, since in (("JoinGroup", 5), ("SyncGroup", 3), ("Heartbeat", 3), ("OffsetCommit", 7)):
        requests = [exchange.request for exchange in stage.sent(api) if exchange.version >= since]
        stage.true(
            all(request.group_instance_id == "static" for request in requests), f"{api} without the name"
        )


# --- moves ---


@case("groups/classic/moves/1", GROUPS, "another node becomes the coordinator", "requests to that", nodes=3)
async def case_moved(stage: ClientStage) -> None:
    """A member finds the new coordinator and goes on there."""
    stage.write("one")
    consuming = stage.later(stage.consume(2, commit=True))
    beat = await stage.until_sent("Heartbeat")
    target = beat.node % 3 + 1
    stage.broker.moves.coordinator(group=GROUP, to=target)
    await stage.until(
        lambda: any(exchange.node == target for exchange in stage.sent("Heartbeat", beat)),
        "heartbeats go to the new coordinator",
    )
    stage.write("two")
    stage.succeeded(await consuming, "one", "two")
    stage.equal("the node of the last commit", stage.sent("OffsetCommit")[-1].node, target)
    stage.equal("the committed offset", stage.committed(), 2)


@case(
    "groups/classic/moves/2",
    GROUPS,
    "the coordinator goes down",
    "another is found",
    nodes=3,
    config={"default_replication_factor": 3},
)
async def case_down(stage: ClientStage) -> None:
    """A member whose coordinator is gone looks for the next, and goes on there."""
    stage.write("one")
    consuming = stage.later(stage.consume(2, commit=True))
    beat = await stage.until_sent("Heartbeat")
    await stage.broker.moves.stop_node(beat.node)
    await stage.until(
        lambda: any(exchange.node != beat.node for exchange in stage.sent("Heartbeat", beat)),
        "heartbeats go to another node",
    )
    stage.write("two")
    stage.succeeded(await consuming, "one", "two")
    stage.equal("the committed offset", stage.committed(), 2)


@case(
    "groups/classic/moves/3",
    GROUPS,
    "the connection to the coordinator ends",
    "a new one, and no rebalance",
    recommended=True,
)
async def case_cut(stage: ClientStage) -> None:
    """A member whose connection ends connects again, and stays in its generation."""
    stage.write("one")
    consuming = stage.later(stage.consume(2, commit=True))
    await stage.until_sent("Heartbeat")
    cut = stage.fault("Heartbeat disconnect")
    await cut.wait()
    beat = stage.sent("Heartbeat")[-1]
    await stage.until(
        lambda: any(
            exchange.connection != beat.connection and exchange.answered
            for exchange in stage.sent("Heartbeat")
        ),
        "heartbeats on a new connection",
    )
    stage.write("two")
    stage.succeeded(await consuming, "one", "two")
    stage.equal("times that it synchronized", len(stage.sent("SyncGroup")), 1)
