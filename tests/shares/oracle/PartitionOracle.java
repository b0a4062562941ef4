package kafka.server.share;

import kafka.server.ReplicaManager;

import org.apache.kafka.clients.consumer.internals.ShareAcquireMode;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.coordinator.group.OracleClock;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.server.share.acknowledge.ShareAcknowledgementBatch;
import org.apache.kafka.server.share.fetch.AcquisitionLockTimerTask;
import org.apache.kafka.server.share.fetch.DelayedShareFetchKey;
import org.apache.kafka.server.share.fetch.InFlightBatch;
import org.apache.kafka.server.share.fetch.InFlightState;
import org.apache.kafka.server.share.fetch.ShareAcquiredRecords;
import org.apache.kafka.server.share.metrics.SharePartitionMetrics;
import org.apache.kafka.server.share.persister.*;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchPartitionData;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;

/**
 * Kafka's own share partition on a mock clock, with a persister that answers when told. A command is one line of words;
 * its output is what happened, then the partition's whole state, and a line of one full stop.
 *
 * new LOCKS DELIVERIES LOCK-MS RENEWS       a partition at time 1000
 * load START EPOCH FIRST:LAST:STATE:COUNT... | load-error ERROR
 * acquire MEMBER MODE BATCH-SIZE MOST OFFSET BASE:COUNT:PRODUCER:KIND... [aborted PRODUCER:FIRST...]   kinds: r, t, a, c
 * ack TICKET MEMBER FIRST:LAST:TYPE,TYPE... ; release TICKET MEMBER ; start OFFSET ; advance MILLISECONDS
 * hold / written INDEX ERROR                writes wait; the write that waits at this index ends
 */
public final class PartitionOracle {
    private static final TopicIdPartition PLACE = new TopicIdPartition(new Uuid(1, 2), new TopicPartition("t", 0));

    /** A replica manager without anything in it; it only hears that a fetch may go on. */
    public static final class NoReplicas extends ReplicaManager {
        private NoReplicas() {
            super(null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
                null, null, null, null);
        }

        @Override
        public void completeDelayedShareFetchRequest(DelayedShareFetchKey key) {
        }
    }

    private record Waiting(WriteShareGroupStateParameters request, CompletableFuture<WriteShareGroupStateResult> future) { }

    private final StringBuilder output = new StringBuilder();
    private final OracleClock clock = new OracleClock(1000);
    private final List<Waiting> waiting = new ArrayList<>();
    private boolean held = false;
    private ReadShareGroupStateResult read;
    private final SharePartition partition;

    private PartitionOracle(String[] words) throws Exception {
        AbstractConfig properties = new AbstractConfig(
            Utils.mergeConfigs(List.of(GroupCoordinatorConfig.CONFIG_DEF, ShareGroupConfig.CONFIG_DEF)), Map.of(), Map.of(), false);
        GroupConfigManager groups = new GroupConfigManager(
            Map.of(), new GroupCoordinatorConfig(properties), new ShareGroupConfig(properties));
        if (words[4].equals("false")) {
            Properties own = new Properties();
            own.put("share.partition.max.record.locks", words[1]);
            own.put("share.delivery.count.limit", words[2]);
            own.put("share.record.lock.duration.ms", words[3]);
            own.put("share.renew.acknowledge.enable", "false");
            groups.updateGroupConfig("g", own);
        }
        java.lang.reflect.Field field = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        ReplicaManager replicas = (ReplicaManager) ((sun.misc.Unsafe) field.get(null)).allocateInstance(NoReplicas.class);
        partition = new SharePartition("g", PLACE, 0, Integer.parseInt(words[1]), Integer.parseInt(words[2]),
            Integer.parseInt(words[3]), clock, clock, new Answers(), replicas, groups,
            SharePartition.SharePartitionState.EMPTY, null, METRICS);
    }

    private static final SharePartitionMetrics METRICS = new SharePartitionMetrics("g", "t", 0);

    /** Writes are printed; they end at once, or when told. */
    private final class Answers implements Persister {
        @Override
        public CompletableFuture<ReadShareGroupStateResult> readState(ReadShareGroupStateParameters request) {
            return CompletableFuture.completedFuture(read);
        }

