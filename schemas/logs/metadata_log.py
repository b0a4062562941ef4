"""The cluster's metadata, in __cluster_metadata (KRaft): each record a change that all brokers replay.

Before each record come three unsigned varints: the frame's version (1), the record type, the record's version.
The log has no keys, and knows no record without a value.
"""

from schemas.vocabulary import (
    Array,
    Boolean,
    BrokerId,
    Bytes,
    Data,
    Default,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Nullable,
    ProducerId,
    Secret,
    Since,
    String,
    Struct,
    Tagged,
    TopicName,
    Uint16,
    Uuid,
)

BrokerEndpoint = Struct(
    "name"              / String * 'Name of the listener, such as "PLAINTEXT".',
    "host"              / String * "Host name or address to connect to.",
    "port"              / Uint16 * "Port to connect to, 0 to 65535.",
    "security_protocol" / Int16  * "0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL.",
    doc="A broker's listener.",
)

BrokerFeature = Struct(
    "name"                  / String * "The feature's name.",
    "min_supported_version" / Int16  * "The lowest level that it can run by.",
    "max_supported_version" / Int16  * "The highest level that it can run by.",
    doc="A feature that a broker supports.",
)

RegisterBrokerRecord = Data("RegisterBrokerRecord", versions=(0, 4), flexible=0, log="metadata", record_type=0, doc="A broker has registered. v1 adds controlled shutdown (KIP-841), v2 ZooKeeper (KIP-866), v3 log directories (KIP-858), v4 cordoned ones (KIP-1066).")(
    "broker_id"              / BrokerId                                   * "The broker's node id.",
    "is_migrating_zk_broker" / Since(2, Boolean)                          * "True for a broker that is still run by ZooKeeper (KIP-866).",
    "incarnation_id"         / Uuid                                       * "New each time the process starts.",
    "broker_epoch"           / Int64                                      * "The broker's epoch, new with each registration.",
    "end_points"             / Array(BrokerEndpoint)                      * "Where to reach it, by listener.",
    "features"               / Array(BrokerFeature)                       * "The features it can run by, with their levels.",
    "rack"                   / Default(Nullable(String), "")              * "Its rack; null for none.",
    "fenced"                 / Default(Boolean, True)                     * "True until the broker has caught up and may lead.",
    "in_controlled_shutdown" / Since(1, Boolean)                          * "True while it hands over to be shut down (KIP-841).",
    "log_dirs"               / Since(3, Tagged(0, Array(Uuid)))           * "Ids of its log directories that work; empty if unknown (KIP-858).",
    "cordoned_log_dirs"      / Since(4, Tagged(1, Nullable(Array(Uuid)))) * "Ids of those that shall get no new partitions; null if not given (KIP-1066).",
)

UnregisterBrokerRecord = Data("UnregisterBrokerRecord", versions=(0, 0), flexible=0, log="metadata", record_type=1, doc="A broker is gone for good.")(
    "broker_id"    / BrokerId * "The broker's node id.",
    "broker_epoch" / Int64    * "The broker's epoch, new with each registration.",
)

TopicRecord = Data("TopicRecord", versions=(0, 0), flexible=0, log="metadata", record_type=2, doc="A topic is there; its partitions follow.")(
    "name"     / String * "The topic's name.",
    "topic_id" / Uuid   * "The topic's id.",
)

PartitionRecord = Data("PartitionRecord", versions=(0, 2), flexible=0, log="metadata", record_type=3, doc="A partition as it is, all of it. v1 adds log directories (KIP-858), v2 eligible leaders (KIP-966).")(
    "partition_id"             / Default(Int32, -1)                             * "The partition's number.",
    "topic_id"                 / Uuid                                           * "The topic's id.",
    "replicas"                 / Array(BrokerId)                                * "Node ids of its replicas, the preferred leader first.",
    "isr"                      / Array(BrokerId)                                * "Node ids of the replicas in sync.",
    "removing_replicas"        / Array(BrokerId)                                * "Replicas to go when the reassignment ends.",
    "adding_replicas"          / Array(BrokerId)                                * "Replicas to come when the reassignment ends.",
    "leader"                   / Default(BrokerId, -1)                          * "Node id of the leader; -1 for none.",
    "leader_recovery_state"    / Tagged(0, Int8)                                * "0 for a leader as it should be, 1 while one elected uncleanly recovers.",
    "leader_epoch"             / Default(Int32, -1)                             * "One more with each change of leader.",
    "partition_epoch"          / Default(Int32, -1)                             * "One more with each change of the partition.",
    "directories"              / Since(1, Array(Uuid))                          * "Log directory of each replica, in their order; 0…01 while unassigned (KIP-858).",
    "eligible_leader_replicas" / Since(2, Tagged(1, Nullable(Array(BrokerId)))) * "Replicas outside the ISR that are safe to lead; null for none (KIP-966).",
    "last_known_elr"           / Since(2, Tagged(2, Nullable(Array(Int32))))    * "The last members of that set; null for none (KIP-966).",
)

