"""The designs that the documents of Kafka's coordinators describe, running.

drafts/     the coordinator drafts and the ZooKeeper consumer, as machines
simulator/  a virtual clock and network, in which they run beside Kafka's own coordinator
"""

__all__ = ["DESIGN_NAMES"]

DESIGN_NAMES = (
    "zookeeper", "draft-1", "draft-2-overview", "draft-2", "draft-3", "draft-3-loaded", "classic", "consumer",
)  # fmt: skip
"""The designs that can be simulated, of which the last is Kafka's own (KIP-848)."""
