"""A live cluster, asked so that no fault of a broker ends the watch or stops what other brokers answer.

Strategy: each request is for one node. `exchange` starts requests to nodes that are free, waits a while, and
gives the answers that have come; a slow node's request goes on, and its answer comes from a later call. Where
leaders are is asked again after an error, and from time to time. Rules: a node that fails, and the look-up of
leaders, are tried again after a pause that doubles up to a bound; an error is a `Problem` until the next
answer; of topics that are not asked for, only a bounded number of names is kept.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from coordwire.cli.watch.problems import Problems, ProblemSubject
from coordwire.client import Client
from coordwire.codec import Message, Request
from coordwire.enums import ErrorCode
from coordwire.errors import CoordwireError
from coordwire.messages import MetadataRequest, MetadataResponse
from coordwire.messages.metadata import MetadataRequestTopic, MetadataResponseTopic
from coordwire.timeline.consumer_data import id_text
from coordwire.timeline.events import TopicPartition
from coordwire.timeline.evidence import remember

PATIENCE_S = 1.0
"""How long `exchange` waits for the nodes that it asks."""

SILENCE_S = 5.0
"""A node that has not answered for so long is a problem."""

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 10.0
_LONGEST_LOOK_PAUSE_S = 2.0
_LEADERS_AGE_S = 60.0
_NAMES_AGE_S = 60.0
MOST_TOPICS = 100_000

_CLUSTER = ProblemSubject("cluster")


class Backoff:
    """When to try again: after a pause that doubles with each failure, up to `longest_s`."""

    def __init__(self, longest_s: float = _LONGEST_PAUSE_S) -> None:
        self._longest_s = longest_s
        self._failures = 0
        self._due = 0.0

    @property
    def is_due(self) -> bool:
        return time.monotonic() >= self._due

    def fails(self) -> None:
        self._due = time.monotonic() + min(_FIRST_PAUSE_S * 2 ** min(self._failures, 16), self._longest_s)
        self._failures += 1

    def succeeds(self) -> None:
        self._failures, self._due = 0, 0.0


class NodeReply(NamedTuple):
    """A request and its answer."""

    request: Message
    answer: Message


@dataclass(slots=True)
class _Node:
    """A node. task: the request that it has not answered yet, asked_at: since when."""

    backoff: Backoff = field(default_factory=Backoff)
    task: asyncio.Task[Any] | None = None
    request: Any = None
    asked_at: float = 0.0


class ClusterReader:
    """Asks the nodes of a cluster. names: of topics by their ids, which this fills in."""

    def __init__(self, client: Client, names: OrderedDict[str, str], problems: Problems) -> None:
        self.cluster_id: str | None = None
        """As the last look has it; None before."""
        self._client = client
        self._names = names
        self._problems = problems
        self._nodes: dict[int, _Node] = {}
        self._topics: dict[str, MetadataResponseTopic] = {}
        self._backoff = Backoff(_LONGEST_LOOK_PAUSE_S)
        self._task: asyncio.Task[None] | None = None
        self._is_stale = True
        self._looked_at = self._named_at = float("-inf")

    async def close(self) -> None:
        """Cancel what was not answered."""
        tasks = [task for task in (self._task, *(node.task for node in self._nodes.values())) if task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- topics and leaders ---

    def topic(self, name: str) -> MetadataResponseTopic | None:
        """A topic as of the last look; None before."""
        return self._topics.get(name)

    def look_again(self) -> None:
        """Leaders are to be looked up again: an answer shows that they have moved."""
        self._is_stale = True

    async def look(self, topics: Iterable[str]) -> None:
        """Look up the leaders of topics, where that is due; wait a while for it."""
        names = set(topics)
        now = time.monotonic()
        is_due = self._is_stale or now - self._looked_at > _LEADERS_AGE_S or not names <= self._topics.keys()
        if self._task is None and is_due and self._backoff.is_due:
            self._is_stale, self._looked_at = False, now
            self._task = asyncio.create_task(self._look_up(names))
        if self._task is not None:
            await asyncio.wait([self._task], timeout=max(self._looked_at + PATIENCE_S - now, 0))
            if self._task.done():
                task, self._task = self._task, None
                task.result()
            elif now - self._looked_at > SILENCE_S:
                self._problems.begin(_CLUSTER, "no answer to Metadata yet")

    async def _look_up(self, names: set[str]) -> None:
        try:
            answer = await self._metadata(names)
            if time.monotonic() - self._named_at > _NAMES_AGE_S:
                self._read_names(await self._metadata(None))
                self._named_at = time.monotonic()
        except CoordwireError as error:
            self._backoff.fails()
            self._is_stale = True
            self._problems.begin(_CLUSTER, str(error))
            return
        self._problems.end(_CLUSTER)
        self.cluster_id = answer.cluster_id
        topics = {topic.name: topic for topic in answer.topics if topic.name in names}
        self._topics = {name: topics.get(name) or _unknown_topic(name) for name in names}
        nodes = self._client.cluster.nodes
        nodes.clear()
        nodes.update({broker.node_id: (broker.host, broker.port) for broker in answer.brokers})
        for node_id in [node for node, known in self._nodes.items() if node not in nodes and not known.task]:
            del self._nodes[node_id]
            self._problems.end(ProblemSubject("broker", node=node_id))
        if any(_has_errors(topic) for topic in self._topics.values()):
            self._backoff.fails()
            self._is_stale = True
        else:
            self._backoff.succeeds()

    async def _metadata(self, names: Iterable[str] | None) -> MetadataResponse:
        topics = None if names is None else [MetadataRequestTopic(name=name) for name in sorted(names)]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        return await self._client.request(request, to=self._next_node())

    def _next_node(self) -> int | None:
        """A node that does not fail: the one that was not asked for longest; None for any."""
        for node_id, node in self._nodes.items():
            if node.task is None and node.backoff.is_due and node_id in self._client.cluster.nodes:
                self._nodes[node_id] = self._nodes.pop(node_id)
                return node_id
        return None

    def _read_names(self, answer: MetadataResponse) -> None:
        """The names of all topics: groups of the newer protocols go by ids."""
        for topic in answer.topics:
            if topic.name is not None:
                remember(self._names, id_text(topic.topic_id), topic.name, MOST_TOPICS)

    def by_leader(
        self, places: Iterable[TopicPartition], subject: Mapping[TopicPartition, ProblemSubject]
    ) -> dict[int, list[TopicPartition]]:
        """Partitions by the nodes that lead them; one that has no leader is a problem. subject: of each."""
        leaders: dict[str, dict[int, int]] = {}
        led: dict[int, list[TopicPartition]] = {}
        for place in places:
            topic = self._topics.get(place.topic)
            if topic is None:
                continue
            if place.topic not in leaders:
                leaders[place.topic] = {part.partition_index: part.leader_id for part in topic.partitions}
            leader = leaders[place.topic].get(place.partition)
            if topic.error_code:
                self._problems.begin(subject[place], meaning_of(topic.error_code))
            elif leader is None:
                self._problems.begin(subject[place], meaning_of(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            elif leader not in self._client.cluster.nodes:
                reason = "no leader" if leader < 0 else f"its leader {leader} is not a broker of the cluster"
                self._problems.begin(subject[place], reason)
            else:
                led.setdefault(leader, []).append(place)
        return led

    # --- requests ---

    async def exchange(self, requests: Mapping[int, Request[Any]]) -> list[NodeReply]:
        """Send requests to nodes, but to those that have not answered yet or are to be left alone; the
        answers that have come, to earlier requests too."""
        started = time.monotonic()
        for node_id, request in requests.items():
            node = self._nodes.setdefault(node_id, _Node())
            if node.task is None and node.backoff.is_due:
                node.request, node.asked_at = request, started
                node.task = asyncio.create_task(self._client.request(request, to=node_id))
        waiting = [
            node.task for node in self._nodes.values() if node.task and started - node.asked_at < PATIENCE_S
        ]
        if waiting:
            await asyncio.wait(waiting, timeout=PATIENCE_S)
        return list(self._answers())

    def _answers(self) -> Iterator[NodeReply]:
        now = time.monotonic()
        for node_id, node in self._nodes.items():
            task, subject = node.task, ProblemSubject("broker", node=node_id)
            if task is None:
                continue
            if not task.done():
                if now - node.asked_at > SILENCE_S:
                    self._problems.begin(subject, f"no answer to {type(node.request).__name__} yet")
                continue
            node.task = None
            try:
                answer = task.result()
            except CoordwireError as error:
                node.backoff.fails()
                self._is_stale = True
                self._problems.begin(subject, str(error))
                continue
            node.backoff.succeeds()
            self._problems.end(subject)
            yield NodeReply(node.request, answer)


def meaning_of(code: int) -> str:
    """An error code's name and meaning."""
    return f"{ErrorCode(code).name}: {ErrorCode(code).description}"


def _unknown_topic(name: str) -> MetadataResponseTopic:
    """A topic that an answer leaves out, though it was asked for."""
    return MetadataResponseTopic(name=name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _has_errors(topic: MetadataResponseTopic) -> bool:
    return bool(topic.error_code) or any(partition.leader_id < 0 for partition in topic.partitions)
