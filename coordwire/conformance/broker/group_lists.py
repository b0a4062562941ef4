"""Cases: coordinators are found; groups are described, listed and deleted, several at once."""

from __future__ import annotations

from typing import Any

from coordwire.conformance.broker.classic_groups import GROUPS, GenerationMember, join, joined, synchronized
from coordwire.conformance.broker.consumer_groups import HEARTBEAT, consumer
from coordwire.conformance.broker.offsets import committed
from coordwire.conformance.broker.stage import Stage, case, table
from coordwire.conformance.cases import code_name

__all__: list[str] = []

KIP_518, KIP_699, KIP_229 = "KIP-518", "KIP-699", "KIP-229"


async def described(stage: Stage, *groups: str, **values: Any) -> list[Any]:
    result: list[Any] = (await stage.ask("DescribeGroups", at=5, groups=list(groups), **values)).groups
    return result


async def waiting_member(stage: Stage, group: str) -> GenerationMember:
    """A member that has joined and has no assignment yet."""
    client = await stage.client()
    answer = await join(stage, group, client)
    stage.error("JoinGroup", answer.error_code, "NONE")
    return GenerationMember(client, group, answer.member_id, answer.generation_id, answer.leader)


async def preparing(stage: Stage) -> str:
    """A group whose member has not joined again yet."""
    member = await joined(stage, stage.group())
    stage.later(join(stage, member.group, await stage.client()))

    async def is_preparing() -> bool:
        return bool((await described(stage, member.group))[0].group_state == "PreparingRebalance")

    await stage.until(is_preparing, "the group prepares a rebalance")
    return member.group


async def completing(stage: Stage) -> str:
    return (await waiting_member(stage, stage.group())).group


async def empty(stage: Stage) -> str:
    group = stage.group()
    await committed(stage, group, await stage.topic(), 1)
    return group


async def dead(stage: Stage) -> str:
    return stage.group()


async def stable(stage: Stage) -> str:
    return (await joined(stage, stage.group())).group


STATES = [
    ("PreparingRebalance", "a member has to join again", preparing),
    ("CompletingRebalance", "the leader has not assigned yet", completing),
    ("Empty", "a group has offsets and no members", empty),
]


async def state_described(stage: Stage, answer: str, make: Any) -> None:
    (group,) = await described(stage, await make(stage))
    stage.error("DescribeGroups", group.error_code, "NONE")
    stage.equal("state", group.group_state, answer)


async def state_listed(stage: Stage, answer: str, make: Any) -> None:
    name = await make(stage)
    groups = (await stage.ask("ListGroups", at=4, states_filter=[answer])).groups
    stage.equal("state", {item.group_id: item.group_state for item in groups}.get(name), answer)
    stage.equal("other states", {item.group_state for item in groups} - {answer}, set())


table(GROUPS, "JoinGroup 4, OffsetCommit 7, DescribeGroups 5", state_described, [
    (f"groups/classic/describe/{number}", f"DescribeGroups where {reason}", name,
     "A group is described with its state.", make)
    for number, (name, reason, make) in enumerate([*STATES, ("Dead", "there is none", dead)], 3)
])  # fmt: skip
table(KIP_518, "JoinGroup 4, OffsetCommit 7, ListGroups 4", state_listed, [
    (f"groups/classic/list/{number}", f"ListGroups of a state, where {reason}", name,
     "A list of groups in a state has those alone.", make)
    for number, (name, reason, make) in enumerate(STATES, 3)
])  # fmt: skip


@case("groups/classic/describe/7", GROUPS, "DescribeGroups of three groups", "each in their order",
      needs="JoinGroup 4, DescribeGroups 5")  # fmt: skip
