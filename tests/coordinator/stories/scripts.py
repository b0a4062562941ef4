"""One history by its seed: which clients there are, and what happens to them when."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from coordwire.capture.entries import FrameEntry
from coordwire.coordinator import (
    ConsumerGroupConfig,
    CoordinatorConfig,
    ShareGroupConfig,
    StreamsGroupConfig,
)
from coordwire.timeline.events import GroupEvent
from tests.coordinator.stories.clients import ClassicClient, Client, ConsumerClient
from tests.coordinator.stories.comparison import Comparison
from tests.coordinator.stories.newer_clients import ShareClient, StreamsClient, topology
from tests.coordinator.stories.world import World

KINDS = ("eager", "cooperative", "consumer", "mixed")
NEWER_KINDS = ("share", "streams")
GROUP = "orders"
APPLICATION = ["orders", "payments"]
"""What a streams application reads."""

MOST = 6
LENGTH = 120_000


class Story:
    """One history as it runs. kind: what its clients speak, by default one of `KINDS`, by the seed; `mixed`
    ones move from one to the other."""

    def __init__(self, seed: int, kind: str | None = None) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.kind = KINDS[seed % len(KINDS)] if kind is None else kind
        defaults = self.random.random() < 0.2
        timeout, interval = (
            (45_000, 5_000) if defaults else self.random.choice([(6_000, 1_000), (9_000, 2_000)])
        )
        delay_ms, assignment_ms = self.random.choice([0, 500, 3_000]), self.random.choice([0, 1_000])
        modern: dict[str, Any] = {
            "session_timeout_ms": timeout, "heartbeat_interval_ms": interval,
            "assignment_interval_ms": assignment_ms,
        }  # fmt: skip
        config = CoordinatorConfig(
            min_session_timeout_ms=1_000,
            initial_rebalance_delay_ms=delay_ms,
            consumer=ConsumerGroupConfig(**modern),
            share=ShareGroupConfig(**modern),
            streams=StreamsGroupConfig(
                **modern, initial_rebalance_delay_ms=delay_ms, num_standby_replicas=seed // 2 % 2
            ),
        )
        failures = 0.02 if self.random.random() < 0.15 else 0.0
        self.world = self.new_world(config, failures)
        self.world.set_topics({"orders": self.random.randint(1, 5), "payments": self.random.randint(1, 4)})
        if not defaults:
            kind = self.kind if self.kind in NEWER_KINDS else "consumer"
            self.world.show_session_timeout(GROUP, kind)
        self.session_ms = self.random.choice([6_000, 10_000])
        self.interval_ms = self.random.choice([500, 1_000, 2_000])
        self.rebalance_ms = self.random.choice([5_000, 20_000, 60_000])
        self.clients: list[Client] = []
        self.steps: list[str] = []
        self._names = 0
        self._newer = False

    def new_world(self, config: CoordinatorConfig, failures: float) -> World:
        """An empty one."""
        return World(self.random, config, failures)

    @property
    def _is_stateful(self) -> bool:
        """Whether a streams application keeps state."""
        return self.seed % 4 >= 2

    # --- what happens ---

    def _make(self, name: str, instance_id: str | None, topics: list[str]) -> Client:
        newer = self.kind == "consumer" or (self.kind == "mixed" and self._newer)
        slow = self.random.choice([0, 50, 800])
        if self.kind == "share":
            return ShareClient(
                self.world, name, GROUP, topics, None, slow, rebalance_ms=-1, interval_ms=1_000
            )
        if self.kind == "streams":
            return StreamsClient(
                self.world, name, GROUP, APPLICATION, None, slow, rebalance_ms=self.rebalance_ms,
                interval_ms=1_000, topology=topology(APPLICATION, stateful=self._is_stateful),
                endpoint=self.seed % 8 >= 4,
            )  # fmt: skip
        if newer:
            regex = "orders|payments" if self.random.random() < 0.1 else None
            return ConsumerClient(
                self.world, name, GROUP, [] if regex else topics, instance_id, slow,
                rebalance_ms=self.rebalance_ms, interval_ms=1_000, regex=regex,
            )  # fmt: skip
        return ClassicClient(
            self.world, name, GROUP, topics, instance_id, slow, cooperative=self.kind == "cooperative",
            session_ms=self.session_ms, interval_ms=self.interval_ms, rebalance_ms=self.rebalance_ms,
            old=self.seed % 8 >= 4,
        )  # fmt: skip

    def _add(self, instance_id: str | None = None, topics: list[str] | None = None) -> None:
        self._names += 1
        client = self._make(f"c{self._names}", instance_id, topics or self._topics())
        self.clients.append(client)
        self.note(f"start {client.name} {client.instance_id or ''} {client.topics}")
        client.start()

    def _topics(self) -> list[str]:
        return self.random.choice([["orders"], ["orders", "payments"], ["orders", "payments"]])

    def note(self, text: str) -> None:
        self.steps.append(f"{self.world.now} {text}")

    def start(self) -> None:
        if len(self._alive()) < MOST:
            may_be_static = self.kind not in NEWER_KINDS
            static = f"i{self._names + 1}" if may_be_static and self.random.random() < 0.25 else None
            self._add(static)

    def _alive(self) -> list[Client]:
        return [client for client in self.clients if client.alive and not client.leaving]

    def _pick(self) -> Client | None:
        alive = self._alive()
        return self.random.choice(alive) if alive else None

    def leave(self) -> None:
        client = self._pick()
        if client is not None:
            self.note(f"leave {client.name}")
            client.leave()

    def kill(self) -> None:
        client = self._pick()
        if client is not None:
            self.note(f"kill {client.name}")
            client.die()

    def freeze(self) -> None:
        client = self._pick()
        if client is not None:
            duration = self.random.choice([1_500, 4_000, 15_000])
            self.note(f"freeze {client.name} {duration}")
            client.freeze(duration)

    def restart(self) -> None:
        """Stop one, and start another in its place; a static member keeps its name."""
        client = self._pick()
        if client is None:
            return
        self.note(f"restart {client.name}")
        (client.leave if self.random.random() < 0.6 else client.die)()
        delay = self.random.choice([300, 2_000, 12_000])
        self.world.after(delay, lambda: self._add(client.instance_id, list(client.topics) or None))

    def subscribe(self) -> None:
        """All change their subscription, one after the other; a streams application has its own."""
        if self.kind == "streams":
            return
        topics = self._topics()
        self.note(f"subscribe {topics}")
        for number, client in enumerate(self._alive()):
            self.world.after(number * self.random.choice([100, 1_500]), partial(client.subscribe, topics))

    def grow(self) -> None:
        """A topic gets more partitions; one of an application with state may not."""
        if self.kind == "streams" and self._is_stateful:
            return
        name = self.random.choice(APPLICATION)
        count = self.world.topics[name].partitions + self.random.randint(1, 2)
        if count <= 9:
            self.note(f"grow {name} {count}")
            self.world.set_topics({name: count})
            for client in self._alive():
                self.world.after(self.random.randint(0, 1_500), client.metadata_changed)

    def fail_over(self) -> None:
        away, loading = self.random.choice([(0, 50), (500, 1_000), (4_000, 3_000)])
        self.note(f"fail over {away} {loading}")
        self.world.fail_over(away, loading)

    def convert(self) -> None:
        """From now on clients start with the other protocol, and those that are there restart one by one."""
        self._newer = not self._newer
        self.note(f"convert newer={self._newer}")
        for number, client in enumerate(self._alive()):
            self.world.after(number * 3_000, partial(self._move, client))

    def _move(self, client: Client) -> None:
        if client.alive and not client.leaving:
            self.note(f"move {client.name}")
            client.leave()
            self.world.after(400, lambda: self._add(client.instance_id, list(client.topics) or None))

    def compare(self, reported: Iterable[GroupEvent]) -> Comparison:
        """told: what the timeline made of this story's capture."""
        session_ms = max(self.session_ms, self.world.config.consumer.session_timeout_ms)
        world = self.world
        shifted = [*world.loaded, *world.failed]
        frames = [entry for entry in world.entries if isinstance(entry, FrameEntry)]
        return Comparison(
            frames, world.events, reported, shifted=shifted, reloaded=world.reloaded,
            session_ms=session_ms,
        )  # fmt: skip

    def actions(self) -> list[tuple[Callable[[], None], int]]:
        """What may happen, and how often beside the others."""
        return [
            (self.start, 4), (self.leave, 2), (self.kill, 2), (self.freeze, 2), (self.restart, 2),
            (self.subscribe, 2), (self.grow, 1), (self.fail_over, 1),
            (self.convert, 3 if self.kind == "mixed" else 0),
        ]  # fmt: skip

    def play(self) -> None:
        actions = self.actions()
        world = self.world
        begin = world.now
        at = 0
        for _ in range(self.random.randint(1, 3)):
            world.after(self.random.randint(0, 2_000), self.start)
        while at < LENGTH - 30_000:
            at += self.random.choice([200, 3_000, 8_000, 15_000])
            (action,) = self.random.choices(*zip(*actions, strict=True))
            world.after(at, action)
        world.run(begin + LENGTH)


def play(seed: int, kind: str | None = None) -> Story:
    story = Story(seed, kind)
    story.play()
    return story
