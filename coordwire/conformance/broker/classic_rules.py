"""Cases: what groups of the classic protocol refuse, and how groups are described, listed and deleted."""

from __future__ import annotations

from typing import Any

from coordwire.conformance.broker.classic_groups import GROUPS, KIP_345, beat, join, joined
from coordwire.conformance.broker.stage import Stage, case
from coordwire.conformance.cases import code_name

__all__: list[str] = []

STRANGER = "not-a-member"


@case(
    "groups/classic/join/7",
    GROUPS,
    "JoinGroup with a member id that no one has",
    "UNKNOWN_MEMBER_ID",
    needs="JoinGroup 4",
)
async def case_join_unknown(stage: Stage) -> None:
    """Member ids come from the coordinator."""
    member = await joined(stage, stage.group())
    answer = await join(stage, member.group, member_id=STRANGER)
    stage.error("JoinGroup", answer.error_code, "UNKNOWN_MEMBER_ID")


@case(
    "groups/classic/join/8",
    GROUPS,
    "JoinGroup with a session timeout of 0 ms",
    "INVALID_SESSION_TIMEOUT",
    needs="JoinGroup 4",
)
async def case_session_too_short(stage: Stage) -> None:
    """A broker has bounds for session timeouts."""
    answer = await join(stage, stage.group(), session_timeout_ms=0)
    stage.error("JoinGroup", answer.error_code, "INVALID_SESSION_TIMEOUT")


@case(
    "groups/classic/join/9",
    GROUPS,
    "a member with no protocol in common",
    "INCONSISTENT_GROUP_PROTOCOL",
    needs="JoinGroup 4",
)
async def case_no_common_protocol(stage: Stage) -> None:
    """A member that shares no protocol with the others can't join."""
    member = await joined(stage, stage.group())
    answer = await join(stage, member.group, protocols=[("other", b"")])
    stage.error("JoinGroup", answer.error_code, "INCONSISTENT_GROUP_PROTOCOL")


@case(
    "groups/classic/join/10",
    GROUPS,
    "a member of another protocol type",
    "INCONSISTENT_GROUP_PROTOCOL",
    needs="JoinGroup 4",
)
async def case_other_protocol_type(stage: Stage) -> None:
    """All members of a group have one protocol type."""
    member = await joined(stage, stage.group())
    answer = await join(stage, member.group, protocol_type="connect")
    stage.error("JoinGroup", answer.error_code, "INCONSISTENT_GROUP_PROTOCOL")


@case(
    "groups/classic/join/11",
    GROUPS,
    "the first member has no protocol",
    "INCONSISTENT_GROUP_PROTOCOL",
    needs="JoinGroup 4",
)
async def case_no_protocol(stage: Stage) -> None:
    """A member must have a protocol."""
    answer = await join(stage, stage.group(), protocols=[])
    stage.error("JoinGroup", answer.error_code, "INCONSISTENT_GROUP_PROTOCOL")


async def synchronize(stage: Stage, **values: Any) -> str:
    names = {"protocol_type": "consumer", "protocol_name": "range"}
    return code_name((await stage.ask("SyncGroup", **names | values)).error_code)


@case(
    "groups/classic/sync/3",
    GROUPS,
    "SyncGroup of another generation",
    "ILLEGAL_GENERATION",
    needs="SyncGroup 3",
)
async def case_sync_generation(stage: Stage) -> None:
    """Only members of the current generation get assignments."""
    member = await joined(stage, stage.group())
    values = member.identity | {"generation_id": member.generation + 1}
    stage.equal("SyncGroup", await synchronize(stage, **values), "ILLEGAL_GENERATION")


@case(
    "groups/classic/sync/4",
    GROUPS,
    "SyncGroup with a strange member id",
    "UNKNOWN_MEMBER_ID",
    needs="SyncGroup 3",
)
async def case_sync_unknown(stage: Stage) -> None:
    """Only members get assignments."""
    member = await joined(stage, stage.group())
    stage.equal(
        "SyncGroup",
        await synchronize(stage, **member.identity | {"member_id": STRANGER}),
        "UNKNOWN_MEMBER_ID",
    )


