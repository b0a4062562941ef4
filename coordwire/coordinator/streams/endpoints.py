"""Where the members of a streams group serve interactive queries, and for which partitions.

Rules: what is known of a member is kept until it changes, or the topology is set up again; so an answer may
have older partitions than the member's tasks have by then, as Apache Kafka's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coordwire.coordinator.hash_tables import HashMap, HashSet
from coordwire.coordinator.model.streams_group import StreamsGroupModel, StreamsMember
from coordwire.coordinator.model.streams_topology import ConfiguredSubtopology
from coordwire.coordinator.refusal import contradiction
from coordwire.coordinator.state import State
from coordwire.messages.streams_group_heartbeat import (
    EndpointToPartitions,
    StreamsGroupHeartbeatResponseEndpoint,
    TopicPartition,
)


def endpoints_of_group(
    state: State, group: StreamsGroupModel, member: StreamsMember, replaced: str | None
) -> list[EndpointToPartitions]:
    """The endpoints of all members, this one's last; `member` is as it is after its heartbeat.

    replaced: the id of the member whose place it took.
    """
    members = [
        known for known in group.members.values() if known.member_id not in (member.member_id, replaced)
    ]
    entries = []
    for known in [*members, member]:
        if not known.is_described:
            raise contradiction()
        if known.endpoint is None:
            continue
        endpoint = group.endpoints.get(known.member_id)
        if endpoint is None:
            endpoint = group.endpoints[known.member_id] = _endpoint(state, group, known)
        entries.append(endpoint)
    return entries


def _endpoint(state: State, group: StreamsGroupModel, member: StreamsMember) -> EndpointToPartitions:
    configured = group.configured.value
    if not member.is_placed or configured is None or configured.subtopologies is None:
        raise contradiction()
    assert member.endpoint is not None
    parts = configured.subtopologies
    return EndpointToPartitions(
        user_endpoint=StreamsGroupHeartbeatResponseEndpoint(
            host=member.endpoint.host, port=member.endpoint.port
        ),
        active_partitions=_partitions(state, member.tasks.active, parts),
        standby_partitions=_partitions(
            state, {part_id: HashSet.of(ids) for part_id, ids in member.tasks.standby.items()}, parts
        ),
    )


def _partitions(
    state: State, tasks: Mapping[str, Iterable[int]], parts: Mapping[str, ConfiguredSubtopology]
) -> list[TopicPartition]:
    """The source topics of tasks, with the partitions that each topic has of them, or as many of them."""
    entries = []
    for part_id, partitions_of_part in HashMap.of(tasks).items():
        part = parts.get(part_id)
        if part is None:
            raise contradiction()
        ids = list(partitions_of_part)
        names = HashSet.copy_of(part.source_topics)
        names.update(part.repartition_sources)
        for name in names:
            topic = state.topics.find(name)
            if topic is None:
                raise contradiction()
            if state.rules.streams_endpoints_have_existing_partitions:
                partitions = sorted(index for index in ids if index < topic.partitions)
                if not partitions:
                    continue
            else:
                partitions = sorted(ids)[: topic.partitions] if topic.partitions < len(ids) else ids
            entries.append(TopicPartition(topic=name, partitions=list(partitions)))
    return entries
