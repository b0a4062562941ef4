"""A capture of consumer groups' traffic, of any size: what a broker's port shows of its coordinators' work.

Strategy: each connection is one member's. It begins with the handshake of a client (ApiVersions, Metadata,
FindCoordinator, JoinGroup, SyncGroup, OffsetFetch), goes on with fetches, heartbeats and commits, and joins
again now and then; the connections take turns. Rules: every frame is in a packet of its own, in Ethernet,
IPv4 and TCP, microseconds apart; the same arguments give the same bytes.

`python -m tests.bench.group_traffic OUT.pcap --megabytes 64` writes one.
"""

from __future__ import annotations

import argparse
import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO
from uuid import UUID

import coordwire
from coordwire import ApiKey, from_json
from coordwire.messages import find_message
from tests.capture.build import ACK, SYN, Address, ethernet, ipv4, pcap, tcp

BROKER = ("10.0.0.2", 9092)
START_NS = 1_790_000_000 * 10**9
STEP_NS = 37_000
"""Nanoseconds from packet to packet."""

TOPICS = ("orders", "payments", "page-views", "audit")
TOPIC_ID = UUID("5f3c2a9e-77d1-4c55-9b1e-0a4d3b2c1d0e")
PARTITIONS = 3
_RECORD = struct.Struct("<IIII")
_NUMBERS = struct.Struct(">II")

Form = dict[str, Any]