ConfigRecord = Data("ConfigRecord", versions=(0, 0), flexible=0, log="metadata", record_type=4, doc="A config has been set or taken back.")(
    "resource_type" / Int8                                  * "2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.",
    "resource_name" / String                                * "Name of the topic, id of the broker, …; empty for all brokers' default.",
    "name"          / String                                * "The config's name.",
    "value"         / Default(Nullable(Secret(String)), "") * "Its value; null takes the config back.",
)

PartitionChangeRecord = Data("PartitionChangeRecord", versions=(0, 2), flexible=0, log="metadata", record_type=5, doc="What has changed of a partition; what isn't there stays. v1 adds log directories (KIP-858), v2 eligible leaders (KIP-966).")(
    "partition_id"             / Default(Int32, -1)                             * "The partition's number.",
    "topic_id"                 / Uuid                                           * "The topic's id.",
    "isr"                      / Tagged(0, Nullable(Array(BrokerId)))           * "Node ids of the replicas in sync; null: as before.",
    "leader"                   / Tagged(1, Default(BrokerId, -2))               * "Node id of the leader; -1 for none, -2: as before.",
    "replicas"                 / Tagged(2, Nullable(Array(BrokerId)))           * "Node ids of its replicas; null: as before.",
    "removing_replicas"        / Tagged(3, Nullable(Array(BrokerId)))           * "Replicas to go when the reassignment ends; null: as before.",
    "adding_replicas"          / Tagged(4, Nullable(Array(BrokerId)))           * "Replicas to come when the reassignment ends; null: as before.",
    "leader_recovery_state"    / Tagged(5, Default(Int8, -1))                   * "0 as it should be, 1 recovering, -1: as before.",
    "directories"              / Since(1, Tagged(8, Nullable(Array(Uuid))))     * "Log directory of each replica, in their order; null: as before (KIP-858).",
    "eligible_leader_replicas" / Since(2, Tagged(6, Nullable(Array(BrokerId)))) * "Replicas outside the ISR that are safe to lead; null: as before (KIP-966).",
    "last_known_elr"           / Since(2, Tagged(7, Nullable(Array(Int32))))    * "The last members of that set; null: as before (KIP-966).",
)

FenceBrokerRecord = Data("FenceBrokerRecord", versions=(0, 0), flexible=0, log="metadata", record_type=7, doc="A broker may lead no more; BrokerRegistrationChangeRecord has replaced it.")(
    "id"    / Int32 * "The broker's node id.",
    "epoch" / Int64 * "The broker's epoch, new with each registration.",
)

UnfenceBrokerRecord = Data("UnfenceBrokerRecord", versions=(0, 0), flexible=0, log="metadata", record_type=8, doc="A broker may lead again; BrokerRegistrationChangeRecord has replaced it.")(
    "id"    / Int32 * "The broker's node id.",
    "epoch" / Int64 * "The broker's epoch, new with each registration.",
)

RemoveTopicRecord = Data("RemoveTopicRecord", versions=(0, 0), flexible=0, log="metadata", record_type=9, doc="A topic is gone, with its partitions and configs.")(
    "topic_id" / Uuid * "The topic's id.",
)

