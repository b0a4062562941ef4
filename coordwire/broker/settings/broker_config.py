"""The settings of a broker at its start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from coordwire._dataclasses import dataclass
from coordwire.broker.log.retention import DeletePolicy
from coordwire.broker.security.authorizer import Authorizer
from coordwire.broker.settings.released_versions import newest_versions
from coordwire.broker.settings.settings import TOPIC_SETTINGS, checked
from coordwire.coordinator import (
    ConsumerGroupConfig,
    CoordinatorConfig,
    ShareGroupConfig,
    StreamsGroupConfig,
)
from coordwire.coordinator.share_partition import SharePartitionConfig
from coordwire.coordinator.transactions import TransactionConfig


def _quick_coordinator() -> CoordinatorConfig:
    return CoordinatorConfig(
        initial_rebalance_delay_ms=0,
        min_session_timeout_ms=1,
        consumer=ConsumerGroupConfig(heartbeat_interval_ms=200, assignment_interval_ms=0),
        streams=StreamsGroupConfig(
            heartbeat_interval_ms=200, assignment_interval_ms=0, initial_rebalance_delay_ms=0
        ),
        share=ShareGroupConfig(heartbeat_interval_ms=200, assignment_interval_ms=0),
    )


def _quick_transactions() -> TransactionConfig:
    return TransactionConfig(abort_interval_ms=1)


_KAFKA_MARKERS_MS = 2
"""As long as a Kafka broker takes to write markers where it is quick: recorded were 0.4 to 190, half of them
below 2 to 19."""

_KAFKA_RETENTION_CHECK_MS = 300_000

RACK_AWARE = "RackAwareReplicaSelector"
_SELECTORS = "org.apache.kafka.common.replica."


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """Settings that fit tests; `BrokerConfig.kafka()` has Kafka's own.

    The defaults differ from Kafka's in this: a group does not wait for more members, the members of
    consumer, share and streams groups send heartbeats every 200 ms and their targets are computed at once,
    and a classic member may ask for any session timeout; a transaction that is over its time is aborted at
    once, and no record goes unless a test asks.

    auto_create_topics: make a topic that a client asks for, with num_partitions. shows_created_topics: the
    Metadata that makes a topic has it; else, as with a Kafka broker, it answers UNKNOWN_TOPIC_OR_PARTITION,
    and the client asks again. default_replication_factor:
    of topics that do not say. offsets_partitions: of `__consumer_offsets`. coordinator: of the groups.
    transactions_partitions: of `__transaction_state`. transactions: of their coordinator. marker_delay_ms:
    how long after the decision markers are written; until then a transaction is in PREPARE_COMMIT or
    PREPARE_ABORT, and its producer gets CONCURRENT_TRANSACTIONS, as with a Kafka broker; 0 writes them before
    EndTxn is answered.
    users: passwords by name; if there are any, each connection must authenticate by one of sasl_mechanisms.
    OAUTHBEARER among these takes unsecured tokens, and needs no users: any client can be anybody.
    max_session_ms: after that a client must authenticate again; 0 for never.
    authorizer: ACLs decide who may do what. True: what no ACL allows is refused, as with Kafka's
    StandardAuthorizer; None: where clients authenticate, and a resource without ACLs is open to all. A False
    keeps no ACLs. super_users: may do everything, as ("User:admin",). allow_everyone_if_no_acl_found: a
    resource without ACLs is open to all.
    topic_defaults: settings of topics that do not set them, by their names as a topic's. max_fetch_bytes:
    of one Fetch response, beyond which only its first batch goes. fetch_sessions: as many are kept.
    share_partitions: what is in flight in a share group's partition. share_sessions: as many share sessions
    are kept by a node. share_state_partitions: of `__share_group_state`. dead_letter_queue_prefix: with which
    the names of share groups' dead letter queues have to begin (KIP-1191). creates_dead_letter_queues: make
    one that is missing, with num_partitions, when there is a dead letter for it.
    max_frame: the bytes of a client's request; a connection that announces more is closed. memory: the bytes
    that all connections hold together (see `ConnectionMemory`); what exceeds it waits, or the client that
    does not read is closed. max_connections: of one node, None for any number; others are closed.
    retention_check_ms: how often topics lose what their retention and compaction remove; 0 for only when a
    test asks (`moves.clean`). delete_policies: which further segments go, beside those that retention.bytes
    and retention.ms let go.
    racks: of the nodes in their order, as `broker.rack`; nodes without one have none. replica_selector_class:
    "RackAwareReplicaSelector" sends consumers that name a rack to a replica in sync there (KIP-392), None to
    leaders only; Kafka's full class names will do.
    as_of: a release of Kafka, as "3.9", whose versions of APIs and features are offered; None for that of the
    coordinator's `release`.

        >>> from coordwire.broker import BrokerConfig
        >>> BrokerConfig(auto_create_topics=False).coordinator.initial_rebalance_delay_ms
        0
        >>> BrokerConfig.kafka().coordinator.initial_rebalance_delay_ms
        3000
    """

    auto_create_topics: bool = True
    shows_created_topics: bool = False
    num_partitions: int = 1
    default_replication_factor: int = 1
    offsets_partitions: int = 50
    coordinator: CoordinatorConfig = field(default_factory=_quick_coordinator)
    transactions_partitions: int = 50
    transactions: TransactionConfig = field(default_factory=_quick_transactions)
    marker_delay_ms: int = _KAFKA_MARKERS_MS
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    sasl_mechanisms: tuple[str, ...] = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
    max_session_ms: int = 0
    authorizer: bool | None = None
    super_users: tuple[str, ...] = ()
    allow_everyone_if_no_acl_found: bool = False
    topic_defaults: Mapping[str, str] = field(default_factory=dict)
    max_fetch_bytes: int = 55 << 20
    fetch_sessions: int = 1_000
    share_partitions: SharePartitionConfig = field(default_factory=SharePartitionConfig)
    share_sessions: int = 2_000
    share_state_partitions: int = 50
    dead_letter_queue_prefix: str = "dlq."
    creates_dead_letter_queues: bool = False
    max_frame: int = 100 << 20
    memory: int = 256 << 20
    max_connections: int | None = None
    retention_check_ms: int = 0
    delete_policies: tuple[DeletePolicy, ...] = ()
    racks: tuple[str, ...] = ()
    replica_selector_class: str | None = None
    as_of: str | None = None

    def __post_init__(self) -> None:
        selector = self.replica_selector_class
        if selector is not None and selector.removeprefix(_SELECTORS) not in ("LeaderSelector", RACK_AWARE):
            raise ValueError(f"expected a replica selector LeaderSelector or {RACK_AWARE}, got {selector!r}")
        if isinstance(self.racks, str):
            raise ValueError(f"expected a rack for each node, got {self.racks!r}")
        for name, value in self.topic_defaults.items():
            checked(TOPIC_SETTINGS, name, value)
        if self.as_of is not None:
            newest_versions(self.as_of)

    @property
    def release(self) -> str:
        """The release of Kafka whose versions of APIs and features are offered, without its patch."""
        return self.as_of or self.coordinator.release.rpartition(".")[0]

    @property
    def is_rack_aware(self) -> bool:
        """Whether consumers that name a rack are sent to a replica there."""
        return (self.replica_selector_class or "").removeprefix(_SELECTORS) == RACK_AWARE

    @property
    def authenticates(self) -> bool:
        """Whether each connection must authenticate."""
        return bool(self.users) or "OAUTHBEARER" in self.sasl_mechanisms

    def made_authorizer(self) -> Authorizer | None:
        """An authorizer without ACLs; None where nothing is to be authorized."""
        if self.authorizer is False or (self.authorizer is None and not self.authenticates):
            return None
        is_open = self.allow_everyone_if_no_acl_found or self.authorizer is None
        return Authorizer(self.super_users, open_by_default=is_open)

    @classmethod
    def kafka(cls, **changes: object) -> BrokerConfig:
        """Kafka's own defaults, with the changes that are given."""
        kafka = cls(
            coordinator=CoordinatorConfig(),
            transactions=TransactionConfig(),
            retention_check_ms=_KAFKA_RETENTION_CHECK_MS,
        )
        return replace(kafka, **changes)  # type: ignore[arg-type]
