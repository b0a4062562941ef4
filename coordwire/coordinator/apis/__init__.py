"""What a Kafka broker does around its coordinators: rights, topics that are not there, quirks of versions.

    guards.py           what a guard is, and how one is made
    groups.py offsets.py transactions.py
                        the guards of families of APIs
    topics.py           those of topics and ids in requests about offsets: they know no rights
    table.py            the guard of each API; `GroupApis`: a group coordinator with its guards

Strategy: a guard looks at a request before its coordinator, and says what changes in the answer. Rules: the
coordinators know no rights and no client's user; this can be left off. It equals Kafka's `KafkaApis`.
"""

from coordwire.coordinator.apis.guards import Guard, GuardedCall, Verdict
from coordwire.coordinator.apis.table import ALWAYS, GUARDS, GroupApis
from coordwire.coordinator.apis.topics import TOPIC_GUARDS

__all__ = ["ALWAYS", "GUARDS", "TOPIC_GUARDS", "GroupApis", "Guard", "GuardedCall", "Verdict"]