DelegationTokenRecord = Data("DelegationTokenRecord", versions=(0, 0), flexible=0, log="metadata", record_type=10, doc="A delegation token was made or renewed.")(
    "owner"                / String        * 'The principal that the token authenticates, such as "User:ann".',
    "requester"            / String        * "The principal that asked for it.",
    "renewers"             / Array(String) * "Principals that may renew it.",
    "issue_timestamp"      / Int64         * "When it was issued, in ms since the epoch.",
    "max_timestamp"        / Int64         * "The last time it can be renewed until, in ms since the epoch.",
    "expiration_timestamp" / Int64         * "When it expires if not renewed, in ms since the epoch.",
    "token_id"             / String        * "The token's id.",
)

UserScramCredentialRecord = Data("UserScramCredentialRecord", versions=(0, 0), flexible=0, log="metadata", record_type=11, doc="A user's SCRAM credential has been set.")(
    "name"       / String        * "The user's name.",
    "mechanism"  / Int8          * "1 SCRAM-SHA-256, 2 SCRAM-SHA-512.",
    "salt"       / Secret(Bytes) * "The salt.",
    "stored_key" / Secret(Bytes) * "Hash of the client's key; proves who knows the password.",
    "server_key" / Secret(Bytes) * "The key by which the broker proves itself.",
    "iterations" / Int32         * "How often the password was hashed.",
)

FeatureLevelRecord = Data("FeatureLevelRecord", versions=(0, 0), flexible=0, log="metadata", record_type=12, doc="The cluster runs by this level of a feature from here on (KIP-584).")(
    "name"          / String * 'The feature, such as "metadata.version".',
    "feature_level" / Int16  * "Its level from here on; 0 turns it off.",
)

EntityData = Struct(
    "entity_type" / String                        * '"user", "client-id" or "ip".',
    "entity_name" / Default(Nullable(String), "") * "Its name; null for all that have no quota of their own.",
    doc="A part of whom a quota is for.",
)

ClientQuotaRecord = Data("ClientQuotaRecord", versions=(0, 0), flexible=0, log="metadata", record_type=14, doc="A quota has been set or taken back.")(
    "entity" / Array(EntityData) * "Whom the quota is for; all parts must fit.",
    "key"    / String            * 'What is limited, such as "producer_byte_rate".',
    "value"  / Float64           * "The limit, in the key's own unit; without meaning if removed.",
    "remove" / Boolean           * "True takes the quota back.",
)

ProducerIdsRecord = Data("ProducerIdsRecord", versions=(0, 0), flexible=0, log="metadata", record_type=15, doc="A block of producer ids has been given to a broker (KIP-730).")(
    "broker_id"        / BrokerId           * "Node id of the broker that got the block.",
    "broker_epoch"     / Default(Int64, -1) * "The broker's epoch at the time; -1 if unknown.",
    "next_producer_id" / ProducerId         * "The first id of the next block: all below are given away.",
)

BrokerRegistrationChangeRecord = Data("BrokerRegistrationChangeRecord", versions=(0, 3), flexible=0, log="metadata", record_type=17, doc="What has changed of a broker; what isn't there stays. v1 adds controlled shutdown (KIP-841), v2 log directories (KIP-858), v3 cordoned ones (KIP-1066).")(
    "broker_id"              / BrokerId                                   * "The broker's node id.",
    "broker_epoch"           / Int64                                      * "The broker's epoch, new with each registration.",
    "fenced"                 / Tagged(0, Int8)                            * "1 fenced from here on, -1 no longer, 0: as before.",
    "in_controlled_shutdown" / Since(1, Tagged(1, Int8))                  * "1 in a controlled shutdown from here on, 0: as before (KIP-841).",
    "log_dirs"               / Since(2, Tagged(2, Array(Uuid)))           * "Ids of the log directories that work; empty: as before (KIP-858).",
    "cordoned_log_dirs"      / Since(3, Tagged(3, Nullable(Array(Uuid)))) * "Ids of those that shall get no new partitions; null: as before (KIP-1066).",
)

AccessControlEntryRecord = Data("AccessControlEntryRecord", versions=(0, 0), flexible=0, log="metadata", record_type=18, doc="An ACL is there.")(
    "id"              / Uuid   * "The entry's id.",
    "resource_type"   / Int8   * "2 topic, 3 group, 4 cluster, 5 transactional id, 6 delegation token, 7 user.",
    "resource_name"   / String * 'The resource, or how its name begins; "*" for all.',
    "pattern_type"    / Int8   * "3: the name itself, 4: all names that begin so.",
    "principal"       / String * 'Whom it is about, such as "User:ann".',
    "host"            / String * 'The address that it holds for; "*" for all.',
    "operation"       / Int8   * "2 all, 3 read, 4 write, 5 create, 6 delete, 7 alter, 8 describe, …",
    "permission_type" / Int8   * "2 deny, 3 allow.",
)

