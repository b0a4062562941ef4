"""`python -m tests.timeline.record.with_logs --work FOLDER OUT`: groups in a capture and on a disk.

Strategy: two situations are recorded as all are; then records are produced that nobody reads, Kafka's own
`kafka-consumer-groups` describes the groups, and the broker stops cleanly. Kept are the capture, the logs of
the topics and of `__consumer_offsets`, what the tool prints, and the generations that the coordinator's log
states.
"""

from __future__ import annotations

import argparse
import json
import lzma
import tarfile
from pathlib import Path

from tests.interop.broker import Java
from tests.timeline.record.judge import facts
from tests.timeline.record.situations import SITUATIONS
from tests.timeline.record.stage import RELEASE, Stage

NAMES = ("classic-causes", "consumer-causes")
TOPICS = ("orders", "payments", "classic-topic", "causes-topic", "causes-later", "__consumer_offsets")
TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.timeline.record.with_logs")
    parser.add_argument("--work", type=Path, required=True, help="where everything goes")
    parser.add_argument("out", type=Path, help="where the files to keep go")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    options.out.mkdir(parents=True, exist_ok=True)
    stage = Stage(options.work.resolve(), None)
    with stage.up():
        for topic, partitions in (("orders", 4), ("payments", 2)):
            stage.operate(f"create {topic} {partitions}")
        with stage.recording("groups"):
            for name in NAMES:
                SITUATIONS[name](stage)
            stage.operate("produce orders 7")
        described = Java(RELEASE, "broker").run(
            TOOL, "--bootstrap-server", stage.broker.address, "--describe", "--all-groups", "--offsets"
        )
    keep(stage, described, options.out)


def keep(stage: Stage, described: str, out: Path) -> None:
    """Pack what was recorded."""
    pcap = (stage.folder / "groups.pcap").read_bytes()
    (out / "groups.pcap.xz").write_bytes(lzma.compress(pcap, preset=9 | lzma.PRESET_EXTREME))
    (out / "consumer-groups.txt").write_text(described)
    did = json.loads((stage.folder / "groups.did.json").read_text())
    groups = facts((stage.folder / "groups.log").read_text().splitlines(), did["topics"])
    generations = {name: group["generations"] for name, group in groups.items() if group["joined"]}
    (out / "generations.json").write_text(json.dumps(generations, indent=1) + "\n")
    with tarfile.open(out / "logs.tar.xz", "w:xz") as archive:
        for place in sorted((stage.folder / "data").rglob("*.log")):
            folder = place.parent.name
            if folder.rpartition("-")[0] in TOPICS:
                archive.add(place, f"data/{folder}/{place.name}")


if __name__ == "__main__":
    main()
