"""The consumer that ZooKeeper coordinates: each decides alone, from what it reads there, what it owns.

Source: Kafka's implementation page ("Consumer registration algorithm", "Consumer rebalancing algorithm") and
a description of ZookeeperConsumerConnector, which has the retries, the order of the steps, and what happens
when a session expires. Strategy: one procedure, the page's watcher thread: it registers, and then rebalances
whenever a watch has fired since it last did. Rules: fetchers stop, and offsets are committed, before
ownership is released; ownership is claimed before fetchers start; one claim that fails gives up all of them.
What the page gets wrong (herd effect, split brain) is as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from coordwire.designs.drafts.actions import DraftPartition, EndSession, FetchersStarted, FetchersStopped
from coordwire.designs.drafts.machine import Machine, Procedure, Steps, Wait
from coordwire.designs.drafts.recent_values import RecentValues
from coordwire.designs.drafts.topic_interest import TopicInterest, plan_ownership, registered_interest
from coordwire.designs.drafts.zookeeper_operations import (
    CreateNode,
    DeleteNode,
    GetChildren,
    GetData,
    OperationOutcome,
    WatchEvent,
)
from coordwire.designs.drafts.zookeeper_steps import ensure_parents, write_nodes
from coordwire.designs.zookeeper import Offset, Owner, Registration, StaticTopics, Topic
from coordwire.errors import DecodeError, EncodeError

__all__ = ["ZooKeeperConsumer", "ZooKeeperConsumerConfig"]

_TOPICS = "/brokers/topics"
_WATCHER = "watcher"
_COMMIT = "commit"


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperConsumerConfig:
    """A consumer's settings, with the names and defaults of Kafka 0.8, in milliseconds."""

    group_id: str
    consumer_id: str
    topic_count: str
    rebalance_max_retries: int = 4
    rebalance_backoff_ms: int = 2_000
    auto_commit_enable: bool = True
    auto_commit_interval_ms: int = 60_000


