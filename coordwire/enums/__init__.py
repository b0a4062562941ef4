"""The small numbers on the wire by their names: error codes, ACL operations, config types and their like.

    ErrorCode(27).name, ErrorCode(27).retriable      # ("REBALANCE_IN_PROGRESS", False)
    ErrorCode(9999).name, ErrorCode(9999).known      # ("UNKNOWN_9999", False)

Messages carry plain ints; these equal them, and `enum_of` says which of them a field holds. A number that a
newer Kafka brings has no name here and is kept as it is: nothing raises for an int.
"""

from coordwire.enums.error_codes import ErrorCode
from coordwire.enums.field_enums import enum_of, meaning
from coordwire.enums.numbers import (
    AcknowledgeType,
    AclOperation,
    AclPermissionType,
    AclResourceType,
    AlterConfigOperation,
    CompressionType,
    ConfigResourceType,
    ConfigSource,
    ConfigType,
    ConnectAssignmentError,
    ControlRecordType,
    ControlRequestType,
    CoordinatorType,
    DeliveryState,
    ElectionType,
    EndpointType,
    FeatureUpgradeType,
    GroupMemberState,
    GroupMemberType,
    IsolationLevel,
    LeaderRecoveryState,
    PatternType,
    QuotaMatchType,
    ScramMechanism,
    SecurityProtocol,
    ShareAcquireMode,
    StreamsAssignorError,
    StreamsGroupStatus,
    StreamsMemberState,
    StreamsNodeType,
    StreamsTopologyDescriptionStatus,
    TransactionStatus,
    ZkMigrationState,
    allowed_operations,
)
from coordwire.enums.open_enum import OpenEnum

__all__ = [
    "AcknowledgeType",
    "AclOperation",
    "AclPermissionType",
    "AclResourceType",
    "AlterConfigOperation",
    "CompressionType",
    "ConfigResourceType",
    "ConfigSource",
    "ConfigType",
    "ConnectAssignmentError",
    "ControlRecordType",
    "ControlRequestType",
    "CoordinatorType",
    "DeliveryState",
    "ElectionType",
    "EndpointType",
    "ErrorCode",
    "FeatureUpgradeType",
    "GroupMemberState",
    "GroupMemberType",
    "IsolationLevel",
    "LeaderRecoveryState",
    "OpenEnum",
    "PatternType",
    "QuotaMatchType",
    "ScramMechanism",
    "SecurityProtocol",
    "ShareAcquireMode",
    "StreamsAssignorError",
    "StreamsGroupStatus",
    "StreamsMemberState",
    "StreamsNodeType",
    "StreamsTopologyDescriptionStatus",
    "TransactionStatus",
    "ZkMigrationState",
    "allowed_operations",
    "enum_of",
    "meaning",
]
