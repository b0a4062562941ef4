"""An interrupt while the command waits for Java shows no trace."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

pytest.importorskip("py4j", reason="pyspark isn't installed: pip install 'coordwire[spark]'")

WAIT = """
import logging, sys
from contextlib import nullcontext
from py4j.java_gateway import GatewayClient
from coordwire.cli.pipeline import quiet_gateway

class Interrupted:
    socket = None
    def send_command(self, command):
        raise KeyboardInterrupt
    def close(self, reset=False):
        pass

client = GatewayClient()
client._get_connection = Interrupted
with quiet_gateway() if sys.argv[1] == "quiet" else nullcontext():
    try:
        client.send_command("c")
    except KeyboardInterrupt:
        print("interrupted")
    logging.error("of the application")
"""


@pytest.mark.parametrize("how", ["quiet", "loud"])
def test_an_interrupt_shows_no_trace(how: str) -> None:
    process = subprocess.run([sys.executable, "-c", WAIT, how], capture_output=True, text=True, check=True)
    assert process.stdout == "interrupted\n"
    assert "of the application" in process.stderr
    assert ("Traceback" in process.stderr) == (how == "loud")


def test_logging_is_as_before() -> None:
    from coordwire.cli.pipeline import quiet_gateway

    before = list(logging.getLogger().filters)
    with quiet_gateway():
        assert len(logging.getLogger().filters) == len(before) + 1
    assert logging.getLogger().filters == before