RemoveAccessControlEntryRecord = Data("RemoveAccessControlEntryRecord", versions=(0, 0), flexible=0, log="metadata", record_type=19, doc="An ACL is gone.")(
    "id" / Uuid * "The entry's id.",
)

NoOpRecord = Data("NoOpRecord", versions=(0, 0), flexible=0, log="metadata", record_type=20, doc="Nothing; it moves the log's end so that followers see that the leader is alive (KIP-835).")()

ZkMigrationStateRecord = Data("ZkMigrationStateRecord", versions=(0, 0), flexible=0, log="metadata", record_type=21, doc="How far the move off ZooKeeper has come (KIP-866).")(
    "zk_migration_state" / Int8 * "0 none, 1 under way, 2 about to begin, 3 done, 4 still on ZooKeeper.",
)

RemoveUserScramCredentialRecord = Data("RemoveUserScramCredentialRecord", versions=(0, 0), flexible=0, log="metadata", record_type=22, doc="A user's SCRAM credential is gone.")(
    "name"      / String * "The user's name.",
    "mechanism" / Int8   * "1 SCRAM-SHA-256, 2 SCRAM-SHA-512.",
)

BeginTransactionRecord = Data("BeginTransactionRecord", versions=(0, 0), flexible=0, log="metadata", record_type=23, doc="What follows, up to the end, is applied at once or not at all (KIP-868).")(
    "name" / Tagged(0, Nullable(String)) * "What it is for; null if not given.",
)

EndTransactionRecord = Data("EndTransactionRecord", versions=(0, 0), flexible=0, log="metadata", record_type=24, doc="The records since the begin are applied (KIP-868).")()

AbortTransactionRecord = Data("AbortTransactionRecord", versions=(0, 0), flexible=0, log="metadata", record_type=25, doc="The records since the begin are void (KIP-868).")(
    "reason" / Tagged(0, Nullable(String)) * "Why; null if not given.",
)

RemoveDelegationTokenRecord = Data("RemoveDelegationTokenRecord", versions=(0, 0), flexible=0, log="metadata", record_type=26, doc="A delegation token is gone.")(
    "token_id" / String * "The token's id.",
)

ControllerEndpoint = Struct(
    "name"              / String * 'Name of the listener, such as "CONTROLLER".',
    "host"              / String * "Host name or address to connect to.",
    "port"              / Uint16 * "Port to connect to, 0 to 65535.",
    "security_protocol" / Int16  * "0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL.",
    doc="A controller's listener.",
)

ControllerFeature = Struct(
    "name"                  / String * "The feature's name.",
    "min_supported_version" / Int16  * "The lowest level that it can run by.",
    "max_supported_version" / Int16  * "The highest level that it can run by.",
    doc="A feature that a controller supports.",
)

RegisterControllerRecord = Data("RegisterControllerRecord", versions=(0, 0), flexible=0, log="metadata", record_type=27, doc="A controller has registered (KIP-919).")(
    "controller_id"      / Int32                     * "The controller's node id.",
    "incarnation_id"     / Uuid                      * "New each time the process starts.",
    "zk_migration_ready" / Boolean                   * "True if it is configured to move a cluster off ZooKeeper.",
    "end_points"         / Array(ControllerEndpoint) * "Where to reach it, by listener.",
    "features"           / Array(ControllerFeature)  * "The features it can run by, with their levels.",
)

ClearElrRecord = Data("ClearElrRecord", versions=(0, 0), flexible=0, log="metadata", record_type=28, doc="The eligible leaders of a topic's partitions are cleared (KIP-966).")(
    "topic_name" / TopicName * "The topic; empty for all topics.",
)

UnregisterControllerRecord = Data("UnregisterControllerRecord", versions=(0, 0), flexible=0, log="metadata", record_type=29, doc="A controller is no longer registered (Kafka 4.4).")(
    "controller_id" / Int32 * "The controller's node id.",
)
