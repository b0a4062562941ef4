"""What an operator has to change before the upgrade, and what he has to know, from the group's record alone.

Rules: an advice names the setting as Kafka does, and the members that it is about. Faults of Apache Kafka
have their tickets, and are named where a release that has them is rehearsed and the group can meet them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from coordwire.coordinator import CoordinatorConfig
from coordwire.coordinator.model.classic_group import CONSUMER_PROTOCOL_TYPE
from coordwire.designs.rehearsal.recorded_group import RecordedGroup, RecordedMember
from coordwire.designs.rehearsal.rolling_restart import RollConfig

_SESSION_MS = 45_000
_LEAST_SESSION_MS, _MOST_SESSION_MS = 45_000, 60_000
"""The Java client's default, and Kafka's limits of a consumer group's session time-out."""

_MOST_NAMED = 3
_STALE_UPGRADES = frozenset({"4.3.0", "4.3.1", "4.4.0"})
"""Releases before 4.3.3 and 4.4.1."""

_SINCE = {
    "empty": "it has no members now", "deleted": "it was deleted since",
    "consumer": "it is a consumer group now",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Advice:
    """kind: "change" what is in the way of the upgrade or would stop a client; "know" what will be
    different; "fault" what the release does wrong. ticket: of Apache Kafka, or ""."""

    kind: Literal["change", "know", "fault"]
    text: str
    ticket: str = ""


def advice(
    group: RecordedGroup, coordinators: Sequence[CoordinatorConfig], settings: RollConfig
) -> Iterator[Advice]:
    """What is to change first, then what to know. settings: with which the upgrade is rehearsed."""
    every = [*_protocol(group), *_policy(coordinators), *_size(group, coordinators)]
    every += [*_client_settings(group, coordinators), *_topics(group), *_assignor(group, settings)]
    every += [*_static(group, settings), *_faults(group, coordinators)]
    for kind in ("change", "fault", "know"):
        yield from (advice for advice in every if advice.kind == kind)


def _names(members: Sequence[RecordedMember]) -> str:
    named = ", ".join(member.name for member in members[:_MOST_NAMED])
    further = len(members) - _MOST_NAMED
    return f"{named} and {further} more" if further > 0 else named


# --- what is in the way ---


def _protocol(group: RecordedGroup) -> Iterator[Advice]:
    kind = group.value.protocol_type
    if kind != CONSUMER_PROTOCOL_TYPE:
        text = f"The group's protocol type is {kind!r}: only groups of consumers can be upgraded."
        yield Advice("change", text)
    custom = [member for member in group.members if member.data]
    if custom:
        yield Advice(
            "change",
            f"The assignor {group.value.protocol} adds data of its own to assignments ({_names(custom)}). "
            "Change partition.assignment.strategy to range or cooperative-sticky in a rolling restart of its "
            "own first.",
        )
    for problem in dict.fromkeys(member.problem for member in group.members if member.problem):
        members = [member for member in group.members if member.problem == problem]
        yield Advice("change", f"Of {_names(members)}: {problem}, which a coordinator refuses to convert.")


def _policy(coordinators: Sequence[CoordinatorConfig]) -> Iterator[Advice]:
    policy = coordinators[0].migration_policy
    if not policy.upgrades:
        yield Advice(
            "change",
            f"group.consumer.migration.policy is {policy.value} on the brokers: set it to bidirectional, or "
            "to upgrade.",
        )
    elif not policy.downgrades:
        yield Advice(
            "know",
            f"group.consumer.migration.policy is {policy.value}: the group stays a consumer group when its "
            "last consumer member leaves, and its classic members go on in it.",
        )


def _size(group: RecordedGroup, coordinators: Sequence[CoordinatorConfig]) -> Iterator[Advice]:
    most = coordinators[0].consumer_group_max_size
    if len(group.members) > most:
        yield Advice(
            "change",
            f"group.consumer.max.size is {most:,}, and the group has {len(group.members):,} members.",
        )


def _client_settings(group: RecordedGroup, coordinators: Sequence[CoordinatorConfig]) -> Iterator[Advice]:
    session_ms = coordinators[0].consumer.session_timeout_ms
    changed = [member for member in group.members if member.record.session_timeout != _SESSION_MS]
    if changed:
        times = sorted({member.record.session_timeout for member in changed})
        names = ", ".join(f"{time:,}" for time in times[:_MOST_NAMED])
        text = (
            f"session.timeout.ms ({names} ms: {_names(changed)}) and heartbeat.interval.ms must go from the "
            "clients' settings, with which they do not start under group.protocol=consumer. The brokers' "
            f"group.consumer.session.timeout.ms counts then, {session_ms:,} ms"
        )
        if any(not _LEAST_SESSION_MS <= time <= _MOST_SESSION_MS for time in times):
            text += f", which Kafka limits to {_LEAST_SESSION_MS:,} to {_MOST_SESSION_MS:,} by default"
        yield Advice("change", text + ".")
    protocol = group.value.protocol
    if protocol not in (None, "range") and group.value.protocol_type == CONSUMER_PROTOCOL_TYPE:
        yield Advice(
            "change",
            f"partition.assignment.strategy (the group uses {protocol}) must go from the clients' settings "
            "with the upgrade; group.remote.assignor takes its place.",
        )


def _topics(group: RecordedGroup) -> Iterator[Advice]:
    missing = [topic for topic, count in group.partitions.items() if not count]
    if missing:
        names = ", ".join(missing[:_MOST_NAMED])
        yield Advice(
            "know",
            f"No partition of {names} was seen: taken as missing. State them with --partitions TOPIC=N.",
        )
    if group.since:
        text = f"The group is rehearsed as it last was with classic members; {_SINCE[group.since]}."
        yield Advice("know", text)


# --- what will be different ---


def _assignor(group: RecordedGroup, settings: RollConfig) -> Iterator[Advice]:
    several = any(len(member.topics) > 1 for member in group.members)
    if group.value.protocol == "range" and several and settings.assignor != "range":
        yield Advice(
            "know",
            "range gives a member the same partitions of each topic; uniform, the brokers' default, need "
            "not. Where topics are joined by partition, set group.remote.assignor=range.",
        )


def _static(group: RecordedGroup, settings: RollConfig) -> Iterator[Advice]:
    late = [
        member for member in group.members
        if member.record.group_instance_id is not None
        and member.record.session_timeout <= settings.away_ms
    ]  # fmt: skip
    if late:
        yield Advice(
            "know",
            f"{_names(late)}: static, and away for longer than the session time-out: the group rebalances as "
            "without group.instance.id.",
        )


# --- known faults ---


def _faults(group: RecordedGroup, coordinators: Sequence[CoordinatorConfig]) -> Iterator[Advice]:
    releases = [coordinator.release for coordinator in coordinators]
    shared = Counter(partition for member in group.members for partition in set(member.owned))
    twice = [partition for partition, owners in shared.items() if owners > 1]
    if twice:
        topic, number = twice[0]
        yield Advice(
            "fault",
            f"{topic}-{number} is assigned to two members: the upgrade fails with UNKNOWN_SERVER_ERROR until "
            "a rebalance mends that (all releases).",
            "KAFKA-21684",
        )
    elif "sticky" in (group.value.protocol or ""):
        yield Advice(
            "fault",
            f"{group.value.protocol} assigns a partition twice after a topic was created again with fewer "
            "partitions (KAFKA-21674); the upgrade then fails with UNKNOWN_SERVER_ERROR.",
            "KAFKA-21684",
        )
    static = [member for member in group.members if member.record.group_instance_id is not None]
    stale = [release for release in releases if release in _STALE_UPGRADES]
    if static and stale:
        yield Advice(
            "fault",
            f"{', '.join(stale)}: if a static member ({_names(static)}) is the first consumer, and comes "
            "while the group rebalances, the group keeps the assignment from before. Restart it in a stable "
            "group.",
            "KAFKA-21582",
        )
