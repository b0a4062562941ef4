import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.*;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.resource.*;
import org.apache.kafka.common.serialization.*;

/** Every call of Kafka's Admin, and a producer and consumers, at a cluster of nodes 1 to 3 with a topic "orders" of
 * six partitions: for the requests that they send. What a call answers does not matter here. */
public final class RoutedCalls {
    private static final List<String> GROUPS = List.of("a", "b", "c", "d", "e", "f");
    private static final int TIMES = 4;
    private static String bootstrap;

    interface Call { KafkaFuture<?> make() throws Exception; }

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        long start = System.currentTimeMillis();
        produceAndConsume();
        System.out.println("consumed after " + (System.currentTimeMillis() - start));
        share();
        System.out.println("shared after " + (System.currentTimeMillis() - start));
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("client.id", "oracle");
        settings.put("default.api.timeout.ms", 2000);
        settings.put("request.timeout.ms", 1500);
        settings.put("retries", 1);
        try (Admin admin = Admin.create(settings)) {
            admin.listGroups().all().get(5, TimeUnit.SECONDS);
            for (int time = 0; time < TIMES; time++) {
                for (Call call : calls(admin, time)) {
                    try {
                        call.make().get(3, TimeUnit.SECONDS);
                    } catch (Exception refused) {
                        System.out.println(System.currentTimeMillis() - start + " " + refused);
                    }
                }
            }
        }
    }

    private static TopicPartition partition(int number) { return new TopicPartition("orders", number); }

    private static <V> Map<TopicPartition, V> partitions(V value) {
        Map<TopicPartition, V> all = new HashMap<>();
        for (int number = 0; number < 6; number++) all.put(partition(number), value);
        return all;
    }

    private static List<Call> calls(Admin admin, int time) {
        List<Call> calls = new ArrayList<>();
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, "orders");
        ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, String.valueOf(1 + time % 3));
        ConfigResource logger = new ConfigResource(ConfigResource.Type.BROKER_LOGGER, String.valueOf(1 + time % 3));
        ConfigResource all = new ConfigResource(ConfigResource.Type.BROKER, "");
        AlterConfigOp set = new AlterConfigOp(new ConfigEntry("retention.ms", "1000"), AlterConfigOp.OpType.SET);
        calls.add(() -> admin.createTopics(List.of(new NewTopic("t" + time, 1, (short) 1))).all());
        calls.add(() -> admin.createPartitions(Map.of("t" + time, NewPartitions.increaseTo(2))).all());
        calls.add(() -> admin.listTopics().names());
        calls.add(() -> admin.describeTopics(List.of("orders")).allTopicNames());
        calls.add(() -> admin.describeCluster().nodes());
        calls.add(() -> admin.describeAcls(AclBindingFilter.ANY).values());
        AclBinding acl = new AclBinding(
            new ResourcePattern(ResourceType.TOPIC, "orders", PatternType.LITERAL),
            new AccessControlEntry("User:ann", "*", AclOperation.READ, AclPermissionType.ALLOW));
        calls.add(() -> admin.createAcls(List.of(acl)).all());
        calls.add(() -> admin.deleteAcls(List.of(acl.toFilter())).all());
        calls.add(() -> admin.describeConfigs(List.of(topic, broker, all)).all());
        calls.add(() -> admin.describeConfigs(List.of(logger)).all());
        calls.add(() -> admin.incrementalAlterConfigs(Map.of(topic, List.of(set)), new AlterConfigsOptions().validateOnly(true)).all());
        calls.add(() -> admin.incrementalAlterConfigs(Map.of(broker, List.of(set)), new AlterConfigsOptions().validateOnly(true)).all());
        calls.add(() -> admin.incrementalAlterConfigs(Map.of(all, List.of(set)), new AlterConfigsOptions().validateOnly(true)).all());
        calls.add(() -> admin.listConfigResources().all());
        calls.add(() -> admin.alterReplicaLogDirs(Map.of(new TopicPartitionReplica("orders", 0, 1 + time % 3), "/tmp/x")).all());
        calls.add(() -> admin.describeLogDirs(List.of(1, 2, 3)).allDescriptions());
        calls.add(() -> admin.deleteRecords(partitions(RecordsToDelete.beforeOffset(0))).all());
        calls.add(() -> admin.createDelegationToken().delegationToken());
        calls.add(() -> admin.renewDelegationToken(new byte[] {1}).expiryTimestamp());
        calls.add(() -> admin.expireDelegationToken(new byte[] {1}).expiryTimestamp());
        calls.add(() -> admin.describeDelegationToken().delegationTokens());
        calls.add(() -> admin.describeConsumerGroups(GROUPS).all());
        calls.add(() -> admin.describeClassicGroups(GROUPS).all());
        calls.add(() -> admin.describeShareGroups(GROUPS).all());
        calls.add(() -> admin.describeStreamsGroups(GROUPS).all());
        calls.add(() -> admin.listGroups().all());
        Map<String, ListConsumerGroupOffsetsSpec> specs = new HashMap<>();
        Map<String, ListShareGroupOffsetsSpec> shareSpecs = new HashMap<>();
        for (String group : GROUPS) {
            specs.put(group, new ListConsumerGroupOffsetsSpec());
            shareSpecs.put(group, new ListShareGroupOffsetsSpec().topicPartitions(List.of(partition(0))));
        }
        calls.add(() -> admin.listConsumerGroupOffsets(specs).all());
        calls.add(() -> admin.listShareGroupOffsets(shareSpecs).all());
        calls.add(() -> admin.alterShareGroupOffsets("b", Map.of(partition(0), 0L)).all());
        calls.add(() -> admin.deleteShareGroupOffsets("b", Set.of("orders")).all());
        calls.add(() -> admin.deleteShareGroups(GROUPS).all());
        calls.add(() -> admin.deleteConsumerGroups(GROUPS).all());
        for (String group : GROUPS) {
            calls.add(() -> admin.alterConsumerGroupOffsets(group, Map.of(partition(0), new OffsetAndMetadata(0))).all());
            calls.add(() -> admin.deleteConsumerGroupOffsets(group, Set.of(partition(0))).all());
            calls.add(() -> admin.removeMembersFromConsumerGroup(group,
                new RemoveMembersFromConsumerGroupOptions(Set.of(new MemberToRemove("i")))).all());
        }
        calls.add(() -> admin.electLeaders(ElectionType.PREFERRED, Set.of(partition(0))).all());
        calls.add(() -> admin.alterPartitionReassignments(Map.of(partition(0), Optional.empty())).all());
        calls.add(() -> admin.listPartitionReassignments().reassignments());
        calls.add(() -> admin.listOffsets(partitions(OffsetSpec.latest())).all());
        calls.add(() -> admin.describeClientQuotas(ClientQuotaFilter.all()).entities());
        calls.add(() -> admin.alterClientQuotas(List.of(new ClientQuotaAlteration(
            new ClientQuotaEntity(Map.of("user", "ann")), List.of(new ClientQuotaAlteration.Op("request_percentage", 50.0)))),
            new AlterClientQuotasOptions().validateOnly(true)).all());
        calls.add(() -> admin.describeUserScramCredentials().all());
        calls.add(() -> admin.alterUserScramCredentials(List.of(
            new UserScramCredentialDeletion("ann", ScramMechanism.SCRAM_SHA_256))).all());
        calls.add(() -> admin.describeFeatures().featureMetadata());
        calls.add(() -> admin.updateFeatures(Map.of("metadata.version",
            new FeatureUpdate((short) 7, FeatureUpdate.UpgradeType.UPGRADE)), new UpdateFeaturesOptions().validateOnly(true)).all());
        calls.add(() -> admin.describeMetadataQuorum().quorumInfo());
        calls.add(() -> admin.unregisterBroker(77).all());
        calls.add(() -> admin.describeProducers(partitions(0).keySet()).all());
        calls.add(() -> admin.describeTransactions(List.of("ta", "tb", "tc", "td")).all());
        calls.add(() -> admin.abortTransaction(new AbortTransactionSpec(partition(time), 1, (short) 0, 0)).all());
        calls.add(() -> admin.listTransactions().all());
        calls.add(() -> admin.fenceProducers(List.of("ta", "tb", "tc", "td")).all());
        calls.add(() -> admin.addRaftVoter(9, Uuid.randomUuid(), Set.of(new RaftVoterEndpoint("CONTROLLER", "localhost", 9))).all());
        calls.add(() -> admin.removeRaftVoter(9, Uuid.randomUuid()).all());
        calls.add(() -> admin.deleteTopics(List.of("t" + time)).all());
        return calls;
    }

    private static Map<String, Object> client(Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(more);
        settings.put("bootstrap.servers", bootstrap);
        settings.put("client.id", "oracle");
        return settings;
    }

    private static void produceAndConsume() {
        for (String id : List.of("ta", "tb", "tc", "td")) {
            try (KafkaProducer<String, String> producer = new KafkaProducer<>(
                    client(Map.of("transactional.id", id)), new StringSerializer(), new StringSerializer())) {
                producer.initTransactions();
                producer.beginTransaction();
                for (int number = 0; number < 6; number++)
                    producer.send(new ProducerRecord<>("orders", number, "key", "value"));
                try (KafkaConsumer<String, String> consumer = consumer(id, "classic")) {
                    producer.sendOffsetsToTransaction(
                        Map.of(partition(0), new OffsetAndMetadata(0)), consumer.groupMetadata());
                }
                producer.commitTransaction();
            }
        }
        for (String protocol : List.of("classic", "consumer")) {
            for (String group : List.of(protocol + "-1", protocol + "-2", protocol + "-3", protocol + "-4")) {
                try (KafkaConsumer<String, String> consumer = consumer(group, protocol)) {
                    consumer.subscribe(List.of("orders"));
                    int count = 0;
                    for (int turn = 0; turn < 50 && count < 24; turn++)
                        count += consumer.poll(Duration.ofMillis(200)).count();
                    consumer.commitSync();
                    consumer.offsetsForTimes(Map.of(partition(1), 0L));
                }
            }
        }
    }

    private static KafkaConsumer<String, String> consumer(String group, String protocol) {
        return new KafkaConsumer<>(
            client(Map.of("group.id", group, "group.protocol", protocol, "auto.offset.reset", "earliest")),
            new StringDeserializer(), new StringDeserializer());
    }

    private static void share() {
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(
                client(Map.of("group.id", "shared")), new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of("orders"));
            for (int turn = 0; turn < 4; turn++) {
                consumer.poll(Duration.ofMillis(200));
                consumer.commitSync();
            }
        } catch (RuntimeException refused) {
            System.out.println(refused);
        }
    }
}
