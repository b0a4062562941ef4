"""The answers of a broker to each API: one table, and a small module for each family of APIs.

Rules: the versions are those that the newest release of Kafka offers, and of an older release those that it
had; where Kafka has dropped old ones, so has this. A handler reads and changes the `ClusterState` and returns
an answer; it knows no socket. A handler that may wait is an `async def` that awaits a `Promise` of the
cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from coordwire.broker.cluster.facts import FeatureLevels
from coordwire.broker.handlers.acls_api import create_acls, delete_acls, describe_acls
from coordwire.broker.handlers.api_call import ApiCall, Handler, InvalidRequest
from coordwire.broker.handlers.clients_api import (
    alter_quotas,
    describe_quotas,
    push_telemetry,
    telemetry_subscriptions,
)
from coordwire.broker.handlers.controller_api import (
    add_voter,
    describe_quorum,
    remove_voter,
    unregister_broker,
    unregister_controller,
    update_features,
)
from coordwire.broker.handlers.fetch_api import fetch
from coordwire.broker.handlers.groups_api import find_coordinator, groups
from coordwire.broker.handlers.metadata_api import describe_cluster, describe_topic_partitions, metadata
from coordwire.broker.handlers.offsets_api import delete_records, epoch_ends, list_offsets
from coordwire.broker.handlers.placement_api import (
    alter_log_dirs,
    alter_reassignments,
    describe_log_dirs,
    elect_leaders,
    list_reassignments,
)
from coordwire.broker.handlers.produce_api import produce
from coordwire.broker.handlers.scram_api import alter_users, describe_users
from coordwire.broker.handlers.settings_api import (
    alter_settings,
    describe_settings,
    incrementally_alter_settings,
    list_resources,
)
from coordwire.broker.handlers.share_api import share_acknowledge, share_fetch, share_state
from coordwire.broker.handlers.streams_api import describe_streams, heartbeat_of_streams, update_description
from coordwire.broker.handlers.tokens_api import create_token, describe_tokens, expire_token, renew_token
from coordwire.broker.handlers.topics_api import create_partitions, create_topics, delete_topics
from coordwire.broker.handlers.transactions_api import (
    add_offsets,
    add_partitions,
    commit_offsets,
    describe_producers,
    describe_transactions,
    end_transaction,
    init_producer_id,
    list_transactions,
    write_markers,
)
from coordwire.broker.settings.offered_versions import offered_keys, refused_versions, versions_refusal
from coordwire.broker.settings.released_versions import newest_versions
from coordwire.enums import ErrorCode
from coordwire.messages import ApiVersionsResponse, SaslAuthenticateResponse, SaslHandshakeResponse
from coordwire.messages.api_versions import FinalizedFeatureKey, SupportedFeatureKey
from coordwire.versions import ApiKey

__all__ = [
    "APIS",
    "Api",
    "ApiCall",
    "Handler",
    "InvalidRequest",
    "api_versions",
    "offered",
    "unsupported_versions_response",
    "versions_response",
]


_OWN_VERSIONS_SINCE = "2.4"
"""From here on a refused version of ApiVersions is answered with the versions of that API (KIP-511)."""


class Api(NamedTuple):
    """An API with the versions that are offered."""

    first: int
    last: int
    handler: Handler


def api_versions(call: ApiCall) -> ApiVersionsResponse:
    error = versions_refusal(call.request, call.version, call.cluster.cluster_id, call.node)
    if error:
        return ApiVersionsResponse(error_code=int(error))
    return versions_response(call.cluster.features, call.cluster.config.release)


@cache
def offered(release: str) -> Mapping[int, Api]:
    """The APIs of a broker as of a release of Kafka, whose newest versions are the newest here."""
    newest = newest_versions(release)
    return {
        key: api._replace(last=min(api.last, newest[key]))
        for key, api in APIS.items()
        if api.first <= newest.get(key, -1)
    }


def no_handshake(call: ApiCall) -> SaslHandshakeResponse:
    """Refuse SASL; where the broker has users, the connection handles it before."""
    return SaslHandshakeResponse(error_code=int(ErrorCode.ILLEGAL_SASL_STATE), mechanisms=[])


def no_authentication(call: ApiCall) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=int(ErrorCode.ILLEGAL_SASL_STATE),
        error_message="SaslAuthenticate request received after successful authentication",
    )


def unsupported_versions_response(release: str) -> ApiVersionsResponse:
    """The answer to a version of ApiVersions that is not offered."""
    own = None
    if release >= _OWN_VERSIONS_SINCE:
        api = offered(release)[ApiKey.API_VERSIONS]
        own = api.first, api.last
    return refused_versions(own)


def versions_response(levels: FeatureLevels, release: str) -> ApiVersionsResponse:
    """The answer to ApiVersions. levels: of the cluster's features."""
    return ApiVersionsResponse(
        api_keys=offered_keys((key, api.first, api.last) for key, api in offered(release).items()),
        supported_features=[
            SupportedFeatureKey(name=name, min_version=feature.first, max_version=feature.newest)
            for name, feature in levels.supported.items()
        ],
        finalized_features_epoch=levels.epoch if levels.supported else -1,
        finalized_features=[
            FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in levels.items()
            if level > 0
        ],
    )


