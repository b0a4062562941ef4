package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.coordinator.common.runtime.CoordinatorLoader;
import org.apache.kafka.coordinator.common.runtime.CoordinatorPlayback;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.Deserializer;
import org.apache.kafka.coordinator.common.runtime.PartitionWriter;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.VerificationGuard;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** The partition's log in memory: appends that fail when told, a high watermark that can be held back, and loading. */
public final class OracleLog implements PartitionWriter, CoordinatorLoader<CoordinatorRecord> {
    /** A record, or the end of a transaction. */
    public static final class Entry {
        final long offset;
        final long producerId;
        final short producerEpoch;
        final TransactionResult end;
        final byte[] key;
        final byte[] value;

        public Entry(long offset, long producerId, short producerEpoch, TransactionResult end, byte[] key, byte[] value) {
            this.offset = offset;
            this.producerId = producerId;
            this.producerEpoch = producerEpoch;
            this.end = end;
            this.key = key;
            this.value = value;
        }
    }

    private static final LogConfig CONFIG = new LogConfig(Map.of());

    public final List<Entry> entries = new ArrayList<>();
    public long endOffset = 0;
    boolean slow = false;
    private Runnable loading = null;
    private final StringBuilder output;
    private final List<Listener> listeners = new ArrayList<>();
    private TopicPartition partition;
    private long highWatermark = 0;
    public Errors failure = null;
    public boolean held = false;
    private final Deserializer<CoordinatorRecord> serde;

    OracleLog(StringBuilder output) {
        this(output, new GroupCoordinatorRecordSerde());
    }

    /** serde: of the records of the coordinator that has the log. */
    public OracleLog(StringBuilder output, Deserializer<CoordinatorRecord> serde) {
        this.output = output;
        this.serde = serde;
    }

    /** Let the high watermark reach the end of the log. */
    public void commit() {
        if (highWatermark < endOffset) {
            highWatermark = endOffset;
            List.copyOf(listeners).forEach(listener -> listener.onHighWatermarkUpdated(partition, highWatermark));
        }
    }

    @Override
    public void registerListener(TopicPartition tp, Listener listener) {
        partition = tp;
        listeners.add(listener);
    }

    @Override
    public void deregisterListener(TopicPartition tp, Listener listener) {
        listeners.remove(listener);
    }

    @Override
    public LogConfig config(TopicPartition tp) {
        return CONFIG;
    }

    @Override
    public long append(TopicPartition tp, VerificationGuard guard, MemoryRecords records, short transactionVersion) {
        if (failure != null) {
            Errors error = failure;
            failure = null;
            output.append("failed ").append(error.name()).append('\n');
            throw error.exception();
        }
        for (MutableRecordBatch batch : records.batches()) {
            output.append("batch ").append(endOffset).append(' ').append(batch.producerId()).append(' ')
                .append(batch.producerEpoch()).append('\n');
            for (Record record : batch) {
                TransactionResult end = null;
                byte[] key = bytes(record.key());
                byte[] value = bytes(record.value());
                if (batch.isControlBatch()) {
                    end = ControlRecordType.parse(record.key()) == ControlRecordType.COMMIT
                        ? TransactionResult.COMMIT : TransactionResult.ABORT;
                }
                entries.add(new Entry(endOffset++, batch.producerId(), batch.producerEpoch(), end, key, value));
                output.append(end == null ? "record " : "marker ").append(Oracle.hex(key)).append(' ')
                    .append(Oracle.hex(value)).append('\n');
            }
        }
        if (!held) {
            commit();
        }
        return endOffset;
    }

    @Override
    public CompletableFuture<VerificationGuard> maybeStartTransactionVerification(
        TopicPartition tp, String transactionalId, long producerId, short producerEpoch, int apiVersion
    ) {
        return CompletableFuture.completedFuture(VerificationGuard.SENTINEL);
    }

    @Override
    public CompletableFuture<Void> deleteRecords(TopicPartition tp, long deleteBeforeOffset) {
        return CompletableFuture.completedFuture(null);
    }

    /** Go on with a load that was to be slow. */
    void finishLoading() {
        Runnable rest = loading;
        loading = null;
        slow = false;
        if (rest != null) {
            rest.run();
        }
    }

    /** Forget a load that has not been gone on with. */
    void stopLoading() {
        loading = null;
        slow = false;
    }

    @Override
    public CompletableFuture<LoadSummary> load(TopicPartition tp, CoordinatorPlayback<CoordinatorRecord> coordinator) {
        if (!slow) {
            return loadNow(coordinator);
        }
        CompletableFuture<LoadSummary> future = new CompletableFuture<>();
        loading = () -> loadNow(coordinator).whenComplete((summary, error) -> {
            if (error == null) {
                future.complete(summary);
            } else {
                future.completeExceptionally(error);
            }
        });
        return future;
    }

    private CompletableFuture<LoadSummary> loadNow(CoordinatorPlayback<CoordinatorRecord> coordinator) {
        try {
            for (Entry entry : entries) {
                if (entry.end != null) {
                    coordinator.replayEndTransactionMarker(entry.producerId, entry.producerEpoch, entry.end);
                } else {
                    try {
                        CoordinatorRecord record = serde.deserialize(
                            ByteBuffer.wrap(entry.key), entry.value == null ? null : ByteBuffer.wrap(entry.value));
                        coordinator.replay(entry.offset, entry.producerId, entry.producerEpoch, record);
                    } catch (Deserializer.UnknownRecordTypeException unknown) {
                        output.append("unknown ").append(unknown.unknownType()).append('\n');
                    }
                }
            }
            highWatermark = endOffset;
            if (endOffset > 0) {
                coordinator.updateLastWrittenOffset(endOffset);
                coordinator.updateLastCommittedOffset(endOffset);
            }
            return CompletableFuture.completedFuture(null);
        } catch (RuntimeException error) {
            output.append("unloadable ").append(error).append('\n');
            return CompletableFuture.failedFuture(error);
        }
    }

    @Override
    public void close() {
    }

    private static byte[] bytes(ByteBuffer buffer) {
        if (buffer == null) {
            return null;
        }
        byte[] found = new byte[buffer.remaining()];
        buffer.duplicate().get(found);
        return found;
    }
}
