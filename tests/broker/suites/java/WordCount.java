// Kafka Streams' WordCount with exactly_once_v2, the program that writes its lines, and the one that judges
// its counts. What the lines are follows from their numbers, so that another program can count them too.
//
//   WordCount write BOOTSTRAP TOPIC COUNT PER_SECOND  prints "written COUNT" once each line is acknowledged
//   WordCount count BOOTSTRAP TOPIC OUTPUT FOLDER     runs until SIGTERM
//   WordCount read BOOTSTRAP OUTPUT TOTAL SECONDS     prints "word count" lines when the counts sum up to TOTAL
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

public class WordCount {
    private static final int WORDS = 1000;

    public static void main(String[] given) throws Exception {
        switch (given[0]) {
            case "write" -> write(given[1], given[2], Integer.parseInt(given[3]), Integer.parseInt(given[4]));
            case "count" -> count(given[1], given[2], given[3], given[4]);
            case "read" -> read(given[1], given[2], Long.parseLong(given[3]), Integer.parseInt(given[4]));
            default -> throw new IllegalArgumentException(given[0]);
        }
    }

    /** One to three words. */
    private static String line(int number) {
        long mixed = (number * 2654435761L) & 0xffffffffL;
        StringBuilder made = new StringBuilder();
        for (int word = 0; word <= number % 3; word++) {
            made.append(word == 0 ? "" : " ").append('w').append((mixed >>> (7 * word)) % WORDS);
        }
        return made.toString();
    }

    private static void write(String bootstrap, String topic, int count, int perSecond) throws Exception {
        Properties settings = new Properties();
        settings.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, StringSerializer.class);
        settings.put(ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, StringSerializer.class);
        settings.put(ProducerConfig.DELIVERY_TIMEOUT_MS_CONFIG, 600_000);
        settings.put(ProducerConfig.MAX_BLOCK_MS_CONFIG, 600_000);
        settings.put(ProducerConfig.LINGER_MS_CONFIG, 20);
        AtomicLong acknowledged = new AtomicLong();
        long start = System.nanoTime();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            for (int number = 0; number < count; number++) {
                producer.send(new ProducerRecord<>(topic, line(number)), (place, error) -> {
                    if (error != null) {
                        System.out.println("refused " + error);
                    } else {
                        acknowledged.incrementAndGet();
                    }
                });
                long early = number * 1_000L / perSecond - (System.nanoTime() - start) / 1_000_000;
                if (early > 5) {
                    Thread.sleep(early);
                }
            }
        }
        System.out.println("written " + acknowledged);
    }

    private static void count(String bootstrap, String input, String output, String folder) throws Exception {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "word-count");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, folder);
        settings.put(StreamsConfig.REPARTITION_PURGE_INTERVAL_MS_CONFIG, 2_000);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG), 6_000);
        settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG), 1_000);
        settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(input, Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> List.of(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count(Materialized.as("counts"))
            .toStream()
            .to(output, Produced.with(Serdes.String(), Serdes.Long()));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setUncaughtExceptionHandler(error -> {
            System.out.println("replaced " + error);
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        streams.setStateListener((now, before) -> System.out.println("state " + now));
        CountDownLatch ended = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            streams.close(Duration.ofSeconds(20));
            ended.countDown();
        }));
        streams.start();
        ended.await();
    }

    private static void read(String bootstrap, String topic, long total, int seconds) {
        Properties settings = new Properties();
        settings.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, StringDeserializer.class);
        settings.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, LongDeserializer.class);
        settings.put(ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed");
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        Map<String, Long> counts = new HashMap<>();
        long sum = 0;
        long records = 0;
        long end = System.nanoTime() + seconds * 1_000_000_000L;
        boolean last = false;
        try (KafkaConsumer<String, Long> consumer = new KafkaConsumer<>(settings)) {
            Collection<PartitionInfo> partitions = consumer.partitionsFor(topic);
            consumer.assign(partitions.stream().map(one -> new TopicPartition(topic, one.partition())).toList());
            while (System.nanoTime() < end) {
                for (ConsumerRecord<String, Long> record : consumer.poll(Duration.ofMillis(500))) {
                    Long before = counts.put(record.key(), record.value());
                    if (before != null && before >= record.value()) {
                        System.out.println("fell " + record.key() + " " + before + " " + record.value());
                    }
                    sum += record.value() - (before == null ? 0 : before);
                    records++;
                }
                if (sum >= total && !last) { // what comes later would be too much
                    last = true;
                    end = Math.min(end, System.nanoTime() + 3_000_000_000L);
                }
            }
        }
        counts.forEach((word, count) -> System.out.println(word + " " + count));
        System.out.println("read " + records + " " + sum);
    }
}
