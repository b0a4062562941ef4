"""Kafka's enums beside ours: what a release has that we lack or have otherwise.

Rules: only what the release has counts; that we know more is as it should be. Enums that an older release
doesn't have yet, or keeps in Scala, are passed over. An enum with numbers that is in neither table here is
reported, since a field may hold them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

from coordwire import enums
from coordwire.enums import ErrorCode, OpenEnum
from tests.interop.java_oracle import Command, JavaOracle, Refused

_COMMON = "org.apache.kafka.common"
_ADMIN = "org.apache.kafka.clients.admin"
_GROUP = "org.apache.kafka.coordinator.group"

JAVA: dict[type[OpenEnum], tuple[str, ...]] = {
    ErrorCode: (f"{_COMMON}.protocol.Errors",),
    enums.AcknowledgeType: ("org.apache.kafka.clients.consumer.AcknowledgeType",),
    enums.AclOperation: (f"{_COMMON}.acl.AclOperation",),
    enums.AclPermissionType: (f"{_COMMON}.acl.AclPermissionType",),
    enums.AclResourceType: (f"{_COMMON}.resource.ResourceType",),
    enums.AlterConfigOperation: (f"{_ADMIN}.AlterConfigOp$OpType",),
    enums.CompressionType: (
        f"{_COMMON}.record.internal.CompressionType",
        f"{_COMMON}.record.CompressionType",
    ),
    enums.ConfigResourceType: (f"{_COMMON}.config.ConfigResource$Type",),
    enums.ConfigSource: (f"{_COMMON}.requests.DescribeConfigsResponse$ConfigSource",),
    enums.ConnectAssignmentError: (
        "org.apache.kafka.connect.runtime.distributed.ConnectProtocol$Assignment",
    ),
    enums.ConfigType: (f"{_COMMON}.requests.DescribeConfigsResponse$ConfigType",),
    enums.ControlRecordType: (
        f"{_COMMON}.record.internal.ControlRecordType",
        f"{_COMMON}.record.ControlRecordType",
    ),
    enums.CoordinatorType: (f"{_COMMON}.requests.FindCoordinatorRequest$CoordinatorType",),
    enums.DeliveryState: ("org.apache.kafka.server.share.fetch.RecordState",),
    enums.ControlledShutdownChange: (
        "org.apache.kafka.metadata.BrokerRegistrationInControlledShutdownChange",
    ),
    enums.ElectionType: (f"{_COMMON}.ElectionType",),
    enums.EndpointType: (f"{_ADMIN}.EndpointType",),
    enums.FeatureUpgradeType: (f"{_ADMIN}.FeatureUpdate$UpgradeType",),
    enums.FencingChange: ("org.apache.kafka.metadata.BrokerRegistrationFencingChange",),
    enums.GroupMemberState: (f"{_GROUP}.modern.MemberState",),
    enums.IsolationLevel: (f"{_COMMON}.IsolationLevel",),
    enums.LeaderRecoveryState: ("org.apache.kafka.metadata.LeaderRecoveryState",),
    enums.QuotaMatchType: (f"{_COMMON}.requests.DescribeClientQuotasRequest",),
    enums.PatternType: (f"{_COMMON}.resource.PatternType",),
    enums.ScramMechanism: (f"{_ADMIN}.ScramMechanism",),
    enums.ShareAcquireMode: ("org.apache.kafka.clients.consumer.internals.ShareAcquireMode",),
    enums.ControlRequestType: (f"{_COMMON}.requests.AbstractControlRequest$Type",),
    enums.ZkMigrationState: ("org.apache.kafka.metadata.migration.ZkMigrationState",),
    enums.SecurityProtocol: (f"{_COMMON}.security.auth.SecurityProtocol",),
    enums.StreamsAssignorError: (
        "org.apache.kafka.streams.processor.internals.assignment.AssignorError",
    ),
    enums.StreamsGroupStatus: (f"{_COMMON}.requests.StreamsGroupHeartbeatResponse$Status",),
    enums.StreamsMemberState: (f"{_GROUP}.streams.MemberState",),
    enums.StreamsNodeType: (f"{_GROUP}.streams.StreamsGroupTopologyDescriptionConverter",),
    enums.StreamsTopologyDescriptionStatus: (f"{_ADMIN}.StreamsGroupTopologyDescriptionStatus",),
    enums.TransactionStatus: ("org.apache.kafka.coordinator.transaction.TransactionState",),
}  # fmt: skip
"""Ours, with the classes that have been Kafka's: enums, or classes with constants."""

