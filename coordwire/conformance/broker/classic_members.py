"""Cases: the classic protocol in each version, its static members, and who leaves, one or many."""

from __future__ import annotations

import asyncio
from typing import Any

from coordwire.conformance.broker.classic_groups import (
    GROUPS,
    KIP_345,
    KIP_394,
    PROTOCOLS,
    SESSION_MS,
    GenerationMember,
    beat,
    join,
    joined,
    joined_pair,
    rejoined,
    synchronized,
)
from coordwire.conformance.broker.offsets import committed
from coordwire.conformance.broker.stage import Stage, case, table
from coordwire.conformance.cases import code_name

__all__: list[str] = []

STRANGER = "no-member"


# --- versions ---


async def joins(stage: Stage, answer: str, version: int) -> None:
    values: dict[str, Any] = {"at": version, "rebalance_timeout_ms": SESSION_MS if version else -1}
    result = await join(stage, stage.group(), **values)
    stage.error("JoinGroup", result.error_code, "NONE")
    facts = (result.generation_id, result.leader, result.protocol_name)
    stage.equal("generation, leader, protocol", facts, (1, result.member_id, "range"))
    if version >= 7:
        stage.equal("protocol type", result.protocol_type, "consumer")
    stage.equal("members", [item.member_id for item in result.members], [result.member_id])


table(GROUPS, "JoinGroup 0", joins, [
    (f"groups/classic/versions/{number + 1}", f"JoinGroup {number}", "it leads generation 1",
     "A member joins in every version that is offered.", number)
    for number in range(10)
])  # fmt: skip


async def synchronizes(stage: Stage, answer: str, version: int) -> None:
    member = await joined(stage, stage.group(), assignment=b"\0\1")
    names = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
    result = await stage.ask("SyncGroup", at=version, by=member.client, **member.identity, **names)
    stage.error("SyncGroup", result.error_code, "NONE")
    stage.equal("assignment", result.assignment, b"\0\1")
    if version >= 5:
        stage.equal("protocol", (result.protocol_type, result.protocol_name), ("consumer", "range"))


table(GROUPS, "JoinGroup 4, SyncGroup 0", synchronizes, [
    (f"groups/classic/versions/{number + 11}", f"SyncGroup {number}", "the member's assignment",
     "A member gets its assignment in every version that is offered.", number)
    for number in range(6)
])  # fmt: skip


async def beats(stage: Stage, answer: str, version: int) -> None:
    member = await joined(stage, stage.group())
    stage.equal("Heartbeat", await beat(stage, member, at=version), "NONE")
    error = await beat(stage, member, at=version, generation_id=member.generation + 1)
    stage.equal("Heartbeat of another generation", error, "ILLEGAL_GENERATION")


table(GROUPS, "JoinGroup 4, Heartbeat 0", beats, [
    (f"groups/classic/versions/{number + 17}", f"Heartbeat {number}", "NONE, and ILLEGAL_GENERATION",
     "A member's heartbeat is answered in every version that is offered.", number)
    for number in range(5)
])  # fmt: skip


async def leave(stage: Stage, group: str, *members: dict[str, Any], at: int | None = None) -> list[str]:
    """Each member's error."""
    answer = await stage.ask("LeaveGroup", at=at, group_id=group, members=list(members))
    stage.error("LeaveGroup", answer.error_code, "NONE")
    return [code_name(item.error_code) for item in answer.members]


async def leaves(stage: Stage, answer: str, version: int) -> None:
    member = await joined(stage, stage.group())
    for error in ("NONE", "UNKNOWN_MEMBER_ID"):
        if version >= 3:
            stage.equal(
                "errors", await leave(stage, member.group, {"member_id": member.id}, at=version), [error]
            )
        else:
            result = await stage.ask("LeaveGroup", at=version, group_id=member.group, member_id=member.id)
            stage.error("LeaveGroup", result.error_code, error)


table(GROUPS, "JoinGroup 4, LeaveGroup 0", leaves, [
    (f"groups/classic/versions/{number + 22}", f"LeaveGroup {number}, twice", "NONE, then UNKNOWN_MEMBER_ID",
     "A member leaves once, in every version that is offered.", number)
    for number in range(6)
])  # fmt: skip


