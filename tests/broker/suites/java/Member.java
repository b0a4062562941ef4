// What each client of the matrix does, with Kafka's own clients; see ../clients/python_clients.py.
//
//   Member produce BOOTSTRAP TOPIC COUNT
//   Member consume PROTOCOL BOOTSTRAP TOPIC GROUP ISOLATION STOPS
//   Member transact BOOTSTRAP TOPIC INPUT ID GROUP
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

public class Member {
    private static final int PARTITIONS = 6;

    public static void main(String[] given) {
        switch (given[0]) {
            case "produce" -> produce(given[1], given[2], Integer.parseInt(given[3]));
            case "consume" -> consume(given[1], given[2], given[3], given[4], given[5], Integer.parseInt(given[6]));
            case "transact" -> transact(given[1], given[2], given[3], given[4], given[5]);
            default -> throw new IllegalArgumentException(given[0]);
        }
    }

    private static Properties settings(String bootstrap) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        for (String kind : List.of("key", "value")) {
            settings.put(kind + ".serializer", "org.apache.kafka.common.serialization.StringSerializer");
            settings.put(kind + ".deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        }
        return settings;
    }

    private static void produce(String bootstrap, String topic, int count) {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings(bootstrap))) {
            for (int number = 0; number < count; number++) {
                producer.send(new ProducerRecord<>(topic, "" + number, "" + number), (place, error) -> {
                    if (error != null) {
                        error.printStackTrace();
                        Runtime.getRuntime().halt(1);
                    }
                });
            }
        }
    }

    private static void consume(
        String protocol, String bootstrap, String topic, String group, String isolation, int stops
    ) {
        Properties settings = settings(bootstrap);
        settings.put("group.id", group);
        settings.put("group.protocol", protocol);
        settings.put("auto.offset.reset", "earliest");
        settings.put("isolation.level", isolation);
        int left = stops;
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(List.of(topic));
            while (left > 0) {
                for (ConsumerRecord<String, String> one : consumer.poll(Duration.ofSeconds(1))) {
                    System.out.println(one.partition() + " " + one.offset() + " " + one.value());
                    left -= one.value().equals("stop") ? 1 : 0;
                }
            }
            consumer.commitSync();
        }
    }

    private static KafkaProducer<String, String> transactional(String bootstrap, String id) {
        Properties settings = settings(bootstrap);
        settings.put("transactional.id", id);
        KafkaProducer<String, String> producer = new KafkaProducer<>(settings);
        producer.initTransactions();
        return producer;
    }

    private static void begin(KafkaProducer<String, String> producer, String topic, String value) {
        producer.beginTransaction();
        for (int partition = 0; partition < PARTITIONS; partition++) {
            producer.send(new ProducerRecord<>(topic, partition, null, value));
        }
    }

    private static void transact(String bootstrap, String topic, String input, String id, String group) {
        KafkaProducer<String, String> producer = transactional(bootstrap, id);
        begin(producer, topic, "one");
        producer.commitTransaction();
        begin(producer, topic, "lost");
        producer.flush();
        producer.abortTransaction();
        begin(producer, topic, "two");
        producer.sendOffsetsToTransaction(
            Map.of(new TopicPartition(input, 0), new OffsetAndMetadata(5)), new ConsumerGroupMetadata(group));
        producer.commitTransaction();
        transactional(bootstrap, id).close();
        try {
            begin(producer, topic, "fenced");
            producer.commitTransaction();
            System.out.println("fenced: no");
        } catch (KafkaException error) {
            System.out.println("fenced: " + error.getClass().getSimpleName());
        }
        producer.close(Duration.ofSeconds(1));
    }
}