ELSEWHERE = {
    f"{_COMMON}.message.ApiMessageType", f"{_COMMON}.protocol.ApiKeys",  # ApiKey
    f"{_COMMON}.record.TimestampType", f"{_COMMON}.record.internal.RecordVersion",  # of record batches
    f"{_COMMON}.record.RecordVersion",
    f"{_COMMON}.security.scram.internals.ScramMechanism",  # as ScramMechanism of the admin client
    f"{_GROUP}.generated.CoordinatorRecordType",  # RECORD_TYPES, as the next ones
    "org.apache.kafka.coordinator.share.generated.CoordinatorRecordType",
    "org.apache.kafka.coordinator.transaction.generated.CoordinatorRecordType",
    "org.apache.kafka.common.metadata.MetadataRecordType",
}  # fmt: skip
"""Kafka's enums of numbers that we keep as something else than an enum."""

OFF_THE_WIRE = re.compile(
    r"org\.apache\.kafka\.("
    r"server\.common\.\w+Version(\$FV\d)?"  # levels of features, each with numbers of its own
    r"|clients\.consumer\.ConsumerPartitionAssignor\$RebalanceProtocol"
    r"|clients\.consumer\.internals\.ShareConsumeRequestManager\$AcknowledgeRequestType"
    r"|clients\.producer\.internals\.TransactionManager\$Priority"
    r"|common\.metrics\.Sensor\$RecordingLevel"
    r"|common\.security\.kerberos\.KerberosError"
    r"|controller\.metrics\.BrokerRegistrationState"
    r"|metadata\.BrokerState"
    r"|metadata\.properties\.MetaPropertiesVersion"
    r")"
)
"""Kafka's enums of numbers that no field holds."""

PREFIXES = re.compile("^(MATCH|NODE)_TYPE_")
"""Of constants that aren't in an enum of their own."""

Constants = dict[str, tuple[int, bool]]


def constants(kafka: JavaOracle, enum: type[OpenEnum]) -> Constants | None:
    """Number and "may be retried" of each of Kafka's names; None if the release has no such enum."""
    for answer in kafka.ask([Command("E", name) for name in JAVA[enum]]):
        if not isinstance(answer, Refused):
            rows = (line.split() for line in answer[0].decode().splitlines())
            return {PREFIXES.sub("", name): (int(number), retry == "true") for name, number, retry in rows}
    return None


def enum_drift(kafka: JavaOracle) -> Iterator[str]:
    """The differences of all enums, a line each."""
    for enum in JAVA:
        for name, (number, retry) in (constants(kafka, enum) or {}).items():
            ours = enum(number)
            if not ours.known:
                yield f"{enum.__name__} {number}: unknown to us; {name}"
            elif ours.name != name:
                yield f"{enum.__name__} {number}: {name}, ours {ours.name}"
            elif isinstance(ours, ErrorCode) and ours.retriable is not retry:
                yield f"{enum.__name__} {number}: retriable {retry}, ours {ours.retriable}"


def unknown_enums(folder: Path, kafka: JavaOracle) -> Iterator[str]:
    """Enums with numbers in a release's jars that no table here has."""
    tables = {name for names in JAVA.values() for name in names} | ELSEWHERE
    names = sorted(name for name in set(_enums(folder)) - tables if not OFF_THE_WIRE.fullmatch(name))
    for name, answer in zip(names, kafka.ask([Command("E", name) for name in names]), strict=True):
        rows = [] if isinstance(answer, Refused) else answer[0].decode().splitlines()
        if rows:
            yield f"{name}: unknown to us; {', '.join(' '.join(row.split()[:2]) for row in rows)}"


def _enums(folder: Path) -> Iterator[str]:
    """The classes that seem to be enums; the JVM knows better."""
    for path in folder.glob("kafka-*.jar"):
        with ZipFile(path) as jar:
            for name in jar.namelist():
                if name.endswith(".class") and "/shaded/" not in name:
                    data = jar.read(name)
                    if b"java/lang/Enum" in data and b"$VALUES" in data:
                        yield name.removesuffix(".class").replace("/", ".")