async def describes(stage: Stage, answer: str, version: int) -> None:
    member = await joined(stage, stage.group())
    (group,) = (await stage.ask("DescribeGroups", at=version, groups=[member.group])).groups
    facts = (group.error_code, group.group_state, group.protocol_data, len(group.members))
    stage.equal("error, state, protocol, members", facts, (0, "Stable", "range", 1))


table(GROUPS, "JoinGroup 4, DescribeGroups 0", describes, [
    (f"groups/classic/versions/{number + 28}", f"DescribeGroups {number}", "a stable group",
     "A group is described in every version that is offered.", number)
    for number in range(7)
])  # fmt: skip


# --- joining ---


async def refused_join(stage: Stage, answer: str, values: dict[str, Any]) -> None:
    stage.error("JoinGroup", (await join(stage, stage.group(), **values)).error_code, answer)


async def refused_empty_group(stage: Stage, answer: str) -> None:
    fields: dict[str, Any] = {"group_id": "", "session_timeout_ms": SESSION_MS, "protocol_type": "consumer"}
    result = await stage.ask("JoinGroup", **fields, protocols=[{"name": "range"}])
    stage.error("JoinGroup", result.error_code, answer)


table(GROUPS, "JoinGroup 4", refused_join, [
    ("groups/classic/join/12", "a session timeout of 24 days", "INVALID_SESSION_TIMEOUT",
     "A broker has an upper bound for session timeouts.", {"session_timeout_ms": (1 << 31) - 1}),
    ("groups/classic/join/13", "an empty protocol type", "INCONSISTENT_GROUP_PROTOCOL",
     "A member has a protocol type.", {"protocol_type": ""}),
    ("groups/classic/join/14", "a member id in no group", "UNKNOWN_MEMBER_ID",
     "A member id makes no group.", {"member_id": STRANGER}),
])  # fmt: skip
table(GROUPS, "JoinGroup 4", refused_empty_group, [
    ("groups/classic/join/15", "an empty group id", "INVALID_GROUP_ID", "A group has a name."),
])  # fmt: skip


async def stable_pair(stage: Stage) -> tuple[GenerationMember, GenerationMember]:
    """The leader and the follower of a stable group."""
    pair = await joined_pair(stage, stage.group())
    leader, follower = sorted(pair, key=lambda member: member.id != member.leader)
    waiting = stage.later(synchronized(stage, follower, {}))
    await synchronized(stage, leader, {leader.id: b"l", follower.id: b"f"})
    await waiting
    return leader, follower


@case("groups/classic/join/16", GROUPS, "a follower joins again as it was", "the same generation",
      needs="JoinGroup 4")  # fmt: skip
async def case_follower_again(stage: Stage) -> None:
    """A follower that joins again with the same metadata changes nothing."""
    leader, follower = await stable_pair(stage)
    answer = await join(stage, follower.group, follower.client, member_id=follower.id)
    stage.error("JoinGroup", answer.error_code, "NONE")
    stage.equal("generation", answer.generation_id, follower.generation)
    stage.equal("Heartbeat of the leader", await beat(stage, leader), "NONE")


@case("groups/classic/join/17", GROUPS, "a follower joins again with other metadata", "the next generation",
      needs="JoinGroup 4")  # fmt: skip
async def case_follower_changed(stage: Stage) -> None:
    """A follower whose metadata changed begins a rebalance."""
    leader, follower = await stable_pair(stage)
    joining = stage.later(
        join(stage, follower.group, follower.client, member_id=follower.id, protocols=[("range", b"\2")])
    )
    leader = await rejoined(stage, leader)
    answer = await joining
    stage.equal("generations", (answer.generation_id, leader.generation), (follower.generation + 1,) * 2)


@case("groups/classic/join/18", GROUPS, "a member doesn't join within the rebalance timeout",
      "a generation without it", needs="JoinGroup 4")  # fmt: skip
async def case_rebalance_timeout(stage: Stage) -> None:
    """Who doesn't join in time is removed, also while its session lasts."""
    group = stage.group()
    first = await joined(stage, group, rebalance_timeout_ms=1_500)
    client = await stage.client()
    answer = await join(stage, group, client, rebalance_timeout_ms=1_500)
    stage.error("JoinGroup", answer.error_code, "NONE")
    stage.equal("members", [item.member_id for item in answer.members], [answer.member_id])
    stage.equal("Heartbeat of the first", await beat(stage, first), "UNKNOWN_MEMBER_ID")


