"""The error codes of the Kafka protocol: name, meaning, and whether trying again may help.

Rules: names and numbers are Apache Kafka's (`Errors`), so is what can be retried (its `RetriableException`s);
the meanings are our words. A code without a name here comes from a newer Kafka.
"""

from __future__ import annotations

from typing import Self

from coordwire.enums.open_enum import OpenEnum

RETRY = True


class ErrorCode(OpenEnum):
    """The meanings of an `error_code`, with all codes of Kafka 4.4: `ErrorCode(27).name`, `.description`,
    `.retriable`.

    description: what it means. retriable: whether Kafka's own clients may send the same request again, after
    fetching metadata or finding the coordinator again where the code requires that; False for an unknown one.

        >>> from coordwire import ErrorCode
        >>> ErrorCode(27).name, ErrorCode(27).retriable, ErrorCode.REBALANCE_IN_PROGRESS == 27
        ('REBALANCE_IN_PROGRESS', False, True)
        >>> ErrorCode(9999).name
        'UNKNOWN_9999'
    """

    description: str
    retriable: bool

    def __new__(cls, code: int, description: str = "", retriable: bool = False) -> Self:
        member = int.__new__(cls, code)
        member._value_ = code
        member.description = description
        member.retriable = retriable
        return member

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        member = super()._missing_(value)
        if member is not None:
            member.description, member.retriable = "A code that coordwire doesn't know.", False
        return member

    UNKNOWN_SERVER_ERROR = -1, "An error in the broker that has no code of its own."
    NONE = 0, "No error."
    OFFSET_OUT_OF_RANGE = (
        1,
        "The partition has no such offset: it is before the log's start or after its end.",
    )
    CORRUPT_MESSAGE = 2, "A record's checksum is wrong, or its size or key can't be accepted.", RETRY
    UNKNOWN_TOPIC_OR_PARTITION = (
        3,
        "The broker doesn't have this partition; the client's metadata may be old.",
        RETRY,
    )
    INVALID_FETCH_SIZE = 4, "The size requested by a fetch is invalid."
    LEADER_NOT_AVAILABLE = 5, "The partition has no leader at the moment: one is being elected.", RETRY
    NOT_LEADER_OR_FOLLOWER = (
        6,
        "The broker isn't the partition's leader, or has no replica of it; metadata must be fetched again.",
        RETRY,
    )
    REQUEST_TIMED_OUT = 7, "The request wasn't done within its time.", RETRY
    BROKER_NOT_AVAILABLE = 8, "The broker can't serve."
    REPLICA_NOT_AVAILABLE = 9, "The replica asked for isn't there at the moment.", RETRY
    MESSAGE_TOO_LARGE = 10, "A record batch is larger than the topic or the broker allows."
    STALE_CONTROLLER_EPOCH = 11, "The request comes from a controller that has been replaced."
    OFFSET_METADATA_TOO_LARGE = 12, "The text beside a committed offset is longer than the broker allows."
    NETWORK_EXCEPTION = (
        13,
        "The connection ended before the answer came; clients set this, brokers don't send it.",
        RETRY,
    )
    COORDINATOR_LOAD_IN_PROGRESS = 14, "The coordinator is still reading its log.", RETRY
    COORDINATOR_NOT_AVAILABLE = 15, "No coordinator is available yet, or it can't be reached.", RETRY
    NOT_COORDINATOR = (
        16,
        "Another broker coordinates this group or transactional id; it must be looked up again.",
        RETRY,
    )
    INVALID_TOPIC_EXCEPTION = 17, "The topic's name isn't allowed, or the topic may not be used in this way."
    RECORD_LIST_TOO_LARGE = 18, "A record batch is larger than a segment of the log."
    NOT_ENOUGH_REPLICAS = 19, "Too few replicas are in sync; nothing was written.", RETRY
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, "Written, but then too few replicas were in sync.", RETRY
    INVALID_REQUIRED_ACKS = 21, "The produce request's acks is none of -1, 0 and 1."
    ILLEGAL_GENERATION = 22, "The member names a generation that isn't the group's."
    INCONSISTENT_GROUP_PROTOCOL = 23, "The member shares no protocol with the group, or offers none."
    INVALID_GROUP_ID = 24, "The group's id is empty or not allowed."
    UNKNOWN_MEMBER_ID = 25, "The group has no such member: it was removed, or never joined."
    INVALID_SESSION_TIMEOUT = 26, "The session timeout is outside the range that the broker allows."
    REBALANCE_IN_PROGRESS = 27, "The group rebalances: the member must join again."
    INVALID_COMMIT_OFFSET_SIZE = 28, "The offsets to be committed make a record that is too large."
    TOPIC_AUTHORIZATION_FAILED = 29, "The client isn't authorized for the topic."
    GROUP_AUTHORIZATION_FAILED = 30, "The client isn't authorized for the group."
    CLUSTER_AUTHORIZATION_FAILED = 31, "The client isn't authorized for the cluster."
    INVALID_TIMESTAMP = 32, "A record's timestamp is too far from the broker's clock."
    UNSUPPORTED_SASL_MECHANISM = 33, "The broker doesn't offer the SASL mechanism."
    ILLEGAL_SASL_STATE = 34, "The request doesn't fit the state of the SASL exchange."
    UNSUPPORTED_VERSION = 35, "The broker doesn't know this version of the API."
    TOPIC_ALREADY_EXISTS = 36, "There is a topic of this name already."
    INVALID_PARTITIONS = 37, "The number of partitions is invalid: below 1, or not above the current number."
    INVALID_REPLICATION_FACTOR = 38, "The replication factor is below 1 or above the number of brokers."
    INVALID_REPLICA_ASSIGNMENT = 39, "The replica assignment of a partition is invalid."
    INVALID_CONFIG = 40, "A config's name or value isn't accepted."
    NOT_CONTROLLER = 41, "Another node is the controller.", RETRY
    INVALID_REQUEST = 42, "The request contradicts itself, or comes from an incompatible client."
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, "The partition's record format is too old for this."
    POLICY_VIOLATION = 44, "A policy that the operator has set forbids it."
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, "A producer's sequence number isn't the one that was due."
    DUPLICATE_SEQUENCE_NUMBER = 46, "The producer has sent this sequence number before."
    INVALID_PRODUCER_EPOCH = 47, "A newer producer with the same id has taken over."
    INVALID_TXN_STATE = 48, "The transaction is in a state in which this can't be done."
    INVALID_PRODUCER_ID_MAPPING = 49, "The producer id isn't the one that the transactional id has now."
    INVALID_TRANSACTION_TIMEOUT = 50, "The transaction's timeout is above the broker's maximum."
    CONCURRENT_TRANSACTIONS = 51, "The transactional id's last operation is still under way.", RETRY
    TRANSACTION_COORDINATOR_FENCED = 52, "The marker comes from a coordinator that has been replaced."
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, "The client isn't authorized for the transactional id."
    SECURITY_DISABLED = 54, "The broker has no authorizer, so there are no ACLs."
    OPERATION_NOT_ATTEMPTED = 55, "Left undone because another part of the request failed."
    KAFKA_STORAGE_ERROR = 56, "The broker's disk failed.", RETRY
    LOG_DIR_NOT_FOUND = 57, "The broker has no such log directory."
    SASL_AUTHENTICATION_FAILED = 58, "The credentials were refused."
    UNKNOWN_PRODUCER_ID = (
        59,
        "The broker no longer has state for the producer, whose records are all deleted.",
    )
    REASSIGNMENT_IN_PROGRESS = 60, "The partition's replicas are being moved."
    DELEGATION_TOKEN_AUTH_DISABLED = 61, "Delegation tokens are disabled."
    DELEGATION_TOKEN_NOT_FOUND = 62, "There is no such delegation token."
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, "The client is neither the token's owner nor its renewer."
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = (
        64,
        "Tokens can't be asked for over this connection: it isn't authenticated well enough, or by a token.",
    )
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, "The client isn't authorized for the delegation token."
    DELEGATION_TOKEN_EXPIRED = 66, "The delegation token has expired."
    INVALID_PRINCIPAL_TYPE = 67, "The type of principal isn't supported."
    NON_EMPTY_GROUP = 68, "The group still has members."
    GROUP_ID_NOT_FOUND = 69, "There is no such group."
    FETCH_SESSION_ID_NOT_FOUND = (
        70,
        "The broker has no such fetch session; a full fetch must open a new one.",
        RETRY,
    )
    INVALID_FETCH_SESSION_EPOCH = 71, "The fetch session's epoch isn't the one that was due.", RETRY
    LISTENER_NOT_FOUND = 72, "The partition's leader has no listener of the kind that was asked.", RETRY
    TOPIC_DELETION_DISABLED = 73, "The broker doesn't delete topics."
    FENCED_LEADER_EPOCH = 74, "The client's leader epoch is older than the broker's.", RETRY
    UNKNOWN_LEADER_EPOCH = (
        75,
        "The client's leader epoch is newer than the broker's, which has yet to learn of it.",
        RETRY,
    )
    UNSUPPORTED_COMPRESSION_TYPE = 76, "The client's version can't take the codec of these records."
    STALE_BROKER_EPOCH = 77, "The broker has been registered again since."
    OFFSET_NOT_AVAILABLE = 78, "A new leader doesn't know the high watermark yet.", RETRY
    MEMBER_ID_REQUIRED = 79, "The member must join again with the id that it has just been given."
    PREFERRED_LEADER_NOT_AVAILABLE = 80, "The preferred replica can't become leader at the moment.", RETRY
    GROUP_MAX_SIZE_REACHED = 81, "The group has as many members as it may."
    FENCED_INSTANCE_ID = 82, "Another member has joined with the same group instance id."
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, "No replica that may become leader is available.", RETRY
    ELECTION_NOT_NEEDED = 84, "The partition's leader is the right one already.", RETRY
    NO_REASSIGNMENT_IN_PROGRESS = 85, "There is no move of replicas to cancel."
    GROUP_SUBSCRIBED_TO_TOPIC = 86, "The group still reads the topic, so its offsets stay."
    INVALID_RECORD = 87, "The broker's checks refused a record."
    UNSTABLE_OFFSET_COMMIT = 88, "The offsets of an unfinished transaction prevent it.", RETRY
    THROTTLING_QUOTA_EXCEEDED = 89, "A quota is used up; the client should wait.", RETRY
    PRODUCER_FENCED = 90, "A newer producer with the same transactional id has taken over."
    RESOURCE_NOT_FOUND = 91, "There is no such resource."
    DUPLICATE_RESOURCE = 92, "The request names the same resource twice."
    UNACCEPTABLE_CREDENTIAL = 93, "The credential doesn't meet what is required."
    INCONSISTENT_VOTER_SET = 94, "Sender or receiver isn't one of the quorum's voters."
    INVALID_UPDATE_VERSION = 95, "A feature can't have this level."
    FEATURE_UPDATE_FAILED = 96, "The features' levels couldn't be written."
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, "The principal of a forwarded request couldn't be read."
    SNAPSHOT_NOT_FOUND = 98, "There is no such snapshot."
    POSITION_OUT_OF_RANGE = 99, "The position lies outside the snapshot."
    UNKNOWN_TOPIC_ID = 100, "The broker doesn't know this topic id.", RETRY
    DUPLICATE_BROKER_REGISTRATION = 101, "Another broker is registered with this id."
    BROKER_ID_NOT_REGISTERED = 102, "No broker is registered with this id."
    INCONSISTENT_TOPIC_ID = 103, "The topic of this name has another id.", RETRY
    INCONSISTENT_CLUSTER_ID = 104, "The request is meant for another cluster."
    TRANSACTIONAL_ID_NOT_FOUND = 105, "The coordinator doesn't know the transactional id."
    FETCH_SESSION_TOPIC_ID_ERROR = 106, "A fetch session mixes topic ids with topic names.", RETRY
    INELIGIBLE_REPLICA = 107, "A replica named as in sync may not be: its broker is fenced or shutting down."
    NEW_LEADER_ELECTED = 108, "The change was made, and with it another leader."
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, "The offset's records are in remote storage now."
    FENCED_MEMBER_EPOCH = (
        110,
        "The coordinator has fenced the member, which must give up all partitions and join again.",
    )
    UNRELEASED_INSTANCE_ID = 111, "The group instance id still belongs to a member that must leave first."
    UNSUPPORTED_ASSIGNOR = 112, "The group's coordinator doesn't have this assignor."
    STALE_MEMBER_EPOCH = 113, "The member's epoch is old; it must learn the new one by a heartbeat first."
    MISMATCHED_ENDPOINT_TYPE = 114, "A broker was sent a controller's request, or a controller a broker's."
    UNSUPPORTED_ENDPOINT_TYPE = 115, "The kind of endpoint isn't supported."
    UNKNOWN_CONTROLLER_ID = 116, "There is no such controller."
    UNKNOWN_SUBSCRIPTION_ID = 117, "The metrics were pushed for a subscription that isn't the present one."
    TELEMETRY_TOO_LARGE = 118, "The metrics are larger than the broker takes."
    INVALID_REGISTRATION = 119, "The controller refuses the broker's registration."
    TRANSACTION_ABORTABLE = 120, "The transaction can't be committed; after an abort the producer may go on."
    INVALID_RECORD_STATE = 121, "The record's delivery isn't in a state to be acknowledged."
    SHARE_SESSION_NOT_FOUND = 122, "The broker has no such share session.", RETRY
    INVALID_SHARE_SESSION_EPOCH = 123, "The share session's epoch isn't the one that was due.", RETRY
    FENCED_STATE_EPOCH = 124, "The share group's state has a newer epoch than the request."
    INVALID_VOTER_KEY = 125, "The voter's directory id isn't that of the replica asked."
    DUPLICATE_VOTER = 126, "The quorum has this voter already."
    VOTER_NOT_FOUND = 127, "The quorum has no such voter."
    INVALID_REGULAR_EXPRESSION = 128, "The subscription's pattern can't be read."
    REBOOTSTRAP_REQUIRED = (
        129,
        "The client's metadata is too old: it must begin again at its bootstrap servers.",
    )
    STREAMS_INVALID_TOPOLOGY = 130, "The topology contradicts itself."
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, "The topology's epoch is invalid."
    STREAMS_TOPOLOGY_FENCED = 132, "The topology is older than the group's."
    SHARE_SESSION_LIMIT_REACHED = 133, "The broker has as many share sessions as it may.", RETRY
    GROUP_DELETION_FAILED = 134, "The group couldn't be deleted; the error's message says why."
    STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED = (
        135,
        "The broker's plugin couldn't store the topology's description.",
    )
    CONTROLLER_ID_NOT_REGISTERED = 136, "No controller is registered with this id."
