"""`GroupApis` without a broker answers as a real Kafka broker with ACLs does; and it can be left off."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest

from coordwire.broker.security.authorizer import Acl, Authorizer
from coordwire.codec import Message
from coordwire.coordinator import REQUESTS, Answer, Append, GroupCoordinator, RequestContext
from coordwire.coordinator.apis import ALWAYS, TOPIC_GUARDS, GroupApis
from coordwire.coordinator.topics import TopicImage, TopicsImage
from coordwire.enums import AclOperation, AclResourceType, ErrorCode
from coordwire.errors import EncodeError
from coordwire.messages import (
    InitProducerIdRequest,
    OffsetCommitRequest,
    StreamsGroupHeartbeatRequest,
    TxnOffsetCommitRequest,
)
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.messages.streams_group_heartbeat import Subtopology, TopicInfo, Topology
from tests.broker.authorized.kept import kept
from tests.broker.authorized.requests import ACLS, TOPICS, requests
from tests.broker.authorized.run import USER
from tests.broker.corners.differences import differing
from tests.broker.corners.normal_form import Ids, kind_of, normal_form

IDS = {name: UUID(int=number) for number, name in enumerate(TOPICS, 1)}
CONTEXT = RequestContext(client_id="authorized", client_host="/127.0.0.1", new_id=lambda: str(UUID(int=9)))

_NOT_ALONE = {TxnOffsetCommitRequest}
"""Of a transaction that its coordinator does not know."""


class Server:
    """The least that is around a coordinator: a log that has what is appended."""

    def __init__(self) -> None:
        self.coordinator = GroupCoordinator(partitions=1)
        self.coordinator.set_topics(
            TopicsImage([TopicImage(topic_id, name, 1) for name, topic_id in IDS.items()]), now=0
        )
        self.coordinator.load(0, [], now=0)
        self.apis = GroupApis(self.coordinator)

    def ask(self, request: Message, version: int, allows: Any = None) -> Answer:
        ticket = self.apis.handle(request, version=version, now=0, context=CONTEXT, allows=allows)
        return {answer.ticket: answer for answer in self.answers(self.apis)}[ticket]

    def answers(self, source: GroupApis | GroupCoordinator) -> Iterator[Answer]:
        """The answers among the effects, while the log takes what is appended."""
        for effect in source.effects():
            if isinstance(effect, Append):
                self.coordinator.appended(effect.partition, effect.number, now=0)
            elif isinstance(effect, Answer):
                yield effect


def decider(name: str) -> Any:
    """The rights of a set of ACLs."""
    authorizer = Authorizer()
    for kind, pattern, resource, operation, permission in ACLS[name]:
        authorizer.add(Acl(kind, pattern, resource, f"User:{USER}", "*", operation, permission), uuid4())

    def allows(operation: AclOperation, kind: AclResourceType, resource: str) -> bool:
        return authorizer.allows(f"User:{USER}", "127.0.0.1", operation.value, kind.value, resource)

    return allows


@pytest.mark.parametrize("name", ACLS)
def test_it_answers_as_a_real_broker_with_acls(name: str) -> None:
    server, allows = Server(), decider(name)
    ids = Ids()
    ids.topics.update({topic_id: topic for topic, topic_id in IDS.items()})
    compared, unlike = 0, []
    for (request, version), kafkas in zip(requests(IDS), kept()[name], strict=True):
        if type(request) not in REQUESTS or type(request) in _NOT_ALONE:
            continue
        sent = type(request).decode(request.encode(version=version), version=version)
        answer = server.ask(sent, version, allows).response
        received = type(answer).decode(answer.encode(version=version), version=version)
        outcome = [kind_of(received), version, normal_form(received, version, ids)]
        unlike += [(*kafkas[:2], *difference) for difference in differing(kafkas, outcome)]
        compared += 1
    assert unlike == []
    assert compared > 50


def streams_heartbeat() -> StreamsGroupHeartbeatRequest:
    part = Subtopology(
        subtopology_id="0", source_topics=["a"], state_changelog_topics=[TopicInfo(name="mine")]
    )
    return StreamsGroupHeartbeatRequest(
        group_id="g", member_id="m", process_id="p", rebalance_timeout_ms=60_000,
        topology=Topology(epoch=1, subtopologies=[part]), active_tasks=[], standby_tasks=[], warmup_tasks=[],
    )  # fmt: skip


@pytest.mark.parametrize("may_create", [False, True])
def test_internal_topics_are_for_who_may_create_them(may_create: bool) -> None:
    def allows(operation: AclOperation, kind: AclResourceType, name: str) -> bool:
        return operation is not AclOperation.CREATE or (may_create and name == "mine")

    answer = Server().ask(streams_heartbeat(), 0, allows)
    response: Any = answer.response
    details = [status.status_detail for status in response.status]
    if may_create:
        assert [topic.name for topic in answer.topics_to_create] == ["mine"]
        assert "Internal topics are missing: mine" in details
    else:
        assert answer.topics_to_create == ()
        assert "Internal topics are missing: mine; Unauthorized to CREATE on topics mine." in details


def test_rights_are_asked_for_with_each_request() -> None:
    server = Server()
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topics = [OffsetCommitRequestTopic(name="a", partitions=[partition])]
    commit = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=topics)
    codes = {}
    for kind in (AclResourceType.GROUP, AclResourceType.TOPIC, None):
        allows = partial(lambda forbidden, operation, resource, name: resource is not forbidden, kind)
        response: Any = server.ask(commit, 9, allows).response
        codes[kind] = response.topics[0].partitions[0].error_code
    assert codes == {
        AclResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
        AclResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        None: 0,
    }
    assert commit.topics == topics
    assert list(server.coordinator.groups) == ["g"]


def test_a_request_to_another_coordinator_is_refused_before_rights_are_asked_for() -> None:
    def allows(operation: AclOperation, kind: AclResourceType, name: str) -> bool:
        raise AssertionError("nothing to decide")

    server = Server()
    with pytest.raises(
        TypeError, match="expected a request to a group coordinator, got InitProducerIdRequest"
    ):
        server.ask(InitProducerIdRequest(), 4, allows)
    with pytest.raises(EncodeError, match="version 99"):
        server.ask(OffsetCommitRequest(), 99, allows)


def test_it_can_be_left_off() -> None:
    """Where everything is allowed, a coordinator alone answers the same, but for what brokers do."""
    around, alone = Server(), Server()
    for request, version in requests(IDS):
        if type(request) in REQUESTS and request.api_key not in ALWAYS:
            around.apis.handle(request, version=version, now=0, context=CONTEXT)
            alone.coordinator.handle(request, version=version, now=0, context=CONTEXT)
    answers = [answer.response for answer in around.answers(around.apis)]
    assert answers == [answer.response for answer in alone.answers(alone.coordinator)]
    assert len(answers) > 15


def test_rights_can_be_left_off_alone() -> None:
    """The guards that know topics and no rights answer as all do, where everything is allowed."""
    whole, topics = Server(), Server()
    topics.apis = GroupApis(topics.coordinator, TOPIC_GUARDS)
    answers = []
    for request, version in requests(IDS):
        if request.api_key in TOPIC_GUARDS:
            answers.append(whole.ask(request, version).response)
            assert topics.ask(request, version).response == answers[-1]
    assert len(answers) > 10


def test_a_coordinator_alone_does_not_know_which_topics_there_are() -> None:
    partition = OffsetCommitRequestPartition(partition_index=7, committed_offset=1)
    topics = [OffsetCommitRequestTopic(name="none", partitions=[partition])]
    commit = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=topics)
    codes = []
    for guards in ({}, TOPIC_GUARDS):
        server = Server()
        server.apis = GroupApis(server.coordinator, guards)
        response: Any = server.ask(commit, 9).response
        codes.append([part.error_code for topic in response.topics for part in topic.partitions])
    assert codes == [[0], [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]]
