"""The rights that a client needs for each API, and the errors without them, as in Kafka.

    guards.py           what a guard is, and how one is made
    metadata.py topics.py groups.py transactions.py administration.py
                        the guards of families of APIs

Strategy: a guard for each API goes around its handler; the table is here. Rules: handlers do not look at who
the client is; an API without a guard is open to all. The cost is linear in the request and the answer.
"""

from __future__ import annotations

from collections.abc import Mapping

from coordwire.broker.handlers.api_call import ApiCall, Handler, HandlerResult
from coordwire.broker.handlers.authorization.administration import (
    acl_creation_refusal,
    acl_deletion_refusal,
    election_refusal,
    log_dir_refusal,
    quota_change_refusal,
    quota_description_refusal,
    user_refusal,
)
from coordwire.broker.handlers.authorization.groups import (
    commit_refusal,
    commit_topic_refusal,
    delete_topic_refusal,
    describe_groups_guard,
    find_coordinator_guard,
    heartbeat_guard,
    join_refusal,
    list_groups_guard,
    offset_fetch_guard,
    refused_share_deletion,
    share_offsets_guard,
    state_refusal,
    streams_heartbeat_guard,
    transactional_commit_refusal,
    transactional_commit_topic_refusal,
)
from coordwire.broker.handlers.authorization.guards import (
    Guard,
    Need,
    Operation,
    Resource,
    both_guards,
    cluster_need,
    element_guard,
    partition_guard,
    require,
    topic_name,
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
    produce_guard,
    setting_refusal,
    settings_guard,
)
from coordwire.broker.handlers.authorization.transactions import (
    add_partitions_guard,
    describe_transactions_guard,
    init_producer_id_guard,
    list_transactions_guard,
    write_markers_guard,
)
from coordwire.enums import AclOperation
from coordwire.messages import (
    alter_configs,
    incremental_alter_configs,
)
from coordwire.messages import consumer_group_describe as consumer_groups
from coordwire.messages import share_group_describe as share_groups
from coordwire.messages import streams_group_describe as streams_groups
from coordwire.messages.create_partitions import CreatePartitionsTopicResult
from coordwire.messages.delete_groups import DeletableGroupResult
from coordwire.messages.describe_configs import DescribeConfigsResult
from coordwire.messages.describe_groups import DescribedGroup
from coordwire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsResponseGroup
from coordwire.messages.describe_transactions import TransactionState
from coordwire.versions import ApiKey

__all__ = ["authorized"]


def authorized(call: ApiCall, api_key: int, handler: Handler) -> HandlerResult:
    """Answer a request as the handler does, as far as the client is authorized."""
    guard = _GUARDS.get(api_key)
    if guard is None or call.cluster.authorizer is None:
        return handler(call)
    return guard(call, handler)


def group_need(operation: AclOperation) -> Need:
    return Need(operation, Resource.GROUP, "group_id")


_WRITES_TRANSACTION = Need(Operation.WRITE, Resource.TRANSACTIONAL_ID, "transactional_id")