        @Override
        public CompletableFuture<WriteShareGroupStateResult> writeState(WriteShareGroupStateParameters request) {
            PartitionStateBatchData data = request.groupTopicPartitionData().topicsData().get(0).partitions().get(0);
            output.append("write ").append(data.stateEpoch()).append(' ').append(data.startOffset()).append(' ')
                .append(data.deliveryCompleteCount());
            data.stateBatches().forEach(batch -> output.append(' ').append(batch.firstOffset()).append(':')
                .append(batch.lastOffset()).append(':').append(batch.deliveryCount()).append(':').append(batch.deliveryState()));
            output.append('\n');
            if (!held) {
                return CompletableFuture.completedFuture(result(Errors.NONE));
            }
            CompletableFuture<WriteShareGroupStateResult> future = new CompletableFuture<>();
            waiting.add(new Waiting(request, future));
            return future;
        }

        private CompletableFuture<InitializeShareGroupStateResult> no() {
            throw new UnsupportedOperationException();
        }

        @Override
        public CompletableFuture<InitializeShareGroupStateResult> initializeState(InitializeShareGroupStateParameters request) {
            return no();
        }

        @Override
        public CompletableFuture<DeleteShareGroupStateResult> deleteState(DeleteShareGroupStateParameters request) {
            throw new UnsupportedOperationException();
        }

        @Override
        public CompletableFuture<ReadShareGroupStateSummaryResult> readSummary(ReadShareGroupStateSummaryParameters request) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void stop() {
        }
    }

    private static WriteShareGroupStateResult result(Errors error) {
        return new WriteShareGroupStateResult.Builder().setTopicsData(List.of(new TopicData<>(PLACE.topicId(),
            List.of(PartitionFactory.newPartitionErrorData(0, error.code(), error == Errors.NONE ? null : error.message()))))).build();
    }

    private void command(String[] words) throws Exception {
        switch (words[0]) {
            case "load" -> {
                List<PersisterStateBatch> batches = new ArrayList<>();
                for (int index = 3; index < words.length; index++) {
                    String[] parts = words[index].split(":");
                    batches.add(new PersisterStateBatch(Long.parseLong(parts[0]), Long.parseLong(parts[1]),
                        Byte.parseByte(parts[2]), Short.parseShort(parts[3])));
                }
                load(Integer.parseInt(words[2]), Long.parseLong(words[1]), Errors.NONE, batches);
            }
            case "load-error" -> load(0, 0, Errors.valueOf(words[1]), List.of());
            case "acquire" -> acquire(words);
            case "ack" -> {
                List<ShareAcknowledgementBatch> batches = new ArrayList<>();
                for (int index = 3; index < words.length; index++) {
                    String[] parts = words[index].split(":");
                    List<Byte> types = new ArrayList<>();
                    for (String type : parts[2].split(",")) {
                        types.add(Byte.parseByte(type));
                    }
                    batches.add(new ShareAcknowledgementBatch(Long.parseLong(parts[0]), Long.parseLong(parts[1]), types));
                }
                outcome(words[1], partition.acknowledge(words[2], batches));
            }
            case "release" -> outcome(words[1], partition.releaseAcquiredRecords(words[2]));
            case "start" -> partition.updateCacheAndOffsets(Long.parseLong(words[1]));
            case "advance" -> clock.advanceTo(Long.parseLong(words[1]));
            case "hold" -> held = true;
            case "flow" -> held = false;
            case "written" -> waiting.remove(Integer.parseInt(words[1])).future.complete(result(Errors.valueOf(words[2])));
            default -> throw new IllegalArgumentException("no such command: " + words[0]);
        }
        state();
    }

    private void load(int epoch, long start, Errors error, List<PersisterStateBatch> batches) {
        read = new ReadShareGroupStateResult.Builder().setTopicsData(List.of(new TopicData<>(PLACE.topicId(), List.of(
            PartitionFactory.newPartitionAllData(0, epoch, start, error.code(), error.message(), batches))))).build();
        partition.maybeInitialize().whenComplete((none, thrown) -> output.append("loaded ")
            .append(thrown == null ? "NONE" : Errors.forException(thrown).name()).append('\n'));
    }

    private void outcome(String ticket, CompletableFuture<Void> future) {
        future.whenComplete((none, thrown) -> {
            output.append("outcome ").append(ticket).append(' ');
            output.append(thrown == null ? "NONE" : Errors.forException(thrown).name() + " " + thrown.getMessage()).append('\n');
        });
    }

