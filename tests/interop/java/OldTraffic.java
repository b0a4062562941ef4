import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Topics in the message formats of old, which a 3.x broker with an old inter.broker.protocol.version still writes.
 *
 * <p>`java OldTraffic.java BOOTSTRAP`: for magic 0 and 1, every codec and, for magic 1, both timestamp types, and a
 * compacted topic. Keys, values and the producer's timestamps are the same in each run.
 */
public final class OldTraffic {
    private static final String[] CODECS = {"none", "gzip", "snappy", "lz4"};
    private static final int[] SIZES = {1, 2, 30, 1, 15, 3};
    private static final byte[] ABSENT = null;

    public static void main(String[] args) throws Exception {
        Map<NewTopic, String> topics = new HashMap<>();
        for (String codec : CODECS) {
            topics.put(topic("magic-0-" + codec, "0.9.0", Map.of()), codec);
            topics.put(topic("magic-1-" + codec, "0.10.0", Map.of()), codec);
            topics.put(topic("append-time-" + codec, "0.10.0",
                Map.of("message.timestamp.type", "LogAppendTime")), codec);
        }
        topics.put(topic("compacted", "0.10.0", Map.of("segment.bytes", "4096", "cleanup.policy", "compact",
            "min.cleanable.dirty.ratio", "0.001")), "gzip");
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
            admin.createTopics(topics.keySet()).all().get();
        }
        for (var one : topics.entrySet()) {
            send(args[0], one.getKey().name(), one.getValue());
        }
        Thread.sleep(3000); // for the cleaner
    }

    private static NewTopic topic(String name, String format, Map<String, String> configs) {
        Map<String, String> all = new HashMap<>(Map.of("segment.bytes", "8192", "index.interval.bytes", "512",
            "retention.ms", "-1", "message.format.version", format));
        all.putAll(configs);
        return new NewTopic(name, 1, (short) 1).configs(all);
    }

    private static byte[] text(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static void send(String bootstrap, String topic, String codec) throws Exception {
        Properties all = new Properties();
        all.put("bootstrap.servers", bootstrap);
        all.put("compression.type", codec);
        all.put("linger.ms", "50");
        all.put("enable.idempotence", "false");
        all.put("key.serializer", ByteArraySerializer.class.getName());
        all.put("value.serializer", ByteArraySerializer.class.getName());
        Random random = new Random(5);
        try (var producer = new KafkaProducer<byte[], byte[]>(all)) {
            for (int batch = 0; batch < 3 * SIZES.length; batch++) {
                List<Future<?>> sent = new ArrayList<>();
                for (int n = 0; n < SIZES[batch % SIZES.length]; n++) {
                    byte[] key = n % 7 == 3 ? ABSENT : text("key-" + n);
                    if (topic.equals("compacted")) {
                        key = text("k" + random.nextInt(10));
                    }
                    byte[] value = text("value " + n + " " + "x".repeat(random.nextInt(120)) + " ü€😀");
                    if (n % 5 == 4 && key != ABSENT) {
                        value = ABSENT;
                    }
                    long time = 1_700_000_000_000L + batch * 1000L - (n % 5 == 2 ? 60_000 : 0);
                    sent.add(producer.send(new ProducerRecord<>(topic, 0, time, key, value)));
                }
                producer.flush();
                for (Future<?> each : sent) {
                    each.get();
                }
            }
        }
    }
}
