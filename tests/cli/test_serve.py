"""`coordwire serve`: a broker that real clients can reach, and that ends in order."""

from __future__ import annotations

import argparse
import io
import logging
import os
import signal
import socket
import ssl
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from coordwire import Connection, ErrorCode
from coordwire.broker.injection import parse_fault
from coordwire.capture import Capture, FrameEntry
from coordwire.cli import Failure
from coordwire.cli.__main__ import main
from coordwire.cli.listening import PERIOD, SHOWN, Repeats, configure_log, remove_log, takes
from coordwire.cli.serve import read_users
from coordwire.codec import Message
from coordwire.connection.events import ResponseReceived
from coordwire.errors import UnreadableRange
from coordwire.messages import (
    MetadataRequest,
    MetadataResponse,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from coordwire.messages.metadata import MetadataRequestTopic
from coordwire.sasl import PlainCredentials
from tests.certificates import make_certificate

WAIT = 30


def test_it_serves_until_it_is_ended(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "coordwire", "serve", "--port", "0", "--topic", "orders:3"]
    fault = "Metadata topic=orders error=LEADER_NOT_AVAILABLE"
    data, pcap = tmp_path / "data", tmp_path / "traffic.pcap"
    command += ["--data", str(data), "--fault", fault, "--as-of", "3.9", "--pcap", str(pcap), "--timeline"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        host, _, port = process.stdout.readline().strip().rpartition(":")
        assert host == "127.0.0.1"
        with socket.create_connection((host, int(port)), WAIT) as link:
            client = Connection("client")
            for expected in (ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NONE):
                link.sendall(client.send(MetadataRequest(topics=None), version=12))
                while (event := client.next_event()) is None:
                    client.receive_data(link.recv(1 << 16))
                assert isinstance(event, ResponseReceived)
                assert isinstance(event.response, MetadataResponse)
                assert event.response.topics[0].error_code == expected
    finally:
        process.send_signal(signal.SIGTERM)
        remainder, errors = process.communicate(timeout=WAIT)
    assert (process.returncode, remainder) == (0, "")
    assert [line for line in errors.splitlines() if "no group" not in line] == [
        f"coordwire: Kafka for tests: 1 broker, in {data}; Ctrl-C ends it",
        f"coordwire: connect with bootstrap.servers=127.0.0.1:{port}",
        f"coordwire: fault {fault}: takes the first request that matches",
        f"coordwire: fault {fault}: 1 of 1 requests that matched",
    ]
    assert sorted(path.name for path in data.glob("orders-*")) == ["orders-0", "orders-1", "orders-2"]
    assert (data / ".kafka_cleanshutdown").exists()
    capture = Capture(io.BytesIO(pcap.read_bytes()), "traffic", ports={int(port)})
    results = [type(entry.message) for entry in capture.entries() if isinstance(entry, FrameEntry)]
    assert results == [MetadataRequest, MetadataResponse] * 2


@pytest.mark.parametrize("shows", [False, True])
def test_its_capture_has_secrets_only_on_request(tmp_path: Path, shows: bool) -> None:
    pcap = tmp_path / "traffic.pcap"
    pcap.write_bytes(b"")
    pcap.chmod(0o644)
    command = [sys.executable, "-m", "coordwire", "serve", "--port", "0", "--pcap", str(pcap), "-q"]
    environment = os.environ | {"COORDWIRE_USERS": "ann:a-password-of-hers"}
    process = subprocess.Popen(
        command + ["--show-secrets"] * shows, stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert process.stdout is not None
        host, _, port = process.stdout.readline().strip().rpartition(":")
        with socket.create_connection((host, int(port)), WAIT) as link:
            client = Connection("client")
            token = PlainCredentials(user="ann", password="a-password-of-hers").encode()
            for request, version in (
                (SaslHandshakeRequest(mechanism="PLAIN"), 1),
                (SaslAuthenticateRequest(auth_bytes=token), 2),
            ):
                link.sendall(client.send(request, version=version))
                while client.next_event() is None:
                    client.receive_data(link.recv(1 << 16))
            half = client.send(SaslAuthenticateRequest(auth_bytes=token), version=2)[:-1]
            link.sendall(half)
            link.shutdown(socket.SHUT_WR)
            assert link.recv(1) == b""  # it was read
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=WAIT)
    assert pcap.read_bytes().count(b"a-password-of-hers"[:8]) == 2 * shows
    assert stat.S_IMODE(pcap.stat().st_mode) == 0o600
    entries = list(Capture(io.BytesIO(pcap.read_bytes()), "traffic", ports={int(port)}).entries())
    assert [entry.error for entry in entries[:4] if isinstance(entry, FrameEntry)] == [None] * 4
    assert isinstance(entries[4], UnreadableRange)
    assert entries[4].length == len(half)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--topic", "a/b"], "contains one or more characters"),
        (["--topic", "a:0"], "expected 1 to 10000 partitions"),
        (["--nodes", "0"], "expected at least 1 node"),
        (["--port", "65536"], "is not a port"),
        (["--as-of", "9.9"], "expected a release of 2.0 to 4.4, got '9.9'"),
        (["--coordinator-release", "4.2"], "expected a release of 4.3.0, 4.3.1, 4.4.0, got '4.2'"),
        (["--partitions", "0"], "--partitions: expected 1 to 10000, got 0"),
        (
            ["--sasl", "PLAIN,GSSAPI"],
            "--sasl: expected some of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, got 'GSSAPI'",
        ),
        (["--advertise", "here:"], "--advertise: expected HOST:PORT, got 'here:'"),
        (["--advertise", "a:1,b:2"], "--advertise: expected 1 addresses, one a node, got 2"),
        (["--advertise", "a:65536"], "expected HOST:PORT"),
        (["--tls-key", "key.pem"], "--tls-key and --tls-client-ca need --tls-cert"),
        (["--tls-cert", "no-such.pem"], "no-such.pem"),
        (["--users", "no-such-users"], "no-such-users"),
        (["--fault", "Fetch nth=x lose"], "expected a number for nth, got 'x', at character 11"),
    ],
)
def test_what_is_wrong_is_reported(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", *arguments]) == 2
    assert reason in capsys.readouterr().err


def test_a_folder_of_something_else_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert main(["serve", "--port", "0", "--data", str(tmp_path)]) == 2
    assert "it is not a broker's folder" in capsys.readouterr().err


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    return make_certificate(tmp_path)


def received(link: socket.socket, client: Connection) -> Any:
    while (event := client.next_event()) is None:
        client.receive_data(link.recv(1 << 16))
    assert isinstance(event, ResponseReceived), event
    return event.response


def ask(link: socket.socket, client: Connection, request: Message, version: int) -> Any:
    link.sendall(client.send(request, version=version))
    return received(link, client)


def ended(address: tuple[str, int], data: bytes) -> bool:
    """Whether a connection that sends this is closed, after what it may get."""
    with socket.create_connection(address, WAIT) as link:
        link.sendall(data)
        with suppress(ConnectionError):
            while link.recv(1 << 16):
                pass
        return True


def test_users_authenticate_and_what_is_refused_is_reported_once_or_twice(tmp_path: Path) -> None:
    """Users come from the file and from the environment; a flood of refusals makes few lines."""
    users = tmp_path / "users"
    users.write_text("# of the tests\nann:secret:2\n")
    command = [sys.executable, "-m", "coordwire", "serve", "--port=0", f"--users={users}", "--partitions=3"]
    command += ["--no-auto-create", "--topic=orders", "--advertise=kafka.example:7777"]
    environment = {**os.environ, "COORDWIRE_USERS": "bob:hidden"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "kafka.example:7777\n"
        host, _, port = process.stderr.readline().split()[-1].rpartition(":")
        address = host, int(port)
        introduction = [process.stderr.readline() for _ in range(3)]
        for name, password in (("ann", "secret:2"), ("bob", "hidden")):
            client = Connection("client")
            with socket.create_connection(address, WAIT) as link:
                assert not ask(link, client, SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code
                token = PlainCredentials(user=name, password=password).encode()
                assert not ask(link, client, SaslAuthenticateRequest(auth_bytes=token), 2).error_code
                topics = [MetadataRequestTopic(name="orders"), MetadataRequestTopic(name="other")]
                answer = ask(link, client, MetadataRequest(topics=topics), 9)
                assert [len(topic.partitions) for topic in answer.topics] == [3, 0]
                assert [(node.host, node.port) for node in answer.brokers] == [("kafka.example", 7777)]
        plain = Connection("client").send(MetadataRequest(topics=None), version=9)
        for _ in range(20):
            assert ended(address, plain)
        assert ended(address, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        assert ended(address, b"GET / HTTP/1.1\r\n\r\n")
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=WAIT)
    assert introduction == [
        "coordwire: Kafka for tests: 1 broker, in memory; Ctrl-C ends it\n",
        "coordwire: connect with bootstrap.servers=kafka.example:7777\n",
        "coordwire: and security.protocol=SASL_PLAINTEXT\n",
    ]
    lines = [line.split(": ", 2)[2] for line in errors.splitlines()]
    assert lines == [
        *["METADATA before authentication"] * 3, "TLS at a plaintext port", "HTTP at a Kafka port"
    ]  # fmt: skip
    assert max(map(len, errors.splitlines())) <= 80
    assert "secret" not in errors
    assert "hidden" not in errors


def test_tls_with_certificates_of_clients(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    chain, key = certificate
    command = [sys.executable, "-m", "coordwire", "serve", "--port=0", f"--tls-cert={chain}"]
    command += [f"--tls-key={key}", f"--tls-client-ca={chain}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        host, _, port = process.stdout.readline().strip().rpartition(":")
        address = host, int(port)
        context = ssl.create_default_context(cafile=str(chain))
        with (
            socket.create_connection(address, WAIT) as link,
            suppress(OSError),
            context.wrap_socket(link, server_hostname="127.0.0.1") as stranger,
        ):
            assert not stranger.recv(1)  # in TLS 1.3 the server refuses after the client's handshake
        context.load_cert_chain(chain, key)
        with (
            socket.create_connection(address, WAIT) as link,
            context.wrap_socket(link, server_hostname="127.0.0.1") as known,
        ):
            assert ask(known, Connection("client"), MetadataRequest(topics=None), 9).brokers
        assert ended(address, Connection("client").send(MetadataRequest(topics=None), version=9))
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=WAIT)
    assert errors.splitlines()[2:] == [
        "coordwire: and security.protocol=SSL",
        "coordwire: refused in the TLS handshake: peer did not return a certificate",
        "coordwire: refused in the TLS handshake: plaintext at a TLS port",
    ]


@pytest.mark.parametrize(
    ("rule", "which"),
    [
        ("lose", "the first request that matches"),
        ("nth=3 lose", "request number 3 of those that match"),
        ("times=2 lose", "the first 2 requests that match"),
        ("nth=3 times=2 lose", "requests number 3 to 4 of those that match"),
        ("times=all probability=0.5 lose", "every request that matches, with probability 0.5"),
        ("nth=3 times=all lose", "every request that matches, from number 3 on"),
    ],
)
def test_what_a_fault_takes_is_said(rule: str, which: str) -> None:
    assert takes(parse_fault(f"Fetch {rule}")) == which


def test_a_line_of_users_that_is_wrong_is_not_shown(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("ann:secret\nhidden\n")
    with pytest.raises(Failure, match="line 2: expected NAME:PASSWORD") as failure:
        read_users(users, {})
    assert "hidden" not in str(failure.value)
    users.write_text("# nobody\n")
    with pytest.raises(Failure, match="there are none"):
        read_users(users, {})
    assert read_users(None, {"COORDWIRE_USERS": "a:1\nb: 2"}) == {"a": "1", "b": " 2"}


def test_a_peers_text_neither_moves_the_cursor_nor_begins_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    handler = configure_log(argparse.Namespace(verbose=False, quiet=False), "coordwire.tap")
    log = logging.getLogger("coordwire.tap")
    try:
        log.info("ended the connection of %s: %s", "a", "\x1b[31m\ncoordwire: all is well\x9b\u202e")
        try:
            raise ValueError("\x1b]0;title\x07")
        except ValueError:
            log.exception("a frame of %s failed", "b\rc")
    finally:
        remove_log(handler, "coordwire.tap")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == (r"coordwire: ended the connection of a: \x1b[31m\ncoordwire: all is well\x9b\u202e")
    assert lines[1] == r"coordwire: a frame of b\rc failed"
    assert lines[-1] == r"ValueError: \x1b]0;title\x07"
    assert all(line.isprintable() for line in lines)


def test_repeated_messages_are_counted_and_not_shown() -> None:
    now = 0.0
    repeats = Repeats(lambda: now)

    def filtered(reason: str, level: int = logging.INFO) -> logging.LogRecord | None:
        record = logging.LogRecord("coordwire.broker", level, "", 0, "closed: %s", (reason,), None)
        return record if repeats.filter(record) else None

    assert [bool(filtered("a")) for _ in range(5)] == [True] * SHOWN + [False] * (5 - SHOWN)
    assert filtered("b")
    assert all(filtered("d", logging.DEBUG) for _ in range(20))
    now = PERIOD
    record = filtered("a")
    assert record is not None
    assert getattr(record, "left_out", 0) == 5 - SHOWN
