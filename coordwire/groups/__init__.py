"""What happened to groups, by what went over the wire and by what coordinators keep in their logs.

    log_files.py        a broker's directories to the coordinators' segments in them, and which log each is of
    coordinator_log.py  one segment to coordinator records, transaction markers and what couldn't be read
    compaction.py       what still holds of the records of many segments: transactions decided, keys compacted

    timeline_events.py  what can happen to a group: the rows of its timeline
    capture_timeline.py captures' entries to events; log_events.py: a log's records to the same events
    group.py            one group's state; by protocol: classic.py, modern.py, draft_groups.py
    joining.py          the JoinGroups that wait for their responses
    commits.py          commits and transactions; lag.py: how far groups are behind
    group_totals.py      what a group's events amount to

Strategy: everything is an iterator over small frozen values that can be pickled: a command line shows them
one by one and a cluster works on them file by file. Rules: neither rich nor pyarrow nor Spark is imported
here; bytes are untrusted: what can't be read becomes a value that says so, and nothing is raised but the
system's `OSError`, and `CodecUnavailable` for a codec that isn't installed; memory is bounded.
"""

from typing import TYPE_CHECKING

from coordwire.lazy import exports

if TYPE_CHECKING:
    from coordwire.groups.capture_timeline import Timeline, timeline
    from coordwire.groups.coordinator_log import CoordinatorRecord, Marker, read_file, read_records
    from coordwire.groups.log_files import LogFile, find_files
    from coordwire.groups.timeline_events import (
        Assignment,
        Cause,
        CoordinatorFound,
        ErrorMet,
        GroupEvent,
        Kind,
        LagMeasured,
        MemberJoined,
        MemberLeft,
        Moved,
        OffsetCommitted,
        Outcome,
        RebalanceBegan,
        RebalanceEnded,
        TopicPartition,
        TransactionStep,
        Unanswered,
    )

_LAZY = {
    "Assignment": "timeline_events",
    "Cause": "timeline_events",
    "CoordinatorFound": "timeline_events",
    "CoordinatorRecord": "coordinator_log",
    "ErrorMet": "timeline_events",
    "GroupEvent": "timeline_events",
    "Kind": "timeline_events",
    "LagMeasured": "timeline_events",
    "LogFile": "log_files",
    "Marker": "coordinator_log",
    "MemberJoined": "timeline_events",
    "MemberLeft": "timeline_events",
    "Moved": "timeline_events",
    "OffsetCommitted": "timeline_events",
    "Outcome": "timeline_events",
    "RebalanceBegan": "timeline_events",
    "RebalanceEnded": "timeline_events",
    "Timeline": "capture_timeline",
    "TopicPartition": "timeline_events",
    "TransactionStep": "timeline_events",
    "Unanswered": "timeline_events",
    "find_files": "log_files",
    "read_file": "coordinator_log",
    "read_records": "coordinator_log",
    "timeline": "capture_timeline",
}

__all__ = [
    "Assignment",
    "Cause",
    "CoordinatorFound",
    "CoordinatorRecord",
    "ErrorMet",
    "GroupEvent",
    "Kind",
    "LagMeasured",
    "LogFile",
    "Marker",
    "MemberJoined",
    "MemberLeft",
    "Moved",
    "OffsetCommitted",
    "Outcome",
    "RebalanceBegan",
    "RebalanceEnded",
    "Timeline",
    "TopicPartition",
    "TransactionStep",
    "Unanswered",
    "find_files",
    "read_file",
    "read_records",
    "timeline",
]

__getattr__, __dir__ = exports(__name__, __all__, _LAZY)
