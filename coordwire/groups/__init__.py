"""What happened to groups, by what went over the wire and by what coordinators keep in their logs.

    log_files.py        a broker's directories to the coordinators' segments in them, and which log each is of
    coordinator_log.py  one segment to coordinator records, transaction markers and what couldn't be read
    compaction.py       what still holds of the records of many segments: transactions decided, keys compacted

    ../group_events.py  what can happen to a group: the rows of its timeline
    capture_timeline.py captures' entries to events; log_events.py: a log's records to the same events
    group_frames.py     what one frame says of a group; other_answers.py: coordinators, topics, settings
    steady_beats.py     heartbeats that say what they said before, known by their bytes
    group_table.py      all groups in some captures, by the protocol that each speaks at the time
    group.py            one group's state; by protocol: classic.py, modern.py, mixed.py, draft_groups.py
    classic_timers.py   when members are out that are not heard any more: their coordinator's timers, replayed
    classic_requests.py what classic members' requests say; classic_state.py: what is known of their group
    classic_silence.py  who is out of it without a word; classic_signs.py: what begins a rebalance
    classic_joins.py    JoinGroups, and the generations that they form
    modern_rebalances.py  rebalances by epochs; modern_epochs.py: whose doing an epoch is
    modern_silence.py   who is out of such a group without a word
    members.py          its members; joining.py: their JoinGroups that wait; rebalance.py: one under way
    reconciliation.py   how far the members are whose coordinator assigns
    rebalance_cause.py  why a group rebalances; member_death.py: who is gone without a word, and since when
    connection_ends.py  how the connections of members ended that went without a word
    consumption.py      how long partitions had no consumer; rebalance_cost.py: what waited meanwhile
    commits.py          commits and transactions; lag.py: how many records a group has left to read
    consumer_data.py    what members' messages hold; seen.py: where and when something was seen
    group_totals.py     what a group's events amount to

Strategy: everything is an iterator over small frozen values that can be pickled: a command line shows them
one by one and a cluster works on them file by file. Rules: neither rich nor pyarrow nor Spark is imported
here; bytes are untrusted: what can't be read becomes a value that says so, and nothing is raised but the
system's `OSError`, and `CodecUnavailable` for a codec that isn't installed; memory is bounded.
"""

from typing import TYPE_CHECKING

from coordwire.lazy import exports

if TYPE_CHECKING:
    from coordwire.group_events import (
        Assignment,
        Cause,
        CoordinatorFound,
        ErrorMet,
        GroupConverted,
        GroupEvent,
        Idle,
        Kind,
        LagMeasured,
        LagReason,
        MemberJoined,
        MemberLeft,
        Moved,
        OffsetCommitted,
        Outcome,
        RebalanceBegan,
        RebalanceCost,
        RebalanceEnded,
        TopicPartition,
        TransactionStep,
        Unanswered,
    )
    from coordwire.groups.capture_timeline import Timeline, timeline
    from coordwire.groups.coordinator_log import CoordinatorRecord, Marker, read_file, read_records
    from coordwire.groups.log_files import LogFile, find_files

_LAZY = {
    "Assignment": ".group_events",
    "Cause": ".group_events",
    "CoordinatorFound": ".group_events",
    "CoordinatorRecord": "coordinator_log",
    "ErrorMet": ".group_events",
    "GroupConverted": ".group_events",
    "GroupEvent": ".group_events",
    "Idle": ".group_events",
    "Kind": ".group_events",
    "LagMeasured": ".group_events",
    "LagReason": ".group_events",
    "LogFile": "log_files",
    "Marker": "coordinator_log",
    "MemberJoined": ".group_events",
    "MemberLeft": ".group_events",
    "Moved": ".group_events",
    "OffsetCommitted": ".group_events",
    "Outcome": ".group_events",
    "RebalanceBegan": ".group_events",
    "RebalanceCost": ".group_events",
    "RebalanceEnded": ".group_events",
    "Timeline": "capture_timeline",
    "TopicPartition": ".group_events",
    "TransactionStep": ".group_events",
    "Unanswered": ".group_events",
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
    "GroupConverted",
    "GroupEvent",
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
    "Outcome",
    "RebalanceBegan",
    "RebalanceCost",
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
