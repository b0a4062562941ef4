"""Cases: groups of the classic protocol that work: joining, synchronizing, leaving, static members."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from coordwire.client import Client
from coordwire.conformance.broker.stage import Stage, case
from coordwire.conformance.cases import code_name

KIP_62, KIP_345, KIP_394 = "KIP-62", "KIP-345", "KIP-394"
GROUPS = "https://kafka.apache.org/protocol#The_Messages_JoinGroup"
SESSION_MS = 10_000
PROTOCOLS = (("range", b"\1"),)


@dataclass(slots=True)
class GenerationMember:
    """A member of a generation."""

    client: Client
    group: str
    id: str
    generation: int
    leader: str

    @property
    def identity(self) -> dict[str, Any]:
        return {"group_id": self.group, "member_id": self.id, "generation_id": self.generation}


async def join(stage: Stage, group: str, client: Client | None = None, **values: Any) -> Any:
    """The answer to JoinGroup, after one that requires the id that it gives."""
    fields: dict[str, Any] = {
        "group_id": group, "session_timeout_ms": SESSION_MS, "rebalance_timeout_ms": SESSION_MS,
        "protocol_type": "consumer", "protocols": PROTOCOLS,
    } | values  # fmt: skip
    fields["protocols"] = [{"name": name, "metadata": data} for name, data in fields["protocols"]]
    answer = await stage.ask("JoinGroup", by=client, **fields)
    for _ in range(3):
        if code_name(answer.error_code) != "MEMBER_ID_REQUIRED" or "member_id" in values:
            break
        answer = await stage.ask("JoinGroup", by=client, **fields | {"member_id": answer.member_id})
        if (
            code_name(answer.error_code) == "UNKNOWN_MEMBER_ID"
        ):  # Kafka 3.9 drops ids where a topic is deleted
            answer = await stage.ask("JoinGroup", by=client, **fields)
    return answer


async def joined(stage: Stage, group: str, *, assignment: bytes = b"a", **values: Any) -> GenerationMember:
    """The only member of a new generation, synchronized."""
    client = await stage.client()
    answer = await join(stage, group, client, **values)
    stage.error("JoinGroup", answer.error_code, "NONE")
    member = GenerationMember(client, group, answer.member_id, answer.generation_id, answer.leader)
    sync = await synchronized(stage, member, {member.id: assignment})
    stage.error("SyncGroup", sync.error_code, "NONE")
    return member


async def synchronized(stage: Stage, member: GenerationMember, assignments: dict[str, bytes]) -> Any:
    parts = [{"member_id": name, "assignment": data} for name, data in assignments.items()]
    return await stage.ask(
        "SyncGroup", by=member.client, **member.identity, assignments=parts, protocol_type="consumer",
        protocol_name="range",
    )  # fmt: skip


async def beat(stage: Stage, member: GenerationMember, **values: Any) -> str:
    """The error of a heartbeat."""
    answer = await stage.ask("Heartbeat", by=member.client, **member.identity | values)
    return code_name(answer.error_code)


async def rejoined(stage: Stage, member: GenerationMember) -> GenerationMember:
    """The member in the next generation, before it synchronizes."""

    async def is_rebalancing() -> bool:
        return await beat(stage, member) == "REBALANCE_IN_PROGRESS"

    await stage.until(is_rebalancing, "a heartbeat says REBALANCE_IN_PROGRESS")
    answer = await join(stage, member.group, member.client, member_id=member.id)
    stage.error("JoinGroup", answer.error_code, "NONE")
    return GenerationMember(
        member.client, member.group, answer.member_id, answer.generation_id, answer.leader
    )


async def joined_pair(stage: Stage, group: str) -> tuple[GenerationMember, GenerationMember]:
    """Two members of a generation, not yet synchronized: the one that was there, and a new one."""
    first = await joined(stage, group)
    client = await stage.client()
    joining = stage.later(join(stage, group, client))
    first = await rejoined(stage, first)
    answer = await joining
    stage.error("JoinGroup", answer.error_code, "NONE")
    second = GenerationMember(client, group, answer.member_id, answer.generation_id, answer.leader)
    return first, second


@case(
    "groups/classic/join/1",
    KIP_394,
    "JoinGroup 4 without a member id",
    "MEMBER_ID_REQUIRED, and an id",
    needs="JoinGroup 4",
)
async def case_member_id_required(stage: Stage) -> None:
    """A new member gets an id before it is a member."""
    answer = await join(stage, stage.group(), member_id="")
    stage.error("JoinGroup", answer.error_code, "MEMBER_ID_REQUIRED")
    stage.true(answer.member_id != "", "no member id comes with it")


@case(
    "groups/classic/join/2", KIP_394, "JoinGroup 3 without a member id", "generation 1", needs="JoinGroup 3"
)
async def case_older_client(stage: Stage) -> None:
    """Before version 4 a member is admitted at once, and gets its id with the generation."""
    answer = await join(stage, stage.group(), at=3, member_id="")
    stage.error("JoinGroup", answer.error_code, "NONE")
    stage.true(answer.member_id != "", "the member has no id")


@case(
    "groups/classic/join/3",
    GROUPS,
    "the first member joins",
    "it leads generation 1, and gets the members",
    needs="JoinGroup 4",
)
async def case_first_member(stage: Stage) -> None:
    """The first member leads, and gets every member's metadata, its own with them, byte for byte."""
    answer = await join(stage, stage.group(), protocols=[("range", b"\0\1\xff")])
    stage.error("JoinGroup", answer.error_code, "NONE")
    stage.equal("generation", answer.generation_id, 1)
    stage.equal("leader", answer.leader, answer.member_id)
    stage.equal("protocol", answer.protocol_name, "range")
    members = [(item.member_id, item.metadata) for item in answer.members]
    stage.equal("members", members, [(answer.member_id, b"\0\1\xff")])


