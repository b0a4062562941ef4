// Members of share groups, with Kafka's own client.
//
//   ShareMember produce BOOTSTRAP TOPIC FIRST LAST
//   ShareMember consume MODE BOOTSTRAP TOPIC GROUP IDLE_MS [SEED]
//       MODE implicit, explicit, mixed (accepts, releases and rejects by SEED) or slow (keeps what it gets)
//
// Prints "got PARTITION OFFSET COUNT" for each record and "accept|release|reject PARTITION OFFSET" for what is
// confirmed; it ends after IDLE_MS without records.
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Random;
import java.util.ArrayList;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;

public class ShareMember {
    public static void main(String[] given) throws Exception {
        if (given[0].equals("produce")) {
            produce(given[1], given[2], Integer.parseInt(given[3]), Integer.parseInt(given[4]));
        } else {
            consume(given[1], given[2], given[3], given[4], Integer.parseInt(given[5]), given.length > 6 ? Long.parseLong(given[6]) : 0);
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

    private static void produce(String bootstrap, String topic, int first, int last) {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings(bootstrap))) {
            for (int number = first; number <= last; number++) {
                producer.send(new ProducerRecord<>(topic, "" + number, "" + number));
            }
        }
    }

    private static void consume(String mode, String bootstrap, String topic, String group, int idle, long seed)
        throws Exception {
        Properties settings = settings(bootstrap);
        settings.put("group.id", group);
        boolean isImplicit = mode.equals("implicit");
        settings.put("share.acknowledgement.mode", isImplicit ? "implicit" : "explicit");
        Random random = new Random(seed);
        StringBuilder said = new StringBuilder();
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(settings)) {
            consumer.subscribe(List.of(topic));
            long last = System.currentTimeMillis();
            while (System.currentTimeMillis() - last < idle) {
                List<String> done = new ArrayList<>();
                for (ConsumerRecord<String, String> one : consumer.poll(Duration.ofMillis(200))) {
                    last = System.currentTimeMillis();
                    said.append("got " + one.partition() + " " + one.offset() + " " + one.deliveryCount().get() + "\n");
                    AcknowledgeType type = AcknowledgeType.ACCEPT;
                    if (mode.equals("mixed")) {
                        int choice = random.nextInt(10);
                        type = choice == 0 ? AcknowledgeType.REJECT : choice < 3 ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT;
                    }
                    if (!isImplicit && !mode.equals("slow")) {
                        consumer.acknowledge(one, type);
                    }
                    done.add(type.name().toLowerCase() + " " + one.partition() + " " + one.offset() + "\n");
                }
                if (mode.equals("slow")) {
                    if (!done.isEmpty()) {
                        System.out.print(said);
                        System.out.println("holds");
                        System.out.flush();
                        Thread.sleep(600_000);
                    }
                    continue;
                }
                Map<TopicIdPartition, Optional<KafkaException>> answers = consumer.commitSync(Duration.ofSeconds(30));
                boolean isGood = true;
                for (Map.Entry<TopicIdPartition, Optional<KafkaException>> answer : answers.entrySet()) {
                    if (answer.getValue().isPresent()) {
                        isGood = false;
                        said.append("error " + answer.getKey().partition() + " " + answer.getValue().get() + "\n");
                    }
                }
                if (isGood) {
                    done.forEach(said::append);
                }
                System.out.print(said);
                System.out.flush();
                said.setLength(0);
            }
        }
    }
}
