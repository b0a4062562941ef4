"""The power fails under a broker's data folder: what was promised is there, and the folder opens.

`python -m tests.broker.power_loss CRASHES` does it for so many states of the disk; `test_power_loss.py` does
it less often. A history is drawn by seed: topics that flush each record, each three, by time or never are
made, written to by producers with ids, filled over several segments, cut, emptied, deleted; the broker ends
in order or is killed, and starts again. Before its calls to the disk the power may fail.

Rules: of a topic that flushes, all that was flushed is there; what else is there was written at that offset;
no producer's id is given again that has records; settings of groups are those set last; a start after a loss
may lose its power as well.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from coordwire.broker.cluster.cluster_state import ClusterState
from coordwire.broker.cluster.disk_logs import DiskLogs, open_cluster
from coordwire.broker.cluster.fact_records import setting_records
from coordwire.broker.cluster.topics import ClusterTopic
from coordwire.broker.log.validation import AppendRules, one_batch
from coordwire.broker.settings.broker_config import BrokerConfig
from coordwire.enums import ConfigResourceType
from tests.broker.core import batch
from tests.losing_disk import LosingDisk, Loss

NOW = 1_700_000_000_000
CONFIG = BrokerConfig(offsets_partitions=1)
FLUSHES: tuple[dict[str, str], ...] = (
    {"flush.messages": "1"},
    {"flush.messages": "3"},
    {"flush.ms": "1000"},
    {},
)
SESSION_TIMEOUT = "consumer.session.timeout.ms"
Place = tuple[str, int]


class Broken(Exception):
    """A promise that was not kept."""


@dataclass
class Promised:
    """topics: the id of each that is there for certain; gone: those that are not. flushed: of partitions, the
    end of what is on the disk. written: all that was ever written at an offset. began: where logs begin.
    producer_id: the highest that has flushed records; session_timeouts: of groups, those set last."""

    topics: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    flushed: dict[Place, int] = field(default_factory=dict)
    began: dict[Place, int] = field(default_factory=dict)
    written: dict[Place, dict[int, list[bytes]]] = field(default_factory=dict)
    session_timeouts: dict[str, str | None] = field(default_factory=dict)
    cluster_id: str = ""
    producer_id: int = -1


class History:
    """A broker's life on a disk, by seed."""

    def __init__(self, data: Path, seed: int, nodes: tuple[int, ...]) -> None:
        self.data, self.random, self.nodes = data, Random(seed), nodes
        self.now = NOW
        self.promised = Promised()
        self.cluster: ClusterState | None = None
        self.names = 0
        self.sequences: dict[tuple[Place, int], int] = {}
        self.producer = -1

    def open(self) -> ClusterState:
        return open_cluster(self.data, clock=lambda: self.now, config=CONFIG, nodes=self.nodes)

    def live(self, steps: int) -> None:
        self.cluster = self.open()
        self.create()
        for _ in range(steps):
            names = [self.append] * 12 + [
                self.wait,
                self.create,
                self.delete,
                self.cut,
                self.empty,
                self.grow,
                self.set_group,
            ]
            self.random.choice([*names, self.restart, self.change])()
        if self.cluster.topics:
            self.restart()
        self.end()

    # --- steps ---

    def state(self) -> ClusterState:
        assert self.cluster is not None
        return self.cluster

    def topic(self) -> ClusterTopic | None:
        topics = list(self.state().topics.values())
        return self.random.choice(topics) if topics else None

    def create(self) -> None:
        self.names += 1
        name = f"t{self.names}"
        own = self.random.choice(FLUSHES) | {"segment.bytes": str(self.random.choice((200, 400, 1 << 20)))}
        topic = self.state().create_topic(
            name, self.random.randint(1, 2), replication_factor=len(self.nodes), settings=own
        )
        self.note(topic)

    def note(self, topic: ClusterTopic) -> None:
        """A change of a topic was answered."""
        self.promised.topics.pop(topic.name, None)
        if _is_flushed(topic):
            self.promised.topics[topic.name] = str(topic.id)
        self.flushed(topic)

    def flushed(self, topic: ClusterTopic) -> None:
        for partition in topic.partitions:
            place = (topic.name, partition.index)
            known = self.promised.flushed.get(place, 0)
            self.promised.flushed[place] = max(known, partition.log.synced_offset)

    def append(self) -> None:
        topic = self.topic()
        if topic is None:
            return
        partition = self.random.choice(topic.partitions)
        place = (topic.name, partition.index)
        if self.producer < 0 or self.random.random() < 0.1:
            self.producer = self.state().new_producer_id()
        sequence = self.sequences.get((place, self.producer), 0)
        values = [self.random.randbytes(self.random.randint(1, 90)) for _ in range(self.random.randint(1, 3))]
        written = self.promised.written.setdefault(place, {})
        for number, value in enumerate(values):
            written.setdefault(partition.log.end_offset + number, []).append(value)
        data = batch(*values, producer_id=self.producer, producer_epoch=0, base_sequence=sequence)
        partition.log.append(one_batch(data, 13), AppendRules(), self.now)
        self.sequences[place, self.producer] = sequence + len(values)
        count = int(topic.settings.own.get("flush.messages", "0"))
        if count:  # fewer than that many may be lost
            end = partition.log.end_offset - count + 1
            self.promised.flushed[place] = max(self.promised.flushed.get(place, 0), end)
        self.flushed(topic)
        if self.promised.flushed[place] >= partition.log.end_offset:
            self.promised.producer_id = max(self.promised.producer_id, self.producer)

    def wait(self) -> None:
        self.now += self.random.choice((300, 1000))
        self.state().advance()
        for topic in self.state().topics.values():
            self.flushed(topic)

    def change(self) -> None:
        topic = self.topic()
        if topic is None:
            return
        kept = {name: value for name, value in topic.settings.own.items() if not name.startswith("flush.")}
        topic.settings.own = kept | self.random.choice(FLUSHES)
        topic.apply_settings()
        self.promised.topics.pop(topic.name, None)
        self.state().logs.topic_changed(topic)
        self.note(topic)

    def set_group(self) -> None:
        """Change a group's settings, or take them back."""
        group = self.random.choice(("g", "h"))
        known = self.state().settings_of_group(group).own
        own = (
            {SESSION_TIMEOUT: str(self.random.randint(45_000, 60_000))} if self.random.random() < 0.7 else {}
        )
        self.promised.session_timeouts.pop(group, None)
        self.state().change(setting_records(ConfigResourceType.GROUP, group, known, own))
        self.promised.session_timeouts[group] = own.get(SESSION_TIMEOUT)

    def grow(self) -> None:
        topic = self.topic()
        if topic is not None and len(topic.partitions) < 4:
            self.state().add_partitions(topic, len(topic.partitions) + 1)
            self.note(topic)

    def delete(self) -> None:
        topic = self.topic()
        if topic is None or self.random.random() < 0.5:
            return
        self.promised.topics.pop(topic.name, None)
        for places in (self.promised.flushed, self.promised.began):
            for partition in topic.partitions:
                places.pop((topic.name, partition.index), None)
        self.state().delete_topic(topic)
        if _is_flushed(topic):
            self.promised.gone.add(topic.name)

    def cut(self) -> None:
        """Truncate a log."""
        topic = self.topic()
        if topic is None:
            return
        partition = self.random.choice(topic.partitions)
        log = partition.log
        offset = self.random.randint(log.start_offset, log.end_offset)
        place = (topic.name, partition.index)
        self.promised.flushed[place] = min(self.promised.flushed.get(place, 0), max(0, offset - 2))
        log.truncate(offset)
        self.sequences = {key: value for key, value in self.sequences.items() if key[0] != place}
        self.producer = -1
        self.promised.flushed[place] = min(self.promised.flushed[place], log.end_offset)

    def empty(self) -> None:
        """Delete records at the start."""
        topic = self.topic()
        if topic is None:
            return
        partition = self.random.choice(topic.partitions)
        log = partition.log
        start = self.random.randint(log.start_offset, log.end_offset)
        self.promised.began[topic.name, partition.index] = start
        log.delete_before(start)
        self.state().logs.started(partition)

    def restart(self) -> None:
        self.end()
        self.cluster = self.open()

    def end(self) -> None:
        cluster = self.state()
        if self.random.random() < 0.5:
            assert isinstance(cluster.logs, DiskLogs)
            cluster.logs.abandon()
            return
        cluster.close()
        for topic in cluster.topics.values():
            self.promised.topics[topic.name] = str(topic.id)
            for partition in topic.partitions:
                self.promised.flushed[topic.name, partition.index] = partition.log.end_offset

    def promises(self) -> Promised:
        if self.cluster is not None:
            self.promised.cluster_id = self.promised.cluster_id or self.cluster.cluster_id
        return deepcopy(self.promised)


