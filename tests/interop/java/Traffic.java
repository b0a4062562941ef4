import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * What a broker is asked to write: topics of every kind, transactions, and groups of every protocol.
 *
 * <p>Strategy: `java Traffic.java BOOTSTRAP ROUND`; round 1 makes everything, round 2, after a restart, goes on in
 * another leader epoch and lets things end (tombstones of groups, of offsets, of a topic). Keys, values and
 * most timestamps are the same in each run; the broker's own times and ids aren't.
 *
 * <p>Rules: every batch is waited for, so each stands alone; small segments come from a setting that Kafka keeps
 * for its own tests (internal.segment.bytes).
 */
public final class Traffic {
    private static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd"};
    private static final long TIME = 1_760_000_000_000L;
    private static final byte[] ABSENT = null;

    private final String bootstrap;
    private final int round;
    private final Random random;

    private Traffic(String bootstrap, int round) {
        this.bootstrap = bootstrap;
        this.round = round;
        this.random = new Random(round);
    }

    public static void main(String[] args) throws Exception {
        Traffic traffic = new Traffic(args[0], Integer.parseInt(args[1]));
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
            if (traffic.round == 1) {
                traffic.createTopics(admin);
            }
            traffic.codecs();
            traffic.plain();
            traffic.transactions();
            traffic.compacted();
            traffic.classicGroup();
            traffic.consumerGroup();
            traffic.shareGroup(admin);
            if (traffic.round == 1) {
                traffic.settings(admin);
            } else {
                traffic.endings(admin);
            }
        }
    }

    // --- topics -----------------------------------------------------------------------------------------------------

    private void createTopics(Admin admin) throws Exception {
        List<NewTopic> topics = new ArrayList<>();
        for (String codec : CODECS) {
            topics.add(topic("codec-" + codec, 1, Map.of("index.interval.bytes", "1024")));
        }
        topics.add(topic("several.segments", 2,
            Map.of("internal.segment.bytes", "4096", "index.interval.bytes", "256")));
        topics.add(topic("append-time", 1, Map.of("message.timestamp.type", "LogAppendTime",
            "internal.segment.bytes", "4096", "index.interval.bytes", "256")));
        topics.add(topic("transactions", 1, Map.of("internal.segment.bytes", "4096", "index.interval.bytes", "256")));
        topics.add(topic("compacted", 1, Map.of("cleanup.policy", "compact", "internal.segment.bytes", "2048",
            "index.interval.bytes", "128", "min.cleanable.dirty.ratio", "0.001")));
        topics.add(topic("recompressed", 1, Map.of("compression.type", "zstd")));
        topics.add(topic("short-lived", 1, Map.of()));
        admin.createTopics(topics).all().get();
    }

    private static NewTopic topic(String name, int partitions, Map<String, String> configs) {
        Map<String, String> all = new HashMap<>(configs);
        all.put("retention.ms", "-1");
        return new NewTopic(name, partitions, (short) 1).configs(all);
    }

    // --- records ----------------------------------------------------------------------------------------------------

    private KafkaProducer<byte[], byte[]> producer(Map<String, String> configs) {
        Properties all = new Properties();
        all.put("bootstrap.servers", bootstrap);
        all.put("linger.ms", "50");
        all.put("key.serializer", ByteArraySerializer.class.getName());
        all.put("value.serializer", ByteArraySerializer.class.getName());
        all.putAll(configs);
        return new KafkaProducer<>(all);
    }

    private static byte[] text(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** A record with something special by its number: null key, null value, empty ones, headers, a long value. */
    private ProducerRecord<byte[], byte[]> record(String topic, int partition, int number) {
        byte[] key = number % 7 == 3 ? ABSENT : text(number % 11 == 4 ? "" : "key-" + number % 50);
        byte[] value = text("value " + number + " of round " + round + " in " + topic + " ü€😀");
        if (number % 13 == 5) {
            value = ABSENT;
        } else if (number % 17 == 6) {
            value = new byte[0];
        } else if (number % 10 == 7) {
            value = text("x".repeat(random.nextInt(400)));
        } else if (number % 19 == 8) {
            value = new byte[] {(byte) 0xff, (byte) 0xfe, 0, 1, (byte) 0xc3};
        }
        long time = TIME + round * 3_600_000L + number * 1000L - (number % 5 == 2 ? 60_000 : 0);
        ProducerRecord<byte[], byte[]> made = new ProducerRecord<>(topic, partition, time, key, value);
        for (int header = 0; header < number % 4; header++) {
            byte[] content = header == 2 ? ABSENT : text("header " + number);
            made.headers().add(header == 1 ? "schlüssel" : "trace", content);
        }
        return made;
    }

    /** Send records in batches of these sizes, each acknowledged before the next. */
    private void send(KafkaProducer<byte[], byte[]> producer, String topic, int partition, int... sizes)
            throws Exception {
        int number = 0;
        for (int size : sizes) {
            for (int one = 0; one < size; one++) {
                producer.send(record(topic, partition, number++));
            }
            producer.flush();
        }
    }

    private void codecs() throws Exception {
        for (String codec : CODECS) {
            String idempotent = codec.equals("none") || codec.equals("lz4") ? "false" : "true";
            try (var producer = producer(Map.of("compression.type", codec, "enable.idempotence", idempotent))) {
                send(producer, "codec-" + codec, 0, 1, 2, 50, 1, 3, 20, 1);
            }
        }
        try (var producer = producer(Map.of("compression.type", "gzip"))) {
            send(producer, "recompressed", 0, 5, 10);
        }
    }

    private void plain() throws Exception {
        try (var producer = producer(Map.of("enable.idempotence", "false"))) {
            send(producer, "several.segments", 0, 10, 1, 20, 1, 1, 15, 2, 2, 25, 5, 5, 1, 1, 9);
            send(producer, "append-time", 0, 10, 5, 10, 1, 1, 10, 10, 10);
            send(producer, "short-lived", 0, 3);
        }
        try (var first = producer(Map.of()); var second = producer(Map.of("compression.type", "lz4"))) {
            for (int turn = 0; turn < 8; turn++) {
                send(first, "several.segments", 1, 5, 1);
                send(second, "several.segments", 1, 7);
                send(second, "append-time", 0, 2);
            }
        }
    }

    private void transactions() throws Exception {
        try (var first = producer(Map.of("transactional.id", "payments"));
                var second = producer(Map.of("transactional.id", "refunds", "compression.type", "zstd"))) {
            first.initTransactions();
            second.initTransactions();
            for (int turn = 0; turn < 6; turn++) {
                first.beginTransaction();
                second.beginTransaction();
                send(first, "transactions", 0, 3, 2);
                send(second, "transactions", 0, 4);
                if (turn % 2 == 0) {
                    first.commitTransaction();
                    second.abortTransaction();
                } else {
                    second.commitTransaction();
                    first.abortTransaction();
                }
            }
            first.beginTransaction();
            send(first, "transactions", 0, 1);
            try (var consumer = consumer("exactly-once", "classic", Map.of())) {
                var metadata = consumer.groupMetadata();
                var partition = new TopicPartition("several.segments", 0);
                first.sendOffsetsToTransaction(Map.of(partition, new OffsetAndMetadata(round)), metadata);
                first.commitTransaction();
                first.beginTransaction();
                first.sendOffsetsToTransaction(Map.of(partition, new OffsetAndMetadata(99)), metadata);
                first.abortTransaction();
            }
            if (round == 1) { // left open for the next round
                second.beginTransaction();
                send(second, "transactions", 0, 2);
            }
        }
    }

    /**
     * Keys written over and over, some deleted, some in aborted transactions; then time for the cleaner, and more
     * behind what it cleaned. The times are the broker's own: Kafka forgets idempotent producers by them.
     */
    private void compacted() throws Exception {
        try (var even = producer(Map.of()); var odd = producer(Map.of("compression.type", "lz4"));
                var transactional = producer(Map.of("transactional.id", "compaction"))) {
            transactional.initTransactions();
            for (int turn = 0; turn < 6; turn++) {
                var chosen = turn % 2 == 0 ? even : odd;
                for (int number = 0; number < 10; number++) {
                    byte[] value = turn == 5 && number < 3 ? ABSENT : text("turn " + turn + " ".repeat(30));
                    chosen.send(new ProducerRecord<>("compacted", text("key-" + number), value));
                }
                chosen.flush();
                transactional.beginTransaction();
                transactional.send(new ProducerRecord<>("compacted", text("key-" + turn), text("in doubt")));
                transactional.flush();
                if (turn % 2 == 0) {
                    transactional.commitTransaction();
                } else {
                    transactional.abortTransaction();
                }
            }
            for (int turn = 0; turn < 2; turn++) { // rolls what stands before, so that it can be cleaned
                odd.send(new ProducerRecord<>("compacted", text("filler"), text("x".repeat(1500) + random.nextLong())));
                odd.flush();
                even.send(new ProducerRecord<>("compacted", text("more"), new byte[1500]));
                even.flush();
            }
            Thread.sleep(2000);
        }
    }

    // --- groups -----------------------------------------------------------------------------------------------------

    private Properties consuming(String group, Map<String, String> configs) {
        Properties all = new Properties();
        all.put("bootstrap.servers", bootstrap);
        all.put("group.id", group);
        all.put("enable.auto.commit", "false");
        all.put("key.deserializer", ByteArrayDeserializer.class.getName());
        all.put("value.deserializer", ByteArrayDeserializer.class.getName());
        all.putAll(configs);
        return all;
    }

    private KafkaConsumer<byte[], byte[]> consumer(String group, String protocol, Map<String, String> configs) {
        Properties all = consuming(group, configs);
        all.put("auto.offset.reset", "earliest");
        all.put("group.protocol", protocol);
        if (protocol.equals("classic")) {
            all.put("heartbeat.interval.ms", "200");
        }
        return new KafkaConsumer<>(all);
    }

    private static void poll(Consumer<?, ?> consumer, int least) {
        int seen = 0;
        for (int tries = 0; tries < 40 && seen < least; tries++) {
            seen += consumer.poll(Duration.ofMillis(250)).count();
        }
    }

    private static Map<TopicPartition, OffsetAndMetadata> offset(String topic, long offset, String metadata) {
        return Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(offset, metadata));
    }

    private void classicGroup() {
        Map<String, String> configs = Map.of("client.id", "till-1", "group.instance.id", "till-1");
        try (var first = consumer("orders-classic", "classic", configs)) {
            first.subscribe(List.of("several.segments", "codec-none"));
            poll(first, 1);
            first.commitSync();
            first.commitSync(offset("codec-none", 7, "half way, ü"));
            try (var second = consumer("orders-classic", "classic", Map.of("client.id", "till-2",
                    "partition.assignment.strategy", "org.apache.kafka.clients.consumer.RangeAssignor,"
                        + "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"))) {
                second.subscribe(List.of("several.segments"));
                for (int turn = 0; turn < 20; turn++) {
                    first.poll(Duration.ofMillis(50));
                    second.poll(Duration.ofMillis(50));
                }
                first.commitSync();
            }
        }
    }

    private void consumerGroup() {
        try (var first = consumer("orders-new", "consumer", Map.of("client.id", "new-1", "client.rack", "r1"));
                var second = consumer("orders-new", "consumer", Map.of("client.id", "new-2"))) {
            first.subscribe(List.of("several.segments", "codec-zstd"));
            poll(first, 1);
            first.commitSync();
            second.subscribe(java.util.regex.Pattern.compile("several.*"));
            for (int turn = 0; turn < 20; turn++) {
                first.poll(Duration.ofMillis(50));
                second.poll(Duration.ofMillis(50));
            }
            first.commitSync();
            second.commitSync();
        }
    }

    private void shareGroup(Admin admin) throws Exception {
        configure(admin, ConfigResource.Type.GROUP, "shared", "share.auto.offset.reset", "earliest");
        Properties configs = consuming("shared", Map.of("client.id", "share-1"));
        configs.remove("enable.auto.commit");
        try (var consumer = new KafkaShareConsumer<byte[], byte[]>(configs)) {
            consumer.subscribe(Set.of("several.segments"));
            int seen = 0;
            for (int turn = 0; turn < 40 && seen < 30; turn++) {
                seen += consumer.poll(Duration.ofMillis(250)).count();
                consumer.commitSync();
            }
        }
    }

    // --- what controllers note --------------------------------------------------------------------------------------

    private void settings(Admin admin) throws Exception {
        configure(admin, ConfigResource.Type.TOPIC, "codec-none", "max.message.bytes", "500000");
        configure(admin, ConfigResource.Type.TOPIC, "__consumer_offsets", "internal.segment.bytes", "4096");
        admin.createPartitions(Map.of("recompressed", NewPartitions.increaseTo(2))).all().get();
        ClientQuotaEntity who = new ClientQuotaEntity(Map.of("user", "ann"));
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(who,
            List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1e6))))).all().get();
        ScramCredentialInfo scram = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096);
        admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion("ann", scram, "test-only-pw")))
            .all().get();
        admin.createAcls(List.of(new AclBinding(
            new ResourcePattern(ResourceType.TOPIC, "codec-", PatternType.PREFIXED),
            new AccessControlEntry("User:ann", "*", AclOperation.READ, AclPermissionType.ALLOW)))).all().get();
    }

    private static void configure(Admin admin, ConfigResource.Type type, String name, String key, String value)
            throws Exception {
        AlterConfigOp set = new AlterConfigOp(new ConfigEntry(key, value), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(type, name), List.of(set))).all().get();
    }

    private void endings(Admin admin) throws Exception {
        admin.deleteConsumerGroupOffsets("orders-new", Set.of(new TopicPartition("codec-zstd", 0))).all().get();
        admin.removeMembersFromConsumerGroup("orders-classic", new RemoveMembersFromConsumerGroupOptions()).all().get();
        admin.deleteConsumerGroups(List.of("orders-classic")).all().get();
        admin.deleteTopics(List.of("short-lived")).all().get();
        admin.deleteRecords(Map.of(new TopicPartition("several.segments", 0), RecordsToDelete.beforeOffset(5)))
            .all().get();
    }
}