@dataclass
class Member:
    """One connection. sent: bytes of each side so far."""

    number: int
    source: random.Random
    correlation_id: int = 0
    offset: int = 1000
    generation: int = 1
    sent: list[int] = field(default_factory=lambda: [1, 1])

    def __post_init__(self) -> None:
        self.address: Address = (f"10.1.{self.number // 200}.{self.number % 200 + 1}", 40_000 + self.number)
        self.group = f"group-{self.number % 7}"
        self.client_id = f"consumer-{self.group}-{self.number}"
        self.member_id = f"{self.client_id}-{UUID(int=self.source.getrandbits(128), version=4)}"
        self.topic = TOPICS[self.number % len(TOPICS)]
        heads = [packet_head(self.address, BROKER), packet_head(BROKER, self.address)]
        self.heads = heads

    def first(self) -> Iterator[bytes]:
        """What a client begins with."""
        yield from self.exchange(
            ApiKey.API_VERSIONS, 3,
            {"clientSoftwareName": "apache-kafka-java", "clientSoftwareVersion": "3.9.0"},
            {"errorCode": 0, "throttleTimeMs": 0,
             "apiKeys": [{"apiKey": key, "minVersion": 0, "maxVersion": 9} for key in range(40)]},
        )  # fmt: skip
        yield from self.metadata()
        yield from self.exchange(
            ApiKey.FIND_COORDINATOR, 4, {"keyType": 0, "coordinatorKeys": [self.group]},
            {"throttleTimeMs": 0, "coordinators": [
                {"key": self.group, "nodeId": 1, "host": BROKER[0], "port": BROKER[1], "errorCode": 0,
                 "errorMessage": ""}]},
        )  # fmt: skip
        yield from self.join()

    def metadata(self) -> Iterator[bytes]:
        uuid = "XzwqnnfRTFWbHgpNOywdDg"
        partitions = [
            {"errorCode": 0, "partitionIndex": index, "leaderId": index % 3 + 1, "leaderEpoch": 4,
             "replicaNodes": [1, 2, 3], "isrNodes": [1, 2, 3], "offlineReplicas": []}
            for index in range(PARTITIONS)
        ]  # fmt: skip
        yield from self.exchange(
            ApiKey.METADATA, 12,
            {"topics": [{"topicId": uuid, "name": self.topic}], "allowAutoTopicCreation": False,
             "includeTopicAuthorizedOperations": False},
            {"throttleTimeMs": 0,
             "brokers": [{"nodeId": node, "host": f"10.0.0.{node + 1}", "port": 9092, "rack": None}
                         for node in (1, 2, 3)],
             "clusterId": "qXo1kHsFRkGmWl1oPVJvbA", "controllerId": 1,
             "topics": [{"errorCode": 0, "name": self.topic, "topicId": uuid, "isInternal": False,
                         "partitions": partitions, "topicAuthorizedOperations": -2147483648}]},
        )  # fmt: skip

    def join(self) -> Iterator[bytes]:
        subscription = "AAMAAAABAAZvcmRlcnP/////AAAAAP////8AAA=="
        member = {"memberId": self.member_id, "groupInstanceId": None, "metadata": subscription}
        yield from self.exchange(
            ApiKey.JOIN_GROUP, 9,
            {"groupId": self.group, "sessionTimeoutMs": 45000, "rebalanceTimeoutMs": 300000,
             "memberId": self.member_id, "groupInstanceId": None, "protocolType": "consumer",
             "protocols": [{"name": "range", "metadata": subscription},
                           {"name": "cooperative-sticky", "metadata": subscription}], "reason": None},
            {"throttleTimeMs": 0, "errorCode": 0, "generationId": self.generation,
             "protocolType": "consumer", "protocolName": "range", "leader": self.member_id,
             "skipAssignment": False, "memberId": self.member_id, "members": [member]},
        )  # fmt: skip
        assignment = "AAAAAAABAAZvcmRlcnMAAAADAAAAAAAAAAEAAAAC/////w=="
        yield from self.exchange(
            ApiKey.SYNC_GROUP, 5,
            {"groupId": self.group, "generationId": self.generation, "memberId": self.member_id,
             "groupInstanceId": None, "protocolType": "consumer", "protocolName": "range",
             "assignments": [{"memberId": self.member_id, "assignment": assignment}]},
            {"throttleTimeMs": 0, "errorCode": 0, "protocolType": "consumer", "protocolName": "range",
             "assignment": assignment},
        )  # fmt: skip
        yield from self.exchange(
            ApiKey.OFFSET_FETCH, 8,
            {"groups": [{"groupId": self.group,
                         "topics": [{"name": self.topic, "partitionIndexes": list(range(PARTITIONS))}]}],
             "requireStable": True},
            {"throttleTimeMs": 0, "groups": [
                {"groupId": self.group, "errorCode": 0, "topics": [
                    {"name": self.topic, "partitions": [
                        {"partitionIndex": index, "committedOffset": self.offset,
                         "committedLeaderEpoch": 4, "metadata": "", "errorCode": 0}
                        for index in range(PARTITIONS)]}]}]},
        )  # fmt: skip

    def heartbeat(self) -> Iterator[bytes]:
        code = 27 if self.source.random() < 0.02 else 0
        yield from self.exchange(
            ApiKey.HEARTBEAT, 4,
            {"groupId": self.group, "generationId": self.generation, "memberId": self.member_id,
             "groupInstanceId": None},
            {"throttleTimeMs": 0, "errorCode": code},
        )  # fmt: skip

    def commit(self) -> Iterator[bytes]:
        partitions = [
            {"partitionIndex": index, "committedOffset": self.offset + index, "committedLeaderEpoch": 4,
             "committedMetadata": ""}
            for index in range(PARTITIONS)
        ]  # fmt: skip
        yield from self.exchange(
            ApiKey.OFFSET_COMMIT, 8,
            {"groupId": self.group, "generationIdOrMemberEpoch": self.generation, "memberId": self.member_id,
             "groupInstanceId": None, "topics": [{"name": self.topic, "partitions": partitions}]},
            {"throttleTimeMs": 0, "topics": [
                {"name": self.topic, "partitions": [{"partitionIndex": index, "errorCode": 0}
                                                    for index in range(PARTITIONS)]}]},
        )  # fmt: skip

    def fetch(self) -> Iterator[bytes]:
        self.offset += self.source.randrange(3)
        partition = self.source.randrange(PARTITIONS)
        yield from self.exchange(
            ApiKey.FETCH, 12,
            {"replicaId": -1, "maxWaitMs": 500, "minBytes": 1, "maxBytes": 52428800, "isolationLevel": 0,
             "sessionId": 77_001, "sessionEpoch": self.correlation_id, "topics": [
                 {"topic": self.topic, "partitions": [
                     {"partition": partition, "currentLeaderEpoch": 4, "fetchOffset": self.offset,
                      "lastFetchedEpoch": -1, "logStartOffset": -1, "partitionMaxBytes": 1048576}]}],
             "forgottenTopicsData": [], "rackId": ""},
            {"throttleTimeMs": 0, "errorCode": 0, "sessionId": 77_001, "responses": []
             if self.source.random() < 0.6 else [
                 {"topic": self.topic, "partitions": [
                     {"partitionIndex": partition, "errorCode": 0, "highWatermark": self.offset + 12,
                      "lastStableOffset": self.offset + 12, "logStartOffset": 0, "abortedTransactions": None,
                      "preferredReadReplica": -1, "records": None}]}]},
        )  # fmt: skip

    def next(self) -> Iterator[bytes]:
        """The next exchange of a member that has joined."""
        number = self.source.random()
        acts: tuple[tuple[float, Callable[[], Iterator[bytes]]], ...] = (
            (0.46, self.heartbeat), (0.80, self.fetch), (0.95, self.commit), (0.98, self.metadata),
        )  # fmt: skip
        for share, act in acts:
            if number < share:
                yield from act()
                return
        self.generation += 1
        yield from self.join()

    # --- bytes ---

    def open(self) -> Iterator[bytes]:
        yield self.packet(b"", 0, SYN, -1)

    def exchange(self, key: ApiKey, version: int, request: Form, response: Form) -> Iterator[bytes]:
        """A request's packet and its response's."""
        self.correlation_id += 1
        asked = from_json(find_message(key, "request"), request, version=version)
        answer = from_json(find_message(key, "response"), response, version=version)
        yield self.packet(
            coordwire.encode_request(
                asked, version=version, correlation_id=self.correlation_id, client_id=self.client_id
            ),
            0,
        )
        yield self.packet(
            coordwire.encode_response(answer, version=version, correlation_id=self.correlation_id), 1
        )

    def packet(self, payload: bytes, side: int, flags: int = ACK, back: int = 0) -> bytes:
        head = bytearray(self.heads[side])
        head[16:18] = (40 + len(payload)).to_bytes(2, "big")
        _NUMBERS.pack_into(head, 38, self.sent[side] + back & 0xFFFFFFFF, self.sent[1 - side] & 0xFFFFFFFF)
        head[47] = flags
        self.sent[side] += len(payload)
        return bytes(head) + payload


def packet_head(source: Address, destination: Address) -> bytes:
    """Everything before the payload, its lengths and sequence numbers still to be set."""
    return ethernet(ipv4(tcp(source=source, destination=destination), source, destination))


def packets(members: int, seed: int = 7) -> Iterator[bytes]:
    """Without end."""
    source = random.Random(seed)
    all_members = [Member(number, random.Random(source.random())) for number in range(members)]
    for member in all_members:
        yield from member.open()
    for member in all_members:
        yield from member.first()
    while True:
        yield from source.choice(all_members).next()


def write(out: BinaryIO, size: int, members: int = 60) -> int:
    """A capture of about `size` bytes; how many packets."""
    done = out.write(pcap(()))
    count = 0
    for count, data in enumerate(packets(members), 1):
        seconds, rest = divmod(START_NS + count * STEP_NS, 10**9)
        done += out.write(_RECORD.pack(seconds, rest // 1000, len(data), len(data)) + data)
        if done >= size:
            break
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--megabytes", type=int, default=64)
    parser.add_argument("--members", type=int, default=60)
    options = parser.parse_args()
    with options.out.open("wb") as out:
        count = write(out, options.megabytes << 20, options.members)
    print(f"{count} packets")


if __name__ == "__main__":
    main()