@case("groups/classic/join/19", KIP_394, "an id was given, and is not used", "the group has no members",
      needs="JoinGroup 4, DescribeGroups 5")  # fmt: skip
async def case_pending(stage: Stage) -> None:
    """Who has an id alone is not yet a member."""
    group = stage.group()
    answer = await join(stage, group, member_id="")
    stage.error("JoinGroup", answer.error_code, "MEMBER_ID_REQUIRED")
    (described,) = (await stage.ask("DescribeGroups", at=5, groups=[group])).groups
    stage.equal("members", described.members, [])


@case("groups/classic/join/20", GROUPS,
      "two members with the protocols (a, b) and (b, a), and a third with (b)",
      "b", needs="JoinGroup 4")  # fmt: skip
async def case_vote(stage: Stage) -> None:
    """The protocol that most members prefer among the common ones is chosen."""
    group = stage.group()
    first = await stage.client()
    answer = await join(stage, group, first, protocols=[("a", b""), ("b", b"")])
    member = GenerationMember(first, group, answer.member_id, answer.generation_id, answer.leader)
    votes = [[("b", b""), ("a", b"")], [("b", b""), ("a", b""), ("c", b"")]]
    waiting = [stage.later(join(stage, group, await stage.client(), protocols=names)) for names in votes]
    await stage.ask("SyncGroup", by=first, **member.identity, protocol_type="consumer", protocol_name="a")

    async def are_joining() -> bool:
        (described,) = (await stage.ask("DescribeGroups", groups=[group])).groups
        return len(described.members) == 3

    await stage.until(are_joining, "three members are joining")
    answer = await join(stage, group, first, member_id=member.id, protocols=[("a", b""), ("b", b"")])
    names = [answer.protocol_name, *[(await joining).protocol_name for joining in waiting]]
    stage.equal("protocols", names, ["b", "b", "b"])


@case("groups/classic/join/21", "KIP-800", "JoinGroup 8 with a reason", "NONE", needs="JoinGroup 8")
async def case_reason(stage: Stage) -> None:
    """A member may say why it joins."""
    answer = await join(stage, stage.group(), reason="a new topic")
    stage.error("JoinGroup", answer.error_code, "NONE")


@case("groups/classic/sync/6", GROUPS, "SyncGroup while another joins", "REBALANCE_IN_PROGRESS",
      needs="JoinGroup 4, SyncGroup 3")  # fmt: skip
async def case_sync_rebalancing(stage: Stage) -> None:
    """A member that asks for its assignment learns that a rebalance has begun."""
    member = await joined(stage, stage.group())
    stage.later(join(stage, member.group, await stage.client()))

    async def is_rebalancing() -> bool:
        return await beat(stage, member) == "REBALANCE_IN_PROGRESS"

    await stage.until(is_rebalancing, "a heartbeat says REBALANCE_IN_PROGRESS")
    answer = await synchronized(stage, member, {})
    stage.error("SyncGroup", answer.error_code, "REBALANCE_IN_PROGRESS")


@case("groups/classic/sync/7", GROUPS, "the leader assigns nothing to a member", "an empty assignment",
      needs="JoinGroup 4, SyncGroup 3")  # fmt: skip
async def case_sync_nothing(stage: Stage) -> None:
    """A member for which the leader has no assignment gets an empty one."""
    pair = await joined_pair(stage, stage.group())
    leader, follower = sorted(pair, key=lambda member: member.id != member.leader)
    own = await synchronized(stage, leader, {leader.id: b"l"})
    answer = await synchronized(stage, follower, {})
    stage.error("SyncGroup", answer.error_code, "NONE")
    stage.equal("assignments", (own.assignment, answer.assignment), (b"l", b""))


@case("groups/classic/heartbeat/5", GROUPS, "Heartbeat between JoinGroup and SyncGroup", "NONE",
      needs="JoinGroup 4, Heartbeat 3")  # fmt: skip
async def case_heartbeat_before_sync(stage: Stage) -> None:
    """A member that waits for its assignment may go on."""
    client, group = await stage.client(), stage.group()
    answer = await join(stage, group, client)
    member = GenerationMember(client, group, answer.member_id, answer.generation_id, answer.leader)
    stage.equal("Heartbeat", await beat(stage, member), "NONE")


# --- static members ---


