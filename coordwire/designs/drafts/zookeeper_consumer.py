"""The consumer that ZooKeeper coordinates: each decides alone, from what it reads there, what it owns.

Source: Kafka's implementation page ("Consumer registration algorithm", "Consumer rebalancing algorithm"), a
description of ZookeeperConsumerConnector, which has the retries, the order of the steps, and what happens
when a session expires, and that class of Kafka 0.8.2.2 and 1.1.1, which judges all of it. Strategy: one
procedure for the class's threads, which its rebalance lock lets run one at a time: it registers, rebalances,
and then does so again whenever a watch has fired since. Rules: fetchers stop, and offsets are committed,
before ownership is released; ownership is claimed before fetchers start; one claim that fails gives up all of
them. What the page gets wrong (herd effect, split brain) is as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal
from uuid import UUID

from coordwire.codec import Message
from coordwire.designs.drafts.actions import DraftPartition, EndSession, FetchersStarted, FetchersStopped
from coordwire.designs.drafts.consumer_streams import (
    DEFAULT_DECODERS,
    ConsumerFetcherManager,
    ConsumerStreams,
    Decoders,
    StreamingConsumer,
    StreamSettings,
)
from coordwire.designs.drafts.machine import Machine, Procedure, Steps, Wait
from coordwire.designs.drafts.topic_interest import TopicInterest
from coordwire.designs.drafts.zookeeper_assignment import (
    KafkaRelease,
    Plan,
    SortBy,
    filtered_interest,
    range_plan,
    read_topics,
    registered_interest,
    round_robin_plan,
)
from coordwire.designs.drafts.zookeeper_offsets import GroupOffsets, OffsetSettings
from coordwire.designs.drafts.zookeeper_operations import (
    CreateNode,
    DeleteNode,
    GetChildren,
    GetData,
    NodeExists,
    OperationOutcome,
    WatchEvent,
)
from coordwire.designs.drafts.zookeeper_steps import ensure_parents
from coordwire.dialects.zookeeper import Owner, Registration, StaticTopics, Topic, escaped_twice
from coordwire.errors import CoordwireError, DecodeError

_TOPICS = "/brokers/topics"
_BROKERS = "/brokers/ids"
_WATCHER = "watcher"
_COMMIT = "commit"


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperConsumerConfig:
    """A consumer's settings, with the names and defaults of Kafka 0.8, in milliseconds.

    kafka_version: the release to follow where documents and releases differ; None: the documents, so that
    each change of the brokers is a rebalance. sort_by: what is divided into ranges. exclude_internal_topics:
    whether wildcards leave Kafka's own topics out. The others of streams are those of `StreamSettings`.
    """

    group_id: str
    consumer_id: str
    topic_count: str
    rebalance_max_retries: int = 4
    rebalance_backoff_ms: int = 2_000
    auto_commit_enable: bool = True
    auto_commit_interval_ms: int = 60_000
    partition_assignment_strategy: Literal["range", "roundrobin"] = "range"
    kafka_version: Literal["0.8.2.2", "1.1.1"] | None = None
    sort_by: SortBy = SortBy.NUMBER
    offsets_storage: Literal["zookeeper", "kafka"] = "zookeeper"
    dual_commit_enabled: bool = False
    offsets_commit_max_retries: int = 5
    exclude_internal_topics: bool = True
    queued_max_messages: int = 2
    consumer_timeout_ms: int = -1
    fetch_message_max_bytes: int = 1 << 20
    client_id: str | None = None

    @property
    def internal_topics(self) -> frozenset[str]:
        """Topics that a wildcard leaves out."""
        return self.release.internal_topics if self.exclude_internal_topics else frozenset()

    @property
    def stream_settings(self) -> StreamSettings:
        """Those of the streams; client.id is the group's by default."""
        return StreamSettings(
            queued_max_messages=self.queued_max_messages, consumer_timeout_ms=self.consumer_timeout_ms,
            fetch_message_max_bytes=self.fetch_message_max_bytes,
            client_id=self.group_id if self.client_id is None else self.client_id,
        )  # fmt: skip

    @property
    def offset_settings(self) -> OffsetSettings:
        """Those of where offsets are."""
        return OffsetSettings(
            offsets_storage=self.offsets_storage, dual_commit_enabled=self.dual_commit_enabled,
            offsets_commit_max_retries=self.offsets_commit_max_retries,
            literal=self.kafka_version is not None,
        )  # fmt: skip

    @property
    def release(self) -> KafkaRelease:
        """The release whose rules hold; the documents are of the time of 1.1."""
        return KafkaRelease(self.kafka_version or KafkaRelease.KAFKA_1_1)


def transient_consumer_id(hostname: str, uuid: UUID) -> str:
    """An id that no other consumer has, nor the same one when it starts again, of the implementation page's
    form "hostname:uuid"."""
    return f"{hostname}:{uuid}"


