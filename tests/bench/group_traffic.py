"""`python -m tests.bench.group_traffic OUT.pcap [--megabytes N]` makes a capture of many groups' traffic.

Strategy: the scripts of `coordwire.testing` play classic groups and groups of KIP-848 with their
coordinators, a connection a member; the groups take turns, so that connections are interleaved as on a
broker's port. Rules: mostly heartbeats, some commits, now and then a member that leaves and another that
joins; an acknowledgement without data follows every answer; the same bytes for the same size.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

from coordwire.messages import find_message
from coordwire.testing.classic_script import ClassicScript
from coordwire.testing.consumer_script import ConsumerScript
from coordwire.testing.group_conversation import Recorder
from coordwire.testing.group_script import GroupScript
from coordwire.testing.made_capture import pcap_parts

__all__ = ["make", "traffic"]

GROUPS, MEMBERS, PARTITIONS = 60, 6, 24
SPAN = 400
"""Connections of one group, those of members that left included."""

STEP_NS = 1_000_000
START_NS = 1_790_000_000_000_000_000


def _scripts() -> list[GroupScript]:
    scripts: list[GroupScript] = []
    for number in range(GROUPS):
        cls = ConsumerScript if number % 4 == 3 else ClassicScript
        recorder = Recorder({key: find_message(key, "request").versions[-1] for key in cls.apis})
        if 8 in recorder.versions:
            recorder.versions = {**recorder.versions, 8: 9}  # the last version that names topics
        scripts.append(cls(recorder, f"billing-workers-{number}", f"orders-{number}", PARTITIONS))
    return scripts


def traffic() -> Iterator[tuple[int, int, bool, bytes]]:
    """Endless frames, as `pcap_parts` takes them."""
    scripts, chance = _scripts(), random.Random(7)
    time_ns = START_NS
    while True:
        for number, script in enumerate(scripts):
            drawn = chance.random()
            if script.size < MEMBERS and len(script.joined) < SPAN:
                script.join()
            elif drawn < 0.002 and len(script.joined) < SPAN:
                script.leave(chance.randrange(script.size))
            elif drawn < 0.2:
                script.commit(chance.randrange(script.size))
            else:
                script.heartbeat(chance.randrange(script.size))
            script.commits.clear()
            frames, script.recorder.frames = script.recorder.frames, []
            for frame in frames:
                time_ns += STEP_NS
                connection, back = number * SPAN + frame.connection, frame.direction == "response"
                yield time_ns, connection, back, frame.data
                if back:
                    yield time_ns, connection, False, b""


def make(path: Path, size: int) -> None:
    """Write a capture of at least `size` bytes."""
    with open(path, "wb") as file:
        for part in pcap_parts(traffic()):
            if file.write(part) and file.tell() >= size:
                return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--megabytes", type=int, default=64)
    options = parser.parse_args()
    make(options.out, options.megabytes << 20)


if __name__ == "__main__":
    main()
