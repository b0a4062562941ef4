"""Short runs of the drafts, kept as data: a capture of each draft, and what a run leaves in ZooKeeper.

    python -m tests.designs.drafts.kept_runs        write them into tests/data/drafts/runs

Rules: a run is as short as it can be with every message of its draft in it. The files are data: a change of a
machine need not change them, as they are read, not compared with new runs.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from coordwire.designs.drafts.zookeeper_operations import GetData
from coordwire.designs.simulator import PcapWriter, TapRecord, World, parse_faults
from coordwire.designs.simulator.drafts import ZOOKEEPER_PORT, add_design
from coordwire.designs.simulator.message_flow import MessageFlow

RUNS = Path(__file__).parent.parent.parent / "data" / "drafts" / "runs"
DRAFTS = ("draft-1", "draft-2", "draft-3")
MEMBERS, DURATION_MS = 2, 9_000
PLAN = "5s drop consumer-2 coordinator-1; 6s topic zookeeper orders 3"
"""A consumer that registers or joins again, and a rebalance that a topic causes."""


def without_zookeeper(tap: Callable[[TapRecord], None]) -> Callable[[TapRecord], None]:
    """A tap that does not see ZooKeeper's links: a kept capture has the draft's messages alone."""

    def pass_on(record: TapRecord) -> None:
        if not record.server.endswith(f":{ZOOKEEPER_PORT}"):
            tap(record)

    return pass_on


def capture(design: str) -> bytes:
    """The capture of a draft's run; its second consumer does not commit automatically."""
    file = io.BytesIO()
    world = World(seed=1, tap=without_zookeeper(PcapWriter(file)))
    add_design(world, design, members=MEMBERS, partitions={"orders": MEMBERS})
    node: Any = world.nodes["consumer-2"]
    make = node._factory

    def without_auto_commit() -> Any:
        process = make()
        machine = process._make

        def made(where: Any) -> Any:
            consumer = machine(where)
            if hasattr(consumer.config, "auto_commit"):
                consumer.config = replace(consumer.config, auto_commit=False)
            return consumer

        process._make = made
        return process

    node._factory = without_auto_commit
    world.plan(parse_faults(PLAN))
    world.run(DURATION_MS)
    return file.getvalue()


def nodes(design: str) -> dict[str, str]:
    """What a run of a design leaves in ZooKeeper: the data of each node that has some."""
    world = World(seed=1)
    run = add_design(world, design, members=MEMBERS, partitions={"orders": MEMBERS})
    MessageFlow(world, groups=["group"], topics={"orders": MEMBERS}, brokers=2)
    world.plan(parse_faults(PLAN))
    world.run(70_000)  # the ZooKeeper consumer commits once a minute
    zookeeper: Any = run.zookeeper
    result = {}
    for path in zookeeper.tree.paths():
        data = zookeeper.tree.apply(zookeeper._admin, GetData(path), world.now).data
        if data:
            result[path] = data.decode()
    return result


def main() -> None:
    RUNS.mkdir(parents=True, exist_ok=True)
    for design in DRAFTS:
        (RUNS / f"{design}.pcap").write_bytes(capture(design))
    remaining = {design: nodes(design) for design in ("zookeeper", "draft-2")}
    (RUNS / "zookeeper-nodes.json").write_text(json.dumps(remaining, indent=1) + "\n")


if __name__ == "__main__":
    main()
