"""What histories are to reach: error codes by request, types of records, states of members, transitions.

`UNREACHABLE` has what a reader of Kafka's errors may look for in vain, with the reason; the oracle was asked.
"""

from __future__ import annotations

from collections.abc import Iterator

from coordwire.coordinator.model.classic_group import ENTERED_FROM
from coordwire.coordinator.model.consumer_group import MemberState
from coordwire.enums import StreamsMemberState
from tests.coordinator.coverage import Coverage

CODES = {
    "JoinGroup": {
        *("NONE", "UNKNOWN_MEMBER_ID", "INCONSISTENT_GROUP_PROTOCOL", "MEMBER_ID_REQUIRED"),
        *("INVALID_SESSION_TIMEOUT", "GROUP_MAX_SIZE_REACHED", "FENCED_INSTANCE_ID", "INVALID_GROUP_ID"),
        *("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"),
        *("REBALANCE_IN_PROGRESS", "UNKNOWN_SERVER_ERROR"),
    },
    "SyncGroup": {
        *("NONE", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS", "FENCED_INSTANCE_ID"),
        *("INCONSISTENT_GROUP_PROTOCOL", "INVALID_GROUP_ID", "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"),
        *("COORDINATOR_LOAD_IN_PROGRESS", "UNKNOWN_SERVER_ERROR"),
    },
    "Heartbeat": {
        *("NONE", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS", "FENCED_INSTANCE_ID"),
        *("INVALID_GROUP_ID", "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"),
    },
    "LeaveGroup": {
        *("NONE", "UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID", "INVALID_GROUP_ID", "NOT_COORDINATOR"),
        "COORDINATOR_NOT_AVAILABLE",
    },
    "OffsetCommit": {
        *("NONE", "OFFSET_METADATA_TOO_LARGE", "UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID"),
        *("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", "FENCED_INSTANCE_ID"),
        *("GROUP_ID_NOT_FOUND", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"),
        *("STALE_MEMBER_EPOCH", "UNSUPPORTED_VERSION", "COORDINATOR_LOAD_IN_PROGRESS"),
    },
    "OffsetFetch": {
        *("NONE", "UNKNOWN_TOPIC_ID", "NOT_COORDINATOR", "STALE_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"),
        *("UNSTABLE_OFFSET_COMMIT", "COORDINATOR_LOAD_IN_PROGRESS", "ILLEGAL_GENERATION"),
        "UNKNOWN_SERVER_ERROR",
    },
    "TxnOffsetCommit": {
        *("NONE", "UNKNOWN_TOPIC_OR_PARTITION", "OFFSET_METADATA_TOO_LARGE", "ILLEGAL_GENERATION"),
        *("UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID", "INVALID_GROUP_ID", "UNKNOWN_SERVER_ERROR"),
        *("COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"),
        # STALE_MEMBER_EPOCH becomes ILLEGAL_GENERATION, but for version 6, which Kafka 4.3 does not have
    },
    "the end of a transaction": {
        *("NONE", "UNKNOWN_SERVER_ERROR", "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"),
        *("REQUEST_TIMED_OUT", "NOT_ENOUGH_REPLICAS", "NOT_LEADER_OR_FOLLOWER", "MESSAGE_TOO_LARGE"),
    },
    "ConsumerGroupHeartbeat": {
        *("NONE", "INVALID_REQUEST", "UNSUPPORTED_ASSIGNOR", "INVALID_REGULAR_EXPRESSION"),
        *("GROUP_MAX_SIZE_REACHED", "UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH", "FENCED_INSTANCE_ID"),
        *("UNRELEASED_INSTANCE_ID", "GROUP_ID_NOT_FOUND", "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"),
        *("COORDINATOR_LOAD_IN_PROGRESS", "UNKNOWN_SERVER_ERROR"),
    },
    "ConsumerGroupDescribe": {
        *("NONE", "GROUP_ID_NOT_FOUND", "INVALID_GROUP_ID", "NOT_COORDINATOR"),
        "COORDINATOR_LOAD_IN_PROGRESS",
    },
    "StreamsGroupHeartbeat": {
        *("NONE", "INVALID_REQUEST", "STREAMS_INVALID_TOPOLOGY", "INVALID_TOPIC_EXCEPTION"),
        *("GROUP_MAX_SIZE_REACHED", "UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH", "GROUP_ID_NOT_FOUND"),
        *("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"),
        "UNKNOWN_SERVER_ERROR",
    },
    "StreamsGroupDescribe": {
        *("NONE", "GROUP_ID_NOT_FOUND", "INVALID_GROUP_ID", "NOT_COORDINATOR"),
        "COORDINATOR_LOAD_IN_PROGRESS",
    },
    "OffsetDelete": {
        *("NONE", "GROUP_SUBSCRIBED_TO_TOPIC", "GROUP_ID_NOT_FOUND", "NON_EMPTY_GROUP", "INVALID_GROUP_ID"),
        *("UNKNOWN_TOPIC_OR_PARTITION", "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"),
    },
    "DescribeGroups": {"NONE", "GROUP_ID_NOT_FOUND", "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"},
    "DeleteGroups": {
        *("NONE", "NON_EMPTY_GROUP", "GROUP_ID_NOT_FOUND", "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"),
    },
    "ListGroups": {"NONE"},
}

UNREACHABLE = {
    ("Heartbeat", "COORDINATOR_LOAD_IN_PROGRESS"): "answered as NONE, so that the member stays",
    ("ListGroups", "NOT_COORDINATOR"): "answered as no groups",
    ("OffsetFetch", "COORDINATOR_NOT_AVAILABLE"): "translated into NOT_COORDINATOR",
    ("OffsetFetch", "GROUP_ID_NOT_FOUND"): "a group that is not there has no offsets, without an error",
    ("OffsetFetch", "FENCED_INSTANCE_ID"): "the request has no instance id",
    ("TxnOffsetCommit", "REBALANCE_IN_PROGRESS"): "a transaction may commit while members synchronize",
    ("JoinGroup", "UNSUPPORTED_ASSIGNOR"): "a classic member names its own assignors",
    ("DescribeGroups", "INVALID_GROUP_ID"): "the empty id is that of a group which is Dead",
}
"""Error codes that Apache Kafka 4.3.0 does not answer these requests with, and why."""

_STREAMS_RECORDS = {
    *("StreamsGroupMetadata", "StreamsGroupMemberMetadata", "StreamsGroupTargetAssignmentMetadata"),
    *("StreamsGroupTargetAssignmentMember", "StreamsGroupCurrentMemberAssignment", "StreamsGroupTopology"),
}
_CONSUMER_RECORDS = {
    *("ConsumerGroupMetadata", "ConsumerGroupMemberMetadata", "ConsumerGroupTargetAssignmentMetadata"),
    *("ConsumerGroupTargetAssignmentMember", "ConsumerGroupCurrentMemberAssignment"),
    "ConsumerGroupRegularExpression",
}
RECORDS = {
    *("GroupMetadata v3", "GroupMetadata tombstone"),
    *("OffsetCommit v1", "OffsetCommit v4", "OffsetCommit tombstone"),
    *("transactional OffsetCommit v4", "marker"),
    *(f"{kind} {form}" for kind in _CONSUMER_RECORDS | _STREAMS_RECORDS for form in ("v0", "tombstone")),
    "ConsumerGroupPartitionMetadata tombstone",  # its value is what only Kafka 4.0 wrote
}
"""All that a coordinator writes."""

_MEMBERS = {
    (state.name, kind)
    for state in MemberState
    if state is not MemberState.UNKNOWN  # what only a newer coordinator's log has
    for kind in ("KIP-848", "classic")
} | {(state.name, "KIP-1071") for state in StreamsMemberState if state is not StreamsMemberState.UNKNOWN}

CONSUMER_TRANSITIONS = {
    ("Empty", "Assigning"), ("Assigning", "Reconciling"), ("Reconciling", "Stable"), ("Assigning", "Stable"),
    ("Stable", "Assigning"), ("Reconciling", "Assigning"), ("Assigning", "Empty"), ("Reconciling", "Empty"),
    ("Stable", "Reconciling"), ("Stable", "Empty"),
}  # fmt: skip
STREAMS_TRANSITIONS = {
    ("Empty", "NotReady"), ("NotReady", "Assigning"), ("NotReady", "Empty"), ("Assigning", "NotReady"),
    ("Assigning", "Reconciling"), ("Assigning", "Stable"), ("Assigning", "Empty"), ("Reconciling", "Stable"),
    ("Reconciling", "Assigning"), ("Reconciling", "NotReady"), ("Reconciling", "Empty"),
    ("Stable", "Assigning"), ("Stable", "NotReady"), ("Stable", "Empty"),
}  # fmt: skip
_CLASSIC_TRANSITIONS = {
    (before.value, after.value)
    for after, entered in ENTERED_FROM.items()
    if after.value != "Dead"  # no request finds a dead group: it is one whose partition is gone
    for before in entered
}


def unreached(coverage: Coverage) -> Iterator[str]:
    """What is missing in what histories reached."""
    for api, codes in CODES.items():
        for code in sorted(codes - set(coverage.errors.get(api, ()))):
            yield f"{api} {code}"
    for kind in sorted(RECORDS - set(coverage.records)):
        yield f"record {kind}"
    for state, protocol in sorted(_MEMBERS - set(coverage.member_states)):
        yield f"member {state} ({protocol})"
    streams = {(f"streams {before}", after) for before, after in STREAMS_TRANSITIONS}
    transitions = CONSUMER_TRANSITIONS | _CLASSIC_TRANSITIONS | streams
    for before, after in sorted(transitions - set(coverage.transitions)):
        yield f"{before} to {after}"


def answered_against_reason(coverage: Coverage) -> Iterator[str]:
    """What can't be reached, and was."""
    for api, code in UNREACHABLE:
        if code in coverage.errors.get(api, ()):
            yield f"{api} {code}"
