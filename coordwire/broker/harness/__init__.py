"""A broker as tests use it: the calls of a fixture, around a broker on a thread of its own.

    kafka_harness.py  Kafka: the object that the fixtures give
    cluster_view.py   topics, records and offsets, without a client
    group_watch.py    a group's state, and waiting for it
    traffic.py        the bytes of all connections, also as a capture while they come,
                      and the messages in them, for assertions

The fixtures themselves are those of the pytest plugin `pytest_coordwire`.
"""

from coordwire.broker.harness.cluster_view import StoredRecord
from coordwire.broker.harness.group_watch import GroupSnapshot, GroupUnderTest, MemberSnapshot
from coordwire.broker.harness.kafka_harness import Kafka, ObservedTraffic
from coordwire.broker.harness.traffic import Exchange, Traffic

__all__ = [
    "Exchange",
    "GroupSnapshot",
    "GroupUnderTest",
    "Kafka",
    "MemberSnapshot",
    "ObservedTraffic",
    "StoredRecord",
    "Traffic",
]
