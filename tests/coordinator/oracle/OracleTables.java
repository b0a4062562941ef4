package org.apache.kafka.coordinator.group;

import java.util.HashMap;
import java.util.HashSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.apache.kafka.timeline.TimelineHashMap;

/** Java's and Kafka's tables by themselves: after each step a line of a table's keys and values, in its order. */
final class OracleTables {
    /** A table with snapshots. */
    static void run(String[] words, StringBuilder output) {
        SnapshotRegistry registry = new SnapshotRegistry(OracleRelease.LOG);
        TimelineHashMap<Object, String> table = new TimelineHashMap<>(registry, 0);
        registry.idempotentCreateSnapshot(0);
        for (int index = 1; index < words.length; index++) {
            String[] parts = words[index].split(":");
            switch (parts[0]) {
                case "put" -> table.put(key(parts[1]), parts[2]);
                case "remove" -> table.remove(key(parts[1]));
                case "begin" -> registry.idempotentCreateSnapshot(Long.parseLong(parts[1]));
                case "revert" -> registry.revertToSnapshot(Long.parseLong(parts[1]));
                case "commit" -> registry.deleteSnapshotsUpTo(Long.parseLong(parts[1]));
                default -> throw new IllegalArgumentException("no such step: " + parts[0]);
            }
            table.forEach((key, value) -> output.append(text(key)).append('=').append(value).append(' '));
            output.append('\n');
        }
    }

    /** A HashMap, made by `new`. */
    static void map(String[] words, StringBuilder output) {
        HashMap<Object, String> table = new HashMap<>();
        for (int index = 1; index < words.length; index++) {
            String[] parts = words[index].split(":");
            switch (parts[0]) {
                case "new" -> table = new HashMap<>(Integer.parseInt(parts[1]));
                case "put" -> table.put(key(parts[1]), parts[2]);
                case "absent" -> table.computeIfAbsent(key(parts[1]), key -> parts[2]);
                case "compute" -> table.compute(key(parts[1]), (key, value) -> parts[2].equals("-") ? null : parts[2]);
                case "remove" -> table.remove(key(parts[1]));
                case "copy" -> table = new HashMap<>(table);
                default -> throw new IllegalArgumentException("no such step: " + parts[0]);
            }
            table.forEach((key, value) -> output.append(text(key)).append('=').append(value).append(' '));
            output.append('\n');
        }
    }

    /** A HashSet, made by `new`. */
    static void set(String[] words, StringBuilder output) {
        HashSet<Object> table = new HashSet<>();
        for (int index = 1; index < words.length; index++) {
            String[] parts = words[index].split(":");
            switch (parts[0]) {
                case "new" -> table = new HashSet<>(Integer.parseInt(parts[1]));
                case "put" -> table.add(key(parts[1]));
                case "remove" -> table.remove(key(parts[1]));
                case "copy" -> table = new HashSet<>(table);
                default -> throw new IllegalArgumentException("no such step: " + parts[0]);
            }
            table.forEach(key -> output.append(text(key)).append(' '));
            output.append('\n');
        }
    }

    /** Numbers begin with `i`, topic ids with `u`, and pairs of a string and a number with `p`. */
    private static Object key(String text) {
        return switch (text.charAt(0)) {
            case 'i' -> Integer.valueOf(text.substring(1));
            case 'u' -> new Uuid(Long.parseUnsignedLong(text.substring(1, 17), 16), Long.parseUnsignedLong(text.substring(17), 16));
            case 'p' -> new Pair(text.substring(1, text.indexOf('.')), Integer.parseInt(text.substring(text.indexOf('.') + 1)));
            default -> text;
        };
    }

    private record Pair(String first, int second) {
    }

    private static String text(Object key) {
        if (key instanceof Integer) {
            return "i" + key;
        }
        if (key instanceof Uuid id) {
            return String.format("u%016x%016x", id.getMostSignificantBits(), id.getLeastSignificantBits());
        }
        return key instanceof Pair pair ? "p" + pair.first() + "." + pair.second() : key.toString();
    }
}
