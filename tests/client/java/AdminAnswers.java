import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaFilter;

/** What Kafka's Admin answers at a cluster with a topic "orders" of three partitions: a line NAME=VALUE each. */
public final class AdminAnswers {
    public static void main(String[] arguments) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            DescribeClusterResult cluster = admin.describeCluster();
            print("cluster", cluster.clusterId().get());
            print("nodes", cluster.nodes().get().stream().map(node -> node.id() + " " + node.host() + " " + node.port()).sorted().toList());
            TreeSet<String> topics = new TreeSet<>(admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get());
            print("topics", topics);
            TopicDescription orders = admin.describeTopics(List.of("orders")).allTopicNames().get().get("orders");
            print("topic", orders.topicId() + " " + orders.partitions().stream().map(part -> part.partition() + ":"
                + part.leader().id() + ":" + part.replicas().stream().map(node -> node.id()).toList()).toList());
            ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, "orders");
            print("config", sorted(admin.describeConfigs(List.of(topic)).all().get().get(topic).entries()));
            ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, "1");
            print("broker", sorted(admin.describeConfigs(List.of(broker)).all().get().get(broker).entries()));
            Map<TopicPartition, OffsetSpec> latest = new HashMap<>();
            for (int number = 0; number < 3; number++) latest.put(new TopicPartition("orders", number), OffsetSpec.latest());
            Map<String, Long> offsets = new TreeMap<>();
            admin.listOffsets(latest).all().get().forEach((partition, info) -> offsets.put(partition.toString(), info.offset()));
            print("offsets", offsets);
            print("groups", admin.listConsumerGroups().all().get().stream().map(group -> group.groupId()).sorted().toList());
            Map<String, Long> committed = new TreeMap<>();
            admin.listConsumerGroupOffsets("payments").partitionsToOffsetAndMetadata().get().forEach(
                (partition, offset) -> committed.put(partition.toString(), offset.offset()));
            print("committed", committed);
            print("users", admin.describeUserScramCredentials().all().get().keySet());
            print("quotas", admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get().size());
            print("leader", admin.describeMetadataQuorum().quorumInfo().get().leaderId());
            List<String> features = new ArrayList<>();
            admin.describeFeatures().featureMetadata().get().finalizedFeatures().forEach(
                (name, range) -> features.add(name + " " + range.maxVersionLevel()));
            print("features", features.stream().sorted().toList());
            List<String> directories = new ArrayList<>();
            admin.describeLogDirs(List.of(1)).allDescriptions().get().get(1).forEach((path, description) ->
                directories.add(path + " " + description.replicaInfos().keySet().stream().map(Object::toString).sorted().toList()));
            print("directories", directories);
        }
    }

    private static List<String> sorted(Collection<ConfigEntry> entries) {
        return entries.stream().map(entry -> entry.name() + " " + entry.value()).sorted().toList();
    }

    private static void print(String name, Object value) {
        System.out.println(name + "=" + value.toString().replace("\n", " "));
    }
}
