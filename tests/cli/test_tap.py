"""`coordwire tap`: what it shows, saves, breaks and reports, in a process of its own before a broker."""

from __future__ import annotations

import re
import signal
import socket
import ssl
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from coordwire import Connection
from coordwire.broker import Broker, BrokerConfig
from coordwire.capture import Capture, FrameEntry
from coordwire.cli.__main__ import main
from coordwire.connection.events import ResponseReceived
from coordwire.enums import ErrorCode
from coordwire.messages import MetadataRequest
from tests.broker.blocking_peer import BlockingPeer
from tests.certificates import make_certificate

WAIT = 60


class Tapped:
    """A tap that runs. bootstrap: where clients connect; out, errors: what it printed, once it has ended."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.out = self.errors = ""
        assert process.stderr is not None
        self.first = process.stderr.readline()
        match = re.fullmatch(r"coordwire: clients connect to (\S+) for \S+\n", self.first)
        assert match, self.first
        self.bootstrap = match[1]

    def end(self) -> None:
        self._process.send_signal(signal.SIGINT)
        self.out, self.errors = self._process.communicate(timeout=WAIT)
        assert self._process.returncode == 0, self.errors


@contextmanager
def tap(upstream: str, *options: str) -> Iterator[Tapped]:
    command = [
        sys.executable,
        "-m",
        "coordwire",
        "tap",
        "--to",
        upstream,
        "--listen",
        "127.0.0.1:0",
        *options,
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield Tapped(process)
    finally:
        process.kill()
        process.communicate()


def used(bootstrap: str) -> list[int]:
    """Ask for metadata and join a group; the error codes of two heartbeats."""
    with BlockingPeer(bootstrap, "till-3") as peer:
        peer.ask(MetadataRequest(topics=None), 12)
        member = peer.join("payments", "orders", 1)
        return [peer.beat(member), peer.beat(member)]


def test_it_shows_saves_and_breaks(tmp_path: Path) -> None:
    saved = tmp_path / "traffic.pcapng"
    rule = "Heartbeat group=payments nth=2 error=REBALANCE_IN_PROGRESS"
    only = 'api == "Heartbeat" and error != 0'
    script = tmp_path / "script.py"
    script.write_text("def response(exchange):\n    exchange.data['seen'] = exchange.response\n")
    with Broker.in_thread(topics=["orders"]) as broker:
        options = ["--save", str(saved), "--fault", rule, "--filter", only, "--script", str(script)]
        with tap(broker.bootstrap, *options) as tapped:
            assert used(tapped.bootstrap) == [ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS]
            tapped.end()
    (line,) = tapped.out.splitlines()
    assert re.search(r"← .* Heartbeat v2 .*REBALANCE_IN_PROGRESS", line)
    assert (
        "coordwire: 1 connections; 5 requests in, 4 out; 4 responses in, 5 out; 1 changed (1 addresses); "
        in tapped.errors
    )
    assert f"coordwire: fault {rule}: 1 of 2 requests that matched" in tapped.errors
    with saved.open("rb") as file:
        entries = list(Capture(file, "saved").entries())
    assert all(isinstance(entry, FrameEntry) and entry.error is None for entry in entries)
    names = [entry.api_name for entry in entries if isinstance(entry, FrameEntry)]
    assert names == [
        name for name in ("Metadata", "JoinGroup", "SyncGroup", "Heartbeat", "Heartbeat") for _ in "12"
    ]


def test_it_tells_the_story_of_groups() -> None:
    with Broker.in_thread(topics=["orders"]) as broker, tap(broker.bootstrap, "--timeline", "-v") as tapped:
        used(tapped.bootstrap)
        tapped.end()
    assert "payments" in tapped.out
    assert "till-3" in tapped.out


def test_a_pcap_is_what_decode_and_timeline_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, magic in (("a.pcap", b"\x4d\x3c\xb2\xa1"), ("a.pcapng", b"\x0a\x0d\x0d\x0a")):
        saved = tmp_path / name
        options = ["--save", str(saved), "--no-output", "-q"]
        with Broker.in_thread(topics=["orders"]) as broker, tap(broker.bootstrap, *options) as tapped:
            used(tapped.bootstrap)
            tapped.end()
        assert (tapped.out, tapped.errors) == ("", "")
        assert saved.read_bytes().startswith(magic)
        assert stat.S_IMODE(saved.stat().st_mode) == 0o600
        assert main(["timeline", str(saved)]) == 0
        assert "payments" in capsys.readouterr().out


def test_it_authenticates_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chain, key = make_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)
    properties = tmp_path / "client.properties"
    properties.write_text(
        f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={chain}\n"
    )
    monkeypatch.setenv("COORDWIRE_PASSWORD", "secret")
    config = BrokerConfig(users={"ann": "secret"})
    options = ["--config", str(properties), "--user", "ann", "--tls-cert", str(chain), "--tls-key", str(key)]
    with (
        Broker.in_thread(topics=["orders"], config=config, tls=context) as broker,
        tap(broker.bootstrap, *options) as tapped,
    ):
        host, _, port = tapped.bootstrap.rpartition(":")
        trusting = ssl.create_default_context(cafile=str(chain))
        client = Connection("client")
        with (
            socket.create_connection((host, int(port)), WAIT) as plain,
            trusting.wrap_socket(plain, server_hostname=host) as link,
        ):
            link.sendall(client.send(MetadataRequest(topics=None), version=12))
            while (event := client.next_event()) is None:
                client.receive_data(link.recv(1 << 16))
        tapped.end()
    assert isinstance(event, ResponseReceived)
    assert "1 requests in, 1 out" in tapped.errors


def test_a_capture_is_never_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "a.pcapng"
    saved.write_bytes(b"mine")
    assert main(["tap", "--to", "127.0.0.1:1", "--save", str(saved)]) == 2
    assert "--save" in capsys.readouterr().err
    assert saved.read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--to", "h:x"], "tap: expected HOST:PORT, got 'h:x'"),
        (["--to", "h:1", "--listen", "127.0.0.1:"], "--listen: expected HOST:PORT, got '127.0.0.1:'"),
        (["--to", "h:1", "--listen", "127.0.0.1:99999"], "--listen: expected HOST:PORT"),
        (
            ["--to", "h:1", "--fault", "Fetsh lose"],
            "tap: --fault: expected the name of an API, got 'Fetsh', at character 1; did you mean Fetch?",
        ),
        (["--to", "h:1", "--filter", "api =="], "--filter: "),
        (["--to", "h:1", "--filter", "api", "--timeline"], "--filter selects frames that are shown"),
        (["--to", "h:1", "--user", "ann"], "expected the password in the environment's COORDWIRE_PASSWORD"),
        (["--to", "h:1", "--config", "no-such"], "no-such: No such file"),
        (["--to", "h:1", "--tls-key", "k"], "tap: --tls-key and --tls-client-ca need --tls-cert"),
        (["--to", "h:1", "--script", "no-such.py"], "no-such.py: No such file"),
        (["--to", "h:1", "--listen", "192.0.2.1:1", "--no-output"], "tap: --listen: "),
    ],
)
def test_what_is_wrong_is_said_first(
    words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tap", *words]) == 2
    assert reason in capsys.readouterr().err


def test_what_a_script_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.py"
    for text, reason in (
        ("x = 1", "expected a function request or response"),
        ("1 / 0", "ZeroDivisionError"),
    ):
        script.write_text(text)
        assert main(["tap", "--to", "127.0.0.1:1", "--script", str(script)]) == 2
        assert reason in capsys.readouterr().err