async def refused_static(stage: Stage, answer: str, values: dict[str, Any]) -> None:
    member = await joined(stage, stage.group(), group_instance_id="s")
    result = await join(stage, member.group, await stage.client(), **values)
    stage.error("JoinGroup", result.error_code, answer)
    stage.equal("Heartbeat", await beat(stage, member, group_instance_id="s"), "NONE")


table(KIP_345, "Heartbeat 3, JoinGroup 5", refused_static, [
    ("groups/classic/static/5", "JoinGroup with a member's instance id and an unknown id",
     "FENCED_INSTANCE_ID",
     "An instance id and a member id are of one member.", {"group_instance_id": "s", "member_id": STRANGER}),
    ("groups/classic/static/6", "JoinGroup with an unknown instance id and an unknown id",
     "UNKNOWN_MEMBER_ID",
     "A new static member has no id yet.", {"group_instance_id": "t", "member_id": STRANGER}),
])  # fmt: skip


async def fenced(stage: Stage, answer: str, api: str) -> None:
    """By a second member of the instance id."""
    member = await joined(stage, stage.group(), group_instance_id="s")
    await join(stage, member.group, await stage.client(), group_instance_id="s")
    values: dict[str, Any] = {"group_instance_id": "s"}
    if api == "SyncGroup":
        values |= member.identity | {"protocol_type": "consumer", "protocol_name": "range"}
    elif api == "OffsetCommit":
        partitions = [{"partition_index": 0, "committed_offset": 1}]
        values |= {
            "group_id": member.group, "member_id": member.id, "at": 7,
            "generation_id_or_member_epoch": member.generation,
            "topics": [{"name": await stage.topic(), "partitions": partitions}],
        }  # fmt: skip
    else:
        values = {"group_id": member.group, "members": [values | {"member_id": member.id}]}
    result = await stage.ask(api, **values)
    if api == "OffsetCommit":
        result = result.topics[0].partitions[0]
    elif api == "LeaveGroup":
        result = result.members[0]
    stage.error(api, result.error_code, answer)


for number, (api, version) in enumerate([("SyncGroup", 3), ("OffsetCommit", 7), ("LeaveGroup", 3)], 7):
    table(KIP_345, f"JoinGroup 5, {api} {version}", fenced, [
        (f"groups/classic/static/{number}", f"{api} by the former member of an instance id",
         "FENCED_INSTANCE_ID",
         "Of two members with one instance id the one that came first is fenced.", api),
    ])  # fmt: skip


@case(
    "groups/classic/static/10",
    KIP_345,
    "JoinGroup with an instance id",
    "it joins at once",
    needs="JoinGroup 5",
)
async def case_static_at_once(stage: Stage) -> None:
    """A static member joins without being given an id before, and leads with its instance id."""
    answer = await join(stage, stage.group(), member_id="", group_instance_id="s")
    stage.error("JoinGroup", answer.error_code, "NONE")
    members = [(item.member_id, item.group_instance_id) for item in answer.members]
    stage.equal("members", members, [(answer.member_id, "s")])


@case("groups/classic/static/11", KIP_345, "DescribeGroups with a static member", "its instance id",
      needs="JoinGroup 5, DescribeGroups 4")  # fmt: skip
async def case_static_described(stage: Stage) -> None:
    """A static member is described with its instance id."""
    member = await joined(stage, stage.group(), group_instance_id="s")
    (group,) = (await stage.ask("DescribeGroups", groups=[member.group])).groups
    stage.equal("instance ids", [item.group_instance_id for item in group.members], ["s"])


@case("groups/classic/static/12", "KIP-814", "JoinGroup 9 by a static leader that comes back",
      "it leads, and skips the assignment", needs="JoinGroup 9")  # fmt: skip
async def case_skip_assignment(stage: Stage) -> None:
    """A static leader that comes back to a stable group gets its members, and doesn't assign."""
    member = await joined(stage, stage.group(), group_instance_id="s")
    answer = await join(stage, member.group, await stage.client(), group_instance_id="s")
    stage.error("JoinGroup", answer.error_code, "NONE")
    facts = (answer.skip_assignment, answer.leader, len(answer.members))
    stage.equal("skip, leader, members", facts, (True, answer.member_id, 1))


