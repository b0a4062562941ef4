import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.ShareConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * One member of a group: `java Member BOOTSTRAP consumer|share GROUP NAME TOPICS [KEY=VALUE ...]`.
 *
 * <p>Strategy: it polls until it is told to close; lines on standard input are taken up between two polls
 * (`subscribe T,T`, `pattern RE2`, `rejoin`, `pause MS`, `close`), a line on standard output for each assignment: "assigned", when, all that it has.
 * Rules: what is consumed is committed by the client itself; without standard input it goes on.
 */
public final class Member {
    private static final Duration POLL = Duration.ofMillis(100);
    private static final Queue<String> COMMANDS = new ConcurrentLinkedQueue<>();

    private Member() {
    }

    public static void main(String[] args) throws Exception {
        Properties all = new Properties();
        all.put("bootstrap.servers", args[0]);
        all.put("group.id", args[2]);
        all.put("client.id", args[3]);
        all.put("key.deserializer", ByteArrayDeserializer.class.getName());
        all.put("value.deserializer", ByteArrayDeserializer.class.getName());
        all.put("enable.metrics.push", "false");
        all.put("fetch.max.wait.ms", "2000");
        if (args[1].equals("consumer")) {
            all.put("auto.commit.interval.ms", "1000");
            all.put("auto.offset.reset", "earliest");
        }
        for (int index = 5; index < args.length; index++) {
            String[] pair = args[index].split("=", 2);
            all.put(pair[0], pair[1]);
        }
        Thread reader = new Thread(Member::read);
        reader.setDaemon(true);
        reader.start();
        if (args[1].equals("share")) {
            share(all, args[4]);
        } else {
            consume(all, args[4]);
        }
        System.exit(0);
    }

    private static void read() {
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(System.in))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                COMMANDS.add(line);
            }
        } catch (java.io.IOException gone) {
            System.out.println("no more commands");
        }
    }

    private static List<String> topics(String text) {
        return List.of(text.split(","));
    }

    private static void consume(Properties all, String first) throws Exception {
        try (Consumer<byte[], byte[]> consumer = new KafkaConsumer<>(all)) {
            ConsumerRebalanceListener listener = new ConsumerRebalanceListener() {
                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> added) {
                    String names = consumer.assignment().stream().map(TopicPartition::toString).sorted()
                        .collect(Collectors.joining(","));
                    System.out.println("assigned " + System.currentTimeMillis() + " " + names);
                }

                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                    // Whatever is left is in the next assignment.
                }
            };
            if (first.startsWith("re2:")) {
                consumer.subscribe(new SubscriptionPattern(first.substring(4)), listener);
            } else if (first.startsWith("re:")) {
                consumer.subscribe(Pattern.compile(first.substring(3)), listener);
            } else {
                consumer.subscribe(topics(first), listener);
            }
            while (true) {
                String[] command = next();
                switch (command[0]) {
                    case "close":
                        return;
                    case "subscribe":
                        consumer.subscribe(topics(command[1]), listener);
                        break;
                    case "pattern":
                        consumer.subscribe(new SubscriptionPattern(command[1]), listener);
                        break;
                    case "rejoin":
                        consumer.enforceRebalance("asked for");
                        break;
                    case "pause":
                        Thread.sleep(Long.parseLong(command[1]));
                        break;
                    default:
                        break;
                }
                try {
                    consumer.poll(POLL);
                } catch (org.apache.kafka.common.errors.RetriableException again) {
                    System.out.println("again after " + again);
                }
            }
        }
    }

    private static void share(Properties all, String first) throws Exception {
        try (ShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(all)) {
            consumer.subscribe(topics(first));
            System.out.println("subscribed");
            while (true) {
                String[] command = next();
                switch (command[0]) {
                    case "close":
                        return;
                    case "subscribe":
                        consumer.subscribe(topics(command[1]));
                        break;
                    default:
                        break;
                }
                consumer.poll(POLL);
            }
        }
    }

    private static String[] next() {
        String line = COMMANDS.poll();
        return line == null ? new String[] {""} : line.split(" ", 2);
    }
}