def _is_flushed(topic: ClusterTopic) -> bool:
    return any(name.startswith("flush.") for name in topic.settings.own)


# --- what is there ---


def judge(cluster: ClusterState, promised: Promised) -> None:
    """Raises `Broken`."""
    if promised.topics and cluster.cluster_id != promised.cluster_id:
        raise Broken(f"the cluster's id is {cluster.cluster_id}, expected {promised.cluster_id}")
    for name, topic_id in promised.topics.items():
        if name not in cluster.topics or str(cluster.topics[name].id) != topic_id:
            raise Broken(f"{name} is not there, or not the same")
    for name in promised.gone & cluster.topics.keys():
        raise Broken(f"{name} was deleted, and is there")
    for place, end in promised.flushed.items():
        start = promised.began.get(place, 0)
        if start < end:
            _compare(cluster, place, start, end)
    for name, topic in cluster.topics.items():
        for partition in topic.partitions:
            written = promised.written.get((name, partition.index), {})
            for offset, value in _records(cluster, (name, partition.index)).items():
                if value not in (b"next", *written.get(offset, [])):
                    raise Broken(f"{name}-{partition.index} has at {offset} what was never written there")
    for group, timeout in promised.session_timeouts.items():
        found = cluster.settings_of_group(group).own.get(SESSION_TIMEOUT)
        if found != timeout:
            raise Broken(f"the session timeout of {group} is {found}, expected {timeout}")
    if cluster.new_producer_id() <= promised.producer_id:
        raise Broken(f"the producer id {promised.producer_id} is given again")


