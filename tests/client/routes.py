"""To which nodes Kafka's own clients send their requests: `python -m tests.client.routes` records it again.

Strategy: `java/RoutedCalls.java` makes every call of Admin, and runs producers and consumers, at a broker of
three nodes, which records what each node got. The record, in tests/data/client/routes.json.gz, has what the
clients knew (Metadata and FindCoordinator) and every other request once, with its node.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from coordwire import from_json, to_json
from coordwire.broker import Broker, BrokerConfig
from coordwire.broker.handlers import APIS, Api, ApiCall
from coordwire.broker.harness.traffic import Traffic
from coordwire.broker.thread import BrokerThread
from coordwire.client.cluster import KnownCluster
from coordwire.client.routing import LeaderOf
from coordwire.codec import Message
from coordwire.enums import CoordinatorType
from coordwire.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataResponse,
    ShareGroupHeartbeatResponse,
    find_message,
)
from coordwire.messages.keys import FACTS
from coordwire.messages.share_group_heartbeat import Assignment, TopicPartitions
from tests.interop.broker import Java
from tests.interop.maven import CURRENT

RECORD = Path(__file__).parents[1] / "data" / "client" / "routes.json.gz"
SOURCE = Path(__file__).parent / "java" / "RoutedCalls.java"
CLIENT_ID = "oracle"
_BEFORE_ROUTING = {
    "ApiVersions",
    "SaslHandshake",
    "SaslAuthenticate",
    "GetTelemetrySubscriptions",
    "PushTelemetry",
}


@dataclass(frozen=True)
class Route:
    """A request that a client of Kafka sent to a node."""

    api: str
    node: int
    message: Message


def recorded() -> dict[str, Any]:
    """The record, made now. Raises `Unavailable`."""
    traffic = Traffic()
    config = BrokerConfig(default_replication_factor=3)
    broker = Broker(topics={"orders": 6}, nodes=3, config=config, traffic=traffic)
    with _all_apis(), BrokerThread(broker) as thread:
        ports = {port: node for node, (_, port) in enumerate(thread.addresses, 1)}
        Java(CURRENT, "classes").run(str(SOURCE), thread.bootstrap, wait=600)
    requests, answers = [], []
    for entry in traffic.entries():
        if entry.message is None or entry.api_version is None:
            continue
        form = [entry.api_name, entry.api_version, to_json(entry.message, version=entry.api_version)]
        if entry.direction == "request" and entry.client_id == CLIENT_ID:
            node = ports[int(entry.flow.rpartition(":")[2])]
            if (line := [node, *form]) not in requests and entry.api_name not in _BEFORE_ROUTING:
                requests.append(line)
        elif isinstance(entry.message, MetadataResponse | FindCoordinatorResponse) and entry.request:
            asked = entry.request.message
            kind = asked.key_type if isinstance(asked, FindCoordinatorRequest) else None
            if (line := [kind, *form]) not in answers:
                answers.append(line)
    return {"controller": 1, "requests": requests, "answers": answers}


@contextmanager
def _all_apis() -> Iterator[None]:
    """Let brokers offer what they do not have, too, and answer it with nothing: only what is sent counts."""
    lacking = {
        key: Api(facts.first, facts.last, partial(_empty, find_message(key, "response")))
        for key, facts in FACTS.items()
        if key not in APIS and "broker" in facts.listeners
    }
    offered: Any = APIS
    offered.update(lacking)
    try:
        yield
    finally:
        for key in lacking:
            del offered[key]


def _empty(response: type[Message], call: ApiCall) -> Message:
    if response is ShareGroupHeartbeatResponse:
        orders = call.cluster.topics["orders"].id
        return ShareGroupHeartbeatResponse(
            member_id=call.request.member_id,
            member_epoch=1,
            heartbeat_interval_ms=500,
            assignment=Assignment(
                topic_partitions=[TopicPartitions(topic_id=orders, partitions=list(range(6)))]
            ),
        )
    return response()


def _partitions(answer: MetadataResponse) -> Iterator[LeaderOf]:
    """The partitions of an answer, by the names and the ids of their topics."""
    for topic in answer.topics:
        for name in (topic.name, topic.topic_id):
            for part in topic.partitions:
                yield LeaderOf(name or "", part.partition_index)


def read_record() -> tuple[KnownCluster, list[Route]]:
    """What the clients knew at the end, and what they sent."""
    record = json.loads(gzip.decompress(RECORD.read_bytes()))
    cluster = KnownCluster()
    for kind, api, version, form in record["answers"]:
        answer: Any = from_json(find_message(api, "response"), form, version=version)
        if kind is None:
            cluster.add_metadata(answer, _partitions(answer))
        else:
            keys = [row.key for row in answer.coordinators]
            cluster.add_coordinators(CoordinatorType(kind).name.lower(), keys, answer)
    routes = [
        Route(api, node, from_json(find_message(api, "request"), form, version=version))
        for node, api, version, form in record["requests"]
    ]
    return cluster, routes


if __name__ == "__main__":
    RECORD.parent.mkdir(exist_ok=True)
    RECORD.write_bytes(gzip.compress(json.dumps(recorded(), separators=(",", ":")).encode(), mtime=0))
