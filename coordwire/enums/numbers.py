"""The enums beside the error codes, with Apache Kafka's names.

Rules: a class says where Kafka keeps it; an UNKNOWN among the names is a number that Kafka gives to it.
"""

from __future__ import annotations

from coordwire.enums.open_enum import OpenEnum


class ConfigResourceType(OpenEnum):
    """What configs belong to (Kafka's ConfigResource.Type)."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(OpenEnum):
    """At which level a config was set (DescribeConfigsResponse.ConfigSource)."""

    UNKNOWN = 0
    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class ConfigType(OpenEnum):
    """What values a config takes (DescribeConfigsResponse.ConfigType)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class AlterConfigOperation(OpenEnum):
    """What to do with a config (AlterConfigOp.OpType, KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class QuotaMatchType(OpenEnum):
    """Which entities a quota's filter means (DescribeClientQuotasRequest's constants, KIP-546)."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


class FeatureUpgradeType(OpenEnum):
    """How a feature's level may change (FeatureUpdate.UpgradeType, KIP-778)."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


# --- access -------------------------------------------------------------------------------------------------


class AclResourceType(OpenEnum):
    """What an ACL protects (ResourceType)."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(OpenEnum):
    """How an ACL's resource name is meant (PatternType, KIP-290)."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(OpenEnum):
    """What an ACL allows or denies (AclOperation)."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


NOT_ASKED = -(1 << 31)
"""What an `authorized_operations` field holds where the request didn't ask for it."""


def allowed_operations(bits: int) -> list[AclOperation] | None:
    """The operations of an `authorized_operations` field (KIP-430); None where it wasn't asked for."""
    if bits == NOT_ASKED:
        return None
    return [AclOperation(bit) for bit in range(32) if bits >> bit & 1]


class AclPermissionType(OpenEnum):
    """Whether an ACL allows or denies (AclPermissionType)."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class ScramMechanism(OpenEnum):
    """The hash of a SCRAM credential (ScramMechanism, KIP-554)."""

    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2


class SecurityProtocol(OpenEnum):
    """What a listener speaks (SecurityProtocol)."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3


# --- groups and transactions --------------------------------------------------------------------------------


