"""What written histories are made of: a script that runs while it grows, members that join, time."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

from coordwire.codec import Message
from coordwire.logs import decode_log_record, encode_log_record
from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    ShareGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequest,
    find_message,
)
from coordwire.messages.streams_group_heartbeat import (
    Subtopology,
    Topology,
)
from tests.coordinator.histories import (
    Outcome,
    Replayer,
    entry_text,
    request_step,
    state_answer,
)
from tests.coordinator.settings import settings

_TOPICS = "topics +AAAAAAAAAAEAAAAAAAAABw:3:audit +AAAAAAAAAAIAAAAAAAAABw:3:orders"

SEED = 0
"""Of the settings: bidirectional migration."""

APPEND_FAILS = "fail NOT_ENOUGH_REPLICAS"
"""The step after which the next append to the group's log fails."""

_REPORTED = ("topic_partitions", "active_tasks", "standby_tasks", "warmup_tasks")


class Script:
    """A history that grows, and a coordinator that it runs on meanwhile."""

    def __init__(self, release: str) -> None:
        self.steps: list[str] = []
        self.now = 1_000
        self._ticket = 0
        self._replayer = Replayer(settings(SEED, release))
        self.step(_TOPICS)

    def step(self, step: str) -> Outcome:
        self.steps.append(step)
        return self._replayer.run(step)

    def ask(self, message: Message, version: int) -> str:
        """Add a request; returns the id that a new member of the classic protocol gets by it."""
        self.answer(message, version)
        prefix = getattr(message, "group_instance_id", None) or "till"
        return f"{prefix}-{UUID(int=self._ticket << 20, version=4)}"

    def answer(self, message: Message, version: int, client: str | None = "till") -> Any:
        """Add a request; returns what the coordinator answers at once, or None."""
        self._ticket += 1
        outcome = self.step(request_step(self._ticket, message, version, self._ticket << 20, client))
        data = outcome.answers.get(self._ticket)
        assert message.api_key is not None
        return data and find_message(message.api_key, "response").decode(data, version=version)

    def wait(self, milliseconds: int, *, answers: bool = True) -> None:
        """Let time go on. answers: whether the share coordinators answer what they were asked for."""
        self.now += milliseconds
        self.step(f"advance {self.now}")
        while answers and (answer := state_answer(self._replayer)) is not None:
            self.step(answer)

    def reload(self, without: type[Any] | None = None, /, **changes: str | int) -> None:
        """Load the log again with these values of fields, in all keys and values that have them.

        without: keys whose records are left out. The records of the member m stay as they are, but for their
        group's id, and so does a topology.
        """
        end_offset, log = self._replayer.whole_log
        entries = []
        for offset, record in log:
            changed = decode_log_record("consumer_offsets", record.key, record.value)
            if without is not None and isinstance(changed.key, without):
                continue
            is_kept = getattr(changed.key, "member_id", None) == "m" or hasattr(
                changed.value, "subtopologies"
            )
            if is_kept and "group_id" not in changes:
                entries.append(entry_text(offset, record))
                continue
            for part, (name, text) in itertools.product((changed.key, changed.value), changes.items()):
                if hasattr(part, name):
                    setattr(part, name, text)
            key, value = encode_log_record(changed)
            assert key is not None
            entries.append(entry_text(offset, record._replace(key=key, value=value)))
        self.step("unload")
        self.step(f"load {end_offset} {' '.join(entries)}")


def join_consumer_group(script: Script, group_id: str, member_id: str = "m") -> ConsumerGroupHeartbeatRequest:
    """A member joins; its next heartbeat."""
    joining = ConsumerGroupHeartbeatRequest(
        group_id=group_id, member_id=member_id, rebalance_timeout_ms=5_000, topic_partitions=[],
        subscribed_topic_names=["orders"],
    )  # fmt: skip
    epoch = script.answer(joining, 1).member_epoch
    return ConsumerGroupHeartbeatRequest(group_id=group_id, member_id=member_id, member_epoch=epoch)


def join_share_group(script: Script, group_id: str, member_id: str = "m") -> ShareGroupHeartbeatRequest:
    joining = ShareGroupHeartbeatRequest(
        group_id=group_id, member_id=member_id, subscribed_topic_names=["orders"]
    )
    epoch = script.answer(joining, 1).member_epoch
    return ShareGroupHeartbeatRequest(group_id=group_id, member_id=member_id, member_epoch=epoch)


def join_streams_group(
    script: Script,
    group_id: str,
    member_id: str = "m",
    *,
    topology_epoch: int = 1,
    reads: tuple[tuple[str, str], ...] = (("0", "orders"),),
) -> StreamsGroupHeartbeatRequest:
    """reads: each subtopology with its topic."""
    parts = [Subtopology(subtopology_id=name, source_topics=[topic]) for name, topic in reads]
    joining = StreamsGroupHeartbeatRequest(
        group_id=group_id, member_id=member_id, rebalance_timeout_ms=5_000, process_id="p",
        topology=Topology(epoch=topology_epoch, subtopologies=parts), active_tasks=[], standby_tasks=[],
        warmup_tasks=[],
    )  # fmt: skip
    epoch = script.answer(joining, 0).member_epoch
    return StreamsGroupHeartbeatRequest(group_id=group_id, member_id=member_id, member_epoch=epoch)


JOINS: dict[str, tuple[Callable[..., Any], int]] = {
    "consumer": (join_consumer_group, 1),
    "share": (join_share_group, 1),
    "streams": (join_streams_group, 0),
}


def settle(script: Script, beats: list[Any], version: int) -> None:
    """Time goes on and members give up all that they have, until they have come to their target."""
    for _ in range(5):
        script.wait(3_000)
        for beat in beats:
            report: dict[str, Any] = {name: [] for name in _REPORTED if hasattr(beat, name)}
            beat.member_epoch = script.answer(replace(beat, **report), version).member_epoch