class MessageStreamsExist(CoordwireError):
    """A listener comes before the streams, or not at all."""


class ConsumerRebalanceListener:
    """An application's callbacks; by default they do nothing."""

    def before_releasing_partitions(self, owned: Mapping[DraftPartition, int]) -> None:
        """Fetchers have stopped, offsets are committed; each partition with how far it was consumed."""

    def before_starting_fetchers(self, consumer_id: str, plan: Plan) -> None:
        """Everything is claimed; the plan of the whole group. Since 0.9: not with 0.8.2.2."""


class ZooKeeperConsumer(Machine, StreamingConsumer):
    """One consumer. decoders: of its messages' keys and values, as createMessageStreams is given them.

    Raises `DecodeError` or `EncodeError` for a topic_count or ids that cannot be used.
    """

    def __init__(
        self, config: ZooKeeperConsumerConfig, *, now: int = 0, decoders: Decoders = DEFAULT_DECODERS
    ) -> None:
        super().__init__(now=now)
        self.config = config
        self.interest = filtered_interest(TopicInterest.parse(config.topic_count), config.internal_topics)
        group = Registration.path(config.group_id, config.consumer_id).rpartition("/ids/")[0]
        self._ids = f"{group}/ids"
        self._own_id = f"{self._ids}/{config.consumer_id}"
        self.owned: dict[DraftPartition, int] = {}
        """What the consumer counts as its own (the topic registry), each with how far it has consumed."""
        self.decoders = decoders
        self.streams = ConsumerStreams(
            self.interest.count, config.consumer_id, settings=config.stream_settings
        )
        """What createMessageStreams returns: they stay the same through all rebalances."""
        self.fetchers = ConsumerFetcherManager()
        self.threads: Mapping[DraftPartition, str] = {}
        self.fetching = False
        self.rebalances = 0
        self.offsets = GroupOffsets(
            self, config.group_id, config.offset_settings, client_id=config.stream_settings.client_id
        )
        self._triggered = False
        self._has_streams = False
        self._listener = ConsumerRebalanceListener()
        self._subscribed: tuple[str, ...] = ()
        self._subscribes = True
        self._follows_brokers = config.kafka_version is None
        self._follows_topics = False
        self._topics_changed = False

    # --- inputs ---

    def set_consumer_rebalance_listener(self, listener: ConsumerRebalanceListener) -> None:
        """setConsumerRebalanceListener. Raises `MessageStreamsExist` once the consumer has started."""
        if self._has_streams:
            raise MessageStreamsExist("expected a listener before the consumer starts")
        self._listener = listener

    def on_start(self) -> None:
        self._has_streams = True
        self.run(_WATCHER, self._consume())
        if self.config.auto_commit_enable:
            self._schedule_commit()

    def zookeeper_event(self, event: WatchEvent) -> None:
        """rebalanceEventTriggered, or handleTopicEvent for the list of topics. A change of the brokers counts
        once they have been subscribed to."""
        if event.path == _TOPICS:
            self._topics_changed = True
        elif event.path != _BROKERS or self._follows_brokers:
            self._triggered = True
        self.wake(_WATCHER)

    def on_new_session(self) -> None:
        """ZKSessionExpireListener.handleNewSession: drop what was owned, register again, rebalance."""
        if self.fetching:
            self._stop()
        self.owned = {}
        self.run(_WATCHER, self._watch_again())

    def offset_manager_reply(self, number: int, response: Message | None) -> None:
        """The answer to an `AskOffsetManager`; None: there will be none."""
        self.offsets.answered(number, response)
        self.wake(_COMMIT)
        self.wake(_WATCHER)

    def shut_down(self) -> None:
        """Stop, commit, and end the session, which removes what was registered."""
        self.cancel_timer(_COMMIT)
        self.end(_COMMIT)
        self.run(_WATCHER, self._leave())

    # --- the threads ---

    def _consume(self) -> Procedure:
        """createMessageStreams: an exception of its first rebalance leaves a wildcard without its watcher of
        topics."""
        if not (yield from self._register()):
            return
        if (yield from self._rebalance_until_done()):
            self._follows_topics = self.interest.is_wildcard
        yield from self._watch()

    def _watch_again(self) -> Procedure:
        self._topics_changed = True  # perhaps, while no watch was set
        if (yield from self._register()):
            yield from self._rebalance_until_done()
        yield from self._watch()

    def _watch(self) -> Steps:
        """The watcher thread, and the topics' events."""
        while True:
            if self._topics_changed and self._follows_topics:
                self._topics_changed = False
                yield from self._on_topics()
            elif self._triggered:
                yield from self._rebalance_until_done()
            else:
                yield Wait()

    def _on_topics(self) -> Steps:
        """handleTopicEvent: subscribe to all topics that match now, and rebalance, if they are others."""
        topics = yield GetChildren(_TOPICS, watch=True)
        if set(self._subscribed) != self.interest.streams(topics.children).keys():
            self._subscribes = True
            yield from self._rebalance_until_done()

    def _register(self) -> Steps:
        """registerConsumerInZK; gives whether it did. Another session has this id: 0.8.2.2 waits until that
        is over, 1.1.1 raises."""
        count = self.interest.count
        if isinstance(count, StaticTopics):
            node = Registration(subscription=dict(count.streams), pattern="static", timestamp=self.now)
        else:
            pattern = "black_list" if count.blacklist else "white_list"
            expression = count.pattern
            if self.config.kafka_version == "1.1.1":
                expression = escaped_twice(expression)
            node = Registration(
                subscription={expression: count.streams}, pattern=pattern, timestamp=self.now
            )  # fmt: skip
        create = CreateNode(self._own_id, node.build(), ephemeral=True)
        while True:
            yield from ensure_parents(self._own_id)
            outcome = yield create
            if outcome.ok:
                return True
            registration = yield GetData(self._own_id)
            if registration.ok and self._is_own(registration):
                return True  # our own request, whose answer was lost
            if registration.ok and self.config.kafka_version == "1.1.1":
                self.note("ZkNodeExistsException", self._own_id)
                return False
            self.note("NodeExists" if registration.ok else outcome.error.name, self._own_id)
            yield Wait(self.now + self.config.rebalance_backoff_ms)

    def _rebalance_until_done(self) -> Steps:
        """syncedRebalance: rebalance.max.retries attempts with rebalance.backoff.ms between them; gives
        whether one succeeded."""
        for attempt in range(self.config.rebalance_max_retries):
            self.rebalances += 1
            if not attempt:
                self._triggered = False
            if (yield from self._rebalance()):
                return True
            self._stop()
            self.note("RebalanceAttemptFailed", f"attempt {attempt + 1}")
            # A watch that fires meanwhile does not shorten the backoff: the watcher thread sleeps in it.
            until = self.now + self.config.rebalance_backoff_ms
            while self.now < until:
                yield Wait(until)
        text = f"{self.config.consumer_id} can't rebalance after {self.config.rebalance_max_retries} retries"
        self.note("ConsumerRebalanceFailedException", text)
        return False

    def _rebalance(self) -> Steps:
        """One attempt. Reads with watches, so that each change after it triggers the next."""
        own, topics, ids, brokers = yield (
            GetData(self._own_id),
            GetChildren(_TOPICS, watch=self.interest.is_wildcard),
            GetChildren(self._ids, watch=True),
            GetChildren(_BROKERS, watch=True),
        )
        if not own.ok:
            return False
        try:
            planned = registered_interest(own.data, self.config.internal_topics).streams(topics.children)
        except DecodeError as error:
            self.note("UnreadableNode", f"{own.path}: {error}")
            return False
        self._subscribe(topics.children)
        unwatched = tuple(sorted(planned.keys() - set(self._subscribed)))
        reads = yield _reads(self._subscribed, unwatched, self._ids, ids.children)
        yield from self._watch_missing(reads)
        if not brokers.children:
            if self.config.kafka_version is not None:  # it reads first, and then subscribes
                yield (GetChildren(_BROKERS, watch=True),)
            self._follows_brokers = True
            return True
        self._stop()
        if self.config.auto_commit_enable:
            yield from self._commit()
        self._listener.before_releasing_partitions(dict(self.owned))
        yield from self._release()
        plan = yield from self._plan(reads, topics.children)
        if isinstance(plan, str):
            self.note("UnreadableNode", plan)
            return False
        threads = plan.get(self.config.consumer_id, {})
        offsets = yield from self.offsets.fetch(threads)
        if not (yield from self._claim(threads)):
            return False
        self.owned = offsets
        self.threads = threads
        self.fetchers.start({partition: max(offset, 0) for partition, offset in offsets.items()})
        self.offsets.begin(offsets)
        if self.config.kafka_version != "0.8.2.2":
            self._listener.before_starting_fetchers(self.config.consumer_id, plan)
        self.fetching = True
        self.do(FetchersStarted(dict(offsets)))
        return True

    # --- the steps of an attempt ---

    def _subscribe(self, topics: Sequence[str]) -> None:
        """The topics whose partitions are watched: those that are named, there or not, or that match."""
        if self._subscribes:
            self._subscribes = False
            count = self.interest.count
            names = count.streams if isinstance(count, StaticTopics) else self.interest.streams(topics)
            self._subscribed = tuple(sorted(names))

    def _watch_missing(self, reads: Sequence[OperationOutcome]) -> Steps:
        """A topic that does not exist yet is watched for its creation."""
        missing = [
            outcome.path for outcome in reads if not outcome.ok and outcome.path.startswith(f"{_TOPICS}/")
        ]
        if missing:
            outcomes = yield tuple(NodeExists(path, watch=True) for path in missing)
            if any(outcome.ok for outcome in outcomes):
                self._triggered = True  # created since it was read

    def _plan(self, reads: Sequence[OperationOutcome], topics: Sequence[str]) -> Steps:
        """The ownership that follows from what was read, by consumer; what could not be read as a text."""
        config = self.config
        if config.partition_assignment_strategy == "range":
            return range_plan(reads, config.internal_topics, config.sort_by)
        registrations = [outcome for outcome in reads if outcome.path.startswith(f"{self._ids}/")]
        names = read_topics(registrations, topics, config.internal_topics)
        if isinstance(names, str):
            return names
        partitions = yield tuple(GetData(Topic.path(name)) for name in names) or (GetData(_TOPICS),)
        return round_robin_plan(partitions, registrations, topics, config.release, config.internal_topics)

    def _stop(self) -> None:
        """closeFetchers. What waits in the queues was not consumed: its next owner fetches it again."""
        if self.fetching:
            self.fetching = False
            self.fetchers.stop()
            self.streams.clear()
            self.do(FetchersStopped(dict(self.owned)))

    def _release(self) -> Steps:
        """releasePartitionOwnership: the nodes are deleted unread, as deletePath does it."""
        owned, self.owned = self.owned, {}
        if owned:
            yield tuple(DeleteNode(self._owner(partition)) for partition in owned)

    def _claim(self, threads: Mapping[DraftPartition, str]) -> Steps:
        """reflectPartitionOwnershipDecision: all of them, or none."""
        claims = [
            CreateNode(self._owner(partition), Owner(thread).build(), ephemeral=True)
            for partition, thread in threads.items()
        ]
        if not claims:
            return True
        for topic in dict.fromkeys(partition.topic for partition in threads):
            yield from ensure_parents(self._owner(DraftPartition(topic, "0")))
        outcomes = yield tuple(claims)
        contested = [claim for claim, outcome in zip(claims, outcomes, strict=True) if not outcome.ok]
        if not contested:
            return True
        nodes = yield tuple(GetData(claim.path) for claim in contested)
        if all(
            self._is_own(node) and node.data == claim.data
            for node, claim in zip(nodes, contested, strict=True)
        ):
            return True  # our own requests, whose answers were lost
        deletions = [
            DeleteNode(claim.path) for claim, outcome in zip(claims, outcomes, strict=True) if outcome.ok
        ]
        if deletions:
            yield tuple(deletions)
        return False

    def _is_own(self, node: OperationOutcome) -> bool:
        """Whether a node is this session's."""
        return node.stat is not None and node.stat.ephemeral_owner == self.session

    def _owner(self, partition: DraftPartition) -> str:
        return Owner.path(self.config.group_id, *partition)

    # --- offsets ---

    def _schedule_commit(self) -> None:
        self.after(_COMMIT, self.config.auto_commit_interval_ms, self._auto_commit)

    def _auto_commit(self) -> None:
        if not self.runs(_COMMIT):
            self.run(_COMMIT, self._commit(periodic=True))
        self._schedule_commit()

    def commit(self) -> None:
        """commitOffsets, at the application's request: how far each partition was consumed."""
        self.run(_COMMIT, self._commit())

    def commit_offsets(
        self, offsets: Mapping[DraftPartition, int], *, retry_on_failure: bool = False
    ) -> None:
        """commitOffsets with the application's own offsets. retry_on_failure: as often as
        offsets.commit.max.retries says."""
        retries = self.config.offsets_commit_max_retries if retry_on_failure else 0
        self.run(_COMMIT, self.offsets.commit(dict(offsets), retries=retries))

    def _commit(self, *, periodic: bool = False) -> Steps:
        """0.8.2.2 retries when it rebalances or leaves, later releases the commits of each interval."""
        retries = self.config.offsets_commit_max_retries
        yield from self.offsets.commit(
            self.owned, retries=retries if periodic is (self.config.kafka_version != "0.8.2.2") else 0
        )

    def _leave(self) -> Procedure:
        self._stop()
        if self.config.auto_commit_enable:
            yield from self._commit()
        self.owned = {}
        self.do(EndSession())
        yield from ()


@lru_cache(maxsize=8)
def _reads(
    watched: tuple[str, ...], planned: tuple[str, ...], ids: str, names: tuple[str, ...]
) -> tuple[GetData, ...]:
    """What an attempt reads: the topics, and the registrations of all consumers."""
    return (
        *(GetData(Topic.path(topic), watch=True) for topic in watched),
        *(GetData(Topic.path(topic)) for topic in planned),
        *(GetData(f"{ids}/{name}") for name in names),
    )
