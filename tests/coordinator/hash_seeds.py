"""The bytes and reports that coordinators make, as one checksum for each kind of groups.

`python -m tests.coordinator.hash_seeds` prints them; `test_hash_seeds.py` runs it with several hash seeds of
Python, which must not show. Assignors and rights of an embedder take part: what they see has one order, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from hashlib import sha256
from itertools import count, islice
from typing import Any
from uuid import UUID

from coordwire.coordinator import (
    Append,
    Assignors,
    GroupApis,
    GroupSpec,
    RequestContext,
    Shard,
    StreamsGroupSpec,
    Target,
    TargetTasks,
    TopicImage,
    TopicsImage,
)
from coordwire.coordinator.timeline import ShardTimeline
from coordwire.coordinator.transactions import (
    MarkersToWrite,
    TransactionAppend,
    TransactionCoordinator,
)
from coordwire.messages import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from tests.coordinator.histories import Replayer, state_answer
from tests.coordinator.recorded_histories import FURTHER, HISTORIES, STREAMS, read_histories
from tests.coordinator.settings import settings
from tests.shares.kept_histories import GROUPS

_TOPICS = [TopicImage(UUID(int=number), f"topic-{number}", number % 3 + 1) for number in range(7, 27)]


def _first_takes_all(spec: GroupSpec) -> Mapping[str, Target]:
    """All partitions go to the first member, in the order of the specification."""
    parts = spec.assignable or {topic: range(number) for topic, number in spec.partitions.items()}
    target = {topic: tuple(sorted(parts[topic])) for topic in spec.partitions if topic in parts}
    return dict(islice(dict.fromkeys(spec.members, target).items(), 1))


def _first_runs_all(spec: StreamsGroupSpec) -> Mapping[str, TargetTasks]:
    tasks = {
        part_id: frozenset(range(part.tasks))
        for part_id, part in spec.subtopologies.items()
        if [*part.source_topics, *part.repartition_sources, *part.repartition_sinks, *part.changelogs]
    }
    return {member_id: TargetTasks(tasks) for member_id in islice(spec.members, 1)}


_ASSIGNORS: Assignors = {
    "consumer": {"uniform": _first_takes_all, "range": _first_takes_all},
    "share": {"simple": _first_takes_all},
    "streams": {"sticky": _first_runs_all},
}


def _histories(path: Any, number: int, assignors: Assignors | None = None) -> Iterator[object]:
    for seed, steps, release in islice(read_histories(path), number):
        timeline = ShardTimeline()
        replayer = Replayer(settings(seed, release), partial(Shard, listener=timeline, assignors=assignors))
        for _, recorded in steps:
            step = recorded
            if assignors and step.startswith("persisted "):
                step = state_answer(replayer) or "fail NOT_ENOUGH_REPLICAS"  # Kafka's led to other requests
            yield replayer.run(step)
            yield replayer.deadlines()
            yield list(timeline.events())


def _embedded_groups() -> Iterator[object]:
    """Members with many topics, an embedder's assignor, and the rights that it is asked about."""
    shard = Shard(assignors=_ASSIGNORS)
    apis = GroupApis(shard)
    shard.set_topics(TopicsImage(_TOPICS), now=0)
    shard.load([], now=0)
    context = RequestContext(client_id="till", client_host="/192.0.2.7", new_id=lambda: "id")
    names = [topic.name for topic in _TOPICS]
    requests: list[tuple[Any, int]] = [
        (
            ConsumerGroupHeartbeatRequest(
                group_id="g", member_id=f"m{number}", rebalance_timeout_ms=5_000, topic_partitions=[],
                subscribed_topic_names=names[number:],
            ),
            1,
        )
        for number in range(3)
    ]  # fmt: skip
    requests.append((ConsumerGroupDescribeRequest(group_ids=["g"]), 1))
    calls: list[object] = []

    def allows(*resource: object) -> bool:
        calls.append(resource)
        return True

    for now, (request, version) in enumerate(requests):
        apis.handle(request, version=version, now=now * 2_000, context=context, allows=allows)
        for effect in apis.effects():
            yield effect
            if isinstance(effect, Append):
                yield effect.encoded()
                shard.appended(effect.number, now=now * 2_000)
    yield calls


def _transactions() -> Iterator[object]:
    producer_ids = count(1_000)
    coordinator = TransactionCoordinator(partitions=2, new_producer_id=lambda: next(producer_ids))
    for partition in range(2):
        coordinator.load(partition, [])
    places = frozenset((topic.name, number) for topic in _TOPICS for number in range(2))

    def run() -> Iterator[object]:
        for effect in coordinator.effects():
            if isinstance(effect, TransactionAppend):
                yield effect.batch(timestamp=0)
                coordinator.appended(effect.partition, effect.number)
            elif isinstance(effect, MarkersToWrite):
                coordinator.marked(effect.partition, effect.number, dict.fromkeys(sorted(effect.places), 0))
            else:
                yield effect

    for name in ("till-1", "till-2"):
        coordinator.init_producer_id(name, 60_000)
        (producer,) = (effect for effect in run() if not isinstance(effect, bytes))
        owner = name, getattr(producer, "producer_id", -1), getattr(producer, "producer_epoch", -1)
        coordinator.add_partitions(*owner, places)
        yield from run()
        coordinator.verify_partitions(*owner, places)
        yield from run()
        coordinator.end(*owner, committed=True)
        yield from run()


def checksums() -> dict[str, str]:
    """By kind, of all that came out, in order."""
    outputs = {
        "classic": _histories(HISTORIES, 2),
        "mixed": _histories(FURTHER, 3),
        "consumer, an embedder's assignor": _histories(FURTHER, 3, _ASSIGNORS),
        "embedded": _embedded_groups(),
        "streams": _histories(STREAMS, 2),
        "streams, an embedder's assignor": _histories(STREAMS, 2, _ASSIGNORS),
        "share": _histories(GROUPS, 2),
        "share, an embedder's assignor": _histories(GROUPS, 2, _ASSIGNORS),
        "transactions": _transactions(),
    }
    return {
        kind: sha256("\n".join(map(repr, output)).encode("utf-8", "surrogatepass")).hexdigest()
        for kind, output in outputs.items()
    }


if __name__ == "__main__":
    for kind, checksum in checksums().items():
        print(checksum[:16], kind)
