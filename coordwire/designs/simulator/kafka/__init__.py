"""Kafka's own groups in the simulation: nodes that run `coordwire.coordinator`, and clients as models.

`Cluster` is what the nodes share: the log of `__consumer_offsets`, who leads it, and the topics.
"""

from coordwire.designs.simulator.kafka.classic_client import ClassicClient, EarlierMembership
from coordwire.designs.simulator.kafka.cluster import Cluster
from coordwire.designs.simulator.kafka.consumer_client import ConsumerClient
from coordwire.designs.simulator.kafka.coordinator_node import CoordinatorProcess
from coordwire.designs.simulator.kafka.group_client import GroupClient, GroupClientConfig

__all__ = [
    "ClassicClient",
    "Cluster",
    "ConsumerClient",
    "CoordinatorProcess",
    "EarlierMembership",
    "GroupClient",
    "GroupClientConfig",
]