@case(
    "groups/classic/static/13", KIP_345, "a static member comes back", "its assignment", needs="JoinGroup 5"
)
async def case_static_assignment(stage: Stage) -> None:
    """A static member that comes back has the assignment that it had."""
    member = await joined(stage, stage.group(), group_instance_id="s", assignment=b"\5\6")
    client = await stage.client()
    answer = await join(stage, member.group, client, group_instance_id="s")
    back = GenerationMember(client, member.group, answer.member_id, answer.generation_id, answer.leader)
    stage.equal("assignment", (await synchronized(stage, back, {})).assignment, b"\5\6")


# --- leaving ---


@case("groups/classic/leave/4", KIP_345, "LeaveGroup of two members", "NONE for both; the group is empty",
      needs="LeaveGroup 3")  # fmt: skip
async def case_leave_both(stage: Stage) -> None:
    """Several members can be removed at once."""
    first, second = await stable_pair(stage)
    members = [{"member_id": member.id} for member in (first, second)]
    stage.equal("errors", await leave(stage, first.group, *members), ["NONE", "NONE"])
    (group,) = (await stage.ask("DescribeGroups", groups=[first.group])).groups
    stage.equal("state", group.group_state, "Empty")


@case("groups/classic/leave/5", KIP_394, "LeaveGroup with an id that was given and not used", "NONE",
      needs="LeaveGroup 3")  # fmt: skip
async def case_leave_pending(stage: Stage) -> None:
    """Who has an id alone may give it back."""
    group = stage.group()
    await committed(stage, group, await stage.topic(), 1)  # Kafka 3.9 drops ids of groups that have nothing
    answer = await join(stage, group, member_id="")
    stage.equal("errors", await leave(stage, group, {"member_id": answer.member_id}), ["NONE"])
    answer = await join(stage, group, member_id=answer.member_id)
    stage.error("JoinGroup with it", answer.error_code, "UNKNOWN_MEMBER_ID")


async def refused_leave(stage: Stage, answer: str, member: dict[str, Any], has_group: bool) -> None:
    group = (await joined(stage, stage.group())).group if has_group else stage.group()
    stage.equal("errors", await leave(stage, group, member), [answer])


table(KIP_345, "JoinGroup 5, LeaveGroup 3", refused_leave, [
    ("groups/classic/leave/6", "LeaveGroup of no group", "UNKNOWN_MEMBER_ID",
     "A group that is not there has no members.", {"member_id": STRANGER}, False),
    ("groups/classic/leave/7", "LeaveGroup with an unknown instance id alone", "UNKNOWN_MEMBER_ID",
     "An instance id must be a member's.", {"member_id": "", "group_instance_id": "t"}, True),
])  # fmt: skip


@case("groups/classic/leave/8", "KIP-800", "LeaveGroup 5 with a reason", "NONE", needs="LeaveGroup 5")
async def case_leave_reason(stage: Stage) -> None:
    """A member may say why it leaves."""
    member = await joined(stage, stage.group())
    members = {"member_id": member.id, "reason": "the end"}
    stage.equal("errors", await leave(stage, member.group, members), ["NONE"])


@case("groups/classic/leave/9", GROUPS, "the leader of two leaves", "the other leads the next generation",
      needs="LeaveGroup 3")  # fmt: skip
async def case_leader_leaves(stage: Stage) -> None:
    """A group whose leader left gets another."""
    leader, follower = await stable_pair(stage)
    stage.equal("errors", await leave(stage, leader.group, {"member_id": leader.id}), ["NONE"])
    follower = await rejoined(stage, follower)
    stage.equal("leader", follower.leader, follower.id)


@case("groups/classic/session/2", "KIP-62",
      "a member waits for others in JoinGroup beyond its session timeout",
      "it stays", needs="JoinGroup 4")  # fmt: skip
async def case_waiting(stage: Stage) -> None:
    """A member that waits for its answer needs no heartbeats."""
    group = stage.group()
    first = await joined(stage, group, rebalance_timeout_ms=20_000)
    joining = stage.later(join(stage, group, await stage.client(), session_timeout_ms=6_000))
    for _ in range(4):
        await asyncio.sleep(2)
        stage.equal("Heartbeat", await beat(stage, first), "REBALANCE_IN_PROGRESS")
    stage.true(not joining.done(), "the second is answered before the first joins")
    await join(stage, group, first.client, member_id=first.id, protocols=PROTOCOLS)
    stage.error("JoinGroup", (await joining).error_code, "NONE")
