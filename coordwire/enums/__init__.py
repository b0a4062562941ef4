"""The small numbers on the wire by their names: error codes, ACL operations, config types and their like.

    ErrorCode(27).name, ErrorCode(27).retriable      # ("REBALANCE_IN_PROGRESS", False)
    ErrorCode(9999).name, ErrorCode(9999).known      # ("UNKNOWN_9999", False)

Messages carry plain ints; these equal them, and `enum_of` gives the enum of a field. A number that a newer
Kafka brings has no name here and is kept as it is: no int raises an error.
"""

from typing import TYPE_CHECKING

from coordwire._lazy import exports

if TYPE_CHECKING:
    from coordwire.enums.error_codes import ErrorCode
    from coordwire.enums.field_enums import enum_of, has_meaning, meaning
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
        ControlledShutdownChange,
        ControlRecordType,
        ControlRequestType,
        CoordinatorType,
        DeliveryState,
        ElectionType,
        EndpointType,
        FeatureUpgradeType,
        FencingChange,
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
        ZooKeeperCreateMode,
        ZooKeeperErrorCode,
        ZooKeeperEvent,
        ZooKeeperState,
        ZooKeeperWatcherType,
        ZooKeeperWatchMode,
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
    "ControlledShutdownChange",
    "CoordinatorType",
    "DeliveryState",
    "ElectionType",
    "EndpointType",
    "ErrorCode",
    "FeatureUpgradeType",
    "FencingChange",
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
    "ZooKeeperCreateMode",
    "ZooKeeperErrorCode",
    "ZooKeeperEvent",
    "ZooKeeperState",
    "ZooKeeperWatchMode",
    "ZooKeeperWatcherType",
    "allowed_operations",
    "enum_of",
    "has_meaning",
    "meaning",
]

_ELSEWHERE = {
    "ErrorCode": "error_codes", "OpenEnum": "open_enum", "enum_of": "field_enums",
    "has_meaning": "field_enums", "meaning": "field_enums",
}  # fmt: skip
__getattr__, __dir__ = exports(__name__, __all__, dict.fromkeys(__all__, "numbers") | _ELSEWHERE)
