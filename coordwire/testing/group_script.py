"""The common part of the scripts: joiners, leavers, commits, and the final state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar, Literal

from coordwire.messages import OffsetCommitRequest, OffsetCommitResponse
from coordwire.messages.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from coordwire.testing.group_conversation import ConversationCommit, GroupConversation, Recorder

__all__ = ["GroupScript"]


class GroupScript(ABC):
    """One group's life. `apis`: those that it uses, by key; `generation`: the last, or the group epoch."""

    kind: ClassVar[Literal["classic", "consumer"]]
    apis: ClassVar[tuple[int, ...]]

    def __init__(self, recorder: Recorder, group_id: str, topic: str, partitions: int) -> None:
        self.recorder = recorder
        self.group_id = group_id
        self.topic = topic
        self.partitions = partitions
        self.generation = 0
        self.joiners: list[str] = []
        self.leavers: list[str] = []
        self.commits: list[ConversationCommit] = []

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of members."""

    @abstractmethod
    def join(self) -> None:
        """Add a member, and bring the group to a stable state."""

    @abstractmethod
    def leave(self, index: int) -> None:
        """Remove a member, and bring the others to a stable state. index: of the member, modulo their
        number."""

    @abstractmethod
    def heartbeat(self, index: int) -> None:
        """A member sends a heartbeat."""

    @abstractmethod
    def commit(self, index: int) -> None:
        """A member commits an offset of each of its partitions."""

    @abstractmethod
    def assignments(self) -> dict[str, tuple[int, ...]]:
        """The partitions of each member."""

    def conversation(self) -> GroupConversation:
        """The frames so far, and the state of the group."""
        return GroupConversation(
            kind=self.kind, group_id=self.group_id, topic=self.topic, partitions=self.partitions,
            frames=tuple(self.recorder.frames), joiners=tuple(self.joiners), leavers=tuple(self.leavers),
            generation=self.generation, assignments=self.assignments(), commits=tuple(self.commits),
        )  # fmt: skip

    def _commit(
        self, connection: int, client_id: str, member_id: str, generation: int, partitions: Iterable[int]
    ) -> None:
        commits = [
            ConversationCommit(member_id, number, 10 * len(self.commits) + number) for number in partitions
        ]
        if not commits:
            return
        self.commits += commits
        requested = [
            OffsetCommitRequestPartition(partition_index=commit.partition, committed_offset=commit.offset)
            for commit in commits
        ]
        answered = [OffsetCommitResponsePartition(partition_index=commit.partition) for commit in commits]
        self.recorder.exchange(
            connection, client_id,
            OffsetCommitRequest(
                group_id=self.group_id, generation_id_or_member_epoch=generation, member_id=member_id,
                topics=[OffsetCommitRequestTopic(name=self.topic, partitions=requested)],
            ),
            OffsetCommitResponse(
                topics=[OffsetCommitResponseTopic(name=self.topic, partitions=answered)]
            ),
        )  # fmt: skip
