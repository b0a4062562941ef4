"""`python -m tests.bench.coordinator` measures the group coordinator, beside Apache Kafka's own.

Strategy: a steady heartbeat from request to answer, in a classic group and in one of KIP-848, in rounds that
alternate with Kafka's coordinator in a JVM (its service and runtime on a clock and a log in memory, as
tests/coordinator/oracle runs them) and with a plain loop, by which machines compare. Then what grows: groups,
members, targets. Rules: the processor's time, the fastest round; where Java or Maven's jars can't be had,
Kafka's column is empty and the reason is printed.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import random
import sys
import tracemalloc
from collections.abc import Callable
from time import process_time
from uuid import UUID

from coordwire import implementation
from coordwire.codec import Message
from coordwire.coordinator import (
    Append,
    ConsumerGroupConfig,
    CoordinatorConfig,
    RequestContext,
    Shard,
    TopicImage,
    TopicsImage,
)
from coordwire.coordinator.assignors import ASSIGNORS, GroupSpec, MemberSpec
from coordwire.coordinator.hash_tables import HashSet
from coordwire.coordinator.model.assignment import Target
from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    SyncGroupRequest,
)
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.sync_group import SyncGroupRequestAssignment
from tests.coordinator.oracle import CoordinatorOracle
from tests.interop.maven import Unavailable

MEMBERS = 8
TOPIC = TopicImage(UUID(int=7), "orders", MEMBERS)
SUBSCRIPTION = b"\0\0\0\0\0\1\0\6orders\xff\xff\xff\xff"
CLIENT = "till"
_TURNS = 10_000
_CALLS = 400
_JVM = ("-Xmx512m", "-XX:+UseSerialGC", "-Xshare:auto")


class Bench:
    """A shard whose appends are durable at once, and the same requests as steps for Kafka's coordinator."""

    def __init__(self, session_timeout_ms: int = 600_000) -> None:
        self._session_timeout_ms = session_timeout_ms
        config = CoordinatorConfig(
            max_session_timeout_ms=session_timeout_ms,
            consumer=ConsumerGroupConfig(session_timeout_ms=session_timeout_ms),
        )
        self.shard = Shard(now=1_000, config=config)
        self.shard.load([], now=1_000)
        self.shard.set_topics(TopicsImage([TOPIC]), now=1_000)
        self.now = 1_000
        self.steps = ["new", f"topics +AAAAAAAAAAAAAAAAAAAABw:{TOPIC.partitions}:{TOPIC.name}"]
        self._ids = itertools.count(1)

    def ask(self, request: Message, version: int) -> list[Message]:
        number = next(self._ids)
        context = RequestContext(
            client_id=CLIENT, client_host="/127.0.0.1", new_id=lambda: str(UUID(int=number, version=4))
        )
        body = request.encode(version=version).hex()
        api = f"{request.api_key} {version} {number:032x} {CLIENT.encode().hex()} {body}"
        self.steps.append(f"request {number} {api}")
        self.shard.handle(request, version=version, now=self.now, context=context)
        return self.answers()

    def answers(self) -> list[Message]:
        results: list[Message] = []
        for effect in self.shard.effects():
            if isinstance(effect, Append):
                self.shard.appended(effect.number, now=1_000)
            elif (response := getattr(effect, "response", None)) is not None:
                results.append(response)
        return results

    def advance(self, by: int) -> list[Message]:
        self.now += by
        self.steps.append(f"advance {self.now}")
        self.shard.advance(self.now)
        return self.answers()

    def classic(self, group_id: str, count: int) -> list[HeartbeatRequest]:
        """Members join and sync; the heartbeat of each from then on."""
        members: list[str] = []
        for _ in range(count):
            join = JoinGroupRequest(
                group_id=group_id, session_timeout_ms=self._session_timeout_ms, rebalance_timeout_ms=600_000,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
            )  # fmt: skip
            (answer,) = self.ask(join, 5)
            join.member_id = answer.member_id  # type: ignore[attr-defined]
            self.ask(join, 5)
            members.append(join.member_id)
        joined: list[Message] = []
        while not joined:
            joined = self.advance(3_000)
        leader: str = joined[0].leader  # type: ignore[attr-defined]
        generation: int = joined[0].generation_id  # type: ignore[attr-defined]
        for member_id in sorted(members, key=leader.__ne__):
            sync = SyncGroupRequest(group_id=group_id, generation_id=generation, member_id=member_id)
            if member_id == leader:
                sync.assignments = [
                    SyncGroupRequestAssignment(member_id=member, assignment=bytes(30)) for member in members
                ]
            self.ask(sync, 4)
        return [
            HeartbeatRequest(group_id=group_id, generation_id=generation, member_id=member)
            for member in members
        ]

    def consumer(self, group_id: str, count: int) -> list[ConsumerGroupHeartbeatRequest]:
        """Members join and come to their targets; the heartbeat of each from then on."""
        epochs = {f"{group_id}-{number}": 0 for number in range(count)}
        for member_id in epochs:
            join = ConsumerGroupHeartbeatRequest(
                group_id=group_id, member_id=member_id, rebalance_timeout_ms=60_000,
                subscribed_topic_names=[TOPIC.name], topic_partitions=[],
            )  # fmt: skip
            (answer,) = self.ask(join, 1)
            epochs[member_id] = answer.member_epoch  # type: ignore[attr-defined]
        for _ in range(4):
            self.advance(2_000)
            for member_id, epoch in epochs.items():
                beat = ConsumerGroupHeartbeatRequest(
                    group_id=group_id, member_id=member_id, member_epoch=epoch, topic_partitions=[]
                )
                (answer,) = self.ask(beat, 1)
                epochs[member_id] = answer.member_epoch  # type: ignore[attr-defined]
        assert len(set(epochs.values())) == 1
        return [
            ConsumerGroupHeartbeatRequest(group_id=group_id, member_id=one, member_epoch=epoch)
            for one, epoch in epochs.items()
        ]

    def beats(self, requests: list[Message], version: int) -> Callable[[], None]:
        """Each a few times, its answer taken."""
        context = RequestContext(client_id=CLIENT, client_host="/127.0.0.1", new_id=str)
        handle, effects = self.shard.handle, self.shard.effects
        turns, now = max(_CALLS // len(requests), 1), self.now

        def run() -> None:
            for _ in range(turns):
                for request in requests:
                    handle(request, version=version, now=now, context=context)
                    for _effect in effects():
                        pass

        return run


def loop() -> None:
    """What machines are compared by."""
    total = 0
    for number in range(_TURNS):
        total += number * number & 7


def seconds(call: Callable[[], object]) -> float:
    start = process_time()
    call()
    return process_time() - start


def fastest(call: Callable[[], object], rounds: int) -> float:
    return min(seconds(call) for _ in range(rounds))


# --- heartbeats ---


def heartbeats(rounds: int) -> None:
    bench = Bench()
    kinds: dict[str, tuple[list[Message], int]] = {
        "classic": ([*bench.classic("payments", MEMBERS)], 4),
        "KIP-848": ([*bench.consumer("fraud", MEMBERS)], 1),
    }
    kafka: CoordinatorOracle | None = None
    try:
        kafka = CoordinatorOracle(flags=_JVM)
        kafka.run(bench.steps)
    except Unavailable as reason:
        print(f"without Kafka's own coordinator: {reason}", file=sys.stderr)
    print("| a steady heartbeat | µs | turns of a plain loop | Kafka's coordinator, µs | × Kafka's |")
    print("|---|---:|---:|---:|---:|")
    for name, (requests, version) in kinds.items():
        run = bench.beats(requests, version)
        calls = max(_CALLS // len(requests), 1) * len(requests)
        body = requests[0].encode(version=version).hex()
        count = 50_000
        step = f"repeat {count} {requests[0].api_key} {version} {0:032x} {CLIENT.encode().hex()} {body}"
        ours, turns, theirs = [], [], []
        for number in range(rounds):
            turns.append(seconds(loop) / _TURNS)
            ours.append(seconds(run) / calls)
            if kafka is not None and number % max(rounds // 12, 1) == 0:
                (((_, took, answers),),) = [[line.split() for line in kafka.run([step])[0]]]
                assert int(answers) == count
                theirs.append(int(took) / count * 1e-9)
        cells = [f"{min(theirs) * 1e6:.2f}", f"{min(theirs) / min(ours):.2f}"] if theirs else ["", ""]
        print(
            f"| {name} | {min(ours) * 1e6:.2f} | {min(ours) / min(turns):.0f} | {' | '.join(cells)} |",
            flush=True,
        )
    if kafka is not None:
        kafka.close()


def many_groups(rounds: int) -> None:
    """The cost of a heartbeat in one of many groups, in turn and of the same ten all the time (which the
    processor's caches hold), and what a group with a member takes. Beside it Kafka's own, in turn."""
    columns = ["µs a heartbeat", "ten of them", "Kafka's"]
    print("\n| groups of one member | classic, ", " | ".join(columns), " | KIP-848, ", end="", sep="")
    print(" | ".join(columns), "| KiB a group, classic | KIP-848 |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for count in (10, 100, 1_000, 10_000):
        costs, sizes = [], []
        for kind, version in (("classic", 4), ("consumer", 1)):
            bench = Bench(1 << 30)  # no session ends while the others join
            if count <= 1_000:
                tracemalloc.start()
            requests = [one for number in range(count) for one in getattr(bench, kind)(f"group-{number}", 1)]
            steps = bench.steps.copy()
            for request in requests:
                (answer,) = bench.ask(request, version)
                assert answer.error_code == 0  # type: ignore[attr-defined]
            bench.steps.clear()
            if count <= 1_000:
                gc.collect()
                own = tracemalloc.take_snapshot().filter_traces(
                    [tracemalloc.Filter(True, "*/coordwire/*"), tracemalloc.Filter(True, "<string>")]
                )
                tracemalloc.stop()
                sizes.append(
                    f"{sum(statistic.size for statistic in own.statistics('filename')) / count / 1024:.1f}"
                )
            else:
                sizes.append("")
            run = bench.beats(requests, version)
            calls = max(_CALLS // count, 1) * count
            costs.append(f"{fastest(run, rounds) / calls * 1e6:.2f}")
            few = bench.beats(requests[:10], version)
            costs.append(f"{fastest(few, 10 * rounds) / _CALLS * 1e6:.2f}")
            costs.append(kafkas_heartbeat(steps, requests, version, rounds))
        print(f"| {count:,} | {' | '.join([*costs, *sizes])} |", flush=True)


def kafkas_heartbeat(steps: list[str], requests: list[Message], version: int, rounds: int) -> str:
    """The microseconds of one, of these in turn, in a JVM of its own; nothing where there is none."""
    try:
        kafka = CoordinatorOracle(flags=_JVM)
    except Unavailable:
        return ""
    kafka.run(steps)
    bodies = " ".join(request.encode(version=version).hex() for request in requests)
    turns = max(100_000 // len(requests), 1)
    step = f"repeat {turns} {requests[0].api_key} {version} {0:032x} {CLIENT.encode().hex()} {bodies}"
    took = []
    for _ in range(max(rounds, 3)):
        ((_, nanoseconds, answers),) = [line.split() for line in kafka.run([step])[0]]
        assert int(answers) == turns * len(requests)
        took.append(int(nanoseconds) / int(answers) * 1e-3)
    kafka.close()
    return f"{min(took):.2f}"


# --- what grows ---


def large_groups(most: int) -> None:
    """The joins of one group's members, until all are steady, for half as many members and for all.

    Without Python's collector the work is the same for each; with it more objects are looked at more often.
    """
    print("\n| members of one group join and are steady | s | µs a member | without Python's collector |")
    print("|---|---:|---:|---:|")
    for kind in ("classic", "consumer"):
        for count in (most // 4, most // 2, most):
            costs = []
            for collects in (True, False):
                bench = Bench(1 << 30)  # no session ends while the others join
                gc.collect()
                if not collects:
                    gc.disable()
                start = process_time()
                getattr(bench, kind)("payments", count)
                costs.append(process_time() - start)
                gc.enable()
            name = "KIP-848" if kind == "consumer" else kind
            cells = " | ".join(f"{cost / count * 1e6:.0f}" for cost in costs)
            print(f"| {name}, {count:,} | {costs[0]:.2f} | {cells} |", flush=True)


KINDS = ("equal", "2 kinds", "10 kinds", "1 to 60 each", "500 each")
"""How members subscribe: to all topics; by kind, each to half of them; each to its own choice."""


def group_spec(kind: str, members: int, before: dict[str, Target], topics: int = 1_000) -> GroupSpec:
    """A group of topics with 50 partitions each; before: targets of members that have one."""
    chosen = random.Random(1)
    names = [f"topic-{number}" for number in range(topics)]
    ids = {name: UUID(int=chosen.getrandbits(128)) for name in names}
    kinds = [names]
    if kind.endswith("kinds"):
        kinds = [chosen.sample(names, topics // 2) for _ in range(int(kind.split()[0]))]
    elif kind == "1 to 60 each":
        kinds = [chosen.sample(names, chosen.randint(1, 60)) for _ in range(members)]
    elif kind == "500 each":
        kinds = [chosen.sample(names, topics // 2) for _ in range(members)]
    orders = [tuple(ids[name] for name in HashSet.copy_of(kind)) for kind in kinds]
    result = {}
    for member_id in HashSet.of(f"m-{number:05}" for number in range(members)):
        number = int(member_id[2:]) % len(kinds)
        known = before.get(member_id, {})
        result[member_id] = MemberSpec(None, orders[number], len(kinds[number]), known)
    expected = {topic for order in orders for topic in order}
    targets = [one.target for one in result.values()]
    return GroupSpec(result, kind == "equal", dict.fromkeys(expected, 50), targets)


def targets(members: int, rounds: int) -> None:
    print(
        f"\n| target of {members:,} members, 1,000 topics × 50, ms "
        "| uniform | one joins | range | one joins |"
    )
    print("|---|---:|---:|---:|---:|")
    for kind in KINDS:
        cells = []
        for name in ("uniform", "range"):
            assign = ASSIGNORS[name]
            fresh = group_spec(kind, members, {})
            joined = group_spec(kind, members, dict(assign(group_spec(kind, members - 1, {}))))
            for spec in (fresh, joined):
                cells.append(f"{fastest(lambda spec=spec, assign=assign: assign(spec), rounds) * 1e3:.0f}")  # type: ignore[misc]
        print(f"| {kind} | {' | '.join(cells)} |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.coordinator", description=__doc__)
    parser.add_argument("--rounds", type=int, default=300, help="of heartbeats (%(default)s)")
    parser.add_argument("--members", type=int, default=10_000, help="of the large groups (%(default)s)")
    options = parser.parse_args()
    print(
        f"messages: {implementation}; a turn of the plain loop: {fastest(loop, 100) / _TURNS * 1e9:.0f} ns\n"
    )
    heartbeats(options.rounds)
    many_groups(max(options.rounds // 30, 1))
    large_groups(options.members)
    targets(1_000, 3)
    return 0


if __name__ == "__main__":
    sys.exit(main())
