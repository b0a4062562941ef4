"""What an implementation writes to standard error: its end is kept; no amount stops or fills anything."""

from __future__ import annotations

import asyncio
import sys

from coordwire.conformance.client.run import judged, selected
from coordwire.conformance.process import OUTPUT, AskedProcess
from coordwire.conformance.results import CaseVerdict

FLOODING = """
import os, sys
for line in sys.stdin:
    for _ in range(64):
        os.write(2, b"-" * (1 << 20))
    os.write(2, b"the end")
    print("{}", flush=True)
"""
DYING = """
import sys
for number, line in enumerate(sys.stdin):
    if number:
        sys.exit("why it ended")
    print('{"name": "dies"}', flush=True)
"""


def test_a_flood_is_read_and_its_end_kept() -> None:
    async def play() -> tuple[str, str]:
        async with AskedProcess([sys.executable, "-c", FLOODING], kind="codec", timeout=30) as codec:
            await codec.output()
            await codec.ask({})
            return await codec.output(), await codec.output()

    flood, later = asyncio.run(play())
    assert len(flood) == OUTPUT
    assert flood.endswith("-the end")
    assert later == ""


def test_a_client_that_ends_says_why() -> None:
    async def play() -> list[tuple[CaseVerdict, str]]:
        async with AskedProcess([sys.executable, "-c", DYING], kind="client", timeout=30) as client:
            cases = selected(["produce/acks/1", "produce/fatal/1"])
            return [(result.verdict, result.output) async for result in judged([client], cases)]

    assert asyncio.run(play()) == [(CaseVerdict.FAIL, "why it ended\n")] * 2
