package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.TopicImage;

import java.util.List;

/** The cluster's topics, as changes of a metadata image. */
public final class OracleTopics {
    public MetadataImage image = MetadataImage.EMPTY;
    public MetadataDelta delta;
    private long offset = 0;

    public void begin() {
        delta = new MetadataDelta.Builder().setImage(image).build();
    }

    /** Create a topic, or grow it. */
    public void put(Uuid id, String name, int partitions) {
        TopicImage known = image.topics().getTopic(id);
        if (known == null) {
            delta.replay(new TopicRecord().setTopicId(id).setName(name));
        }
        for (int index = known == null ? 0 : known.partitions().size(); index < partitions; index++) {
            delta.replay(new PartitionRecord().setTopicId(id).setPartitionId(index)
                .setReplicas(List.of(0)).setIsr(List.of(0)).setLeader(0).setLeaderEpoch(0).setPartitionEpoch(0));
        }
    }

    public void remove(Uuid id) {
        delta.replay(new RemoveTopicRecord().setTopicId(id));
    }

    public void end() {
        image = delta.apply(new MetadataProvenance(++offset, 0, 0, true));
    }

    Uuid id(String name) {
        TopicImage topic = image.topics().getTopic(name);
        return topic == null ? Uuid.ZERO_UUID : topic.id();
    }

    String name(Uuid id) {
        TopicImage topic = image.topics().getTopic(id);
        return topic == null ? "" : topic.name();
    }

    boolean has(String name, int partition) {
        TopicImage topic = image.topics().getTopic(name);
        return topic != null && topic.partitions().containsKey(partition);
    }
}
