"""The rights that a client needs for each API, and the errors without them, as in Kafka.

    metadata.py topics.py administration.py
                        the guards of families of APIs; those of coordinators are `coordwire.coordinator.apis`

Strategy: a guard for each API goes around its handler; the table is here. Rules: handlers do not look at who
the client is; an API without a guard is open to all. The cost is linear in the request and the answer.
"""

from __future__ import annotations

from collections.abc import Mapping

from coordwire.broker.handlers.api_call import ApiCall, Handler, HandlerResult, result_of
from coordwire.broker.handlers.authorization.administration import (
    acl_creation_refusal,
    acl_deletion_refusal,
    election_refusal,
    log_dir_refusal,
    quota_change_refusal,
    quota_description_refusal,
    user_refusal,
)
from coordwire.broker.handlers.authorization.metadata import (
    describe_cluster_guard,
    describe_topic_partitions_guard,
    metadata_guard,
)
from coordwire.broker.handlers.authorization.topics import (
    create_topics_guard,
    delete_topics_guard,
    epoch_guard,
    fetch_guard,
    partition_guard,
    produce_guard,
    setting_refusal,
    settings_guard,
)
from coordwire.codec import Message
from coordwire.coordinator.apis import ALWAYS
from coordwire.coordinator.apis import GUARDS as COORDINATORS
from coordwire.coordinator.apis.guards import (
    Change,
    Guard,
    Need,
    Operation,
    Resource,
    all_guards,
    cluster_need,
    element_guard,
    require,
    topic_name,
)
from coordwire.messages import (
    alter_configs,
    incremental_alter_configs,
)
from coordwire.messages.create_partitions import CreatePartitionsTopicResult
from coordwire.messages.describe_configs import DescribeConfigsResult
from coordwire.versions import ApiKey

__all__ = ["authorized"]


def authorized(call: ApiCall, api_key: int, handler: Handler) -> HandlerResult:
    """Answer a request as the handler does, as far as the client is authorized."""
    guard = _GUARDS.get(api_key)
    if guard is None or (call.cluster.authorizer is None and api_key not in ALWAYS):
        return handler(call)
    verdict = guard(call)
    if verdict is None:
        return handler(call)
    return verdict if isinstance(verdict, Message) else _changed(handler(call), verdict)


def _changed(answer: HandlerResult, change: Change) -> HandlerResult:
    if isinstance(answer, Message):
        change(answer)
        return answer
    return _changed_later(answer, change)


async def _changed_later(answer: HandlerResult, change: Change) -> Message | None:
    response = await result_of(answer)
    if response is not None:
        change(response)
    return response


_READS_GROUP = Need(Operation.READ, Resource.GROUP, "group_id")

_GUARDS: Mapping[int, Guard] = {
    **COORDINATORS,
    ApiKey.PRODUCE: produce_guard,
    ApiKey.FETCH: fetch_guard,
    ApiKey.LIST_OFFSETS: partition_guard(Operation.DESCRIBE),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: epoch_guard,
    ApiKey.DELETE_RECORDS: partition_guard(Operation.DELETE),
    ApiKey.DESCRIBE_PRODUCERS: partition_guard(Operation.READ),
    ApiKey.METADATA: metadata_guard,
    ApiKey.DESCRIBE_CLUSTER: describe_cluster_guard,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: describe_topic_partitions_guard,
    ApiKey.CREATE_TOPICS: create_topics_guard,
    ApiKey.DELETE_TOPICS: delete_topics_guard,
    ApiKey.CREATE_PARTITIONS: element_guard(
        "topics",
        Operation.ALTER,
        Resource.TOPIC,
        "results",
        lambda topic, code: CreatePartitionsTopicResult(name=topic.name, error_code=code, error_message=None),
        topic_name,
    ),
    ApiKey.DESCRIBE_CONFIGS: settings_guard(
        Operation.DESCRIBE_CONFIGS, "resources", "results", setting_refusal(DescribeConfigsResult)
    ),
    ApiKey.ALTER_CONFIGS: settings_guard(
        Operation.ALTER_CONFIGS,
        "resources",
        "responses",
        setting_refusal(alter_configs.AlterConfigsResourceResponse),
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: settings_guard(
        Operation.ALTER_CONFIGS,
        "resources",
        "responses",
        setting_refusal(incremental_alter_configs.AlterConfigsResourceResponse),
    ),
    ApiKey.LIST_CONFIG_RESOURCES: require(cluster_need(Operation.DESCRIBE_CONFIGS)),
    ApiKey.DESCRIBE_ACLS: require(cluster_need(Operation.DESCRIBE)),
    ApiKey.CREATE_ACLS: require(cluster_need(Operation.ALTER), refused=acl_creation_refusal),
    ApiKey.DELETE_ACLS: require(cluster_need(Operation.ALTER), refused=acl_deletion_refusal),
    ApiKey.ALTER_REPLICA_LOG_DIRS: require(cluster_need(Operation.ALTER), refused=log_dir_refusal),
    ApiKey.DESCRIBE_LOG_DIRS: require(cluster_need(Operation.DESCRIBE)),
    ApiKey.ELECT_LEADERS: require(cluster_need(Operation.ALTER), refused=election_refusal),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: require(cluster_need(Operation.ALTER)),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: require(cluster_need(Operation.DESCRIBE)),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: require(
        cluster_need(Operation.DESCRIBE_CONFIGS), refused=quota_description_refusal
    ),
    ApiKey.ALTER_CLIENT_QUOTAS: require(cluster_need(Operation.ALTER_CONFIGS), refused=quota_change_refusal),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: require(cluster_need(Operation.DESCRIBE)),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: require(cluster_need(Operation.ALTER), refused=user_refusal),
    ApiKey.DESCRIBE_QUORUM: require(cluster_need(Operation.DESCRIBE)),
    ApiKey.UPDATE_FEATURES: require(cluster_need(Operation.ALTER)),
    ApiKey.UNREGISTER_BROKER: require(cluster_need(Operation.ALTER)),
    ApiKey.UNREGISTER_CONTROLLER: require(cluster_need(Operation.ALTER)),
    ApiKey.ADD_RAFT_VOTER: require(cluster_need(Operation.ALTER)),
    ApiKey.REMOVE_RAFT_VOTER: require(cluster_need(Operation.ALTER)),
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: require(_READS_GROUP),
    ApiKey.SHARE_FETCH: all_guards(require(_READS_GROUP), partition_guard(Operation.READ)),
    ApiKey.SHARE_ACKNOWLEDGE: all_guards(require(_READS_GROUP), partition_guard(Operation.READ)),
}
