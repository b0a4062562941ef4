"""The drafts' systems and the ZooKeeper consumer in the simulation: ZooKeeper, brokers and consumers as
nodes.

    world = World(seed=7, tap=TapRecords())
    run = add_design(world, "draft-2", members=4, partitions={"orders": 6})
    world.run(60_000)

zookeeper_node.py     ZooKeeper as a process, and the messages between it and others
zookeeper_capture.py  what ZooKeeper's links have, in ZooKeeper's own protocol
machine_process.py    a machine of `coordwire.designs.drafts` as a process, and its ZooKeeper session; the
                      processors of a broker's socket server, which need time for a message
designs.py            each design with its nodes: zookeeper, coordinator-N, consumer-N
"""

from coordwire.designs.simulator.drafts.designs import DRAFT_DESIGNS, DraftRun, add_design
from coordwire.designs.simulator.drafts.zookeeper_node import ZOOKEEPER_PORT

__all__ = ["DRAFT_DESIGNS", "ZOOKEEPER_PORT", "DraftRun", "add_design"]
