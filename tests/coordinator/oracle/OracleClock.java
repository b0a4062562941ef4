package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;
import org.apache.kafka.server.util.timer.TimerTaskEntry;

import java.lang.reflect.Field;
import java.util.TreeMap;
import java.util.function.BiConsumer;
import java.util.function.Supplier;

/** Time and timers that move only when told: tasks run at their deadline, equal deadlines in the order they were set. */
public final class OracleClock implements Time, Timer {
    private static final class Due implements Comparable<Due> {
        private final long deadline;
        private final long number;

        private Due(long deadline, long number) {
            this.deadline = deadline;
            this.number = number;
        }

        @Override
        public int compareTo(Due other) {
            int first = Long.compare(deadline, other.deadline);
            return first != 0 ? first : Long.compare(number, other.number);
        }
    }

    private final TreeMap<Due, TimerTaskEntry> tasks = new TreeMap<>();
    private long now;
    private long number = 0;
    private long current = 0;

    public OracleClock(long now) {
        this.now = now;
    }

    @Override
    public void add(TimerTask task) {
        tasks.put(new Due(now + task.delayMs, number++), new TimerTaskEntry(task, now + task.delayMs));
    }

    /** What is set from now on belongs to a new term of the coordinator; timers of the old one fire without effect. */
    public void beginTerm() {
        current = number;
    }

    /** Run what is due up to a point in time, each task at its own. */
    public void advanceTo(long time) {
        while (!tasks.isEmpty() && tasks.firstKey().deadline <= time) {
            Due due = tasks.firstKey();
            TimerTaskEntry entry = tasks.remove(due);
            if (entry.cancelled()) {
                continue;
            }
            now = Math.max(now, due.deadline);
            entry.timerTask.run();
        }
        now = Math.max(now, time);
    }

    /** What the coordinator's own timers wait for; the runtime's time limits of writes have no key. */
    public void forEach(BiConsumer<Long, String> action) {
        tasks.forEach((due, entry) -> {
            if (!entry.cancelled() && due.number >= current) {
                try {
                    Field key = entry.timerTask.getClass().getDeclaredField("val$key");
                    key.setAccessible(true);
                    action.accept(due.deadline, (String) key.get(entry.timerTask));
                } catch (ReflectiveOperationException none) {
                    // a time limit of a write
                }
            }
        });
    }

    @Override
    public boolean advanceClock(long timeoutMs) {
        advanceTo(now + timeoutMs);
        return true;
    }

    @Override
    public int size() {
        return tasks.size();
    }

    @Override
    public void close() {
        tasks.clear();
    }

    @Override
    public long milliseconds() {
        return now;
    }

    @Override
    public long nanoseconds() {
        return now * 1_000_000;
    }

    @Override
    public void sleep(long ms) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
        throw new UnsupportedOperationException();
    }
}
