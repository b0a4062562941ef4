"""`python -m tests.interop.broker_segments OUT`: a real broker's logs, and what Kafka's own tools read there.

Strategy: java/Traffic.java has a broker write topics of every kind and its coordinators' logs, in two rounds
with a restart between them; what then lies on the disk goes to OUT/data. Then every index is deleted and the
broker, started once more, rebuilds them: OUT/rebuilt. `kafka-dump-log` reads all of OUT/data, and what it
prints about FILE goes to FILE.txt, about coordinators' and controllers' records also to FILE.decoded.txt.

Rules: the folders are those of a broker that was stopped cleanly, so that the active segments' indexes are
trimmed (they take 10 MB while in use). Brokers' times and ids differ from run to run, producers' don't.
Exit status 1 if a JVM fails, 2 if the jars can't be had.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from coordwire.messages import StreamsGroupHeartbeatRequest
from coordwire.messages.streams_group_heartbeat import Subtopology, Topology
from tests.interop.broker import Broker, BrokerError, Java, ask
from tests.interop.maven import COMPLETE, Unavailable

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.coordinator.rebalance.protocols": "classic,consumer,share,streams",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.share.min.heartbeat.interval.ms": "200",
    "group.share.heartbeat.interval.ms": "200",
    "log.cleaner.backoff.ms": "200",
    "log.cleaner.dedupe.buffer.size": "8388608",
    "metadata.log.max.record.bytes.between.snapshots": "4000",
    "internal.metadata.log.segment.bytes": "8192",
}
TRAFFIC = Path(__file__).parent / "java" / "Traffic.java"
ROUNDS = (1, 2)
WAIT = 180
"""Seconds for one round of traffic."""

INDEXES = (".index", ".timeindex", ".txnindex", ".snapshot")
DUMPED = (".log", ".checkpoint", *INDEXES)
DECODERS = {
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__share_group_state": "--share-group-state-decoder",
    "__cluster_metadata": "--cluster-metadata-decoder",
}


def make(out: Path, release: str = COMPLETE) -> None:
    """Fill a folder that has neither `data` nor `rebuilt`. Raises `Unavailable`, `BrokerError`, `OSError`."""
    for name in ("data", "rebuilt"):
        if (out / name).exists():
            raise FileExistsError(f"{out / name} is there already")
    java = Java(release)
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "logs"
        broker = Broker(java, folder, SETTINGS)
        for number in ROUNDS:
            with broker:
                java.run(str(TRAFFIC), broker.address, str(number), wait=WAIT)
                _streams_group(broker.port)
        keep(folder, out / "data")
        for path in _files(folder, INDEXES):
            path.unlink()
        with broker:
            pass
        keep(folder, out / "rebuilt")
    _dump(java, out / "data")


def _files(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    return sorted(path for path in folder.glob("*-*/*") if path.suffix in suffixes)


def keep(folder: Path, to: Path) -> None:
    """A copy without what was deleted, cleaned away or in the making."""
    unwanted = shutil.ignore_patterns("*-delete", "*.deleted", "*.cleaned", "*.swap", ".lock", "*.part")
    shutil.copytree(folder, to, ignore=unwanted)


def _streams_group(port: int) -> None:
    """A streams group of one member, which joins and leaves (KIP-1071); Kafka's client for it is large."""
    topology = Topology(
        epoch=1, subtopologies=[Subtopology(subtopology_id="0", source_topics=["several.segments"])]
    )
    member = StreamsGroupHeartbeatRequest(
        group_id="counting", member_id="b5jnOxQOSHu2KIvv1nLvuA", rebalance_timeout_ms=30_000,
        topology=topology, active_tasks=[], standby_tasks=[], warmup_tasks=[], process_id="process-1",
        client_tags=[],
    )  # fmt: skip
    ask(port, member, version=0)
    ask(
        port,
        StreamsGroupHeartbeatRequest(group_id="counting", member_id=member.member_id, member_epoch=-1),
        version=0,
    )


def _dump(java: Java, data: Path) -> None:
    tool = ("org.apache.kafka.tools.DumpLogSegments", "--print-data-log", "--deep-iteration")
    files = _files(data, DUMPED)
    split(java.run(*tool, "--files", _listed(files, data), folder=data), data, ".txt")
    for topic, decoder in DECODERS.items():
        chosen = [path for path in files if path.parent.name.startswith(topic) and path.suffix not in INDEXES]
        result = java.run(*tool, decoder, "--files", _listed(chosen, data), folder=data)
        split(result, data, ".decoded.txt")


def _listed(paths: list[Path], data: Path) -> str:
    return ",".join(str(path.relative_to(data)) for path in paths)


def split(said: str, data: Path, suffix: str) -> None:
    """One text beside each file, from what the tool said about them all."""
    for part in said.split("Dumping ")[1:]:
        name, _, text = part.partition("\n")
        path = data / name
        path.with_name(path.name + suffix).write_text(text, "utf-8", "surrogateescape")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.interop.broker_segments", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("out", type=Path, metavar="OUT", help="a folder, without data and rebuilt in it")
    parser.add_argument(
        "--release", default=COMPLETE, help="of Apache Kafka, 4.0 or later (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    try:
        make(options.out, options.release)
    except (Unavailable, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    except BrokerError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