async def case_describe_several(stage: Stage) -> None:
    """Several groups are described at once, each for itself."""
    names = [stage.group(), await stable(stage), await completing(stage)]
    groups = await described(stage, *names)
    stage.equal("groups", sorted(item.group_id for item in groups), sorted(names))
    states = {item.group_id: item.group_state for item in groups}
    stage.equal("states", [states[name] for name in names], ["Dead", "Stable", "CompletingRebalance"])


@case("groups/classic/describe/8", GROUPS, "DescribeGroups before the leader has assigned", "no metadata",
      needs="JoinGroup 4, DescribeGroups 5")  # fmt: skip
async def case_describe_early(stage: Stage) -> None:
    """Members have their metadata and assignments in the description of a stable group alone."""
    client, name = await stage.client(), stage.group()
    answer = await join(stage, name, client, protocols=[("range", b"\5\6")])
    stage.error("JoinGroup", answer.error_code, "NONE")
    (group,) = await described(stage, name)
    (item,) = group.members
    stage.equal("metadata and assignment", (item.member_metadata, item.member_assignment), (b"", b""))


@case("groups/classic/describe/9", "KIP-430", "DescribeGroups with and without operations",
      "operations only if asked", needs="JoinGroup 4, DescribeGroups 5")  # fmt: skip
async def case_operations(stage: Stage) -> None:
    """Who asks for what it may do gets it; others get the least number."""
    name = await stable(stage)
    (group,) = await described(stage, name)
    stage.equal("operations", group.authorized_operations, -(1 << 31))
    (group,) = await described(stage, name, include_authorized_operations=True)
    stage.true(group.authorized_operations > 0, "there are no operations")


@case("groups/classic/describe/10", GROUPS, "DescribeGroups of a stable group",
      "each member's client id and host", needs="JoinGroup 4, DescribeGroups 5")  # fmt: skip
async def case_client(stage: Stage) -> None:
    """A member is described with the client id of its requests and where it comes from."""
    (group,) = await described(stage, await stable(stage))
    (item,) = group.members
    stage.equal("client id", item.client_id, stage.settings.client_id)
    stage.true(item.client_host.lstrip("/") != "", "there is no host")


@case("groups/classic/list/6", "KIP-848", "ListGroups of the types CLASSIC and nothing", "types in any case",
      needs="JoinGroup 4, ListGroups 5")  # fmt: skip
async def case_type_case(stage: Stage) -> None:
    """A type may be written in capital letters; one that is unknown selects nothing."""
    name = await stable(stage)
    groups = (await stage.ask("ListGroups", types_filter=["CLASSIC"])).groups
    stage.true(name in {item.group_id for item in groups}, "it is not among the classic groups")
    groups = (await stage.ask("ListGroups", types_filter=["nothing"])).groups
    stage.equal("groups of an unknown type", groups, [])


@case(
    "groups/classic/list/7",
    KIP_518,
    "ListGroups of two states",
    "groups in either",
    needs="JoinGroup 4, ListGroups 4",
)
async def case_two_states(stage: Stage) -> None:
    """Several states select the groups in any of them."""
    names = {await stable(stage), await completing(stage)}
    answer = await stage.ask("ListGroups", at=4, states_filter=["Stable", "CompletingRebalance"])
    stage.equal("groups", names & {item.group_id for item in answer.groups}, names)


@case("groups/classic/list/8", KIP_518, "ListGroups of a state that is unknown", "no groups",
      needs="JoinGroup 4, ListGroups 4")  # fmt: skip
async def case_unknown_state(stage: Stage) -> None:
    """A state that no group can have selects nothing."""
    await stable(stage)
    stage.equal("groups", (await stage.ask("ListGroups", at=4, states_filter=["Busy"])).groups, [])


async def lists(stage: Stage, answer: str, version: int) -> None:
    name = await stable(stage)
    groups = (await stage.ask("ListGroups", at=version)).groups
    types = [item.protocol_type for item in groups if item.group_id == name]
    stage.equal("protocol types", types, ["consumer"])


