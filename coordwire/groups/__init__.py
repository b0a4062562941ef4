"""What happened to groups: told by what went over the wire, and by what coordinators keep in their logs.

    files.py        a broker's directories to the coordinators' segments in them, and which log each is of
    offsets.py      one segment to coordinator records, transaction markers and what couldn't be read
    latest.py       what the records of many segments leave standing: transactions decided, keys compacted

    events.py       what can happen to a group: the rows that a story is made of
    capture_timeline.py  captures' entries to events; log_timeline.py: a log's records to the same events
    group.py        one group's state; classic.py, modern.py, drafts.py: what feeds it, by protocol
    commits.py      commits and transactions; lag.py: how far groups are behind
    story.py        what a group's events amount to

Strategy: everything is an iterator over small frozen values that can be pickled, so that a command line shows
them one by one and a cluster works on them file by file. Rules: no rich, no pyarrow, no Spark in here; bytes
are hostile: what can't be read becomes a value that says so, and nothing but a system's `OSError` and a codec
that isn't installed is raised; memory is bounded.
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
