"""Events of a shard's groups, once they are durable: `ShardTimeline` is a shard's listener.

timeline.py         holds reports until their records are in the log, drops those that are reverted; durable
                    records of commits, and the ends of transactions, to events
classic_groups.py   what operations report of classic groups, to events; the rebalances that are under way
modern_groups.py    durable records of consumer, share and streams groups, to events
"""

from coordwire.coordinator.timeline.timeline import ShardTimeline

__all__ = ["ShardTimeline"]