table(GROUPS, "JoinGroup 4, ListGroups 0", lists, [
    (f"groups/classic/list/{number + 9}", f"ListGroups {number}", "the group, with its protocol type",
     "Every group is listed once, in every version that is offered.", number)
    for number in range(6)
])  # fmt: skip


@case("groups/classic/list/15", GROUPS, "a group with offsets alone is listed", "no protocol type",
      needs="OffsetCommit 7, ListGroups 4")  # fmt: skip
async def case_simple(stage: Stage) -> None:
    """A group that never had members is listed without a protocol type."""
    name = await empty(stage)
    groups = (await stage.ask("ListGroups", at=4)).groups
    stage.equal("types", [item.protocol_type for item in groups if item.group_id == name], [""])


# --- deleting ---


async def deletions(stage: Stage, *groups: str, at: int | None = None) -> list[str]:
    """Each group's error, in their order."""
    answer = await stage.ask("DeleteGroups", at=at, groups_names=list(groups))
    errors = {item.group_id: code_name(item.error_code) for item in answer.results}
    return [errors[group] for group in groups]


@case("groups/classic/delete/4", KIP_229, "DeleteGroups of an empty group, a stable one and none",
      "an error for each", needs="JoinGroup 4, OffsetCommit 7, DeleteGroups 1")  # fmt: skip
async def case_delete_several(stage: Stage) -> None:
    """Each of several groups has an error of its own."""
    errors = await deletions(stage, await empty(stage), await stable(stage), stage.group())
    stage.equal("errors", errors, ["NONE", "NON_EMPTY_GROUP", "GROUP_ID_NOT_FOUND"])


async def deletes(stage: Stage, answer: str, version: int) -> None:
    name = await empty(stage)
    for error in ("NONE", "GROUP_ID_NOT_FOUND"):
        stage.equal("errors", await deletions(stage, name, at=version), [error])


table(KIP_229, "OffsetCommit 7, DeleteGroups 0", deletes, [
    (f"groups/classic/delete/{number + 5}", f"DeleteGroups {number}, twice", "NONE, then GROUP_ID_NOT_FOUND",
     "A group is deleted once, in every version that is offered.", number)
    for number in range(4)
])  # fmt: skip


@case("groups/classic/delete/9", KIP_229, "DeleteGroups, then JoinGroup", "generation 1",
      needs="JoinGroup 4, LeaveGroup 3, DeleteGroups 1")  # fmt: skip
async def case_delete_and_join(stage: Stage) -> None:
    """A group of a deleted group's name begins anew."""
    member = await joined(stage, stage.group())
    answer = await join(stage, member.group, member.client, member_id=member.id)
    stage.equal("generation", answer.generation_id, 2)
    await stage.ask("LeaveGroup", group_id=member.group, members=[{"member_id": member.id}])
    stage.equal("errors", await deletions(stage, member.group), ["NONE"])
    stage.equal("generation", (await joined(stage, member.group)).generation, 1)


@case("groups/classic/delete/10", KIP_229, "DeleteGroups while a member waits for its assignment",
      "NON_EMPTY_GROUP", needs="JoinGroup 4, DeleteGroups 1")  # fmt: skip
async def case_delete_completing(stage: Stage) -> None:
    """A group is deleted in no state in which it has members."""
    member = await waiting_member(stage, stage.group())
    stage.equal("errors", await deletions(stage, member.group), ["NON_EMPTY_GROUP"])
    stage.error("SyncGroup", (await synchronized(stage, member, {member.id: b"a"})).error_code, "NONE")


# --- coordinators ---


async def finds(stage: Stage, answer: str, version: int) -> None:
    name = stage.group()
    if version >= 4:
        result = await stage.ask("FindCoordinator", at=version, key_type=0, coordinator_keys=[name])
        (coordinator,) = result.coordinators
        stage.equal("key", coordinator.key, name)
    else:
        coordinator = await stage.ask("FindCoordinator", at=version, key=name)
    stage.error("FindCoordinator", coordinator.error_code, "NONE")
    stage.true(
        coordinator.host != "" and coordinator.port > 0 and coordinator.node_id >= 0, "there is no address"
    )


