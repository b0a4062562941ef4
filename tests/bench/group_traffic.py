"""`python -m tests.bench.group_traffic OUT.pcap [--megabytes N]` makes a capture of many groups' traffic.

Strategy: the scripts of `coordwire.testing` play classic groups and groups of KIP-848 with their
coordinators, a connection a member; the groups take turns, so that connections are interleaved as on a
broker's port. Rules: mostly heartbeats, some commits, now and then a member that leaves and another that
joins, unless something else is asked for (`MIXES`); an acknowledgement without data follows every answer; the
same bytes for the same size.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from coordwire.capture.formats.pcap import pcap_parts
from coordwire.messages import FetchRequest, FetchResponse, find_message
from coordwire.messages.fetch import FetchableTopicResponse, FetchPartition, FetchTopic, PartitionData
from coordwire.testing.group_scripts import ClassicScript, ConsumerScript, GroupScript, Recorder
from coordwire.versions import ApiKey
from tests.tables.made_segments import segment

GROUPS, MEMBERS, PARTITIONS = 60, 6, 24
SPAN = 400
"""Connections of one group, those of members that left included."""

STEP_NS = 1_000_000
START_NS = 1_790_000_000_000_000_000

FETCH_VERSION = 12
"""The last that names topics."""


class Mix(NamedTuple):
    """How likely a turn is a leaving, a commit or a fetch; else it is a heartbeat."""

    leaves: float
    commits: float
    fetches: float


MIXES = {
    "heartbeats": Mix(0.002, 0.198, 0),
    "joins": Mix(0.4, 0.1, 0),
    "commits": Mix(0.002, 0.9, 0),
    "fetches": Mix(0.002, 0.1, 0.7),
}


def _scripts() -> list[GroupScript]:
    scripts: list[GroupScript] = []
    for number in range(GROUPS):
        cls = ConsumerScript if number % 4 == 3 else ClassicScript
        versions = {int(key): find_message(key, "request").versions[-1] for key in cls.apis}
        recorder = Recorder(versions, f"orders-{number}", PARTITIONS)
        if 8 in recorder.versions:
            recorder.versions = {**recorder.versions, 8: 9}  # the last version that names topics
        scripts.append(cls(recorder, f"billing-workers-{number}", f"orders-{number}", PARTITIONS))
    return scripts


def traffic(mostly: str = "heartbeats") -> Iterator[tuple[int, int, bool, bytes]]:
    """Endless frames, as `pcap_parts` takes them. mostly: one of `MIXES`."""
    scripts, chance, mix = _scripts(), random.Random(7), MIXES[mostly]
    fetches = _Fetches() if mix.fetches else None
    time_ns = START_NS
    while True:
        for number, script in enumerate(scripts):
            drawn = chance.random()
            if script.size < MEMBERS and len(script.joiners) < SPAN:
                script.join()
            elif drawn < mix.leaves and len(script.joiners) < SPAN:
                script.leave(chance.randrange(script.size))
            elif drawn < mix.leaves + mix.commits:
                script.commit(chance.randrange(script.size))
            elif fetches is not None and drawn < sum(mix):
                fetches.add(script)
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


class _Fetches:
    """Fetches of records, a few kilobytes each; their offsets say nothing."""

    def __init__(self) -> None:
        self._records = [segment(random.Random(number), 1 + number % 3) for number in range(16)]
        self._count = 0

    def add(self, script: GroupScript) -> None:
        """The member that joined last fetches once more."""
        self._count += 1
        number, offset = len(script.joiners) - 1, 10 * self._count
        recorder, partition = script.recorder, self._count % PARTITIONS
        recorder.versions = {**recorder.versions, ApiKey.FETCH: FETCH_VERSION}
        wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
        found = PartitionData(
            partition_index=partition, high_watermark=offset + 10, aborted_transactions=[],
            records=self._records[self._count % len(self._records)],
        )  # fmt: skip
        recorder.exchange(
            number, f"client-{number}",
            FetchRequest(max_wait_ms=500, topics=[FetchTopic(topic=script.topic, partitions=[wanted])]),
            FetchResponse(responses=[FetchableTopicResponse(topic=script.topic, partitions=[found])]),
        )  # fmt: skip


def make(path: Path, size: int, mostly: str = "heartbeats") -> None:
    """Write a capture of at least `size` bytes."""
    with open(path, "wb") as file:
        for part in pcap_parts(traffic(mostly)):
            if file.write(part) and file.tell() >= size:
                return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--megabytes", type=int, default=64)
    parser.add_argument("--mostly", choices=MIXES, default="heartbeats")
    options = parser.parse_args()
    make(options.out, options.megabytes << 20, options.mostly)


if __name__ == "__main__":
    main()
