"""The versions of APIs that each release of Apache Kafka offers, and its features (KIP-584) with their
levels.

Strategy: for each API the releases that raised its newest version, which is what a broker of that release
offers; before the first one it did not have the API. Rules: from 2.0 on; KIP-848's groups count from 4.0 on,
where they are enabled unless switched off. The brokers are KRaft's where a release has both kinds. What Kafka
4 dropped of the older versions is not offered for an older release either. Features: from 4.0 on; clients
look for none before. The quorum has static voters, which is kraft.version 0, and the cluster is without
eligible leader replicas.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from coordwire.versions import ApiKey

RELEASES = (
    "2.0", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8", "3.0", "3.1", "3.2",
    "3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9", "4.0", "4.1", "4.2", "4.3", "4.4",
)  # fmt: skip

_ORDER = {name: number for number, name in enumerate(RELEASES)}

_RAISED: Mapping[ApiKey, str] = {
    ApiKey.PRODUCE: "2.0:6 2.1:7 2.4:8 2.8:9 3.7:10 3.8:11 4.0:12 4.1:13",
    ApiKey.FETCH: "2.0:8 2.1:10 2.3:11 2.7:12 3.1:13 3.5:15 3.7:16 3.9:17 4.1:18",
    ApiKey.LIST_OFFSETS: "2.0:3 2.1:4 2.2:5 2.8:6 3.0:7 3.5:8 3.9:9 4.0:10 4.2:11",
    ApiKey.METADATA: "2.0:6 2.1:7 2.3:8 2.4:9 2.8:11 3.1:12 4.0:13",
    ApiKey.OFFSET_COMMIT: "2.0:4 2.1:6 2.3:7 2.4:8 3.7:9 4.2:10",
    ApiKey.OFFSET_FETCH: "2.0:4 2.1:5 2.4:6 2.5:7 3.0:8 3.7:9 4.2:10",
    ApiKey.FIND_COORDINATOR: "2.0:2 2.4:3 3.0:4 3.8:5 3.9:6",
    ApiKey.JOIN_GROUP: "2.0:3 2.2:4 2.3:5 2.4:6 2.5:7 3.2:9",
    ApiKey.HEARTBEAT: "2.0:2 2.3:3 2.4:4",
    ApiKey.LEAVE_GROUP: "2.0:2 2.4:4 3.2:5",
    ApiKey.SYNC_GROUP: "2.0:2 2.3:3 2.4:4 2.5:5",
    ApiKey.DESCRIBE_GROUPS: "2.0:2 2.3:3 2.4:5 4.0:6",
    ApiKey.LIST_GROUPS: "2.0:2 2.4:3 2.6:4 3.8:5",
    ApiKey.SASL_HANDSHAKE: "2.0:1",
    ApiKey.API_VERSIONS: "2.0:2 2.4:3 3.9:4 4.4:5",
    ApiKey.CREATE_TOPICS: "2.0:3 2.4:5 2.7:6 2.8:7",
    ApiKey.DELETE_TOPICS: "2.0:2 2.1:3 2.4:4 2.7:5 2.8:6",
    ApiKey.DELETE_RECORDS: "2.0:1 2.6:2",
    ApiKey.INIT_PRODUCER_ID: "2.0:1 2.4:2 2.5:3 2.7:4 3.8:5",
    ApiKey.OFFSET_FOR_LEADER_EPOCH: "2.0:1 2.1:2 2.3:3 2.8:4",
    ApiKey.ADD_PARTITIONS_TO_TXN: "2.0:1 2.7:2 2.8:3 3.6:4 3.8:5",
    ApiKey.ADD_OFFSETS_TO_TXN: "2.0:1 2.7:2 2.8:3 3.8:4",
    ApiKey.END_TXN: "2.0:1 2.7:2 2.8:3 3.8:4 4.0:5",
    ApiKey.WRITE_TXN_MARKERS: "2.0:0 2.8:1 4.2:2",
    ApiKey.TXN_OFFSET_COMMIT: "2.0:1 2.1:2 2.5:3 3.8:4 4.0:5 4.4:6",
    ApiKey.DESCRIBE_ACLS: "2.0:1 2.5:2 3.3:3",
    ApiKey.CREATE_ACLS: "2.0:1 2.5:2 3.3:3",
    ApiKey.DELETE_ACLS: "2.0:1 2.5:2 3.3:3",
    ApiKey.DESCRIBE_CONFIGS: "2.0:2 2.6:3 2.8:4",
    ApiKey.ALTER_CONFIGS: "2.0:1 2.8:2",
    ApiKey.ALTER_REPLICA_LOG_DIRS: "2.0:1 2.8:2",
    ApiKey.DESCRIBE_LOG_DIRS: "2.0:1 2.6:2 3.2:3 3.3:4 4.3:5",
    ApiKey.SASL_AUTHENTICATE: "2.0:0 2.2:1 2.5:2",
    ApiKey.CREATE_PARTITIONS: "2.0:1 2.5:2 2.7:3",
    ApiKey.CREATE_DELEGATION_TOKEN: "2.0:1 2.4:2 3.3:3",
    ApiKey.RENEW_DELEGATION_TOKEN: "2.0:1 2.5:2",
    ApiKey.EXPIRE_DELEGATION_TOKEN: "2.0:1 2.5:2",
    ApiKey.DESCRIBE_DELEGATION_TOKEN: "2.0:1 2.5:2 3.3:3",
    ApiKey.DELETE_GROUPS: "2.0:1 2.4:2 4.4:3",
    ApiKey.ELECT_LEADERS: "2.2:0 2.4:2",
    ApiKey.INCREMENTAL_ALTER_CONFIGS: "2.3:0 2.4:1",
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: "2.4:0 4.1:1",
    ApiKey.LIST_PARTITION_REASSIGNMENTS: "2.4:0",
    ApiKey.OFFSET_DELETE: "2.4:0",
    ApiKey.DESCRIBE_CLIENT_QUOTAS: "2.6:0 2.8:1",
    ApiKey.ALTER_CLIENT_QUOTAS: "2.6:0 2.8:1",
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: "2.7:0",
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: "2.7:0",
    ApiKey.DESCRIBE_QUORUM: "3.0:0 3.3:1 3.9:2",
    ApiKey.UPDATE_FEATURES: "2.7:0 3.3:1 4.0:2",
    ApiKey.DESCRIBE_CLUSTER: "2.8:0 3.7:1 4.0:2",
    ApiKey.DESCRIBE_PRODUCERS: "2.8:0",
    ApiKey.UNREGISTER_BROKER: "2.8:0",
    ApiKey.DESCRIBE_TRANSACTIONS: "3.0:0",
    ApiKey.LIST_TRANSACTIONS: "3.0:0 3.8:1 4.1:2",
    ApiKey.CONSUMER_GROUP_HEARTBEAT: "4.0:1",
    ApiKey.CONSUMER_GROUP_DESCRIBE: "4.0:1",
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: "3.7:0",
    ApiKey.PUSH_TELEMETRY: "3.7:0",
    ApiKey.LIST_CONFIG_RESOURCES: "3.7:0 4.1:1",
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: "3.8:0",
    ApiKey.ADD_RAFT_VOTER: "3.9:0 4.2:1",
    ApiKey.REMOVE_RAFT_VOTER: "3.9:0",
    ApiKey.SHARE_GROUP_HEARTBEAT: "4.1:1",
    ApiKey.SHARE_GROUP_DESCRIBE: "4.1:1",
    ApiKey.SHARE_FETCH: "4.1:1 4.2:2",
    ApiKey.SHARE_ACKNOWLEDGE: "4.1:1 4.2:2",
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: "4.1:0",
    ApiKey.READ_SHARE_GROUP_STATE: "4.1:0",
    ApiKey.WRITE_SHARE_GROUP_STATE: "4.1:0 4.2:1",
    ApiKey.DELETE_SHARE_GROUP_STATE: "4.1:0",
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: "4.1:0 4.2:1",
    ApiKey.STREAMS_GROUP_HEARTBEAT: "4.2:0 4.4:1",
    ApiKey.STREAMS_GROUP_DESCRIBE: "4.2:0 4.4:1",
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: "4.1:0 4.2:1",
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: "4.1:0",
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: "4.1:0",
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: "4.4:0",
    ApiKey.UNREGISTER_CONTROLLER: "4.4:0",
}
"""Release and newest version, as "2.0:6 2.1:7"."""


@cache
def newest_versions(release: str) -> Mapping[int, int]:
    """The newest version of each API that a release has. Raises `ValueError` for one that is not known."""
    risen = {key: risen_to(steps, release) for key, steps in _RAISED.items()}
    return {key: version for key, version in risen.items() if version is not None}


def risen_to(steps: str, release: str) -> int | None:
    """The number that a release has, by steps as "2.0:6 2.1:7"; None before the first. Raises `ValueError`
    for a release that is not known."""
    if release not in _ORDER:
        raise ValueError(f"expected a release of {RELEASES[0]} to {RELEASES[-1]}, got {release!r}")
    number = None
    for step in steps.split():
        since, _, risen = step.partition(":")
        if _ORDER[since] <= _ORDER[release]:
            number = int(risen)
    return number


METADATA_VERSION = "metadata.version"
QUORUM_VERSION = "kraft.version"

_OLDEST = {METADATA_VERSION: 7}
"""The oldest levels that are supported, where they are not 0: of metadata.version 3.3-IV3."""


class Feature(NamedTuple):
    """The levels that are supported, the first and the newest, and the one by which a new cluster runs."""

    first: int
    newest: int
    level: int


_METADATA_LEVELS = "4.0:25 4.1:27 4.2:29 4.3:30 4.4:33"
_SUPPORTED = {
    "eligible.leader.replicas.version": "4.0:1",
    "group.version": "4.0:1",
    QUORUM_VERSION: "4.0:1",
    METADATA_VERSION: _METADATA_LEVELS,
    "share.version": "4.1:1 4.4:2",
    "streams.version": "4.2:1",
    "transaction.version": "4.0:2",
}
"""KIP-966, KIP-848, KIP-853, metadata.version, KIP-932 and KIP-1191, KIP-1071, KIP-890."""

_FORMATTED = {
    "group.version": "4.0:1",
    METADATA_VERSION: _METADATA_LEVELS,
    "share.version": "4.2:1 4.4:2",
    "streams.version": "4.2:1",
    "transaction.version": "4.0:2",
}


@cache
def features_of(release: str) -> Mapping[str, Feature]:
    """The features of a release, as "4.4", by name. Raises `ValueError` for one that is not known."""
    return {
        name: Feature(_OLDEST.get(name, 0), newest, risen_to(_FORMATTED.get(name, ""), release) or 0)
        for name, steps in _SUPPORTED.items()
        if (newest := risen_to(steps, release)) is not None
    }
