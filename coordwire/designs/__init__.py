"""The designs that the documents of Kafka's coordinators describe, running.

drafts/     the coordinator drafts and the ZooKeeper consumer, as machines
simulator/  a virtual clock and network, in which they run beside Kafka's own coordinator
"""

__all__ = ["DESIGN_NAMES", "KAFKA_DESIGNS"]

KAFKA_DESIGNS = "classic", "consumer", "share", "streams"
"""Those of Kafka's own brokers, without ZooKeeper: KIP-848's, 932's and 1071's after the classic one."""

DESIGN_NAMES = (
    "zookeeper", "draft-1", "draft-2-overview", "draft-2", "draft-3", "draft-3-loaded", *KAFKA_DESIGNS,
)  # fmt: skip
"""The designs that can be simulated."""
