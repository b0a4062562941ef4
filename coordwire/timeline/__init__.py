"""The events of groups, from captured traffic and from coordinators' logs.

    events.py           what can happen to a group: the rows of its timeline; event_json.py: as JSON, and back
    from_wire/          captured traffic to events
    from_log/           what coordinators wrote into their logs, to the same events
    group.py            what is known of one group; members.py: of its members; rebalance.py: of a rebalance
    evidence.py         what claims about members are built from
    session_clocks.py   since when members' sessions run
    topic_changes.py    topics that are created, enlarged or deleted
    stalls.py           when a group's coordinator answers nothing
    rebalance_cause.py  why a group rebalances
    consumption.py      how long partitions had no consumer
    consumer_data.py    what members' messages hold
    lag.py              how many records a group has left to read
    totals.py           what a group's events amount to
    story/              a group's events as lines

Strategy: everything is an iterator over small frozen values that can be pickled: a command line shows them
one by one and a cluster works on them file by file. Rules: neither rich nor pyarrow nor Spark is imported
here; bytes are untrusted: bytes that can't be read become a value that reports it, and the only exceptions
are the system's `OSError` and `CodecUnavailable`, for a codec that isn't installed; memory is bounded.
"""

from typing import TYPE_CHECKING

from coordwire._lazy import exports

if TYPE_CHECKING:
    from coordwire.timeline.events import (
        Assignment,
        BrokerAway,
        CaptureHole,
        Cause,
        ClusterFound,
        CoordinatorFound,
        CoordinatorStalled,
        ErrorMet,
        GroupConfigured,
        GroupConverted,
        GroupDeleted,
        GroupEvent,
        GroupSetting,
        Idle,
        Kind,
        LagMeasured,
        LagReason,
        MemberJoined,
        MemberLeft,
        Moved,
        OffsetCommitted,
        OffsetReset,
        Outcome,
        ProducerFenced,
        RebalanceBegan,
        RebalanceCost,
        RebalanceEnded,
        TopicChanged,
        TopicPartition,
        TransactionStep,
        Unanswered,
    )
    from coordwire.timeline.from_log.coordinator_log import CoordinatorRecord, Marker, read_file, read_records
    from coordwire.timeline.from_log.files import LogFile, find_files
    from coordwire.timeline.from_wire.timeline import Timeline, timeline

_LAZY = {
    "Assignment": "events",
    "BrokerAway": "events",
    "CaptureHole": "events",
    "Cause": "events",
    "ClusterFound": "events",
    "CoordinatorFound": "events",
    "CoordinatorRecord": "from_log.coordinator_log",
    "CoordinatorStalled": "events",
    "ErrorMet": "events",
    "GroupConverted": "events",
    "GroupConfigured": "events",
    "GroupDeleted": "events",
    "GroupEvent": "events",
    "Idle": "events",
    "Kind": "events",
    "LagMeasured": "events",
    "LagReason": "events",
    "LogFile": "from_log.files",
    "Marker": "from_log.coordinator_log",
    "MemberJoined": "events",
    "MemberLeft": "events",
    "Moved": "events",
    "OffsetCommitted": "events",
    "OffsetReset": "events",
    "Outcome": "events",
    "ProducerFenced": "events",
    "RebalanceBegan": "events",
    "RebalanceCost": "events",
    "RebalanceEnded": "events",
    "Timeline": "from_wire.timeline",
    "GroupSetting": "events",
    "TopicChanged": "events",
    "TopicPartition": "events",
    "TransactionStep": "events",
    "Unanswered": "events",
    "find_files": "from_log.files",
    "read_file": "from_log.coordinator_log",
    "read_records": "from_log.coordinator_log",
    "timeline": "from_wire.timeline",
}

__all__ = [
    "Assignment",
    "BrokerAway",
    "CaptureHole",
    "Cause",
    "ClusterFound",
    "CoordinatorFound",
    "CoordinatorRecord",
    "CoordinatorStalled",
    "ErrorMet",
    "GroupConfigured",
    "GroupConverted",
    "GroupDeleted",
    "GroupEvent",
    "GroupSetting",
    "Idle",
    "Kind",
    "LagMeasured",
    "LagReason",
    "LogFile",
    "Marker",
    "MemberJoined",
    "MemberLeft",
    "Moved",
    "OffsetCommitted",
    "OffsetReset",
    "Outcome",
    "ProducerFenced",
    "RebalanceBegan",
    "RebalanceCost",
    "RebalanceEnded",
    "Timeline",
    "TopicChanged",
    "TopicPartition",
    "TransactionStep",
    "Unanswered",
    "find_files",
    "read_file",
    "read_records",
    "timeline",
]

__getattr__, __dir__ = exports(__name__, __all__, _LAZY)