_GUARDS: Mapping[int, Guard] = {
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
    ApiKey.JOIN_GROUP: require(group_need(Operation.READ), refused=join_refusal),
    ApiKey.SYNC_GROUP: require(group_need(Operation.READ)),
    ApiKey.HEARTBEAT: require(group_need(Operation.READ)),
    ApiKey.LEAVE_GROUP: require(group_need(Operation.READ)),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: both_guards(require(group_need(Operation.READ)), heartbeat_guard),
    ApiKey.STREAMS_GROUP_HEARTBEAT: both_guards(require(group_need(Operation.READ)), streams_heartbeat_guard),
    ApiKey.OFFSET_COMMIT: both_guards(
        require(group_need(Operation.READ), refused=commit_refusal),
        element_guard("topics", Operation.READ, Resource.TOPIC, "topics", commit_topic_refusal, topic_name),
    ),
    ApiKey.OFFSET_FETCH: offset_fetch_guard,
    ApiKey.OFFSET_DELETE: both_guards(
        require(group_need(Operation.DELETE)),
        element_guard("topics", Operation.READ, Resource.TOPIC, "topics", delete_topic_refusal, topic_name),
    ),
    ApiKey.LIST_GROUPS: list_groups_guard,
    ApiKey.DESCRIBE_GROUPS: both_guards(
        element_guard(
            "groups",
            Operation.DESCRIBE,
            Resource.GROUP,
            "groups",
            lambda name, code: DescribedGroup(group_id=name, error_code=code),
        ),
        describe_groups_guard,
    ),
    ApiKey.CONSUMER_GROUP_DESCRIBE: both_guards(
        element_guard(
            "group_ids",
            Operation.DESCRIBE,
            Resource.GROUP,
            "groups",
            lambda name, code: consumer_groups.DescribedGroup(group_id=name, error_code=code),
        ),
        describe_groups_guard,
    ),
    ApiKey.STREAMS_GROUP_DESCRIBE: both_guards(
        element_guard(
            "group_ids",
            Operation.DESCRIBE,
            Resource.GROUP,
            "groups",
            lambda name, code: streams_groups.DescribedGroup(group_id=name, error_code=code),
        ),
        describe_groups_guard,
    ),
    ApiKey.DELETE_GROUPS: element_guard(
        "groups_names",
        Operation.DELETE,
        Resource.GROUP,
        "results",
        lambda name, code: DeletableGroupResult(group_id=name, error_code=code),
    ),
    ApiKey.FIND_COORDINATOR: find_coordinator_guard,
    ApiKey.INIT_PRODUCER_ID: init_producer_id_guard,
    ApiKey.ADD_PARTITIONS_TO_TXN: add_partitions_guard,
    ApiKey.ADD_OFFSETS_TO_TXN: require(_WRITES_TRANSACTION, group_need(Operation.READ)),
    ApiKey.END_TXN: require(_WRITES_TRANSACTION),
    ApiKey.TXN_OFFSET_COMMIT: both_guards(
        require(_WRITES_TRANSACTION, group_need(Operation.READ), refused=transactional_commit_refusal),
        element_guard(
            "topics", Operation.READ, Resource.TOPIC, "topics", transactional_commit_topic_refusal, topic_name
        ),
    ),
    ApiKey.WRITE_TXN_MARKERS: write_markers_guard,
    ApiKey.DESCRIBE_TRANSACTIONS: both_guards(
        element_guard(
            "transactional_ids",
            Operation.DESCRIBE,
            Resource.TRANSACTIONAL_ID,
            "transaction_states",
            lambda name, code: TransactionState(transactional_id=name, error_code=code),
        ),
        describe_transactions_guard,
    ),
    ApiKey.LIST_TRANSACTIONS: list_transactions_guard,
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
    ApiKey.SHARE_GROUP_HEARTBEAT: both_guards(require(group_need(Operation.READ)), heartbeat_guard),
    ApiKey.SHARE_GROUP_DESCRIBE: both_guards(
        element_guard(
            "group_ids",
            Operation.DESCRIBE,
            Resource.GROUP,
            "groups",
            lambda name, code: share_groups.DescribedGroup(group_id=name, error_code=code),
        ),
        describe_groups_guard,
    ),
    ApiKey.SHARE_FETCH: both_guards(require(group_need(Operation.READ)), partition_guard(Operation.READ)),
    ApiKey.SHARE_ACKNOWLEDGE: both_guards(
        require(group_need(Operation.READ)), partition_guard(Operation.READ)
    ),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: both_guards(
        element_guard(
            "groups",
            Operation.DESCRIBE,
            Resource.GROUP,
            "groups",
            lambda group, code: DescribeShareGroupOffsetsResponseGroup(
                group_id=group.group_id, error_code=code
            ),
            lambda call, group: group.group_id,
        ),
        share_offsets_guard,
    ),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: both_guards(
        require(group_need(Operation.READ)), partition_guard(Operation.READ)
    ),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: both_guards(
        require(group_need(Operation.DELETE)),
        element_guard(
            "topics",
            Operation.READ,
            Resource.TOPIC,
            "responses",
            refused_share_deletion,
            lambda call, topic: topic.topic_name,
        ),
    ),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: require(
        cluster_need(Operation.CLUSTER_ACTION), refused=state_refusal
    ),
    ApiKey.READ_SHARE_GROUP_STATE: require(cluster_need(Operation.CLUSTER_ACTION), refused=state_refusal),
    ApiKey.WRITE_SHARE_GROUP_STATE: require(cluster_need(Operation.CLUSTER_ACTION), refused=state_refusal),
    ApiKey.DELETE_SHARE_GROUP_STATE: require(cluster_need(Operation.CLUSTER_ACTION), refused=state_refusal),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: require(
        cluster_need(Operation.CLUSTER_ACTION), refused=state_refusal
    ),
}
