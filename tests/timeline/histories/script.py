"""One history by its seed: a group of one kind, later perhaps of another, and what happens to it.

Rules: what a step needs is decided when its time comes; a step that can't be done then is left out. A group
that is to be deleted loses its clients first, and nothing else happens meanwhile. The coordinator is of the
release with which the kept seeds were found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

from coordwire.capture.entries import FrameEntry
from coordwire.coordinator import CoordinatorConfig
from coordwire.messages import DeleteGroupsRequest
from coordwire.timeline.from_wire.group_frames import ABOUT_A_GROUP
from tests.coordinator.oracle import RELEASE
from tests.coordinator.stories.clients import Client
from tests.coordinator.stories.scripts import GROUP, KINDS, LENGTH, NEWER_KINDS, Story
from tests.coordinator.stories.world import MS, START
from tests.timeline.histories.cluster import Cluster

__all__ = ["EVERY_KIND", "History", "play"]

EVERY_KIND = (*KINDS, *NEWER_KINDS)
STALLS = (2_500, 5_000, 9_000)
KILLS = ((1_500, 500, 20_000), (6_000, 2_000, 30_000), (9_000, 500, 15_000))
"""Milliseconds until another broker is named, until it has loaded the group, until the dead one is back."""


class History(Story):
    """kind: of the clients that start now; deleted: when the group was deleted, and whether a capture has
    it; frozen: from when until when which clients were."""

    world: Cluster

    def __init__(self, seed: int, kind: str | None = None) -> None:
        super().__init__(seed, kind or EVERY_KIND[seed % len(EVERY_KIND)])
        self.deleted: list[tuple[int, bool]] = []
        self.frozen: list[tuple[str, int, int]] = []
        self._is_ending = False

    @cached_property
    def requests(self) -> dict[str, list[int]]:
        """When each client asked its group's coordinator, in milliseconds."""
        times: dict[str, list[int]] = {}
        for entry in self.world.entries:
            if isinstance(entry, FrameEntry) and entry.request is None and entry.api_key in ABOUT_A_GROUP:
                times.setdefault(entry.client_id or "", []).append((entry.time_ns or 0) // MS)
        return times

    def new_world(self, config: CoordinatorConfig, failures: float) -> Cluster:
        return Cluster(self.random, replace(config, release=RELEASE))

    def actions(self) -> list[tuple[Callable[[], None], int]]:
        known = [(action, weight) for action, weight in super().actions() if action != self.fail_over]
        return [
            *known, (self.fail_over, 1), (self.stall, 2), (self.kill_broker, 1), (self.make_anew, 1),
            (self.delete_group, 1),
        ]  # fmt: skip

    # --- what happens ---

    def _add(self, instance_id: str | None = None, topics: list[str] | None = None) -> None:
        if not self._is_ending:
            super()._add(instance_id, topics)
            self._consume(self.clients[-1])

    def _consume(self, client: Client) -> None:
        if client.alive:
            if not client.is_frozen:
                self.world.fetch(client)
            self.world.after(self.random.choice([700, 1_500]), lambda: self._consume(client))

    def start(self) -> None:
        if not self._is_ending:
            super().start()

    def kill(self) -> None:
        client = self._pick()
        if client is None:
            return
        if self.random.random() < 0.5:
            self.note(f"kill {client.name}")
            client.die()
        else:
            self.note(f"vanish {client.name}")
            self.world.vanish(client)

    def freeze(self) -> None:
        before = {client.name for client in self.clients if client.is_frozen}
        super().freeze()
        for client in self.clients:
            if client.is_frozen and client.name not in before:
                duration = int(self.steps[-1].rpartition(" ")[2])
                self.frozen.append((client.name, self.world.now, self.world.now + duration))

    def stall(self) -> None:
        duration = self.random.choice(STALLS)
        self.note(f"stall {duration}")
        self.world.stall(duration)

    def kill_broker(self) -> None:
        times = self.random.choice(KILLS)
        self.note(f"kill {self.world.coordinator} {times}")
        self.world.kill_broker(*times)

    def make_anew(self) -> None:
        """A topic is deleted, and made anew under its name a little later."""
        if self.kind in NEWER_KINDS or "payments" not in self.world.topics:
            return
        count, is_seen = self.world.topics["payments"].partitions, self.random.random() < 0.7
        self.note(f"delete payments, {'seen' if is_seen else 'unseen'}")
        self.world.delete_topic("payments", is_seen=is_seen)
        self._metadata_changed()

        def create() -> None:
            self.note(f"create payments {count}")
            self.world.set_topics({"payments": count})
            self._metadata_changed()

        self.world.after(self.random.choice([300, 4_000]), create)

    def _metadata_changed(self) -> None:
        for client in self._alive():
            self.world.after(self.random.randint(0, 1_500), client.metadata_changed)

    def grow(self) -> None:
        if len(self.world.topics) >= 2:
            super().grow()

    def delete_group(self) -> None:
        """All clients stop; once the group is empty it is deleted, and another one has its name."""
        if self._is_ending or not self._alive():
            return
        self._is_ending = True
        self.note("all leave")
        for client in self._alive():
            self.world.after(self.random.randint(0, 2_000), client.leave)
        self.world.after(5_000, self._delete)

    def _delete(self) -> None:
        group = self.world.shard.groups.get(GROUP)
        if any(client.alive for client in self.clients) or group is None or group.members:
            self.world.after(2_000, self._delete)
            return
        is_seen = self.random.random() < 0.7

        def answered(response: Any) -> None:
            deleted = not response.results[0].error_code
            self.note(f"delete the group, {'seen' if is_seen else 'unseen'}: {deleted}")
            self._is_ending = not deleted
            if not deleted:
                self.world.after(2_000, self._delete)
                return
            self.deleted.append((self.world.now, is_seen))
            self._begin_anew()

        operator = self.world.operator()
        operator.is_seen = is_seen
        operator.broker = self.world.coordinator or operator.broker
        self.world.ask(operator, DeleteGroupsRequest(groups_names=[GROUP]), 2, answered)

    def _begin_anew(self) -> None:
        self.kind, self._newer = self.random.choice(EVERY_KIND), False
        self.note(f"anew as {self.kind}")
        self.world.show_session_timeout(GROUP, self.kind if self.kind in NEWER_KINDS else "consumer")
        for _ in range(self.random.randint(1, 3)):
            self.world.after(self.random.randint(1_000, 6_000), self.start)


def play(seed: int, kind: str | None = None) -> History:
    history = History(seed, kind)
    history.play()
    return history


END = START + LENGTH
