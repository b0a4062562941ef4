"""The facts of a cluster: nodes, features and their levels (KIP-584), topics, settings, users, quotas, ids
that are used up.

Rules: facts know neither replication nor coordinators; these take them, and `ClusterState` changes them.
`clock` gives the time in milliseconds since 1970, `new_uuid` all that is random.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, ItemsView, Mapping, Sequence
from enum import Enum
from uuid import UUID, uuid4

from coordwire._dataclasses import dataclass
from coordwire.broker.cluster.fetch_sessions import FetchSessions
from coordwire.broker.cluster.log_places import LogPlace, MemoryLogs
from coordwire.broker.cluster.topics import ClusterPartition, ClusterTopic, metric_name
from coordwire.broker.security.credentials import ScramCredentials
from coordwire.broker.settings.broker_config import BrokerConfig
from coordwire.broker.settings.released_versions import Feature, features_of
from coordwire.broker.settings.settings import GROUP_SETTINGS, TOPIC_SETTINGS, Settings
from coordwire.codec.primitives import uuid_text
from coordwire.coordinator import TopicImage, TopicsImage
from coordwire.coordinator.timers import Timers


class FeatureLevels:
    """The finalized levels of a cluster. supported: by the release. epoch: raised with each change."""

    def __init__(self, supported: Mapping[str, Feature]) -> None:
        self.supported = supported
        self.epoch = 1
        self._levels = {name: feature.level for name, feature in supported.items()}

    def __getitem__(self, name: str) -> int:
        """The level of a feature; 0 where the release does not have it."""
        return self._levels.get(name, 0)

    def items(self) -> ItemsView[str, int]:
        return self._levels.items()

    def update(self, levels: Mapping[str, int]) -> None:
        """Finalize levels of known features."""
        if any(self._levels[name] != level for name, level in levels.items()):
            self._levels.update(levels)
            self.epoch += 1


class LogDirState(Enum):
    """The state of a node's log directory. FULL: the next append fails, and takes it offline."""

    ONLINE = "online"
    FULL = "full"
    OFFLINE = "offline"


@dataclass(slots=True)
class ClusterNode:
    """A broker's id, the address that clients are given, and its rack. port: 0 until it listens."""

    id: int
    host: str = "127.0.0.1"
    port: int = 0
    rack: str | None = None
    log_dir: LogDirState = LogDirState.ONLINE


_log = logging.getLogger("coordwire.broker")


class ClusterFacts:
    """The facts of a cluster. nodes: by id; topics: by name. missing_libraries: why records were stored
    unread."""

    def __init__(
        self,
        *,
        clock: Callable[[], int],
        config: BrokerConfig | None = None,
        nodes: Sequence[int] = (1,),
        new_uuid: Callable[[], UUID] = uuid4,
        logs: LogPlace | None = None,
        cluster_id: str | None = None,
    ) -> None:
        self.config = config or BrokerConfig()
        self.clock = clock
        self.new_uuid = new_uuid
        self.logs: LogPlace = logs or MemoryLogs()
        self.cluster_id = cluster_id or uuid_text(new_uuid())
        racks = dict(zip(nodes, self.config.racks, strict=False))
        self.nodes = {node: ClusterNode(node, rack=racks.get(node)) for node in nodes}
        self.topics: dict[str, ClusterTopic] = {}
        self.topics_by_id: dict[UUID, ClusterTopic] = {}
        self.group_settings: dict[str, Settings] = {}
        self.broker_settings: dict[str, dict[str, str]] = {}
        self.timers: Timers[None] = Timers()
        self.next_producer_id = 0
        self._image = TopicsImage(version=0)
        self.changed_topics: dict[str, None] = {}
        """The topics that have changed since the last image."""
        self.names_by_metric: dict[str, dict[str, None]] = {}
        """The topics of each name in metrics."""
        self.quotas: dict[tuple[tuple[str, str | None], ...], dict[str, float]] = {}
        self.features = FeatureLevels(features_of(self.config.release))
        self.scram = ScramCredentials(self.config.users)
        self.authorizer = self.config.made_authorizer()
        self.fetch_sessions = {
            node: FetchSessions(self.config.fetch_sessions, self._session_id) for node in nodes
        }
        self.missing_libraries: set[str] = set()

    def stored_unread(self, reason: str) -> None:
        """Records were stored that a codec's library is missing for; the first time, the log says so."""
        if reason not in self.missing_libraries:
            self.missing_libraries.add(reason)
            _log.warning("records are stored as they came, and not checked: %s", reason)

    def _session_id(self) -> int:
        return self.new_uuid().int & 0x7FFFFFFF

    @property
    def controller_id(self) -> int:
        return min(self.nodes)

    def is_online(self, node: int) -> bool:
        """Whether a node is up and has its log directory."""
        known = self.nodes.get(node)
        return known is not None and known.log_dir is not LogDirState.OFFLINE

    # --- topics ---

    def partition(self, topic: str, index: int) -> ClusterPartition | None:
        entry = self.topics.get(topic)
        return None if entry is None else entry.partition(index)

    def topic_settings(self, own: Mapping[str, str] | None = None) -> Settings:
        """Settings of a topic that has these of its own."""
        settings = Settings(TOPIC_SETTINGS, self.config.topic_defaults)
        settings.own.update(own or {})
        return settings

    def topic_alike(self, name: str) -> str | None:
        """A topic that has the same name in metrics."""
        return next(iter(self.names_by_metric.get(metric_name(name), ())), None)

    def image(self) -> TopicsImage:
        """The topics, as coordinators see them; made from the image before by what has changed."""
        if self.changed_topics:
            known = map(self.topics.get, self.changed_topics)
            topics = {
                name: None if topic is None else TopicImage(topic.id, name, len(topic.partitions))
                for name, topic in zip(self.changed_topics, known, strict=True)
            }
            self._image = self._image.changed(topics, version=(self._image.version or 0) + len(topics))
            self.changed_topics.clear()
        return self._image

    # --- settings, ids ---

    def settings_of_group(self, group_id: str) -> Settings:
        """A group's settings, to read."""
        known = self.group_settings.get(group_id)
        if known is None:
            records = self.config.share_partitions
            known = Settings(
                GROUP_SETTINGS,
                {
                    **self.config.coordinator.group_settings(),
                    "share.delivery.count.limit": str(records.delivery_count_limit),
                    "share.partition.max.record.locks": str(records.max_record_locks),
                    "share.record.lock.duration.ms": str(records.lock_duration_ms),
                },
            )
        return known

    def new_producer_id(self) -> int:
        """A producer id that was not used before."""
        producer_id = self.next_producer_id
        self.next_producer_id += 1
        self.logs.producer_ids(self.next_producer_id)
        return producer_id