    private void acquire(String[] words) {
        ByteBuffer buffer = ByteBuffer.allocate(1 << 16);
        List<FetchResponseData.AbortedTransaction> aborted = null;
        for (int index = 6; index < words.length; index++) {
            if (words[index].equals("aborted")) {
                aborted = new ArrayList<>();
                continue;
            }
            String[] parts = words[index].split(":");
            if (aborted != null) {
                aborted.add(new FetchResponseData.AbortedTransaction()
                    .setProducerId(Long.parseLong(parts[0])).setFirstOffset(Long.parseLong(parts[1])));
                continue;
            }
            long base = Long.parseLong(parts[0]);
            int count = Integer.parseInt(parts[1]);
            long producer = Long.parseLong(parts[2]);
            boolean control = parts[3].equals("a") || parts[3].equals("c");
            boolean transactional = control || parts[3].equals("t");
            MemoryRecordsBuilder builder = new MemoryRecordsBuilder(buffer, RecordBatch.CURRENT_MAGIC_VALUE, Compression.NONE,
                TimestampType.CREATE_TIME, base, 0, producer, producer < 0 ? (short) -1 : 0,
                producer < 0 || control ? RecordBatch.NO_SEQUENCE : 0, transactional, control, 0, buffer.capacity());
            if (control) {
                builder.appendEndTxnMarker(0, new EndTransactionMarker(
                    parts[3].equals("a") ? ControlRecordType.ABORT : ControlRecordType.COMMIT, 0));
            } else {
                for (int number = 0; number < count; number++) {
                    builder.appendWithOffset(base + number, 0, null, new byte[] {1});
                }
            }
            builder.close();
        }
        buffer.flip();
        FetchPartitionData data = new FetchPartitionData(Errors.NONE, 1 << 30, 0, MemoryRecords.readableRecords(buffer),
            Optional.empty(), OptionalLong.empty(), Optional.ofNullable(aborted), OptionalInt.empty(), false);
        try {
            ShareAcquiredRecords acquired = partition.acquire(words[1], ShareAcquireMode.valueOf(words[2]),
                Integer.parseInt(words[3]), Integer.parseInt(words[4]), Long.parseLong(words[5]), data,
                aborted == null ? FetchIsolation.HIGH_WATERMARK : FetchIsolation.TXN_COMMITTED);
            output.append("acquired");
            acquired.acquiredRecords().forEach(run -> output.append(' ').append(run.firstOffset()).append(':')
                .append(run.lastOffset()).append(':').append(run.deliveryCount()));
            output.append('\n');
        } catch (RuntimeException error) {
            output.append("thrown ").append(error.getClass().getSimpleName()).append('\n');
        }
    }

    private void state() {
        output.append("state ").append(partition.partitionState()).append(' ').append(partition.startOffset()).append(' ')
            .append(partition.endOffset()).append(' ').append(partition.deliveryCompleteCount()).append(' ')
            .append(partition.stateEpoch()).append(' ').append(partition.findNextFetchOffset()).append('\n');
        for (InFlightBatch batch : partition.cachedState().values()) {
            if (batch.offsetState() == null) {
                state(batch.firstOffset(), batch.lastOffset(), batch.batchState().name(), batch.batchDeliveryCount(),
                    batch.batchMemberId(), batch.batchAcquisitionLockTimeoutTask());
            } else {
                for (Map.Entry<Long, InFlightState> entry : batch.offsetState().entrySet()) {
                    InFlightState own = entry.getValue();
                    state(entry.getKey(), entry.getKey(), own.state().name(), own.deliveryCount(), own.memberId(),
                        own.acquisitionLockTimeoutTask());
                }
            }
        }
        output.append("next ").append(partition.nextFetchOffset()).append(' ').append(partition.canAcquireRecords()).append('\n');
    }

    private void state(long first, long last, String state, int count, String member, AcquisitionLockTimerTask lock) {
        output.append("records ").append(first).append(':').append(last).append(' ').append(state).append(' ').append(count)
            .append(' ').append(member.isEmpty() ? "-" : member).append(' ')
            .append(lock == null ? "-" : String.valueOf(lock.expirationMs())).append('\n');
    }

    public static void main(String[] given) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII), 1 << 16);
        PrintStream out = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false, "UTF-8");
        PartitionOracle oracle = null;
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ", -1);
            String said = "";
            try {
                if (words[0].equals("new")) {
                    oracle = new PartitionOracle(words);
                } else {
                    oracle.command(words);
                    said = oracle.output.toString();
                    oracle.output.setLength(0);
                }
            } catch (Exception error) {
                java.io.StringWriter trace = new java.io.StringWriter();
                error.printStackTrace(new java.io.PrintWriter(trace));
                said = (oracle == null ? "" : oracle.output) + "error " + trace.toString().replace('\n', ' ') + "\n";
                if (oracle != null) {
                    oracle.output.setLength(0);
                }
            }
            out.print(said);
            out.print(".\n");
            if (!input.ready()) {
                out.flush();
            }
        }
        out.flush();
    }
}
