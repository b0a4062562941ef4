"""Whatever bytes stand where messages, SASL's texts or log records are expected: opening raises nothing, and
what was opened writes the bytes that it was read from, or says what was odd."""

from __future__ import annotations

import struct
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from coordwire.embedded import open_embedded
from coordwire.logs import TOPICS, LogRecord, encode_log_record, open_log_record
from coordwire.messages import ConsumerProtocolSubscription, GroupMetadataValue, JoinGroupRequest
from coordwire.messages.classic_group_records import MemberMetadata
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.records import Record
from coordwire.sasl import Sender, read_sasl
from fuzz._run import main

SAMPLES = [
    bytes.fromhex(line.split("\t")[2])
    for line in (Path(__file__).parents[1] / "tests/data/inside/samples.tsv").read_text().splitlines()
]
PROTOCOLS = ["range", "sticky", "cooperative-sticky", "stream", "default", "compatible", "sessioned", ""]
SENDERS: list[Sender] = ["client", "server"]


@st.composite
def inside(draw: st.DrawFn) -> bytes:
    """Kafka's own bytes with some of them changed, or noise."""
    data = bytearray(draw(st.sampled_from(SAMPLES) | st.binary(max_size=40)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return bytes(data)


def unfold(data: bytes, kind: str, protocol: str) -> None:
    """In each place where members of a group hide something."""
    subscription = b"\0\1" + ConsumerProtocolSubscription(user_data=data).encode(version=1)
    offers = [JoinGroupRequestProtocol(name=protocol, metadata=one) for one in (data, subscription)]
    members = [MemberMetadata(subscription=one, assignment=data) for one in (data, subscription)]
    for message in (
        JoinGroupRequest(protocol_type=kind, protocols=offers),
        GroupMetadataValue(protocol_type=kind, protocol=protocol, members=members),
    ):
        for result in open_embedded(message).values():
            message_inside, version = result
            if result.deviation is not None:
                assert result.deviation.reason
                continue
            newest = message_inside.versions[-1]
            wire = message_inside.encode(version=min(version, newest))
            assert version > newest or any(wire in whole for whole in (data, subscription))


@given(inside(), st.sampled_from(["consumer", "connect", "mine", ""]), st.sampled_from(PROTOCOLS), st.data())
def fuzz(data: bytes, kind: str, protocol: str, more: st.DataObject) -> None:
    unfold(data, kind, protocol)
    for sender in SENDERS:
        said = read_sasl(data, sender)
        assert said is None or read_sasl(said.encode(), sender) == said
    key = more.draw(st.none() | st.integers(-1, 30).map(struct.Struct(">h").pack) | st.binary(max_size=20))
    for topic in TOPICS.values():
        opened = open_log_record(topic, Record(key=key, value=data))
        assert isinstance(opened, LogRecord)
        if opened.unknown is None:
            encode_log_record(opened)


if __name__ == "__main__":
    main(fuzz)
