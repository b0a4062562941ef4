"""A request on its way through a broker."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

from coordwire._dataclasses import dataclass
from coordwire.broker.cluster.cluster_state import ClusterState
from coordwire.broker.cluster.topics import ClusterPartition
from coordwire.codec import Message
from coordwire.coordinator.apis.guards import CLUSTER
from coordwire.coordinator.topics import TopicsImage
from coordwire.enums import AclOperation, AclResourceType, ErrorCode

_ANY_EPOCH = -1


class InvalidRequest(Exception):
    """A request that a Kafka broker does not answer: it closes the connection."""


class AnswerMemory(Protocol):
    """The memory for answers that is free."""

    @property
    def room(self) -> int: ...


ANONYMOUS = "ANONYMOUS"
"""Kafka's name of a client that has not authenticated."""


@dataclass(slots=True)
class ApiCall:
    """One request. node: the id of the broker that it came to; client_host: as "/192.0.2.7".

    refused: partitions that a fault refuses, by topic and index. memory: what bounds the answer. user: the
    name by which the client authenticated; `ANONYMOUS` without. forbids: topics whose partitions the client
    may not use. connection: what the client's share sessions end with.
    """

    cluster: ClusterState
    node: int
    request: Any
    version: int
    client_id: str
    client_host: str
    refused: Mapping[tuple[str | None, int | None], ErrorCode] | None = None
    memory: AnswerMemory | None = None
    user: str = ANONYMOUS
    forbids: Callable[[str], bool] | None = None
    connection: object = None

    @property
    def room(self) -> int:
        """How many bytes the answer should have at most, where it may have fewer."""
        return sys.maxsize if self.memory is None else self.memory.room

    @property
    def topics(self) -> TopicsImage:
        """The cluster's topics."""
        return self.cluster.image()

    def topic_name(self, topic_id: UUID) -> str | None:
        """The name of the topic with an id; None if there is none."""
        topic = self.cluster.topics_by_id.get(topic_id)
        return None if topic is None else topic.name

    def session_partitions(self) -> Iterable[tuple[str | None, UUID, int]]:
        """The partitions of the fetch session that a Fetch continues: topics by name and id."""
        session = self.cluster.fetch_sessions[self.node].find(self.request.session_id)
        return () if session is None else (place for place, _ in session.partitions())

    def change(self, records: Sequence[Message]) -> str | None:
        """Change facts of the cluster; why that failed, None if it did not."""
        try:
            self.cluster.change(records)
        except OSError as error:
            return str(error)
        return None

    def allows(self, operation: AclOperation, resource_type: AclResourceType, name: str = CLUSTER) -> bool:
        """Whether the client may do this to a resource; without an authorizer everybody may."""
        authorizer = self.cluster.authorizer
        return authorizer is None or authorizer.allows(
            f"User:{self.user}", self.client_host[1:], operation.value, resource_type.value, name
        )

    def allows_some(self, operation: AclOperation, resource_type: AclResourceType) -> bool:
        """Whether there may be a resource to which the client may do this."""
        authorizer = self.cluster.authorizer
        return authorizer is None or authorizer.allows_some(
            f"User:{self.user}", self.client_host[1:], operation.value, resource_type.value
        )


HandlerResult = Message | Coroutine[Any, None, Message | None]
"""An answer, or the coroutine of a handler that may wait for it; None if a fault loses the answer."""

Handler = Callable[[ApiCall], HandlerResult]
"""Answers a request, at once or by a coroutine (`cluster.promise`)."""


async def result_of(answer: HandlerResult) -> Message | None:
    """An answer, after it was waited for."""
    return answer if isinstance(answer, Message) else await answer


def led_partition(
    call: ApiCall, topic: str, index: int, epoch: int = -1, *, follower: bool = False
) -> ClusterPartition | ErrorCode:
    """A partition that this node leads, in the epoch that the client knows (-1 for any); else why not.

    follower: one that it follows will do.
    """
    if call.refused and (topic, index) in call.refused:
        return call.refused[topic, index]
    if call.forbids is not None and call.forbids(topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    partition = call.cluster.partition(topic, index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    hosted = call.node in partition.replicas
    if hosted and not call.cluster.is_online(call.node):
        return ErrorCode.KAFKA_STORAGE_ERROR
    if not hosted:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if epoch != _ANY_EPOCH and epoch != partition.leader_epoch:
        fenced = epoch < partition.leader_epoch
        return ErrorCode.FENCED_LEADER_EPOCH if fenced else ErrorCode.UNKNOWN_LEADER_EPOCH
    if partition.leader != call.node and not follower:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return partition
