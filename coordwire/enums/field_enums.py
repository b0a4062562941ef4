"""The enums of fields.

Strategy: fields are recognised by their names, which Kafka uses alike everywhere; where one name means
several things, by the class that has the field too. A test checks that every row names a field that exists.
"""

from __future__ import annotations

from coordwire.enums import numbers
from coordwire.enums.error_codes import ErrorCode
from coordwire.enums.open_enum import OpenEnum

BY_NAME: dict[str, type[OpenEnum]] = {
    "accepted_compression_types": numbers.CompressionType,
    "acknowledge_error_code": ErrorCode,
    "acknowledge_types": numbers.AcknowledgeType,
    "compression_type": numbers.CompressionType,
    "config_operation": numbers.AlterConfigOperation,
    "config_source": numbers.ConfigSource,
    "config_type": numbers.ConfigType,
    "delivery_state": numbers.DeliveryState,
    "election_type": numbers.ElectionType,
    "endpoint_type": numbers.EndpointType,
    "error_code": ErrorCode,
    "isolation_level": numbers.IsolationLevel,
    "key_type": numbers.CoordinatorType,
    "leader_recovery_state": numbers.LeaderRecoveryState,
    "match_type": numbers.QuotaMatchType,
    "member_type": numbers.GroupMemberType,
    "node_type": numbers.StreamsNodeType,
    "operation": numbers.AclOperation,
    "partition_error_code": ErrorCode,
    "pattern_type": numbers.PatternType,
    "pattern_type_filter": numbers.PatternType,
    "permission_type": numbers.AclPermissionType,
    "resource_pattern_type": numbers.PatternType,
    "resource_type": numbers.ConfigResourceType,
    "resource_type_filter": numbers.AclResourceType,
    "resource_types": numbers.ConfigResourceType,
    "security_protocol": numbers.SecurityProtocol,
    "share_acquire_mode": numbers.ShareAcquireMode,
    "status_code": numbers.StreamsGroupStatus,
    "topic_config_error_code": ErrorCode,
    "topology_description_status": numbers.StreamsTopologyDescriptionStatus,
    "transaction_status": numbers.TransactionStatus,
    "upgrade_type": numbers.FeatureUpgradeType,
    "zk_migration_state": numbers.ZkMigrationState,
}

ZOOKEEPER: dict[str, type[OpenEnum]] = {
    "error_code": numbers.ZooKeeperErrorCode,
    "flags": numbers.ZooKeeperCreateMode,
    "mode": numbers.ZooKeeperWatchMode,
    "state": numbers.ZooKeeperState,
    "watcher_type": numbers.ZooKeeperWatcherType,
}
"""By field, in ZooKeeper's messages."""

OTHERS = ("Draft", "Kafka07")
"""Classes of what was spoken before: no document says what their numbers mean."""

BY_CLASS: dict[tuple[str, str], type[OpenEnum]] = {
    ("AccessControlEntryRecord", "resource_type"): numbers.AclResourceType,
    ("AclCreation", "resource_type"): numbers.AclResourceType,
    ("DeleteAclsMatchingAcl", "resource_type"): numbers.AclResourceType,
    ("DescribeAclsResource", "resource_type"): numbers.AclResourceType,
    ("DescribeConfigsSynonym", "source"): numbers.ConfigSource,
    ("ConsumerGroupCurrentMemberAssignmentValue", "state"): numbers.GroupMemberState,
    ("ShareGroupCurrentMemberAssignmentValue", "state"): numbers.GroupMemberState,
    ("StreamsGroupCurrentMemberAssignmentValue", "state"): numbers.StreamsMemberState,
    ("BrokerRegistrationChangeRecord", "fenced"): numbers.FencingChange,
    ("BrokerRegistrationChangeRecord", "in_controlled_shutdown"): numbers.ControlledShutdownChange,
    ("ControlRecordTypeSchema", "type"): numbers.ControlRecordType,
    ("LeaderAndIsrRequest", "type"): numbers.ControlRequestType,
    ("UpdateMetadataRequest", "type"): numbers.ControlRequestType,
    ("CredentialInfo", "mechanism"): numbers.ScramMechanism,
    ("RemoveUserScramCredentialRecord", "mechanism"): numbers.ScramMechanism,
    ("ScramCredentialDeletion", "mechanism"): numbers.ScramMechanism,
    ("ScramCredentialUpsertion", "mechanism"): numbers.ScramMechanism,
    ("UserScramCredentialRecord", "mechanism"): numbers.ScramMechanism,
    ("AssignmentInfo", "err_code"): numbers.StreamsAssignorError,
    ("SubscriptionInfoData", "error_code"): numbers.StreamsAssignorError,
    ("ConnectProtocolAssignment", "error"): numbers.ConnectAssignmentError,
    ("ZooKeeperWatcherEvent", "type"): numbers.ZooKeeperEvent,
}
"""By class and field; these go before the names."""


def enum_of(cls: str, field: str) -> type[OpenEnum] | None:
    """The enum whose numbers a field holds: `enum_of("HeartbeatResponse", "error_code")`; None for no enum.

    cls: the class that has the field, a message's or a struct's.
    """
    if cls.startswith(OTHERS):
        return None
    if cls.startswith("ZooKeeper"):
        return BY_CLASS.get((cls, field)) or ZOOKEEPER.get(field)
    return BY_CLASS.get((cls, field)) or BY_NAME.get(field)


def has_meaning(cls: str, field: str) -> bool:
    """Whether `meaning` may name numbers of a field."""
    return field.endswith("authorized_operations") or enum_of(cls, field) is not None


def meaning(cls: str, field: str, value: int) -> str | None:
    """The meaning of a number, in Kafka's names: `meaning("HeartbeatResponse", "error_code", 27)`.

    None where the field is not an enum, or the number has no name; only of error codes that is said in words.
    """
    if field.endswith("authorized_operations"):
        operations = numbers.allowed_operations(value)
        return (
            "not asked for"
            if operations is None
            else ", ".join(operation.name for operation in operations) or "none"
        )
    enum = enum_of(cls, field)
    member = None if enum is None else enum(value)
    if member is None or member.known:
        return None if member is None else member.name
    return "an unknown code" if enum is ErrorCode else None
