"""The requests sent over a socket by a user, and what came back, in its normal form."""

from __future__ import annotations

import json
import re
import socket
import time
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from coordwire import Connection
from coordwire.codec import Message
from coordwire.connection.events import ResponseReceived
from coordwire.messages import (
    CreateAclsRequest,
    CreateTopicsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
    FindCoordinatorRequest,
    MetadataRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from coordwire.messages.create_topics import CreatableTopic
from coordwire.messages.delete_acls import DeleteAclsFilter
from tests.broker.authorized.requests import ACLS, ANY, TOPICS, acls_of, requests
from tests.broker.corners.normal_form import Ids, kind_of, normal_form

ADMIN, USER = "admin", "ann"
_NOT_READY = ("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR")
_REQUEST = re.compile(r"Request Request\(.*")
"""Kafka's text of a refusal by the cluster has the request in it, as Java prints it."""
_PATIENCE = 20.0


class _Client:
    """A connection of a user, whose password is its name."""

    def __init__(self, address: tuple[str, int], user: str) -> None:
        self._connection = Connection("client", client_id="authorized")
        self._socket = socket.create_connection(address, timeout=30)
        self.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        answer = self.ask(SaslAuthenticateRequest(auth_bytes=f"\0{user}\0{user}".encode()), 2)
        assert answer.error_code == 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def ask(self, request: Message, version: int) -> Any:
        self._socket.sendall(self._connection.send(request, version=version))
        while (event := self._connection.next_event()) is None:
            data = self._socket.recv(1 << 16)
            assert data, f"{type(request).__name__} v{version} closes the connection"
            self._connection.receive_data(data)
        assert isinstance(event, ResponseReceived)
        return event.response


def _set(admin: _Client, name: str) -> None:
    """Replace the ACLs, and wait until the broker has them."""
    admin.ask(DeleteAclsRequest(filters=[DeleteAclsFilter(**ANY)]), 3)
    creations = acls_of(name, USER)
    admin.ask(CreateAclsRequest(creations=creations), 3)
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        described = admin.ask(DescribeAclsRequest(**ANY), 3)
        if sum(len(resource.acls) for resource in described.resources) == len(creations):
            return
        time.sleep(0.05)
    raise AssertionError(f"the broker does not have the ACLs {name}")


def _asked(client: _Client, request: Message, version: int, ids: Ids) -> Any:
    """The answer, once the coordinators are ready."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        answer = client.ask(request, version)
        form = json.dumps(normal_form(answer, version, ids))
        if time.monotonic() > deadline or not any(f'"{code}"' in form for code in _NOT_READY):
            return [kind_of(answer), version, _without_requests(json.loads(form))]
        time.sleep(0.1)


def _without_requests(form: Any) -> Any:
    if isinstance(form, dict):
        return {name: _without_requests(value) for name, value in form.items()}
    if isinstance(form, list):
        return [_without_requests(one) for one in form]
    return _REQUEST.sub("Cluster authorization failed.", form) if isinstance(form, str) else form


def answers(address: tuple[str, int]) -> dict[str, list[Any]]:
    """By the set of ACLs, the answers to all requests."""
    result: dict[str, list[Any]] = {}
    with _Client(address, ADMIN) as admin:
        expected = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in TOPICS]
        admin.ask(CreateTopicsRequest(topics=expected), 7)
        for key_type in (0, 1):  # so that the coordinators and their topics are there
            finder = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["any"])
            _asked(admin, finder, 4, Ids())
        ids: dict[str, UUID] = {}
        deadline = time.monotonic() + _PATIENCE
        while len(ids) < len(TOPICS) + 2 and time.monotonic() < deadline:
            topics = admin.ask(MetadataRequest(topics=None), 12).topics
            ids = {topic.name: topic.topic_id for topic in topics}
        known = Ids()
        known.topics.update({topic_id: name for name, topic_id in ids.items()})
        for name in ACLS:
            _set(admin, name)
            with _Client(address, USER) as user:
                result[name] = [_asked(user, request, version, known) for request, version in requests(ids)]
    return result