class ZooKeeperConsumer(Machine):
    """One consumer. Raises `DecodeError` or `EncodeError` for a topic_count or ids that cannot be used."""

    def __init__(self, config: ZooKeeperConsumerConfig, *, now: int = 0) -> None:
        super().__init__(now=now)
        self.config = config
        self.interest = TopicInterest.parse(config.topic_count)
        group = Registration.path(config.group_id, config.consumer_id).rpartition("/ids/")[0]
        self._ids = f"{group}/ids"
        self._own_id = f"{self._ids}/{config.consumer_id}"
        self.owned: dict[DraftPartition, int] = {}
        """What the consumer counts as its own (the topic registry), each with how far it has consumed."""
        self.fetching = False
        self.rebalances = 0
        self._triggered = False

    # --- inputs ---

    def on_start(self) -> None:
        self.run(_WATCHER, self._watch())
        if self.config.auto_commit_enable:
            self._schedule_commit()

    def zookeeper_event(self, event: WatchEvent) -> None:
        """rebalanceEventTriggered: whatever changed, this consumer rebalances."""
        self._triggered = True
        self.wake(_WATCHER)

    def on_new_session(self) -> None:
        """ZKSessionExpireListener.handleNewSession: forget what was owned, register again, rebalance."""
        if self.fetching:
            self._stop()
        self.owned = {}
        self.run(_WATCHER, self._watch())

    def consumed(self, partition: DraftPartition, offset: int) -> None:
        """The application has consumed a partition up to here."""
        if partition in self.owned:
            self.owned[partition] = offset

    def shut_down(self) -> None:
        """Stop, commit, and end the session, which removes what was registered."""
        self.cancel_timer(_COMMIT)
        self.run(_WATCHER, self._leave())

    # --- the watcher thread ---

    def _watch(self) -> Procedure:
        yield from self._register()
        self._triggered = True
        while True:
            if not self._triggered:
                yield Wait()
            self._triggered = False
            yield from self._rebalance_until_done()

    def _register(self) -> Steps:
        """registerConsumerInZK. Another process under this id: wait until its session is over."""
        count = self.interest.count
        if isinstance(count, StaticTopics):
            node = Registration(subscription=dict(count.streams), pattern="static", timestamp=self.now)
        else:
            pattern = "black_list" if count.blacklist else "white_list"
            node = Registration(
                subscription={count.pattern: count.streams}, pattern=pattern, timestamp=self.now
            )  # fmt: skip
        create = CreateNode(self._own_id, node.build(), ephemeral=True)
        while True:
            yield from ensure_parents(self._own_id)
            outcome = yield create
            if outcome.ok:
                return
            registration = yield GetData(self._own_id)
            if registration.ok and self._is_own(registration):
                return  # our own request, whose answer was lost
            self.note("NodeExists" if registration.ok else outcome.error.name, self._own_id)
            yield Wait(self.now + self.config.rebalance_backoff_ms)

    def _rebalance_until_done(self) -> Steps:
        """syncedRebalance: rebalance.max.retries attempts with rebalance.backoff.ms between them."""
        for attempt in range(self.config.rebalance_max_retries):
            self.rebalances += 1
            if (yield from self._rebalance()):
                return
            self._stop()
            self.note("RebalanceAttemptFailed", f"attempt {attempt + 1}")
            # A watch that fires meanwhile does not shorten the backoff: the watcher thread sleeps in it.
            until = self.now + self.config.rebalance_backoff_ms
            while self.now < until:
                yield Wait(until)
        text = f"{self.config.consumer_id} can't rebalance after {self.config.rebalance_max_retries} retries"
        self.note("ConsumerRebalanceFailedException", text)

    def _rebalance(self) -> Steps:
        """One attempt. Reads with watches, so that each change after it triggers the next."""
        own, topics, ids, brokers = yield (
            GetData(self._own_id),
            GetChildren(_TOPICS, watch=self.interest.is_wildcard),
            GetChildren(self._ids, watch=True),
            GetChildren("/brokers/ids", watch=True),
        )
        if not own.ok:
            return False
        if not brokers.children:
            return True
        own_streams = self.interest.streams(topics.children)
        reads = yield _reads(tuple(own_streams), self._ids, ids.children)
        self._stop()
        if self.config.auto_commit_enable:
            yield from self._commit()
        yield from self._release()
        plan = _plan(reads)
        if isinstance(plan, str):
            self.note("UnreadableNode", plan)
            return False
        threads = plan.get(self.config.consumer_id, {})
        offsets = yield from self._offsets(list(threads))
        if not (yield from self._claim(threads)):
            return False
        self.owned = offsets
        self.fetching = True
        self.do(FetchersStarted(dict(offsets)))
        return True

    # --- the steps of an attempt ---

    def _stop(self) -> None:
        """closeFetchers."""
        if self.fetching:
            self.fetching = False
            self.do(FetchersStopped(dict(self.owned)))

    def _release(self) -> Steps:
        """releasePartitionOwnership: the nodes are deleted unread, as deletePath does it."""
        owned, self.owned = self.owned, {}
        if owned:
            yield tuple(DeleteNode(self._owner(partition)) for partition in owned)

    def _offsets(self, partitions: list[DraftPartition]) -> Steps:
        """Where to begin: what the group has committed, or 0."""
        paths = [Offset.path(self.config.group_id, *partition) for partition in partitions]
        outcomes = (yield tuple(map(GetData, paths))) if paths else ()
        return {partition: _offset(outcome) for partition, outcome in zip(partitions, outcomes, strict=True)}

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
            self.run(_COMMIT, self._commit())
        self._schedule_commit()

    def commit(self) -> None:
        """commitOffsets, at the application's request."""
        self.run(_COMMIT, self._commit())

    def _commit(self) -> Steps:
        yield from write_nodes({
            Offset.path(self.config.group_id, *partition): Offset(offset).build()
            for partition, offset in self.owned.items()
        })  # fmt: skip

    def _leave(self) -> Procedure:
        self._stop()
        yield from self._commit()
        yield from self._release()
        self.do(EndSession())


@lru_cache(maxsize=8)
def _reads(topics: tuple[str, ...], ids: str, names: tuple[str, ...]) -> tuple[GetData, ...]:
    """What an attempt reads: the topics, and the registrations of all consumers."""
    return (
        *(GetData(Topic.path(topic), watch=True) for topic in topics),
        *(GetData(f"{ids}/{name}") for name in names),
    )


def _plan_by_consumer(reads: Sequence[OperationOutcome]) -> dict[str, dict[DraftPartition, str]] | str:
    """The ownership that follows from what was read, by consumer; what could not be read as a text."""
    topics: dict[str, None] = {}
    partitions = {}
    subscribed = {}
    for outcome in reads:
        above, _, name = outcome.path.rpartition("/")
        try:
            if above == _TOPICS:
                topics[name] = None
                if outcome.ok:
                    partitions[name] = [str(number) for number in Topic.parse(outcome.data).partitions]
            elif outcome.ok:  # else the consumer has gone since
                subscribed[name] = registered_interest(outcome.data).streams(topics)
        except (DecodeError, EncodeError) as error:
            return f"{outcome.path}: {error}"
    plan: dict[str, dict[DraftPartition, str]] = {}
    for partition, thread in plan_ownership(subscribed, partitions).items():
        plan.setdefault(thread.rpartition("-")[0], {})[partition] = thread
    return plan


_plan = RecentValues(_plan_by_consumer, 16)


def _offset(outcome: OperationOutcome) -> int:
    try:
        return Offset.parse(outcome.data).offset if outcome.ok else 0
    except DecodeError:
        return 0