table(KIP_699, "FindCoordinator 0", finds, [
    (f"groups/coordinator/{number + 1}", f"FindCoordinator {number}", "a broker's id and address",
     "A group has a coordinator, in every version that is offered.", number)
    for number in range(7)
])  # fmt: skip


@case("groups/coordinator/8", KIP_699, "FindCoordinator 4 of three groups", "three answers with their keys",
      needs="FindCoordinator 4")  # fmt: skip
async def case_find_several(stage: Stage) -> None:
    """Several coordinators are found at once."""
    names = [stage.group() for _ in range(3)]
    answer = await stage.ask("FindCoordinator", at=4, key_type=0, coordinator_keys=names)
    stage.equal("keys", sorted(item.key for item in answer.coordinators), sorted(names))
    errors = {code_name(item.error_code) for item in answer.coordinators}
    stage.equal("errors", errors, {"NONE"})


@case(
    "groups/coordinator/9",
    KIP_699,
    "FindCoordinator of a group twice",
    "the same broker",
    needs="FindCoordinator 3",
)
async def case_find_again(stage: Stage) -> None:
    """A group's coordinator stays while brokers do."""
    name = stage.group()
    nodes = [(await stage.ask("FindCoordinator", at=3, key=name)).node_id for _ in range(2)]
    stage.equal("nodes", nodes[0], nodes[1])


async def refused_find(stage: Stage, answer: str, key: str, key_type: int) -> None:
    result = await stage.ask("FindCoordinator", at=4, key_type=key_type, coordinator_keys=[key])
    code = result.coordinators[0].error_code if result.coordinators else result.error_code
    stage.error("FindCoordinator", code, answer)


table(KIP_699, "FindCoordinator 4", refused_find, [
    ("groups/coordinator/10", "FindCoordinator of the key type 9", "INVALID_REQUEST",
     "Keys are of groups, of transactions or of share groups.", "k", 9),
])  # fmt: skip


@case("groups/coordinator/11", "KIP-98", "FindCoordinator of a transactional id", "a broker's id and address",
      needs="FindCoordinator 4")  # fmt: skip
async def case_find_transaction(stage: Stage) -> None:
    """A transactional id has a coordinator."""
    keys = [stage.transactional_id()]
    (coordinator,) = (
        await stage.ask("FindCoordinator", at=4, key_type=1, coordinator_keys=keys)
    ).coordinators
    stage.error("FindCoordinator", coordinator.error_code, "NONE")
    stage.true(coordinator.host != "" and coordinator.port > 0, "there is no address")


@case("groups/consumer/describe/3", "KIP-848", "DescribeGroups 6 of a consumer group", "GROUP_ID_NOT_FOUND",
      needs=f"{HEARTBEAT}, DescribeGroups 6")  # fmt: skip
async def case_describe_consumer(stage: Stage) -> None:
    """A consumer group is not described as a classic group."""
    member = await consumer(stage)
    (group,) = (await stage.ask("DescribeGroups", groups=[member.group])).groups
    stage.error("DescribeGroups", group.error_code, "GROUP_ID_NOT_FOUND")


@case("groups/consumer/describe/4", "KIP-848", "ConsumerGroupDescribe of a classic group",
      "GROUP_ID_NOT_FOUND", needs=f"{HEARTBEAT}, ConsumerGroupDescribe 0")  # fmt: skip
async def case_describe_classic(stage: Stage) -> None:
    """A classic group is not described as a consumer group."""
    (group,) = (await stage.ask("ConsumerGroupDescribe", group_ids=[await stable(stage)])).groups
    stage.error("ConsumerGroupDescribe", group.error_code, "GROUP_ID_NOT_FOUND")
