package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.apache.kafka.timeline.TimelineHashMap;

/** One of Kafka's tables with snapshots by itself: after each step a line of its keys and values, in its order. */
final class OracleTables {
    static void run(String[] words, StringBuilder output) {
        SnapshotRegistry registry = new SnapshotRegistry(new LogContext());
        TimelineHashMap<String, String> table = new TimelineHashMap<>(registry, 0);
        registry.idempotentCreateSnapshot(0);
        for (int index = 1; index < words.length; index++) {
            String[] parts = words[index].split(":");
            switch (parts[0]) {
                case "put" -> table.put(parts[1], parts[2]);
                case "remove" -> table.remove(parts[1]);
                case "begin" -> registry.idempotentCreateSnapshot(Long.parseLong(parts[1]));
                case "revert" -> registry.revertToSnapshot(Long.parseLong(parts[1]));
                case "commit" -> registry.deleteSnapshotsUpTo(Long.parseLong(parts[1]));
                default -> throw new IllegalArgumentException("no such step: " + parts[0]);
            }
            table.forEach((key, value) -> output.append(key).append('=').append(value).append(' '));
            output.append('\n');
        }
    }
}