@case(
    "groups/classic/sync/5",
    "KIP-559",
    "SyncGroup 5 with another protocol's name",
    "INCONSISTENT_GROUP_PROTOCOL",
    needs="SyncGroup 5",
)
async def case_sync_protocol(stage: Stage) -> None:
    """A member that takes the group for another protocol's gets no assignment."""
    member = await joined(stage, stage.group())
    stage.equal(
        "SyncGroup",
        await synchronize(stage, **member.identity, protocol_name="other"),
        "INCONSISTENT_GROUP_PROTOCOL",
    )


@case(
    "groups/classic/heartbeat/3",
    GROUPS,
    "Heartbeat of another generation",
    "ILLEGAL_GENERATION",
    needs="Heartbeat 3",
)
async def case_heartbeat_generation(stage: Stage) -> None:
    """A member of another generation must join again."""
    member = await joined(stage, stage.group())
    for generation in (member.generation - 1, member.generation + 1):
        stage.equal("Heartbeat", await beat(stage, member, generation_id=generation), "ILLEGAL_GENERATION")


@case(
    "groups/classic/heartbeat/4",
    GROUPS,
    "Heartbeat with a strange member id",
    "UNKNOWN_MEMBER_ID",
    needs="Heartbeat 3",
)
async def case_heartbeat_unknown(stage: Stage) -> None:
    """A client with an unknown id learns that, also where there is no group."""
    member = await joined(stage, stage.group())
    stage.equal("Heartbeat", await beat(stage, member, member_id=STRANGER), "UNKNOWN_MEMBER_ID")
    stage.equal("Heartbeat", await beat(stage, member, group_id=stage.group()), "UNKNOWN_MEMBER_ID")


@case(
    "groups/classic/static/4",
    KIP_345,
    "Heartbeat with an instance id that no one has",
    "UNKNOWN_MEMBER_ID",
    needs="Heartbeat 3",
)
async def case_unknown_instance(stage: Stage) -> None:
    """An instance id must be a member's."""
    member = await joined(stage, stage.group(), group_instance_id="s")
    stage.equal("Heartbeat", await beat(stage, member, group_instance_id="other"), "UNKNOWN_MEMBER_ID")


@case(
    "groups/classic/leave/3",
    KIP_345,
    "LeaveGroup of a member and of an unknown id",
    "an error for the one alone",
    needs="LeaveGroup 3",
)
async def case_leave_unknown(stage: Stage) -> None:
    """Each of several that leave has an error of its own."""
    member = await joined(stage, stage.group())
    members = [{"member_id": STRANGER}, {"member_id": member.id}]
    answer = await stage.ask("LeaveGroup", group_id=member.group, members=members)
    codes = {item.member_id: code_name(item.error_code) for item in answer.members}
    stage.equal("errors", codes, {STRANGER: "UNKNOWN_MEMBER_ID", member.id: "NONE"})


@case(
    "groups/classic/describe/1",
    GROUPS,
    "DescribeGroups of a stable group",
    "its state, protocol and members",
    needs="DescribeGroups 4",
)
async def case_describe(stage: Stage) -> None:
    """A stable group is described with its members' metadata and assignments."""
    member = await joined(stage, stage.group(), assignment=b"\7", protocols=[("range", b"\5")])
    (group,) = (await stage.ask("DescribeGroups", groups=[member.group])).groups
    stage.error("DescribeGroups", group.error_code, "NONE")
    facts = (group.group_state, group.protocol_type, group.protocol_data)
    stage.equal("state, type and protocol", facts, ("Stable", "consumer", "range"))
    members = [(item.member_id, item.member_metadata, item.member_assignment) for item in group.members]
    stage.equal("members", members, [(member.id, b"\5", b"\7")])


