"""The invariants D1 to D10 of the drafts, over runs of a cluster.

`watch` is asked at points of a run about the machines as they are; `check` after it about its history. Each
invariant is a function of its own, which gives sentences about what broke it. order_checkers.py has those
about the order of a coordinator's steps, third_draft_checkers.py those of the draft without a number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from coordwire.designs.drafts.actions import FetchersStarted, FetchersStopped, Noted
from coordwire.dialects.zookeeper import Registration
from coordwire.messages.draft_1 import (
    Draft1PingResponse,
    Draft1RegisterRequest,
    Draft1StartRequest,
    Draft1StopRequest,
)
from coordwire.messages.draft_2 import (
    Draft2PingResponse,
    Draft2RegisterConsumerRequest,
    Draft2RegisterConsumerResponse,
    Draft2StartFetcherRequest,
    Draft2StopFetcherRequest,
    Draft2StopFetcherResponse,
)
from tests.designs.drafts.cluster import Cluster, Entry, Sent
from tests.designs.drafts.order_checkers import ORDER
from tests.designs.drafts.third_draft_checkers import THIRD_DRAFT
from tests.designs.drafts.worlds import World


def d1_one_coordinator(cluster: Cluster) -> Iterator[str]:
    """At most one broker whose ZooKeeper session lives counts as elected, to each office."""
    alive = set(cluster.tree.sessions())
    elected = [
        (office, node.name) for node in cluster.nodes.values()
        if getattr(node.machine, "coordinator_session", 0) in alive
        for office in getattr(node.machine, "offices", ())
    ]  # fmt: skip
    if len({office for office, _ in elected}) < len(elected):
        yield f"D1: {elected} are elected"


def d2_rebalances_of_a_group_do_not_overlap(cluster: Cluster) -> Iterator[str]:
    """A group is in one handler's queue at most."""
    for node in cluster.nodes.values():
        queued = [
            group
            for queue in getattr(node.machine, "_queues", ())
            for group in (*queue.groups, *queue.blocked)
        ]
        if len(set(queued)) < len(queued):
            yield f"D2: {queued} at {node.name}"


def _note(entry: Entry) -> str:
    return entry.what.name if isinstance(entry.what, Noted) else ""


def d3_stop_before_start(world: World) -> Iterator[str]:
    """A consumer's fetchers are stopped when its Start arrives; draft 2 starts none before all are."""
    fetching: set[str] = set()
    pending: dict[str, set[str]] = {}
    for entry in world.history:
        match entry.what:
            case FetchersStarted():
                fetching.add(entry.name)
            case FetchersStopped():
                fetching.discard(entry.name)
            case Draft1StartRequest() | Draft2StartFetcherRequest() if entry.peer in fetching:
                yield f"D3: {entry.peer} fetches when its Start arrives at {entry.time}"
            case Draft2StartFetcherRequest() if pending.get(entry.name):
                yield f"D3: Start at {entry.time}, though {pending[entry.name]} have not stopped"
            case Draft2StopFetcherRequest():
                pending.setdefault(entry.name, set()).add(entry.peer)
            case Draft2StopFetcherResponse():
                pending.setdefault(entry.peer, set()).discard(entry.name)
            case Noted(name="RebalanceAttemptFailed" | "Resigned"):
                pending[entry.name] = set()


def d4_failures_take_their_pings(world: World) -> Iterator[str]:
    """A consumer fails after more than the allowed pings in vain, each with its time to be answered."""
    if world.draft == 3:
        return
    heard: dict[tuple[str, str], int] = {}
    for entry in world.history:
        if type(entry.what).__name__.startswith("Draft") and type(entry.what).__name__.endswith("Response"):
            heard[entry.name, entry.peer] = entry.time
        if _note(entry) == "ConsumerFailed":
            name = entry.what.text.partition("/")[2]
            config = world.configs.get(name)
            last = heard.get((name, entry.name))
            if config is None or last is None:
                continue
            if world.draft == 2:
                least = (world.broker_settings.get("max_ping_retries", 3) + 1) * 2 * (
                    config.session_timeout_ms // 3
                )  # fmt: skip
            else:
                least = config.max_ping_retries * config.ping_interval_ms
            if entry.time - last < least:
                yield f"D4: {name} failed {entry.time - last} ms after its last answer, expected {least}"