APIS: Mapping[int, Api] = {
    ApiKey.PRODUCE: Api(3, 13, produce),
    ApiKey.FETCH: Api(4, 18, fetch),
    ApiKey.LIST_OFFSETS: Api(1, 11, list_offsets),
    ApiKey.METADATA: Api(0, 13, metadata),
    ApiKey.OFFSET_COMMIT: Api(2, 10, groups),
    ApiKey.OFFSET_FETCH: Api(1, 10, groups),
    ApiKey.FIND_COORDINATOR: Api(0, 6, find_coordinator),
    ApiKey.JOIN_GROUP: Api(0, 9, groups),
    ApiKey.HEARTBEAT: Api(0, 4, groups),
    ApiKey.LEAVE_GROUP: Api(0, 5, groups),
    ApiKey.SYNC_GROUP: Api(0, 5, groups),
    ApiKey.DESCRIBE_GROUPS: Api(0, 6, groups),
    ApiKey.LIST_GROUPS: Api(0, 5, groups),
    ApiKey.SASL_HANDSHAKE: Api(0, 1, no_handshake),
    ApiKey.API_VERSIONS: Api(0, 5, api_versions),
    ApiKey.CREATE_TOPICS: Api(2, 7, create_topics),
    ApiKey.DELETE_TOPICS: Api(1, 6, delete_topics),
    ApiKey.DELETE_RECORDS: Api(0, 2, delete_records),
    ApiKey.INIT_PRODUCER_ID: Api(0, 5, init_producer_id),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Api(2, 4, epoch_ends),
    ApiKey.ADD_PARTITIONS_TO_TXN: Api(0, 5, add_partitions),
    ApiKey.ADD_OFFSETS_TO_TXN: Api(0, 4, add_offsets),
    ApiKey.END_TXN: Api(0, 5, end_transaction),
    ApiKey.WRITE_TXN_MARKERS: Api(1, 2, write_markers),
    ApiKey.TXN_OFFSET_COMMIT: Api(0, 6, commit_offsets),
    ApiKey.DESCRIBE_ACLS: Api(1, 3, describe_acls),
    ApiKey.CREATE_ACLS: Api(1, 3, create_acls),
    ApiKey.DELETE_ACLS: Api(1, 3, delete_acls),
    ApiKey.DESCRIBE_CONFIGS: Api(1, 4, describe_settings),
    ApiKey.ALTER_CONFIGS: Api(0, 2, alter_settings),
    ApiKey.ALTER_REPLICA_LOG_DIRS: Api(1, 2, alter_log_dirs),
    ApiKey.DESCRIBE_LOG_DIRS: Api(1, 5, describe_log_dirs),
    ApiKey.SASL_AUTHENTICATE: Api(0, 2, no_authentication),
    ApiKey.CREATE_PARTITIONS: Api(0, 3, create_partitions),
    ApiKey.CREATE_DELEGATION_TOKEN: Api(1, 3, create_token),
    ApiKey.RENEW_DELEGATION_TOKEN: Api(1, 2, renew_token),
    ApiKey.EXPIRE_DELEGATION_TOKEN: Api(1, 2, expire_token),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: Api(1, 3, describe_tokens),
    ApiKey.DELETE_GROUPS: Api(0, 3, groups),
    ApiKey.ELECT_LEADERS: Api(0, 2, elect_leaders),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Api(0, 1, incrementally_alter_settings),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Api(0, 1, alter_reassignments),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Api(0, 0, list_reassignments),
    ApiKey.OFFSET_DELETE: Api(0, 0, groups),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: Api(0, 1, describe_quotas),
    ApiKey.ALTER_CLIENT_QUOTAS: Api(0, 1, alter_quotas),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: Api(0, 0, describe_users),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: Api(0, 0, alter_users),
    ApiKey.DESCRIBE_QUORUM: Api(0, 2, describe_quorum),
    ApiKey.UPDATE_FEATURES: Api(0, 2, update_features),
    ApiKey.DESCRIBE_CLUSTER: Api(0, 2, describe_cluster),
    ApiKey.DESCRIBE_PRODUCERS: Api(0, 0, describe_producers),
    ApiKey.UNREGISTER_BROKER: Api(0, 0, unregister_broker),
    ApiKey.DESCRIBE_TRANSACTIONS: Api(0, 0, describe_transactions),
    ApiKey.LIST_TRANSACTIONS: Api(0, 2, list_transactions),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Api(0, 1, groups),
    ApiKey.CONSUMER_GROUP_DESCRIBE: Api(0, 1, groups),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: Api(0, 0, telemetry_subscriptions),
    ApiKey.PUSH_TELEMETRY: Api(0, 0, push_telemetry),
    ApiKey.LIST_CONFIG_RESOURCES: Api(0, 1, list_resources),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Api(0, 0, describe_topic_partitions),
    ApiKey.STREAMS_GROUP_HEARTBEAT: Api(0, 1, heartbeat_of_streams),
    ApiKey.STREAMS_GROUP_DESCRIBE: Api(0, 1, describe_streams),
    ApiKey.ADD_RAFT_VOTER: Api(0, 1, add_voter),
    ApiKey.REMOVE_RAFT_VOTER: Api(0, 0, remove_voter),
    ApiKey.SHARE_GROUP_HEARTBEAT: Api(1, 1, groups),
    ApiKey.SHARE_GROUP_DESCRIBE: Api(1, 1, groups),
    ApiKey.SHARE_FETCH: Api(1, 2, share_fetch),
    ApiKey.SHARE_ACKNOWLEDGE: Api(1, 2, share_acknowledge),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: Api(0, 0, share_state),
    ApiKey.READ_SHARE_GROUP_STATE: Api(0, 0, share_state),
    ApiKey.WRITE_SHARE_GROUP_STATE: Api(0, 1, share_state),
    ApiKey.DELETE_SHARE_GROUP_STATE: Api(0, 0, share_state),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: Api(0, 1, share_state),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: Api(0, 1, groups),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: Api(0, 0, groups),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: Api(0, 0, groups),
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: Api(0, 0, update_description),
    ApiKey.UNREGISTER_CONTROLLER: Api(0, 0, unregister_controller),
}
