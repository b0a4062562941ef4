"""What the documents of Kafka's coordinators describe, running.

drafts/     the coordinator drafts and the ZooKeeper consumer, as machines
zookeeper/  what is kept in ZooKeeper
simulator/  a virtual clock and network, in which they run beside Kafka's own coordinator
"""
