"""`coordwire mcp`, asked by the client of the protocol's own SDK."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from coordwire.cli import mcp as command
from tests.cli.conftest import CAPTURES, Run

sdk = pytest.importorskip("mcp")
CAPTURE = "kpy__tansu__group-range.pcap"
SASL = "confluent__noida__sasl.pcap"
HEARTBEAT = "0000000e0012000000000007000474696c6c"

Ask = Callable[..., Awaitable[str]]


class Refused(Exception):
    """A tool's error."""


def ask(question: Callable[[Ask], Awaitable[None]], *paths: object) -> None:
    """Ask a server that may read these paths."""
    from mcp.client.stdio import stdio_client

    async def call(session: Any, tool: str, **arguments: object) -> str:
        result = await session.call_tool(tool, arguments)
        text: str = result.content[0].text
        if result.is_error:
            raise Refused(text)
        return text

    async def converse() -> None:
        server = sdk.StdioServerParameters(
            command=sys.executable, args=["-m", "coordwire", "mcp", *map(str, paths)], env=dict(os.environ)
        )
        async with stdio_client(server) as streams, sdk.ClientSession(*streams) as session:
            await session.initialize()
            tools = (await session.list_tools()).tools
            assert {tool.name for tool in tools} == {
                "list_files", "list_groups", "tell_story", "lag", "list_frames", "explain_frame"
            }  # fmt: skip
            assert all(tool.annotations.read_only_hint and tool.description for tool in tools)
            await question(lambda tool, **arguments: call(session, tool, **arguments))

    asyncio.run(asyncio.wait_for(converse(), 300))