@case(
    "groups/classic/join/4",
    GROUPS,
    "a second member joins",
    "both are in generation 2; one gets the members",
    needs="JoinGroup 4",
)
async def case_second_member(stage: Stage) -> None:
    """All members of a generation have the same number and leader; followers get no members."""
    group = stage.group()
    first = await joined(stage, group)
    client = await stage.client()
    joining = stage.later(join(stage, group, client))
    next_member = await rejoined(stage, first)
    answer = await joining
    stage.equal("generations", (next_member.generation, answer.generation_id), (2, 2))
    stage.equal("leaders", next_member.leader, answer.leader)
    stage.true(answer.leader in (next_member.id, answer.member_id), "the leader is not a member")
    is_leader = answer.leader == answer.member_id
    stage.equal("members that the second gets", len(answer.members), 2 if is_leader else 0)


@case(
    "groups/classic/join/5",
    GROUPS,
    "two members with the protocols (a, b) and (b, c)",
    "b is chosen",
    needs="JoinGroup 4",
)
async def case_common_protocol(stage: Stage) -> None:
    """The protocol is one that all members have."""
    group = stage.group()
    first = await stage.client()
    answer = await join(stage, group, first, protocols=[("a", b""), ("b", b"")])
    second = await stage.client()
    joining = stage.later(join(stage, group, second, protocols=[("b", b""), ("c", b"")]))
    member = GenerationMember(first, group, answer.member_id, answer.generation_id, answer.leader)

    async def is_rebalancing() -> bool:
        return await beat(stage, member) == "REBALANCE_IN_PROGRESS"

    await stage.ask("SyncGroup", by=first, **member.identity, protocol_type="consumer", protocol_name="a")
    await stage.until(is_rebalancing, "a heartbeat says REBALANCE_IN_PROGRESS")
    protocols = [("a", b""), ("b", b"")]
    next_member = await join(stage, group, first, member_id=member.id, protocols=protocols)
    stage.equal("protocols", (next_member.protocol_name, (await joining).protocol_name), ("b", "b"))


@case(
    "groups/classic/join/6",
    GROUPS,
    "the leader joins again in a stable group",
    "the next generation",
    needs="JoinGroup 4",
)
async def case_leader_rejoins(stage: Stage) -> None:
    """A leader that joins again begins a rebalance."""
    member = await joined(stage, stage.group())
    answer = await join(stage, member.group, member.client, member_id=member.id)
    stage.error("JoinGroup", answer.error_code, "NONE")
    stage.equal("generation", answer.generation_id, member.generation + 1)


@case(
    "groups/classic/sync/1",
    GROUPS,
    "SyncGroup by both members",
    "each gets its own assignment",
    needs="JoinGroup 4, SyncGroup 3",
)
async def case_assignments(stage: Stage) -> None:
    """A member gets the bytes that the leader gave for it; a follower that asks before waits for them."""
    pair = await joined_pair(stage, stage.group())
    leader, follower = sorted(pair, key=lambda member: member.id != member.leader)
    waiting = stage.later(synchronized(stage, follower, {}))
    await asyncio.sleep(0.3)
    stage.true(not waiting.done(), "a follower is answered before the leader has assigned")
    own = await synchronized(stage, leader, {leader.id: b"\0l", follower.id: b"\xfff"})
    stage.equal("assignments", (own.assignment, (await waiting).assignment), (b"\0l", b"\xfff"))


@case(
    "groups/classic/sync/2",
    GROUPS,
    "SyncGroup again in a stable group",
    "the same assignment",
    needs="JoinGroup 4, SyncGroup 3",
)
async def case_sync_again(stage: Stage) -> None:
    """A member may ask again for the assignment that it has."""
    member = await joined(stage, stage.group(), assignment=b"\1\2\3")
    answer = await synchronized(stage, member, {})
    stage.error("SyncGroup", answer.error_code, "NONE")
    stage.equal("assignment", answer.assignment, b"\1\2\3")


@case(
    "groups/classic/heartbeat/1", GROUPS, "Heartbeat of a stable group's member", "NONE", needs="Heartbeat 3"
)
async def case_heartbeat(stage: Stage) -> None:
    """A member of the current generation may go on."""
    member = await joined(stage, stage.group())
    stage.equal("Heartbeat", await beat(stage, member), "NONE")