def d5_owners_overlap_by_a_third(world: World) -> Iterator[str]:
    """Draft 2: two owners for at most a third of the session timeout, and what messages take."""
    if world.draft != 2:
        return
    session = max(config.session_timeout_ms for config in world.configs.values())
    for partition, total in world.overlaps().items():
        if total > session // 3 + 4 * world.latency[1]:
            yield f"D5: {partition} had two owners for {total} ms"


def d6_rebalances_have_causes(world: World) -> Iterator[str]:
    """Rounds of Stop are as many as registrations, losses, changes of topics and failed attempts, at most."""
    rounds, causes, last = 0, 0, -1
    for entry in world.history:
        stopped = isinstance(entry.what, Draft1StopRequest | Draft2StopFetcherRequest)
        if stopped and entry.time - last > 3 * world.latency[1]:
            rounds += 1
            last = entry.time
        if isinstance(entry.what, Draft1RegisterRequest | Draft2RegisterConsumerResponse) or _note(entry) in (
            "ConsumerFailed", "ConsumerClosed", "RebalanceAttemptFailed", "Elected",
        ):  # fmt: skip
            causes += 1
    if rounds > causes + world.topic_changes:
        yield f"D6: {rounds} rebalances for {causes} causes"


def d7_registrations_are_unique(world: World) -> Iterator[str]:
    """An accepted consumer is not accepted again before it has failed or closed."""
    accepted: dict[str, set[str]] = {}
    for entry in world.history:
        if isinstance(entry.what, Draft2RegisterConsumerResponse) and not entry.what.error_code:
            if entry.peer in accepted.setdefault(entry.name, set()):
                yield f"D7: {entry.peer} registered twice at {entry.time}"
            accepted[entry.name].add(entry.peer)
        elif _note(entry) in ("ConsumerFailed", "ConsumerClosed", "ConnectionBroken"):
            accepted.setdefault(entry.name, set()).discard(entry.what.text.partition("/")[2])
        elif _note(entry) in ("Elected", "Resigned"):
            accepted[entry.name] = set()


def d8_attempts_are_bounded(world: World) -> Iterator[str]:
    """At most one attempt and its retries fail before the exception; draft 2 waits between them."""
    most = world.broker_settings.get("max_rebalance_retries", 4) + 1
    backoff = world.broker_settings.get("rebalance_backoff_ms", 2_000) if world.draft == 2 else 0
    failed: dict[str, list[int]] = {}
    for entry in world.history:
        number = int(entry.what.text.rpartition(" ")[2]) if _note(entry) == "RebalanceAttemptFailed" else 0
        if number > most:
            yield f"D8: attempt {number}"
        if number > 1 and entry.time - failed[entry.name][-1] < backoff:
            yield f"D8: retried {entry.time - failed[entry.name][-1]} ms after an attempt that failed"
        if number:
            failed.setdefault(entry.name, []).append(entry.time)
        thrown = _note(entry) == "ConsumerRebalanceFailedException"
        if thrown and entry.time not in failed.get(entry.name, ()):
            yield f"D8: an exception at {entry.time} without an attempt that failed"


def d9_offsets_only_with_auto_commit(world: World) -> Iterator[str]:
    for entry in world.history:
        message = entry.what.message if isinstance(entry.what, Sent) else entry.what
        if isinstance(message, Draft1PingResponse | Draft2PingResponse | Draft2StopFetcherResponse):
            config = world.configs.get(entry.name)
            if config is not None and not config.auto_commit and message.offset_info:
                yield f"D9: {entry.name} reports offsets at {entry.time}"


