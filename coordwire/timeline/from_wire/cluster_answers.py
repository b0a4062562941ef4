"""Answers that aren't about a group's members: coordinators, offsets, topics, transactions, settings.

Strategy: an answer's API says what it changes: names of topics (`group_table.TopicsById`), commits and lag
(`commits`), what is known of session timeouts (`member_death`), or, here, who coordinates a group. Rules: as
`capture_timeline`'s, which calls this with whole messages only.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from coordwire.capture.entries import FrameEntry
from coordwire.timeline.consumer_data import id_text
from coordwire.timeline.events import CoordinatorFound, ErrorMet, GroupConfigured, GroupEvent, TopicChanged
from coordwire.timeline.evidence import Seen, remember
from coordwire.timeline.from_wire.commits import Commits
from coordwire.timeline.from_wire.group_table import GroupTable, TopicsById
from coordwire.timeline.from_wire.member_death import KnownTimeouts
from coordwire.timeline.topic_changes import CHANGES_TOPICS
from coordwire.versions import ApiKey

__all__ = ["OTHER_APIS", "OtherAnswers"]

MOST_COORDINATORS = 10_000

OTHER_APIS = frozenset(map(int, (
    *CHANGES_TOPICS, ApiKey.FETCH, ApiKey.OFFSET_FETCH, ApiKey.OFFSET_DELETE, ApiKey.LIST_OFFSETS,
    ApiKey.METADATA, ApiKey.DESCRIBE_CLUSTER, ApiKey.DESCRIBE_CONFIGS, ApiKey.ALTER_CONFIGS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.API_VERSIONS,
    ApiKey.FIND_COORDINATOR, ApiKey.DELETE_GROUPS, ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN,
)))  # fmt: skip
"""The APIs whose answers say something, beside those about a group."""


class OtherAnswers:
    """The events of answers of these APIs."""

    def __init__(
        self, names: TopicsById, timeouts: KnownTimeouts, groups: GroupTable, commits: Commits
    ) -> None:
        self._names = names
        self._timeouts = timeouts
        self._groups = groups
        self._commits = commits
        self._coordinators: OrderedDict[str, int] = OrderedDict()

    def feed(self, entry: FrameEntry, request: Any, message: Any, place: Seen) -> Iterator[GroupEvent]:
        """The events of an answer whose request is known."""
        match entry.api_key:
            case ApiKey.OFFSET_FETCH:
                self._groups.asks_offsets(entry.client_id, request)
                yield from self._commits.fetched(request, message, place)
            case ApiKey.OFFSET_DELETE:
                yield from self._commits.deleted(entry.client_id, request.group_id, message, place)
            case ApiKey.LIST_OFFSETS:
                yield from self._commits.offsets_listed(request, message, place)
            case ApiKey.METADATA:
                self._learn_topics(message)
            case ApiKey.CREATE_TOPICS | ApiKey.CREATE_PARTITIONS | ApiKey.DELETE_TOPICS:
                if entry.api_key == ApiKey.CREATE_TOPICS:
                    self._learn_topics(message)
                elif entry.api_key == ApiKey.DELETE_TOPICS:
                    self._delete_topics(message)
                yield from self._topics_changed(entry, request, message, place)
            case ApiKey.DESCRIBE_CONFIGS:
                self._timeouts.described(message)
            case ApiKey.ALTER_CONFIGS | ApiKey.INCREMENTAL_ALTER_CONFIGS:
                for group, settings in self._timeouts.altered(request, message):
                    yield GroupConfigured(
                        group=group, **place._asdict(), client_id=entry.client_id, settings=settings
                    )
            case ApiKey.API_VERSIONS if message.error_code:
                yield _versions_refused(entry, message, place)
            case ApiKey.FIND_COORDINATOR if request.key_type == 0:
                yield from self._coordinator(entry, request, message, place)
            case ApiKey.INIT_PRODUCER_ID:
                yield from self._commits.init(entry.client_id, request, message, place)
            case ApiKey.ADD_PARTITIONS_TO_TXN:
                yield from self._commits.add_partitions(request, message, place)
            case ApiKey.ADD_OFFSETS_TO_TXN:
                yield from self._commits.add_offsets(entry.client_id, request, message, place)
            case ApiKey.END_TXN:
                yield from self._commits.end(request, message, place)

    def _topics_changed(
        self, entry: FrameEntry, request: Any, message: Any, place: Seen
    ) -> Iterator[GroupEvent]:
        """Topics were created, enlarged or deleted: for each group that is concerned."""
        changes = self._groups.topic_changes.learn(entry.api_key or 0, request, message, place)
        if not changes:
            return
        counts: dict[str, int] = {}
        if entry.api_key == ApiKey.CREATE_PARTITIONS:
            counts = {topic.name: topic.count for topic in request.topics}
        for group, topics in list(self._groups.concerned(frozenset(topic for topic, _ in changes))):
            for topic, deed in changes:
                if topic in topics:
                    yield TopicChanged(
                        group=group, **place._asdict(), client_id=entry.client_id, topic=topic,
                        deed=deed, partitions=counts.get(topic),
                    )  # fmt: skip

    def _learn_topics(self, message: Any) -> None:
        for name in self._names.learn(message):
            self._commits.lag.made_anew(name, self._names.id_of(name))

    def _delete_topics(self, message: Any) -> None:
        for result in message.responses:
            if not result.error_code:
                name = result.name or self._names.name_of(id_text(result.topic_id))
                self._names.delete(name)
                self._commits.lag.deleted(name)

    def _coordinator(
        self, entry: FrameEntry, request: Any, message: Any, place: Seen
    ) -> Iterator[GroupEvent]:
        coordinators = [(coordinator.key, coordinator) for coordinator in message.coordinators] or [
            (request.key, message)
        ]
        for group, coordinator in coordinators:
            if coordinator.error_code:
                known = self._groups.known(group)
                if known is not None:
                    known.clocks.unavailable(place)
                yield ErrorMet(
                    group=group, **place._asdict(), api="FindCoordinator", error_code=coordinator.error_code,
                    member_id=None, client_id=entry.client_id, message=coordinator.error_message,
                )  # fmt: skip
                continue
            before = self._coordinators.get(group)
            if before != coordinator.node_id:
                remember(self._coordinators, group, coordinator.node_id, MOST_COORDINATORS)
                yield CoordinatorFound(
                    group=group, **place._asdict(), node_id=coordinator.node_id, host=coordinator.host,
                    port=coordinator.port, moved=before is not None,
                )  # fmt: skip


def _versions_refused(entry: FrameEntry, message: Any, place: Seen) -> ErrorMet:
    """A broker that doesn't have the version in which it was asked for its versions."""
    own = next((versions for versions in message.api_keys if versions.api_key == ApiKey.API_VERSIONS), None)
    text = f"the broker doesn't have version {entry.api_version} of ApiVersions"
    if own is not None:
        text += f", but {own.min_version} to {own.max_version}"
    return ErrorMet(
        group="", **place._asdict(), api="ApiVersions", error_code=message.error_code, member_id=None,
        client_id=entry.client_id, message=text,
    )  # fmt: skip