def test_an_agent_finds_why_a_group_rebalanced(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads what an operator reads."""

    async def question(ask: Ask) -> None:
        assert f"{CAPTURES / CAPTURE}  " in await ask("list_files")
        assert "g-kpy-range · classic group" in await ask("list_groups", path=CAPTURE)
        for arguments, words in [
            ({}, ()),
            ({"group": "g-kpy", "rebalance": 1}, ("--group", "g-kpy", "--rebalance", 1)),
            (
                {"events": True, "since": "+2s", "until": "+6s"},
                ("--events", "--since", "+2s", "--until", "+6s"),
            ),
        ]:
            monkeypatch.setenv("COLUMNS", "120")
            story = run("timeline", *words, CAPTURES / CAPTURE)
            expected = "\n\n".join(filter(None, (story.text.rstrip(), story.err.strip())))
            assert await ask("tell_story", path=CAPTURE, **arguments) == expected
        frames = await ask("list_frames", path=CAPTURE, filter='api == "JoinGroup" and error != 0')
        assert frames.count("MEMBER_ID_REQUIRED") == 3
        assert "group_id: 11 bytes" in await ask("explain_frame", path=CAPTURE, packets="57")
        assert "'till'" in await ask("explain_frame", hex=HEARTBEAT)

    ask(question, CAPTURES)


def test_an_agent_reads_nothing_else(tmp_path: Path) -> None:
    """Neither files outside of the folder, also by links, nor options in place of names, nor secrets."""
    folder = tmp_path / "captures"
    folder.mkdir()
    outside = tmp_path / "outside.pcap"
    outside.write_bytes((CAPTURES / CAPTURE).read_bytes())
    (folder / "link.pcap").symlink_to(outside)
    os.mkfifo(folder / "pipe.pcap")
    (folder / "inner").mkdir()
    (folder / "inner" / "link.pcap").symlink_to(folder / CAPTURE)
    (folder / CAPTURE).write_bytes(outside.read_bytes())
    (folder / "sasl.pcap").write_bytes((CAPTURES / SASL).read_bytes())

    async def question(ask: Ask) -> None:
        files = await ask("list_files")
        assert str(folder / "link.pcap") not in files
        assert "pipe" not in files
        for path in ["link.pcap", "../outside.pcap", str(outside), "timeline", "\0", "missing", "pipe.pcap"]:
            for tool in ("list_groups", "tell_story", "lag"):
                with pytest.raises(Refused, match="not among the files"):
                    await ask(tool, path=path)
            with pytest.raises(Refused, match="not among the files"):
                await ask("explain_frame", path=path, packets="1")
        for path in ["--format=json", "-", "--", "-h"]:
            with pytest.raises(Refused, match="not an option"):
                await ask("list_frames", path=path)
        for path in [".", "", str(folder)]:
            with pytest.raises(Refused, match=r"link\.pcap leads out of it"):
                await ask("list_groups", path=path)
        assert "g-kpy-range" in await ask("list_groups", path="inner")
        with pytest.raises(Refused, match="no rebalance"):
            await ask("tell_story", path=f"../captures/{CAPTURE}", rebalance=99)
        with pytest.raises(Refused, match="expected hex, or path and packets"):
            await ask("explain_frame", path="sasl.pcap")
        with pytest.raises(Refused, match="filter"):
            await ask("list_frames", path="sasl.pcap", filter="--show-secrets")
        frames = await ask("explain_frame", path="sasl.pcap", packets="9-11")
        assert "SaslAuthenticate" in frames
        assert "auth_bytes: 19 bytes withheld" in frames

    ask(question, folder)


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is long is cut off at a line's end and said so; a command that lasts is ended."""
    tools = command._Tools([str(CAPTURES)])
    text = asyncio.run(tools.list_frames(CAPTURE))
    monkeypatch.setattr(command, "MOST_BYTES", 1000)
    cut = asyncio.run(tools.list_frames(CAPTURE))
    assert len(cut.encode()) < 1100 < len(text)
    *lines, note = cut.splitlines()
    assert note == "… cut off after 1,000 bytes: narrow the question"
    assert text.splitlines()[: len(lines)] == lines
    monkeypatch.setattr(command, "DEADLINE_S", 0.05)
    with pytest.raises(Exception, match="no answer in"):
        asyncio.run(tools.list_frames(CAPTURE))


SERVER = """
import sys
from argparse import Namespace
from coordwire.cli import mcp
mcp._Tools._file = lambda self, path: path  # so that a pipe makes a command last
mcp.run(Namespace(paths=[sys.argv[1]]))
"""


@contextmanager
def asked_for_a_pipe(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A server whose command reads a pipe that is never written, and the other end of the pipe."""
    pipe = folder / "pipe.pcap"
    os.mkfifo(pipe)
    requests: list[dict[str, object]] = [
        {"id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
        }},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {
            "name": "list_frames", "arguments": {"path": str(pipe)},
        }},
    ]  # fmt: skip
    words = [sys.executable, "-c", SERVER, str(folder)]
    server = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        assert server.stdin is not None
        for request in requests:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **request}).encode() + b"\n")
        server.stdin.flush()
        end = os.open(pipe, os.O_WRONLY)  # which waits for the command to open it
        try:
            os.write(end, b"\n")
            yield server, end
        finally:
            os.close(end)
    finally:
        server.kill()
        server.communicate()


def write_for(seconds: float, end: int) -> None:
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        os.write(end, b"\n")
        time.sleep(0.05)


@pytest.mark.parametrize("ending", ["client", "kill", "terminate"])
def test_a_command_ends_with_the_server(tmp_path: Path, ending: str) -> None:
    """However the server ends: as its client goes away, or by a signal."""
    with asked_for_a_pipe(tmp_path) as (server, end):
        assert server.stdin is not None
        if ending == "client":
            server.stdin.close()
        else:
            getattr(server, ending)()
        server.wait(30)
        with pytest.raises(BrokenPipeError):  # nobody has the pipe open
            write_for(30, end)


def test_what_is_neither_a_folder_nor_a_file(run: Run) -> None:
    result = run("mcp", "/dev/null")
    assert (result.status, result.err) == (
        2, "coordwire: mcp: /dev/null: expected a folder or a regular file\n"
    )  # fmt: skip


def test_a_folder_that_is_not_there(run: Run) -> None:
    result = run("mcp", "nowhere")
    assert (result.status, result.err) == (
        2, "coordwire: mcp: [Errno 2] No such file or directory: 'nowhere'\n"
    )  # fmt: skip