@case(
    "groups/classic/heartbeat/2",
    GROUPS,
    "Heartbeat while another joins",
    "REBALANCE_IN_PROGRESS",
    needs="Heartbeat 3",
)
async def case_rebalance_in_progress(stage: Stage) -> None:
    """Members learn from their heartbeats that a rebalance has begun."""
    member = await joined(stage, stage.group())
    stage.later(join(stage, member.group, await stage.client()))
    await rejoined(stage, member)


@case(
    "groups/classic/leave/1",
    GROUPS,
    "LeaveGroup, then Heartbeat",
    "NONE, then UNKNOWN_MEMBER_ID",
    needs="LeaveGroup 3",
)
async def case_leave(stage: Stage) -> None:
    """A member that has left is none any more, and the group is empty."""
    member = await joined(stage, stage.group())
    answer = await stage.ask("LeaveGroup", group_id=member.group, members=[{"member_id": member.id}])
    stage.error("LeaveGroup", answer.error_code, "NONE")
    stage.error("the member", answer.members[0].error_code, "NONE")
    stage.equal("Heartbeat", await beat(stage, member), "UNKNOWN_MEMBER_ID")
    (described,) = (await stage.ask("DescribeGroups", groups=[member.group])).groups
    stage.equal("state", described.group_state, "Empty")


@case(
    "groups/classic/leave/2",
    GROUPS,
    "one of two members leaves",
    "the other's heartbeat: a rebalance",
    needs="LeaveGroup 3",
)
async def case_leave_of_two(stage: Stage) -> None:
    """Who stays gets what the other had: a rebalance begins."""
    first, second = await joined_pair(stage, stage.group())
    leader, follower = (first, second) if first.leader == first.id else (second, first)
    waiting = stage.later(synchronized(stage, follower, {}))
    await synchronized(stage, leader, {leader.id: b"l", follower.id: b"f"})
    await waiting
    await stage.ask("LeaveGroup", group_id=first.group, members=[{"member_id": second.id}])
    next_member = await rejoined(stage, first)
    stage.equal("generation", next_member.generation, first.generation + 1)
    stage.equal("leader", next_member.leader, first.id)


@case(
    "groups/classic/session/1",
    KIP_62,
    "a member is silent for its session timeout",
    "it is removed",
    needs="JoinGroup 4",
)
async def case_session_timeout(stage: Stage) -> None:
    """A member that sends no heartbeat for its session timeout is removed, and not before."""
    member = await joined(stage, stage.group(), session_timeout_ms=6_000)

    async def count() -> int:
        (described,) = (await stage.ask("DescribeGroups", groups=[member.group])).groups
        return len(described.members)

    async def is_removed() -> bool:
        return not await count()

    await asyncio.sleep(3)
    clock = asyncio.get_running_loop().time
    since = clock()
    stage.equal("Heartbeat after 3 s", await beat(stage, member), "NONE")
    await asyncio.sleep(4)
    members = await count()
    if clock() - since < 6:  # else this machine took too long to tell
        stage.equal("members 4 s after a heartbeat", members, 1)
    await stage.until(is_removed, "the silent member is removed")
    stage.equal("Heartbeat of the removed member", await beat(stage, member), "UNKNOWN_MEMBER_ID")


@case(
    "groups/classic/static/1",
    KIP_345,
    "a static member joins again without its id",
    "no rebalance",
    needs="JoinGroup 5",
)
async def case_static_rejoin(stage: Stage) -> None:
    """A static member that comes back has a new id, in the same generation."""
    member = await joined(stage, stage.group(), group_instance_id="s")
    answer = await join(stage, member.group, member.client, group_instance_id="s")
    stage.error("JoinGroup", answer.error_code, "NONE")
    stage.equal("generation", answer.generation_id, member.generation)
    stage.true(answer.member_id != member.id, "the member id is the old one")


@case(
    "groups/classic/static/2",
    KIP_345,
    "the former member of an instance id sends a heartbeat",
    "FENCED_INSTANCE_ID",
    needs="JoinGroup 5, Heartbeat 3",
)
async def case_static_fenced(stage: Stage) -> None:
    """Of two members with one instance id the one that came first is fenced."""
    member = await joined(stage, stage.group(), group_instance_id="s")
    await join(stage, member.group, await stage.client(), group_instance_id="s")
    stage.equal("Heartbeat", await beat(stage, member, group_instance_id="s"), "FENCED_INSTANCE_ID")


@case(
    "groups/classic/static/3", KIP_345, "LeaveGroup with an instance id alone", "NONE", needs="LeaveGroup 3"
)
async def case_static_leave(stage: Stage) -> None:
    """A static member can be removed by its instance id."""
    member = await joined(stage, stage.group(), group_instance_id="s")
    members = [{"member_id": "", "group_instance_id": "s"}]
    answer = await stage.ask("LeaveGroup", group_id=member.group, members=members)
    stage.error("the member", answer.members[0].error_code, "NONE")
    stage.equal("Heartbeat", await beat(stage, member), "UNKNOWN_MEMBER_ID")
