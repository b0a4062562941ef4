import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import kafka.api.ConsumerMetadataRequest;
import kafka.cluster.Broker;
import kafka.common.OffsetAndMetadata;
import kafka.common.OffsetMetadataAndError;
import kafka.common.TopicAndPartition;
import kafka.javaapi.ConsumerMetadataResponse;
import kafka.javaapi.OffsetCommitRequest;
import kafka.javaapi.OffsetCommitResponse;
import kafka.javaapi.OffsetFetchRequest;
import kafka.javaapi.OffsetFetchResponse;
import kafka.network.BlockingChannel;
import kafka.server.KafkaConfig;
import kafka.server.KafkaServerStartable;
import org.apache.zookeeper.server.NIOServerCnxnFactory;
import org.apache.zookeeper.server.ZooKeeperServer;

/** A broker of Kafka 0.8.2.2 with its offset manager, and Kafka's own channel to it. The arguments are an empty
 *  folder and the broker's port. A topic that is asked for has 4 partitions. Writes "ready"; then an answer to each line of standard input:
 *  "commit GROUP TOPIC PARTITION OFFSET" (the error code), "fetch GROUP TOPIC PARTITION" (the offset). */
public final class OffsetManagerChannel {
    public static void main(String[] arguments) throws Exception {
        File folder = new File(arguments[0]);
        int port = Integer.parseInt(arguments[1]);
        ZooKeeperServer server = new ZooKeeperServer(new File(folder, "zookeeper"), new File(folder, "zookeeper"), 500);
        NIOServerCnxnFactory factory = new NIOServerCnxnFactory();
        factory.configure(new InetSocketAddress("127.0.0.1", 0), 10);
        factory.startup(server);
        Properties p = new Properties();
        p.put("broker.id", "1");
        p.put("host.name", "127.0.0.1");
        p.put("port", "" + port);
        p.put("zookeeper.connect", "127.0.0.1:" + factory.getLocalPort());
        p.put("log.dirs", new File(folder, "logs").getPath());
        p.put("log.cleaner.enable", "false");
        p.put("num.partitions", "4");
        p.put("offsets.topic.num.partitions", "1");
        p.put("offsets.topic.replication.factor", "1");
        KafkaServerStartable broker = new KafkaServerStartable(new KafkaConfig(p));
        broker.startup();
        System.out.println("ready");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            TopicAndPartition partition = new TopicAndPartition(words[2], Integer.parseInt(words[3]));
            BlockingChannel channel = manager(port, words[1]);
            if (words[0].equals("commit")) {
                OffsetAndMetadata offset = new OffsetAndMetadata(Long.parseLong(words[4]), "java", System.currentTimeMillis());
                Map<TopicAndPartition, OffsetAndMetadata> offsets = Collections.singletonMap(partition, offset);
                channel.send(new OffsetCommitRequest(words[1], offsets, 1, "java", (short) 1).underlying());
                OffsetCommitResponse response = OffsetCommitResponse.readFrom(channel.receive().buffer());
                System.out.println(response.errorCode(partition));
            } else {
                List<TopicAndPartition> partitions = Collections.singletonList(partition);
                channel.send(new OffsetFetchRequest(words[1], partitions, (short) 1, 1, "java").underlying());
                OffsetMetadataAndError result = OffsetFetchResponse.readFrom(channel.receive().buffer()).offsets().get(partition);
                System.out.println(result.offset());
            }
            channel.disconnect();
        }
        broker.shutdown();
        broker.awaitShutdown();
        factory.shutdown();
        Runtime.getRuntime().halt(0);
    }

    /** A channel to the group's offset manager, once there is one: its topic is made when it is asked for. */
    static BlockingChannel manager(int port, String group) throws Exception {
        while (true) {
            BlockingChannel channel = new BlockingChannel("127.0.0.1", port, -1, -1, 5000);
            channel.connect();
            channel.send(new ConsumerMetadataRequest(group, (short) 0, 1, "java"));
            ConsumerMetadataResponse response = ConsumerMetadataResponse.readFrom(channel.receive().buffer());
            channel.disconnect();
            if (response.errorCode() == 0) {
                Broker broker = response.coordinator();
                BlockingChannel owner = new BlockingChannel(broker.host(), broker.port(), -1, -1, 5000);
                owner.connect();
                return owner;
            }
            Thread.sleep(100);
        }
    }
}
