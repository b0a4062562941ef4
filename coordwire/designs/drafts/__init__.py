"""The systems that Kafka's coordinator drafts describe, and the ZooKeeper consumer before them, as machines.

Sources: five historical documents of Kafka's wiki, pages and code; what they leave open, and what was
decided, is in docs/history/drafts.md. Everything is a machine without socket, clock or randomness: inputs
in, actions out.

ZooKeeper
    zookeeper_operations.py   operations of ZooKeeper and their outcomes
    zookeeper_tree.py         ZooKeeper as a value: nodes, sessions, transactions, watches
    zookeeper_steps.py        a node's parents, nodes that are written wherever they are, and a group's nodes,
                              as a coordinator reads and writes them
Shared by all
    actions.py                a machine's actions
    machine.py                inputs, timers, and procedures that wait; `MachineHost`: bytes in, bytes out
    topic_interest.py         topic_count, and the plan of ownership
    draft_settings.py         settings, error codes
    consumer_streams.py       a consumer's streams with bounded queues, and its fetchers by broker
The ZooKeeper consumer
    zookeeper_consumer.py     registration, rebalances, ownership, offsets
    zookeeper_assignment.py   who owns what by the nodes of a group: Kafka's assignors
    zookeeper_offsets.py      offsets in ZooKeeper, with Kafka's offset manager, or in both
Drafts 1 and 2
    draft_broker.py           the cluster: its id and topics, and the election (draft 3's too)
    pinging_coordinator.py    the coordinator's registry, failure detection, queues of rebalances, commits
    rebalance_queue.py        a handler's queue of groups to rebalance
    draft_1_broker.py         the first draft's coordinator
    draft_2_broker.py         the detailed design's coordinator
    discovering_consumer.py   a consumer up to its registration
    draft_1_consumer.py       the first draft's consumer
    draft_2_consumer.py       the detailed design's consumer
    overview.py               the detailed design's coordinator and consumer by its section 2
Draft 3
    draft_3_broker.py         the new consumer's coordinator, and a group's node, from which a new one learns
    draft_3_consumer.py       the new consumer
"""
