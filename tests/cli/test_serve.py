"""`coordwire serve`: a broker that real clients can reach, and that ends in order."""

from __future__ import annotations

import io
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from coordwire import Connection, ErrorCode
from coordwire.capture import Capture, FrameEntry
from coordwire.cli.__main__ import main
from coordwire.events import ResponseReceived
from coordwire.messages import MetadataRequest, MetadataResponse

WAIT = 30


def test_it_serves_until_it_is_ended(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "coordwire", "serve", "--port", "0", "--topic", "orders:3"]
    fault = "Metadata topic=orders error=LEADER_NOT_AVAILABLE"
    data, pcap = tmp_path / "data", tmp_path / "traffic.pcap"
    command += ["--data", str(data), "--fault", fault, "--as-of", "3.9", "--pcap", str(pcap), "--timeline"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
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
        rest, _ = process.communicate(timeout=WAIT)
    assert (process.returncode, rest) == (0, "")
    assert sorted(path.name for path in data.glob("orders-*")) == ["orders-0", "orders-1", "orders-2"]
    assert (data / ".kafka_cleanshutdown").exists()
    capture = Capture(io.BytesIO(pcap.read_bytes()), "traffic", ports={int(port)})
    found = [type(entry.message) for entry in capture.entries() if isinstance(entry, FrameEntry)]
    assert found == [MetadataRequest, MetadataResponse] * 2


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--topic", "a/b"], "contains one or more characters"),
        (["--topic", "a:0"], "expected 1 to 10000 partitions"),
        (["--nodes", "0"], "expected at least 1 node"),
        (["--port", "65536"], "is not a port"),
        (["--as-of", "9.9"], "expected a release of 2.0 to 4.3, got '9.9'"),
        (["--fault", "Fetch nth=x lose"], "expected a number for nth, got 'x', at character 11"),
    ],
)
def test_what_is_wrong_is_said(arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", *arguments]) == 2
    assert reason in capsys.readouterr().err


def test_a_folder_of_something_else_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert main(["serve", "--port", "0", "--data", str(tmp_path)]) == 2
    assert "it is not a broker's folder" in capsys.readouterr().err
