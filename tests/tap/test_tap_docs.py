"""The how-tos of the tap, from their first command on: they run, and what they promise happens."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from coordwire.enums import ErrorCode
from tests.interop.broker import free_port

ROOT = Path(__file__).parents[2]
GUIDES = ROOT / "docs" / "how-to"


def blocks(page: str, kind: str) -> list[str]:
    text = (GUIDES / page).read_text()
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run(page: str, folder: Path) -> str:
    """Run a guide's shell block and then its program, on free ports; what the shell's commands printed."""
    ports = {"9092": str(free_port()), "19092": str(free_port())}

    def placed(text: str) -> str:
        return re.sub(r"\b(9092|19092)\b", lambda match: ports[match[1]], text)

    (start,) = blocks(page, "sh")
    (program,) = blocks(page, "py")
    start = re.sub(r"(coordwire tap .*?) &", rf"\1 --listen 127.0.0.1:{ports['19092']} &", placed(start))
    surroundings = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    out = folder / "out"
    with out.open("wb") as file:
        shell = subprocess.Popen(
            ["bash", "-c", f"{start}\necho started\nwait"],
            stdout=file,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=surroundings,
            start_new_session=True,
        )
        try:
            waited(out, "started")
            waited(out, "clients connect to")
            result = subprocess.run(
                [sys.executable, "-c", placed(program)], cwd=folder, timeout=60, check=False
            )
            assert result.returncode == 0
        finally:
            os.killpg(shell.pid, signal.SIGINT)
            shell.wait(60)
            waited(out, "requests in")
    return out.read_text()


def waited(out: Path, text: str) -> None:
    """Wait until a file has a text."""
    import time

    for _ in range(600):
        if text in out.read_text():
            return
        time.sleep(0.1)
    raise AssertionError(f"no {text!r} in {out.read_text()}")


def test_a_client_is_broken(tmp_path: Path) -> None:
    pytest.importorskip("aiokafka")
    text = run("break-a-client.md", tmp_path)
    assert re.search(r"← .* Produce v\d+ .*orders .*NOT_LEADER_OR_FOLLOWER", text)
    assert "1 of 2 requests that matched" in text


def test_tls_is_seen_through(tmp_path: Path) -> None:
    pytest.importorskip("aiokafka")
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    text = run("see-inside-tls.md", tmp_path)
    assert re.search(r"→ .* JoinGroup v\d+ .*payments", text)
    command = [sys.executable, "-m", "coordwire", "timeline", "traffic.pcapng"]
    story = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "payments" in story.stdout
    assert "till-3" in story.stdout
    assert b"secret" not in (tmp_path / "traffic.pcapng").read_bytes()


def test_the_rules_of_the_table_are_rules() -> None:
    from coordwire.broker.injection import parse_fault

    text = (GUIDES / "break-a-client.md").read_text()
    rules = re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)
    assert len(rules) >= 8
    for rule in rules:
        assert str(parse_fault(rule)).split()[0] == rule.split()[0]
    assert ErrorCode.NOT_COORDINATOR.name in text
