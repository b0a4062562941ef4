import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Whoever runs the broker: `java Operator BOOTSTRAP`, a command a line on standard input, "done" or "failed ..." a line
 * on standard output; after "done" the id of a topic that was created.
 *
 * <p>Commands: `create TOPIC PARTITIONS`, `partitions TOPIC NUMBER`, `delete TOPIC`, `remove GROUP [INSTANCE]` (all
 * members without it), `configure GROUP KEY=VALUE`, `produce TOPIC NUMBER`.
 */
public final class Operator {
    private Operator() {
    }

    public static void main(String[] args) throws Exception {
        Properties all = new Properties();
        all.put("bootstrap.servers", args[0]);
        all.put("client.id", "operator");
        all.put("enable.metrics.push", "false");
        all.put("key.serializer", ByteArraySerializer.class.getName());
        all.put("value.serializer", ByteArraySerializer.class.getName());
        all.put("metadata.max.age.ms", "3600000");
        Map<String, Object> admins = new HashMap<>();
        all.forEach((key, value) -> {
            if (!key.toString().endsWith("serializer")) {
                admins.put(key.toString(), value);
            }
        });
        try (Admin admin = Admin.create(admins);
                KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(all);
                BufferedReader lines = new BufferedReader(new InputStreamReader(System.in))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                try {
                    System.out.println("done " + run(admin, producer, line.split(" ")));
                } catch (ExecutionException failed) {
                    System.out.println("failed " + failed.getCause());
                }
            }
        }
    }

    private static String run(Admin admin, KafkaProducer<byte[], byte[]> producer, String[] command) throws Exception {
        switch (command[0]) {
            case "create":
                int number = Integer.parseInt(command[2]);
                return admin.createTopics(List.of(new NewTopic(command[1], number, (short) 1)))
                    .topicId(command[1]).get().toString();
            case "partitions":
                NewPartitions more = NewPartitions.increaseTo(Integer.parseInt(command[2]));
                admin.createPartitions(Map.of(command[1], more)).all().get();
                break;
            case "delete":
                admin.deleteTopics(List.of(command[1])).all().get();
                break;
            case "remove":
                RemoveMembersFromConsumerGroupOptions who = command.length > 2
                    ? new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove(command[2])))
                    : new RemoveMembersFromConsumerGroupOptions();
                admin.removeMembersFromConsumerGroup(command[1], who).all().get();
                break;
            case "configure":
                String[] pair = command[2].split("=", 2);
                admin.incrementalAlterConfigs(Map.of(
                    new ConfigResource(ConfigResource.Type.GROUP, command[1]),
                    List.of(new AlterConfigOp(new ConfigEntry(pair[0], pair[1]), AlterConfigOp.OpType.SET))))
                    .all().get();
                break;
            case "produce":
                for (int index = 0; index < Integer.parseInt(command[2]); index++) {
                    producer.send(new ProducerRecord<>(command[1], new byte[] {(byte) index}, new byte[8]));
                }
                producer.flush();
                break;
            default:
                throw new IllegalArgumentException(command[0]);
        }
        return "";
    }
}
