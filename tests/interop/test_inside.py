"""What Kafka's own assignors, Connect, Streams and SASL classes write and read: Inside.java, run once a test.

Rules: values for Streams and Connect have at most one element where Kafka keeps a map or set, since these
come back in an order of their own.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coordwire.codec import Message
from coordwire.messages import AssignmentInfo, ConnectProtocolAssignment, ConnectProtocolSubscription
from coordwire.messages import streams_assignor as streams
from coordwire.messages.connect_protocol import ConnectorAssignment
from coordwire.sasl import (
    OAuthBearerToken,
    SaslMessage,
    ScramClientFinal,
    ScramClientFirst,
    ScramServerFinal,
    ScramServerFirst,
    read_sasl,
)
from coordwire.testing import strategies
from tests.interop.conftest import give_up
from tests.interop.maven import COMPLETE, Unavailable, jars
from tests.test_embedded import samples

pytestmark = pytest.mark.maven

SOURCE = Path(__file__).parent / "java" / "Inside.java"
EXAMPLES = 200
NUMBERS = st.integers(-(1 << 31), (1 << 31) - 1)
NAMES = st.text("abc-_.9", max_size=9)


def kafka(what: str, lines: Iterable[str] = ()) -> list[str]:
    """What Inside.java answers."""
    java = shutil.which("java")
    if java is None:
        give_up(Unavailable("no JDK is installed"))
    try:
        folder = jars(COMPLETE, "apps")
    except Unavailable as error:
        give_up(error)
    command = [java, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{folder}/*", str(SOURCE), what]
    run = subprocess.run(
        command, input="\n".join(lines), capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return run.stdout.splitlines()


def test_the_samples_are_kafkas() -> None:
    ours = [f"{name}\t{version}\t{data.hex()}" for name, version, data in samples()]
    assert kafka("samples") == ours


def collected(strategy: st.SearchStrategy[bytes]) -> list[bytes]:
    """So many examples, for one JVM."""
    results: list[bytes] = []

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(strategy)
    def collect(data: bytes) -> None:
        results.append(data)

    collect()
    return results


def agree(name: str, wires: list[bytes]) -> None:
    answers = kafka("again", [f"{name}\t{wire.hex()}" for wire in wires])
    assert answers == [wire.hex() for wire in wires]


@st.composite
def subscriptions(draw: st.DrawFn) -> bytes:
    version = draw(st.integers(1, 11))
    data = draw(strategies.messages(streams.SubscriptionInfoData, version=version))
    data.version = version
    if version > 2:
        data.latest_supported_version = draw(st.integers(version, 99))
    return data.encode(version=version)


def test_streams_subscriptions() -> None:
    agree("SubscriptionInfoData", collected(subscriptions()))


def few(draw: st.DrawFn, number: int = 1) -> range:
    return range(draw(st.integers(0, number)))


@st.composite
def assignments(draw: st.DrawFn) -> bytes:
    version = draw(st.integers(1, 11))
    name = [ord(char) for char in draw(NAMES)] if version > 9 else []
    topic = draw(NAMES)

    def hosts() -> list[streams.AssignmentHost]:
        return [
            streams.AssignmentHost(
                host=draw(NAMES),
                port=draw(NUMBERS),
                partitions=[
                    streams.AssignmentHostPartition(
                        topic=topic if version < 5 else "", partition=draw(NUMBERS)
                    )
                    for _ in few(draw)
                ],
            )
            for _ in few(draw)
        ]

    info = AssignmentInfo(
        version=version,
        active_tasks=[
            streams.AssignmentTaskId(
                topic_group_id=draw(NUMBERS), partition=draw(NUMBERS), named_topology=name
            )
            for _ in few(draw, 5)
        ],
        standby_tasks=[
            streams.AssignmentStandbyTask(
                topic_group_id=draw(NUMBERS),
                partition=draw(NUMBERS),
                named_topology=name,
                partitions=[
                    streams.AssignmentTopicPartition(topic=draw(NAMES), partition=draw(NUMBERS))
                    for _ in few(draw)
                ],
            )
            for _ in few(draw)
        ],
    )
    if version > 1:
        info.partitions_by_host = hosts()
    if version > 2:
        info.commonly_supported_version = draw(NUMBERS)
    if version > 3:
        info.err_code = draw(NUMBERS)
    if version > 5:
        info.standby_partitions_by_host = hosts()
    if version > 6:
        info.next_rebalance_ms = draw(st.integers(-(1 << 63), (1 << 63) - 1))
    named = any(one.partitions for one in [*info.partitions_by_host, *info.standby_partitions_by_host])
    if version > 4 and named:
        info.topics = [streams.AssignmentTopicIndex(index=0, topic=topic)]
    return info.encode(version=version)


def test_streams_assignments() -> None:
    agree("AssignmentInfo", collected(assignments()))


def prefixed(message: Message, version: int) -> bytes:
    return struct.pack(">h", version) + message.encode(version=version)


@st.composite
def connect_assignments(draw: st.DrawFn, since: int = 0) -> bytes:
    version = draw(st.integers(since, 2))

    def some() -> list[ConnectorAssignment]:
        numbers = draw(st.lists(st.integers(0, 99), min_size=1, max_size=4))
        return [ConnectorAssignment(connector=draw(NAMES), tasks=numbers) for _ in few(draw)]

    assignment = ConnectProtocolAssignment(
        error=draw(st.integers(-(1 << 15), (1 << 15) - 1)),
        leader=draw(NAMES),
        leader_url=draw(NAMES),
        config_offset=draw(st.integers(0, 1 << 62)),
        assignment=some(),
    )
    if version:
        assignment.revoked = some()  # Kafka reads null too, and writes it as nothing
        assignment.delay = draw(NUMBERS)
    return prefixed(assignment, version)


def test_connects_assignments() -> None:
    agree("ConnectProtocolAssignment", collected(connect_assignments()))


@st.composite
def workers(draw: st.DrawFn) -> bytes:
    version = draw(st.integers(0, 2))
    state = ConnectProtocolSubscription(url=draw(NAMES), config_offset=draw(st.integers(0, 1 << 62)))
    if version:
        held = draw(st.none() | connect_assignments(since=1))
        state.allocation = held and struct.pack(">h", version) + held[2:]
    return prefixed(state, version)


def test_connects_subscriptions() -> None:
    agree("ConnectProtocolSubscription", collected(workers()))


# --- SASL ---

WORDS = st.text("abc-_.9", min_size=1, max_size=9)
TEXTS: list[tuple[str, st.SearchStrategy[SaslMessage]]] = [
    ("ScramClientFirst", st.builds(ScramClientFirst, user=WORDS, nonce=WORDS)),
    (
        "ScramServerFirst",
        st.builds(
            ScramServerFirst, nonce=WORDS, salt=st.binary(max_size=20), iterations=st.integers(1, 1 << 29)
        ),
    ),
    (
        "ScramClientFinal",
        st.builds(ScramClientFinal, header=st.just(b"n,,"), nonce=WORDS, proof=st.binary(max_size=40)),
    ),
    ("ScramServerFinal", st.builds(ScramServerFinal, signature=st.binary(max_size=40))),
    ("ScramServerFinal", st.builds(ScramServerFinal, error=WORDS)),
    ("OAuthBearerToken", st.builds(OAuthBearerToken, token=WORDS, authzid=WORDS)),
]


@pytest.mark.parametrize(("name", "messages"), TEXTS, ids=[name for name, _ in TEXTS])
def test_sasls_texts(name: str, messages: st.SearchStrategy[SaslMessage]) -> None:
    wires = collected(messages.map(lambda message: message.encode()))
    agree(name, wires)
    assert [type(read_sasl(wire, "server" if "Server" in name else "client")).__name__ for wire in wires] == [
        name
    ] * len(wires)
