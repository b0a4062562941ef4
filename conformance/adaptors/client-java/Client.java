import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;

/** Apache Kafka's producer and consumer as a client under test. */
public final class Client {
    static final ObjectMapper JSON = new ObjectMapper();
    static final StringSerializer WRITE = new StringSerializer();
    static final StringDeserializer READ = new StringDeserializer();

    static void consume(JsonNode task, Properties settings, ObjectNode report) {
        var values = report.putArray("values");
        long end = System.nanoTime() + (long) (task.get("seconds").asDouble() * 1e9);
        try (var consumer = new KafkaConsumer<>(settings, READ, READ)) {
            consumer.subscribe(List.of(task.get("topic").asText()));
            while (values.size() < task.get("records").asInt() && System.nanoTime() < end) {
                var records = consumer.poll(Duration.ofMillis(100));
                records.forEach(record -> values.add(record.value()));
                if (task.get("commit").asBoolean() && !records.isEmpty()) consumer.commitSync();
            }
        }
    }

    static void produce(JsonNode task, Properties settings, ObjectNode report) throws Exception {
        boolean inTransaction = task.get("do").asText().equals("transact");
        var producer = new KafkaProducer<>(settings, WRITE, WRITE);
        try {
            if (inTransaction) {
                producer.initTransactions();
                producer.beginTransaction();
            }
            var sent = new ArrayList<Future<RecordMetadata>>();
            for (JsonNode value : task.get("values"))
                sent.add(producer.send(new ProducerRecord<>(task.get("topic").asText(), task.get("partition").asInt(), null, value.asText())));
            for (var each : sent) {
                each.get();
                report.put("sent", report.path("sent").asInt() + 1);
            }
            if (inTransaction && task.get("offset").isNumber()) {
                var offset = Map.of(new TopicPartition(task.get("topic").asText(), 0), new OffsetAndMetadata(task.get("offset").asLong()));
                producer.sendOffsetsToTransaction(offset, new ConsumerGroupMetadata(task.get("group").asText()));
            }
            if (inTransaction && task.get("end").asText().equals("commit")) producer.commitTransaction();
            if (inTransaction && task.get("end").asText().equals("abort")) producer.abortTransaction();
        } finally {
            producer.close(Duration.ofSeconds(1));
        }
    }

    public static void main(String[] arguments) throws Exception {
        var release = new Properties();
        try (var file = KafkaConsumer.class.getResourceAsStream("/kafka/kafka-version.properties")) {
            release.load(file);
        }
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode task = JSON.readTree(line);
            ObjectNode report = JSON.createObjectNode();
            if (task.get("do").asText().equals("name")) {
                report.put("name", "kafka-clients " + release.getProperty("version") + " (Java)");
            } else {
                var settings = new Properties();
                task.get("settings").fields().forEachRemaining(each -> settings.put(each.getKey(), each.getValue().asText()));
                try {
                    if (task.get("do").asText().equals("consume")) consume(task, settings, report);
                    else produce(task, settings, report);
                } catch (Exception error) {
                    report.put("error", error.toString());
                }
            }
            System.out.println(report);
        }
    }
}