def _compare(cluster: ClusterState, place: Place, start: int, end: int) -> None:
    there = _records(cluster, place)
    for offset in range(start, end):
        if offset not in there:
            raise Broken(f"{place[0]}-{place[1]} has no record {offset}, flushed up to {end}")


def _records(cluster: ClusterState, place: Place) -> dict[int, bytes]:
    topic = cluster.topics.get(place[0])
    if topic is None or place[1] >= len(topic.partitions):
        return {}
    batches = topic.partitions[place[1]].log.batches()
    return {record.offset: record.value or b"" for one in batches for record in one}


def opens(loss: Loss[Promised], folder: Path, seed: int, nodes: tuple[int, ...]) -> list[Loss[Promised]]:
    """Start a broker on the state of a disk; gives states of a disk that fails at that start.

    Raises `Broken`, and what a start raises.
    """
    loss.write(folder)
    disk = LosingDisk(folder, lambda: loss.promised, Random(seed), rate=0.05)
    with disk.recording():
        cluster = open_cluster(folder / "data", clock=lambda: NOW, config=CONFIG, nodes=nodes)
        try:
            judge(cluster, loss.promised)
            for topic in list(cluster.topics.values()):  # it goes on
                for partition in topic.partitions:
                    partition.log.append(one_batch(batch(b"next"), 13), AppendRules(), NOW)
        finally:
            cluster.close()
    return disk.losses


def run(
    crashes: int, first_seed: int, *, steps: int = 60, rate: float = 0.1,
    report: Callable[[str], None] = lambda line: None,
) -> tuple[int, list[str]]:  # fmt: skip
    """So many losses of power; gives how many there were, and what was wrong."""
    done, seed, wrong = 0, first_seed, []
    while done < crashes:
        nodes = (1,) if seed % 4 else (1, 2)
        with tempfile.TemporaryDirectory() as work:
            root = Path(work) / "disk"
            root.mkdir()
            history = History(root / "data", seed, nodes)
            disk = LosingDisk(root, history.promises, Random(seed), rate=rate)
            with disk.recording():
                history.live(steps)
                disk.fail("end", always=True)
            losses, first = disk.losses, len(disk.losses)
            for number, loss in enumerate(losses):
                folder = Path(work) / f"{number}"
                folder.mkdir()
                done += 1
                try:
                    again = opens(loss, folder, seed + number, nodes)
                    losses += again if number < first else []
                except Exception as error:
                    wrong.append(f"seed {seed}, loss {number} before {loss.place}: {error!r}")
        report(f"seed {seed}: {done} losses, {len(wrong)} wrong")
        seed += 1
    return done, wrong


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.broker.power_loss", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("crashes", type=int, nargs="?", default=10_000, help="losses of power (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the first history (%(default)s)")
    options = parser.parse_args(arguments)
    logging.getLogger("coordwire.broker").setLevel(logging.ERROR)  # it tells what a loss has left
    done, wrong = run(options.crashes, options.seed)
    for line in wrong[:20]:
        print(line)
    print(f"{done:,} losses of power, {len(wrong):,} of which broke a promise")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
