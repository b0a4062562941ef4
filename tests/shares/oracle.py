"""Kafka's own share partition and share coordinator on a mock clock: one JVM each, which talks in lines."""

from __future__ import annotations

import atexit
import functools
from pathlib import Path

from tests.coordinator.oracle import GROUPS, CoordinatorOracle, Program

_FOLDER = Path(__file__).parent / "oracle"
_CLOCK = Path(__file__).parent.parent / "coordinator" / "oracle" / "OracleClock.java"

PARTITION = Program(
    "broker", (_FOLDER / "PartitionOracle.java", _CLOCK), "kafka.server.share.PartitionOracle"
)
STATE = Program(
    "broker",
    (_FOLDER / "StateOracle.java", *GROUPS.sources),
    "org.apache.kafka.coordinator.share.StateOracle",
)


@functools.cache
def share_oracle(program: Program) -> CoordinatorOracle:
    """The one JVM of a program, ended with this process. Raises `Unavailable`."""
    started = CoordinatorOracle(program=program)
    atexit.register(started.close)
    return started
