"""Short words for what is asked every day, and the requests that they mean.

    topics [NAME…]       Metadata, a row a topic
    groups               ListGroups
    brokers              Metadata, a row a broker
    configs [KIND:]NAME… DescribeConfigs; KIND: topic (default), broker, group, client_metrics
    lag [GROUP…]         ListGroups, OffsetFetch and ListOffsets: how much groups have yet to read

Rules: a word means an API and fields, as they could be given at length; fields may follow it. A
partition without a committed offset has no row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from coordwire.capture.printable import shown
from coordwire.cli import Failure
from coordwire.cli.call.answer_tables import Table
from coordwire.enums import ErrorCode
from coordwire.messages import ListGroupsRequest, ListOffsetsRequest, OffsetFetchRequest
from coordwire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from coordwire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from coordwire.versions import ApiKey

if TYPE_CHECKING:
    from coordwire.client import SyncClient


class Verb(NamedTuple):
    """api: what is asked; path: the list of its answer, with its columns; words: the fields for a name."""

    api: str
    path: str
    columns: tuple[str, ...]
    words: Callable[[str], Sequence[str]] | None = None
    needs_names: bool = False


def _config_words(name: str) -> Sequence[str]:
    kind, sign, resource = name.partition(":")
    if not sign:
        kind, resource = "topic", name
    return f"resources.resource_type={kind}", f"resources.resource_name={resource}"


VERBS: Mapping[str, Verb] = {
    "topics": Verb(
        "Metadata", "topics", ("name", "partitions", "is_internal", "error_code"),
        lambda name: (f"topics.name={name}",),
    ),
    "groups": Verb("ListGroups", "groups", ("group_id", "group_state", "group_type", "protocol_type")),
    "brokers": Verb("Metadata", "brokers", ("node_id", "host", "port", "rack")),
    "configs": Verb(
        "DescribeConfigs", "results.configs",
        ("error_code", "resource_name", "name", "value", "config_source"),
        _config_words, needs_names=True,
    ),
}  # fmt: skip
LAG = "lag"


def spelled(verb: str, words: Sequence[str]) -> tuple[str, list[str]]:
    """The API and the fields that a verb and what follows it mean. Raises `Failure`."""
    known = VERBS[verb]
    fields: list[str] = []
    for word in words:
        if "=" in word:
            fields.append(word)
        elif known.words is None:
            raise Failure(f"call: {verb}: expected no names, got {word!r}")
        else:
            fields += known.words(word)
    if known.needs_names and not fields:
        raise Failure(f"call: {verb}: expected the names of topics, or broker:ID, group:NAME")
    return known.api, fields


# --- lag ---


def group_ids(client: SyncClient) -> list[str]:
    """All groups of the cluster."""
    return sorted({group.group_id for group in client.request(ListGroupsRequest()).groups})


def committed(groups: Sequence[str]) -> OffsetFetchRequest:
    """The request for all offsets of groups."""
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=name, topics=None) for name in groups])


_BY_NAME = 9
"""The last version of OffsetFetch that names topics."""

_GROUPS = 8
"""The first version of OffsetFetch that has several groups (KIP-709, Kafka 3.0)."""

_LATEST = -1


def _committed_offsets(client: SyncClient, groups: Sequence[str]) -> list[OffsetFetchResponseGroup]:
    """All offsets of groups; a broker before Kafka 3.0 is asked for one group after the other."""
    offered = client.session().versions.get(ApiKey.OFFSET_FETCH)
    newest = _BY_NAME if offered is None else min(offered.last, _BY_NAME)
    if newest >= _GROUPS:
        return client.request(committed(groups), version=newest).groups
    answers = [client.request(OffsetFetchRequest(group_id=name, topics=None)) for name in groups]
    return [
        OffsetFetchResponseGroup(
            group_id=name,
            error_code=answer.error_code,
            topics=[
                OffsetFetchResponseTopics(
                    name=topic.name,
                    partitions=[
                        OffsetFetchResponsePartitions(
                            partition_index=part.partition_index,
                            committed_offset=part.committed_offset,
                            error_code=part.error_code,
                        )
                        for part in topic.partitions
                    ],
                )
                for topic in answer.topics
            ],
        )
        for name, answer in zip(groups, answers, strict=True)
    ]


def lag(client: SyncClient, groups: Sequence[str]) -> tuple[Table, list[dict[str, Any]], int]:
    """The lag of groups as a table, as objects, and the exit status."""
    answered_groups = _committed_offsets(client, groups)
    places: dict[str, set[int]] = {}
    for group in answered_groups:
        for topic in group.topics:
            places.setdefault(topic.name, set()).update(part.partition_index for part in topic.partitions)
    ends: dict[tuple[str, int], int | ErrorCode] = {}
    if places:
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(
                    name=name,
                    partitions=[
                        ListOffsetsPartition(partition_index=index, timestamp=_LATEST)
                        for index in sorted(indexes)
                    ],
                )
                for name, indexes in sorted(places.items())
            ],
        )
        for answered in client.request(request).topics:
            for part in answered.partitions:
                error = ErrorCode(part.error_code)
                ends[answered.name, part.partition_index] = error if error else part.offset
    forms: list[dict[str, Any]] = []
    status = 0
    for group in sorted(answered_groups, key=lambda group: group.group_id):
        if group.error_code:
            status = 1
            forms.append({"group": group.group_id, "error": ErrorCode(group.error_code).name})
        for topic in sorted(group.topics, key=lambda topic: topic.name):
            for place in sorted(topic.partitions, key=lambda place: place.partition_index):
                form: dict[str, Any] = {
                    "group": group.group_id, "topic": topic.name, "partition": place.partition_index,
                    "committed": place.committed_offset,
                }  # fmt: skip
                end = ends.get((topic.name, place.partition_index), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                if isinstance(end, ErrorCode):
                    form["error"], status = end.name, 1
                else:
                    form |= {"end": end, "lag": max(end - place.committed_offset, 0)}
                forms.append(form)
    names = ["group", "topic", "partition", "committed", "end", "lag"]
    if any("error" in form for form in forms):
        names.append("error")
    rows = [[shown(str(form.get(name, "-"))) for name in names] for form in forms]
    return Table(names, rows, range(2, 6)), forms, status