def overview_answers_divide_the_partitions(world: World) -> Iterator[str]:
    """Draft 2 by its section 2: no partition is in the answers to two registrations that both count, and no
    answer comes before all that own something have registered again, or their time is over."""
    owned: dict[str, dict[tuple[str, str], str]] = {}
    broken: dict[str, dict[str, int]] = {}
    for entry in world.history:
        message = entry.what.message if isinstance(entry.what, Sent) else None
        if _note(entry) in ("ConnectionBroken", "ConsumerFailed", "ConsumerClosed"):
            name = entry.what.text.partition("/")[2]
            parts = owned.setdefault(entry.name, {})
            owned[entry.name] = {part: owner for part, owner in parts.items() if owner != name}
            if _note(entry) == "ConnectionBroken":
                broken.setdefault(entry.name, {})[name] = entry.time
        elif _note(entry) in ("Elected", "Resigned"):
            owned[entry.name], broken[entry.name] = {}, {}
        elif isinstance(entry.what, Draft2RegisterConsumerRequest):
            broken.get(entry.peer, {}).pop(entry.name, None)
        elif isinstance(message, Draft2RegisterConsumerResponse) and message.assigned_parts:
            for name, since in broken.get(entry.name, {}).items():
                session = world.configs[name].session_timeout_ms
                if entry.time - since < session:
                    yield f"overview: {entry.name} answers {entry.peer} at {entry.time} without {name}"
            broken[entry.name] = {}
            for part in message.assigned_parts:
                key = part.topic or "", part.partition or ""
                if owned.setdefault(entry.name, {}).setdefault(key, entry.peer) != entry.peer:
                    yield f"overview: {entry.peer} and {owned[entry.name][key]} get {key} at {entry.time}"


WATCHED = (d1_one_coordinator, d2_rebalances_of_a_group_do_not_overlap)
CHECKED = (
    d3_stop_before_start, d4_failures_take_their_pings, d5_owners_overlap_by_a_third,
    d6_rebalances_have_causes, d7_registrations_are_unique, d8_attempts_are_bounded,
    d9_offsets_only_with_auto_commit, overview_answers_divide_the_partitions, *ORDER, *THIRD_DRAFT,
)  # fmt: skip


def watch(cluster: Cluster) -> list[str]:
    """What is wrong now."""
    return [sentence for checker in WATCHED for sentence in checker(cluster)]


def check(world: World, *, without: tuple[Any, ...] = ()) -> list[str]:
    """What was wrong in a run."""
    return [sentence for checker in CHECKED if checker not in without for sentence in checker(world)]


def d10_owners_are_ranges(cluster: Cluster, group: str, topic: str, partitions: int) -> Iterator[str]:
    """The ZooKeeper consumer, once it is quiet: sorted threads own slices of the sorted partitions, the first
    (partitions mod threads) of them one more. Written down once more, from the page's steps 4 to 7."""
    names = [path.rpartition("/")[2] for path in cluster.tree.paths() if f"/{group}/ids/" in path]
    threads = []
    for name in names:
        streams = Registration.parse(cluster.read(f"/consumers/{group}/ids/{name}") or b"").subscription
        threads += [f"{name}-{number}" for number in range(streams.get(topic, 0))]
    threads.sort()
    expected: list[bytes] = []
    for index, thread in enumerate(threads):
        size = partitions // len(threads) + (1 if index < partitions % len(threads) else 0)
        expected += [thread.encode()] * size
    results = [cluster.read(f"/consumers/{group}/owners/{topic}/{number}") for number in range(partitions)]
    if results != expected:
        yield f"D10: expected the owners {expected}, got {results}"
    for number, thread_id in enumerate(expected):
        consumer = thread_id.decode().rpartition("-")[0]
        if cluster.owner(topic, str(number)) != consumer:
            yield f"D10: {consumer} does not fetch {topic}-{number}"