class CoordinatorType(OpenEnum):
    """Which coordinator is looked for (FindCoordinatorRequest.CoordinatorType)."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


class GroupMemberType(OpenEnum):
    """Which protocol a member of a consumer group speaks (ConsumerGroupDescribe, KIP-1099)."""

    UNKNOWN = -1
    CLASSIC = 0
    CONSUMER = 1


class GroupMemberState(OpenEnum):
    """A member of a consumer or share group (the coordinator's modern.MemberState, KIP-848)."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


class StreamsMemberState(OpenEnum):
    """A member of a streams group (the coordinator's streams.MemberState, KIP-1071)."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    UNRELEASED_TASKS = 3
    UNKNOWN = 127


class StreamsGroupStatus(OpenEnum):
    """What keeps a streams group from its work (StreamsGroupHeartbeatResponse.Status, KIP-1071)."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6


class StreamsTopologyDescriptionStatus(OpenEnum):
    """Whether StreamsGroupDescribe has a topology's description (StreamsGroupTopologyDescriptionStatus)."""

    NOT_REQUESTED = 0
    NOT_STORED = 1
    ERROR = 2
    AVAILABLE = 3


class StreamsNodeType(OpenEnum):
    """What a node of a streams topology does (StreamsGroupTopologyDescriptionConverter, KIP-1331)."""

    SOURCE = 1
    PROCESSOR = 2
    SINK = 3


class StreamsAssignorError(OpenEnum):
    """What the leader of a classic streams group reports to its members (AssignorError)."""

    NONE = 0
    INCOMPLETE_SOURCE_TOPIC_METADATA = 1
    VERSION_PROBING = 2
    ASSIGNMENT_ERROR = 3
    SHUTDOWN_REQUESTED = 4


class ConnectAssignmentError(OpenEnum):
    """What the leader of Connect's workers sends them (ConnectProtocol.Assignment)."""

    NO_ERROR = 0
    CONFIG_MISMATCH = 1


class TransactionStatus(OpenEnum):
    """A transaction in the transaction log (the coordinator's TransactionState)."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7


class AcknowledgeType(OpenEnum):
    """A share consumer's acknowledgements of a record (AcknowledgeType, KIP-932; GAP: there is no record)."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class ShareAcquireMode(OpenEnum):
    """How strictly a share fetch keeps to its maximum (ShareAcquireMode, KIP-1206)."""

    BATCH_OPTIMIZED = 0
    RECORD_LIMIT = 1


class DeliveryState(OpenEnum):
    """How far a share group is with records (RecordState, KIP-932)."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4


# --- data and cluster ---------------------------------------------------------------------------------------


class IsolationLevel(OpenEnum):
    """Which records a reader sees (IsolationLevel, KIP-98)."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class CompressionType(OpenEnum):
    """A codec (CompressionType)."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class ControlRecordType(OpenEnum):
    """What a control record says (ControlRecordType)."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class ElectionType(OpenEnum):
    """Which leader to elect (ElectionType, KIP-460)."""

    PREFERRED = 0
    UNCLEAN = 1


class EndpointType(OpenEnum):
    """Which nodes DescribeCluster lists (EndpointType, KIP-919)."""

    UNKNOWN = 0
    BROKER = 1
    CONTROLLER = 2


class LeaderRecoveryState(OpenEnum):
    """Whether a leader was elected uncleanly and still recovers (LeaderRecoveryState, KIP-704)."""

    RECOVERED = 0
    RECOVERING = 1


class FencingChange(OpenEnum):
    """What became of a broker's fence, in the metadata log (BrokerRegistrationFencingChange)."""

    UNFENCE = -1
    NONE = 0
    FENCE = 1


class ControlledShutdownChange(OpenEnum):
    """Whether a broker has begun to shut down (BrokerRegistrationInControlledShutdownChange, KIP-841)."""

    NONE = 0
    IN_CONTROLLED_SHUTDOWN = 1


class ControlRequestType(OpenEnum):
    """Whether a controller under ZooKeeper sent all or some (Kafka 3's AbstractControlRequest.Type)."""

    UNKNOWN = 0
    INCREMENTAL = 1
    FULL = 2


class ZkMigrationState(OpenEnum):
    """How far the move off ZooKeeper has come (Kafka 3's ZkMigrationState, KIP-866)."""

    NONE = 0
    MIGRATION = 1
    PRE_MIGRATION = 2
    POST_MIGRATION = 3
    ZK = 4


# --- ZooKeeper ----------------------------------------------------------------------------------------------


class ZooKeeperErrorCode(OpenEnum):
    """The reasons for which ZooKeeper refuses a request (KeeperException.Code)."""

    OK = 0
    SYSTEMERROR = -1
    RUNTIMEINCONSISTENCY = -2
    DATAINCONSISTENCY = -3
    CONNECTIONLOSS = -4
    MARSHALLINGERROR = -5
    UNIMPLEMENTED = -6
    OPERATIONTIMEOUT = -7
    BADARGUMENTS = -8
    UNKNOWNSESSION = -12
    NEWCONFIGNOQUORUM = -13
    RECONFIGINPROGRESS = -14
    APIERROR = -100
    NONODE = -101
    NOAUTH = -102
    BADVERSION = -103
    NOCHILDRENFOREPHEMERALS = -108
    NODEEXISTS = -110
    NOTEMPTY = -111
    SESSIONEXPIRED = -112
    INVALIDCALLBACK = -113
    INVALIDACL = -114
    AUTHFAILED = -115
    SESSIONMOVED = -118
    NOTREADONLY = -119
    EPHEMERALONLOCALSESSION = -120
    NOWATCHER = -121
    REQUESTTIMEOUT = -122
    RECONFIGDISABLED = -123
    SESSIONCLOSEDREQUIRESASLAUTH = -124
    QUOTAEXCEEDED = -125
    THROTTLEDOP = -127


class ZooKeeperEvent(OpenEnum):
    """The events for which a watch of ZooKeeper fires (Watcher.Event.EventType)."""

    NONE = -1
    NODE_CREATED = 1
    NODE_DELETED = 2
    NODE_DATA_CHANGED = 3
    NODE_CHILDREN_CHANGED = 4
    DATA_WATCH_REMOVED = 5
    CHILD_WATCH_REMOVED = 6
    PERSISTENT_WATCH_REMOVED = 7


class ZooKeeperState(OpenEnum):
    """The state of a session of ZooKeeper (Watcher.Event.KeeperState)."""

    EXPIRED = -112
    UNKNOWN = -1
    DISCONNECTED = 0
    NO_SYNC_CONNECTED = 1
    SYNC_CONNECTED = 3
    AUTH_FAILED = 4
    CONNECTED_READ_ONLY = 5
    SASL_AUTHENTICATED = 6
    CLOSED = 7


class ZooKeeperCreateMode(OpenEnum):
    """The kinds of new nodes of ZooKeeper (CreateMode)."""

    PERSISTENT = 0
    EPHEMERAL = 1
    PERSISTENT_SEQUENTIAL = 2
    EPHEMERAL_SEQUENTIAL = 3
    CONTAINER = 4
    PERSISTENT_WITH_TTL = 5
    PERSISTENT_SEQUENTIAL_WITH_TTL = 6


class ZooKeeperWatcherType(OpenEnum):
    """Watches of ZooKeeper that are to be removed (Watcher.WatcherType)."""

    CHILDREN = 1
    DATA = 2
    ANY = 3
    PERSISTENT = 4
    PERSISTENT_RECURSIVE = 5


class ZooKeeperWatchMode(OpenEnum):
    """Which watch of ZooKeeper stays (AddWatchMode)."""

    PERSISTENT = 0
    PERSISTENT_RECURSIVE = 1
