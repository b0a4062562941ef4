// Members of groups that are started and stopped one by one; see ../test_rehearsal.py.
//
//   RollingMembers BOOTSTRAP
//
// Standard input, a command a line; the end of it stops all members:
//   start NAME GROUP PROTOCOL INSTANCE ASSIGNOR TOPICS    INSTANCE, ASSIGNOR: - for none; TOPICS: by commas
//   stop NAME
// Standard output, a line an event: milliseconds NAME joins, has TOPIC-N …, loses TOPIC-N …, ends, fails TEXT.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.TopicPartition;

public class RollingMembers {
    private static final String PACKAGE = "org.apache.kafka.clients.consumer.";

    /** The range assignor, with data of its own in each assignment. */
    public static class WithData implements ConsumerPartitionAssignor {
        private final RangeAssignor range = new RangeAssignor();

        @Override
        public String name() {
            return "with-data";
        }

        @Override
        public GroupAssignment assign(Cluster cluster, GroupSubscription subscription) {
            Map<String, Assignment> assigned = new HashMap<>();
            range.assign(cluster, subscription).groupAssignment().forEach((member, assignment) ->
                assigned.put(member, new Assignment(assignment.partitions(), ByteBuffer.wrap(new byte[] {7}))));
            return new GroupAssignment(assigned);
        }
    }

    private static class Member extends Thread implements ConsumerRebalanceListener {
        private final String topics;
        private final Properties settings = new Properties();
        private volatile boolean ends;

        Member(String bootstrap, String[] words) {
            super(words[1]);
            topics = words[6];
            settings.put("bootstrap.servers", bootstrap);
            for (String kind : List.of("key", "value")) {
                settings.put(kind + ".deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
            }
            settings.put("client.id", words[1]);
            settings.put("group.id", words[2]);
            settings.put("group.protocol", words[3]);
            if (!words[4].equals("-")) {
                settings.put("group.instance.id", words[4]);
            }
            if (words[3].equals("classic") && !words[5].equals("-")) {
                settings.put("partition.assignment.strategy", words[5].replace("consumer.", PACKAGE));
            }
        }

        private void say(String text) {
            synchronized (System.out) {
                System.out.println(System.currentTimeMillis() + " " + getName() + " " + text.replace('\n', ' '));
                System.out.flush();
            }
        }

        private void say(String verb, Collection<TopicPartition> partitions) {
            if (!partitions.isEmpty()) {
                say(verb + partitions.stream().map(place -> " " + place).collect(Collectors.joining()));
            }
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            say("has", partitions);
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            say("loses", partitions);
        }

        @Override
        public void run() {
            say("joins");
            try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
                consumer.subscribe(List.of(topics.split(",")), this);
                while (!ends) {
                    consumer.poll(Duration.ofMillis(100));
                }
            } catch (Throwable error) {
                say("fails " + error.getClass().getSimpleName() + ": " + error.getMessage());
            }
            say("ends");
        }
    }

    public static void main(String[] given) throws Exception {
        Map<String, Member> members = new HashMap<>();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = commands.readLine()) != null; ) {
            String[] words = line.split(" ");
            if (words[0].equals("start")) {
                members.put(words[1], new Member(given[0], words));
                members.get(words[1]).start();
            } else {
                members.get(words[1]).ends = true;
            }
        }
        members.values().forEach(member -> member.ends = true);
    }
}