@case(
    "groups/classic/describe/2",
    "KIP-1043",
    "DescribeGroups 6 of no group",
    "GROUP_ID_NOT_FOUND",
    needs="DescribeGroups 6",
)
async def case_describe_unknown(stage: Stage) -> None:
    """A group that is not there is not found; before version 6 it is described as dead."""
    name = stage.group()
    (group,) = (await stage.ask("DescribeGroups", groups=[name])).groups
    stage.error("DescribeGroups 6", group.error_code, "GROUP_ID_NOT_FOUND")
    (group,) = (await stage.ask("DescribeGroups", at=5, groups=[name])).groups
    stage.equal("DescribeGroups 5", (group.error_code, group.group_state), (0, "Dead"))


@case(
    "groups/classic/list/1",
    "KIP-518",
    "ListGroups of stable and of empty groups",
    "the group in one of them",
    needs="ListGroups 4",
)
async def case_list_states(stage: Stage) -> None:
    """A list of groups in some states has those alone."""
    member = await joined(stage, stage.group())
    stable = (await stage.ask("ListGroups", states_filter=["Stable"])).groups
    empty = (await stage.ask("ListGroups", states_filter=["Empty"])).groups
    states = {item.group_id: item.group_state for item in stable}
    stage.equal("its state", states.get(member.group), "Stable")
    stage.true(member.group not in {item.group_id for item in empty}, "it is among the empty groups")


@case(
    "groups/classic/list/2",
    "KIP-848",
    "ListGroups of classic and of consumer groups",
    "the group in one",
    needs="ListGroups 5",
)
async def case_list_types(stage: Stage) -> None:
    """A list of groups of some types has those alone."""
    member = await joined(stage, stage.group())
    classic = (await stage.ask("ListGroups", types_filter=["Classic"])).groups
    consumer = (await stage.ask("ListGroups", types_filter=["Consumer"])).groups
    types = {item.group_id: item.group_type.lower() for item in classic}
    stage.equal("its type", types.get(member.group), "classic")
    stage.true(member.group not in {item.group_id for item in consumer}, "it is among the consumer groups")


async def deletion(stage: Stage, group: str) -> str:
    return code_name((await stage.ask("DeleteGroups", groups_names=[group])).results[0].error_code)


@case(
    "groups/classic/delete/1",
    "KIP-229",
    "DeleteGroups of an empty group",
    "NONE, and it is gone",
    needs="DeleteGroups 1, LeaveGroup 3",
)
async def case_delete(stage: Stage) -> None:
    """An empty group can be deleted."""
    member = await joined(stage, stage.group())
    await stage.ask("LeaveGroup", group_id=member.group, members=[{"member_id": member.id}])
    stage.equal("DeleteGroups", await deletion(stage, member.group), "NONE")
    (group,) = (await stage.ask("DescribeGroups", at=5, groups=[member.group])).groups
    stage.equal("state", group.group_state, "Dead")


@case(
    "groups/classic/delete/2",
    "KIP-229",
    "DeleteGroups of a group with a member",
    "NON_EMPTY_GROUP",
    needs="DeleteGroups 1",
)
async def case_delete_non_empty(stage: Stage) -> None:
    """A group with members is not deleted."""
    member = await joined(stage, stage.group())
    stage.equal("DeleteGroups", await deletion(stage, member.group), "NON_EMPTY_GROUP")
    stage.equal("Heartbeat", await beat(stage, member), "NONE")


@case(
    "groups/classic/delete/3",
    "KIP-229",
    "DeleteGroups of no group",
    "GROUP_ID_NOT_FOUND",
    needs="DeleteGroups 1",
)
async def case_delete_unknown(stage: Stage) -> None:
    """What is not there can't be deleted."""
    stage.equal("DeleteGroups", await deletion(stage, stage.group()), "GROUP_ID_NOT_FOUND")
