package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;
import org.apache.kafka.coordinator.group.modern.SubscribedTopicDescriberImpl;
import org.apache.kafka.coordinator.group.modern.TopicIds;

import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * Kafka's assignors by themselves, on the image of the topics:
 * assign NAME TYPE MEMBER;INSTANCE;NAME,NAME...;ID:PARTITION.PARTITION,ID:...  ->  target MEMBER ID:PARTITION.PARTITION ...
 */
final class OracleAssignors {
    private OracleAssignors() {
    }

    static void assign(String[] words, OracleTopics topics, StringBuilder output) {
        ConsumerGroupPartitionAssignor assignor = words[1].equals("range") ? new RangeAssignor() : new UniformAssignor();
        KRaftCoordinatorMetadataImage image = new KRaftCoordinatorMetadataImage(topics.image);
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        for (int index = 3; index < words.length; index++) {
            String[] parts = words[index].split(";", -1);
            Map<Uuid, Set<Integer>> target = new HashMap<>();
            for (String topic : parts[3].isEmpty() ? new String[0] : parts[3].split(",")) {
                String[] pair = topic.split(":");
                List<Integer> partitions = Arrays.stream(pair[1].split("\\.")).map(Integer::valueOf).collect(Collectors.toList());
                target.put(Uuid.fromString(pair[0]), new HashSet<>(partitions));
                partitions.forEach(partition -> owners.computeIfAbsent(
                    Uuid.fromString(pair[0]), id -> new HashMap<>()).put(partition, parts[0]));
            }
            Set<String> names = parts[2].isEmpty() ? new HashSet<>() : new HashSet<>(Arrays.asList(parts[2].split(",")));
            members.put(parts[0], new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), parts[1].isEmpty() ? Optional.empty() : Optional.of(parts[1]),
                new TopicIds(names, image), new Assignment(target)));
        }
        assignor.assign(
            new GroupSpecImpl(Collections.unmodifiableMap(members), SubscriptionType.valueOf(words[2]), owners),
            new SubscribedTopicDescriberImpl(image)
        ).members().forEach((member, assignment) -> {
            output.append("target ").append(member);
            assignment.partitions().forEach((id, partitions) -> output.append(' ').append(id).append(':').append(
                partitions.stream().map(String::valueOf).collect(Collectors.joining("."))));
            output.append('\n');
        });
    }
}
