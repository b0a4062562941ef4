"""The designs that the documents of Kafka's coordinators describe, running.

dialects/   the drafts' protocols, and that before Kafka 0.8: calls, frames, conversations
drafts/     the coordinator drafts and the ZooKeeper consumer, as machines
zookeeper/  the nodes in ZooKeeper
simulator/  a virtual clock and network, in which they run beside Kafka's own coordinator
"""
