"""A member of a group whose coordinator assigns, as a model: heartbeats alone, as the Java client.

The group is one of KIP-848; `Heartbeats` has what share and streams groups say in another way.

epoch 0                                    join: everything is said, nothing is owned
an assignment in the answer                commit and give up first, then take, then say what is owned
FENCED_MEMBER_EPOCH, UNKNOWN_MEMBER_ID     the partitions are lost, join again under the same id
UNRELEASED_INSTANCE_ID                     the static predecessor is still in: try again later
NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, a lost link   find the coordinator, then say everything
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from coordwire.codec import Message
from coordwire.designs.simulator.kafka.group_client import (
    REDISCOVER,
    GroupClient,
    GroupClientConfig,
    OwnedPartition,
)
from coordwire.designs.simulator.kafka.heartbeats import CONSUMER, ID_FROM_CLIENT, Beat, Heartbeats
from coordwire.designs.simulator.network import SimulatedNode
from coordwire.enums import ErrorCode

_BEAT = "heartbeat"
_BACKOFF_MS = 100
_LATER_MS = 1_000
_JOIN, _LEAVE, _LEAVE_FOR_NOW = 0, -1, -2


class ConsumerClient(GroupClient):
    """A member. epoch: 0 until it has joined. heartbeats: of its kind of group."""

    def __init__(self, config: GroupClientConfig, heartbeats: Heartbeats = CONSUMER) -> None:
        super().__init__(config)
        self.heartbeats = heartbeats
        self.reads_offsets = heartbeats.commits
        self.epoch = _JOIN
        self._interval_ms = config.heartbeat_interval_ms
        self._assigned: list[OwnedPartition] | None = None
        self._answer: Any = None
        self._sent_owned: list[OwnedPartition] | None = None
        self._says_all = True
        self._is_asking = False
        self._is_revoking = False

    def version(self, kind: type[Message]) -> int:
        version = self.config.versions.get(kind)
        if version is None and kind is self.heartbeats.kind:
            return self.heartbeats.version
        return super().version(kind)

    def start(self, node: SimulatedNode) -> None:
        if self.version(self.heartbeats.kind) >= ID_FROM_CLIENT:
            self.member_id = str(UUID(int=node.random.getrandbits(128), version=4))
        super().start(node)

    @property
    def is_stable(self) -> bool:
        """Whether it owns what it was last assigned."""
        return self.epoch > _JOIN and not self._is_revoking and self._assigned is None

    # --- heartbeats ---

    def begin(self) -> None:
        self._is_asking = False
        self._says_all = True
        self._beat()

    def end_session(self) -> None:
        self.node.cancel_timer(_BEAT)
        self._is_asking = False
        self._says_all = True

    def on_client_timer(self, key: str) -> None:
        self._beat()

    def _beat(self) -> None:
        if self._is_asking or not self.has_coordinator or self.is_done:
            return
        owned = sorted(self.owned)
        is_reported = self._says_all or owned != self._sent_owned
        request = self.heartbeats.request(replace(
            self._beat_of(self.epoch), joins=self.epoch == _JOIN, is_whole=self._says_all,
            owned=owned if is_reported else None,
        ))  # fmt: skip
        self._sent_owned = owned
        self._says_all = False
        self._is_asking = True
        self.ask(request, self._answered, timeout_ms=self.config.session_timeout_ms)

    def _beat_of(self, epoch: int) -> Beat:
        version = self.version(self.heartbeats.kind)
        return Beat(self.config, self.member_id, epoch, version, self.topics, self.topic_ids)

    def _schedule(self, delay_ms: int) -> None:
        self.node.set_timer(_BEAT, self.node.now + delay_ms)

    def _answered(self, response: Any) -> None:
        self._is_asking = False
        if response.error_code:
            self._refused(ErrorCode(response.error_code), response.error_message or "")
            return
        self.member_id = response.member_id or self.member_id
        self.epoch = response.member_epoch
        self._interval_ms = response.heartbeat_interval_ms
        if (answer := self.heartbeats.assignment(response)) is not None:
            self._answer = answer
            self._assigned = self.heartbeats.named(answer, self.topic_ids, self.partitions)
            if self._assigned is None:
                self.ask_metadata()
        self._schedule(self._interval_ms)
        self._reconcile()

    def _refused(self, error: ErrorCode, text: str) -> None:
        self._says_all = True
        match error:
            case ErrorCode.FENCED_MEMBER_EPOCH | ErrorCode.UNKNOWN_MEMBER_ID:
                self._lose()
                self._schedule(0)
            case ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                self._schedule(_BACKOFF_MS)
            case ErrorCode.UNRELEASED_INSTANCE_ID:
                self._schedule(_LATER_MS)
            case error if error in REDISCOVER:
                self.lose_coordinator()
            case _:
                self.fail(error, text)

    def _lose(self) -> None:
        self.epoch = _JOIN
        self._assigned = self._answer = None
        self._is_revoking = False
        self.drop(list(self.owned))

    # --- reconciliation ---

    def topics_changed(self) -> None:
        if self._answer is not None and self._assigned is None:
            self._assigned = self.heartbeats.named(self._answer, self.topic_ids, self.partitions)
            self._reconcile()

    def _reconcile(self) -> None:
        """Give up what is not assigned any more; then take what is."""
        assigned = self._assigned
        if assigned is None or self._is_revoking:
            return
        revoked = [partition for partition in self.owned if partition not in assigned]
        if self.config.stubborn:
            return
        if not revoked:
            self._assigned = self._answer = None
            if any(partition not in self.owned for partition in assigned):
                self.take(assigned)
                self._schedule(0)
            return
        self._is_revoking = True
        epoch = self.epoch

        def committed() -> None:
            self._is_revoking = False
            if self.epoch < epoch or self.epoch == _JOIN:
                return
            self.drop(revoked)
            self._schedule(0)
            self._reconcile()

        self.commit(committed)

    def lose_coordinator(self) -> None:
        super().lose_coordinator()
        if self._is_revoking:  # its commit has no answer any more
            self._is_revoking = False
            assigned = self._assigned or []
            self.drop([partition for partition in self.owned if partition not in assigned])

    def may_commit(self) -> bool:
        return self.epoch > _JOIN and self.heartbeats.commits

    def fetching_member(self) -> tuple[str | None, int]:
        return self.member_id, self.epoch

    # --- the application ---

    def resubscribe(self) -> None:
        self.ask_metadata()
        self._says_all = True
        self._schedule(0)

    def leave(self) -> None:
        def finish(_: object = None) -> None:
            self.stop()

        def committed() -> None:
            self.drop(list(self.owned))
            if self.epoch <= _JOIN or not self.has_coordinator:
                finish()
                return
            epoch = _LEAVE if self.config.instance_id is None else _LEAVE_FOR_NOW
            self._is_asking = True
            self.ask(self.heartbeats.request(self._beat_of(epoch)), finish)

        self.commit(committed)
