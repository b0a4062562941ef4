package org.apache.kafka.coordinator.share;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.internals.Topic;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.*;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRuntimeMetrics;
import org.apache.kafka.coordinator.group.Oracle;
import org.apache.kafka.coordinator.group.OracleClock;
import org.apache.kafka.coordinator.group.OracleLog;
import org.apache.kafka.coordinator.group.OracleTopics;
import org.apache.kafka.coordinator.share.metrics.ShareCoordinatorMetrics;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.CompletableFuture;

/**
 * Kafka's own share coordinator, one partition of it, without a broker: commands as those of the group coordinator's oracle.
 *
 * new UPDATES COLD-MS ; request TICKET API VERSION BODY ; advance ; fail ERROR ; hold ; commit ; topics ... ; unload ;
 * load [END KEY:VALUE:OFFSET...] ; cold ; redundant
 */
public final class StateOracle {
    private static final TopicPartition PARTITION = new TopicPartition(Topic.SHARE_GROUP_STATE_TOPIC_NAME, 0);
    private static final HexFormat HEX = HexFormat.of();

    private final StringBuilder output = new StringBuilder();
    private final OracleClock clock = new OracleClock(1000);
    private final OracleLog log = new OracleLog(output, new ShareCoordinatorRecordSerde());
    private final OracleTopics topics = new OracleTopics();
    private final CoordinatorRuntime<ShareCoordinatorShard, CoordinatorRecord> runtime;
    private final ShareCoordinatorService service;
    private int epoch = 0;

    private StateOracle(String updates, String cold) {
        ShareCoordinatorConfig config = new ShareCoordinatorConfig(new AbstractConfig(ShareCoordinatorConfig.CONFIG_DEF, Map.of(
            "share.coordinator.snapshot.update.records.per.snapshot", updates,
            "share.coordinator.cold.partition.snapshot.interval.ms", cold), Map.of(), false));
        ShareCoordinatorMetrics metrics = new ShareCoordinatorMetrics(new Metrics());
        runtime = new CoordinatorRuntime.Builder<ShareCoordinatorShard, CoordinatorRecord>()
            .withTime(clock)
            .withTimer(clock)
            .withLogPrefix("")
            .withLogContext(new LogContext())
            .withEventProcessor(new Oracle.Queue())
            .withPartitionWriter(log)
            .withLoader(log)
            .withCoordinatorShardBuilderSupplier(() -> new ShareCoordinatorShard.Builder(config))
            .withWriteTimeout(Duration.ofMillis(config.shareCoordinatorWriteTimeoutMs()))
            .withCoordinatorRuntimeMetrics((CoordinatorRuntimeMetrics) Proxy.newProxyInstance(
                StateOracle.class.getClassLoader(), new Class<?>[] {CoordinatorRuntimeMetrics.class}, (self, method, given) -> null))
            .withCoordinatorMetrics(metrics)
            .withSerializer(new ShareCoordinatorRecordSerde())
            .withCompression(Compression.NONE)
            .withAppendLingerMs(OptionalInt.empty())
            .withExecutorService(new Oracle.SameThread())
            .withCachedBufferMaxBytesSupplier(() -> 1 << 20)
            .build();
        service = new ShareCoordinatorService(new LogContext(), config, runtime, metrics, clock, clock, log);
        service.startup(() -> 1);
        service.onMetadataUpdate(new org.apache.kafka.image.MetadataDelta.Builder().setImage(topics.image).build(), topics.image);
        runtime.scheduleLoadOperation(PARTITION, epoch++);
    }

    private void command(String[] words) throws Exception {
        switch (words[0]) {
            case "request" -> request(words);
            case "advance" -> clock.advanceTo(Long.parseLong(words[1]));
            case "fail" -> log.failure = Errors.valueOf(words[1]);
            case "hold" -> log.held = true;
            case "commit" -> {
                log.held = false;
                log.commit();
            }
            case "topics" -> {
                topics.begin();
                for (int index = 1; index < words.length; index++) {
                    String[] parts = words[index].substring(1).split(":", 3);
                    Uuid id = Uuid.fromString(parts[0]);
                    if (words[index].charAt(0) == '+') {
                        topics.put(id, parts[2], Integer.parseInt(parts[1]));
                    } else {
                        topics.remove(id);
                    }
                }
                topics.end();
                runtime.onMetadataUpdate(new org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataDelta(topics.delta),
                    new org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataImage(topics.image));
                if (topics.delta.topicsDelta() != null && !topics.delta.topicsDelta().deletedTopicIds().isEmpty()) {
                    runtime.scheduleWriteAllOperation("on-topics-deleted",
                        shard -> shard.maybeCleanupShareState(topics.delta.topicsDelta().deletedTopicIds()));
                }
            }
            case "unload" -> {
                runtime.scheduleUnloadOperation(PARTITION, OptionalInt.of(epoch++));
                clock.beginTerm();
            }
            case "load" -> {
                if (words.length > 1) {
                    log.entries.clear();
                    log.endOffset = Long.parseLong(words[1]);
                    for (int index = 2; index < words.length; index++) {
                        String[] parts = words[index].split(":", -1);
                        log.entries.add(new OracleLog.Entry(Long.parseLong(parts[2]), -1, (short) -1, null,
                            HEX.parseHex(parts[0]), parts[1].equals("-") ? null : HEX.parseHex(parts[1])));
                    }
                }
                runtime.scheduleLoadOperation(PARTITION, epoch++);
            }
            case "cold" -> runtime.scheduleWriteAllOperation("cold", ShareCoordinatorShard::snapshotColdPartitions);
            case "redundant" -> runtime.scheduleWriteOperation("redundant", PARTITION, ShareCoordinatorShard::lastRedundantOffset)
                .whenComplete((found, error) -> output.append("redundant ")
                    .append(error != null ? Errors.forException(error).name() : found.isPresent() ? String.valueOf(found.get()) : "-")
                    .append('\n'));
            default -> throw new IllegalArgumentException("no such command: " + words[0]);
        }
    }

    private void request(String[] words) throws Exception {
        String ticket = words[1];
        ApiKeys api = ApiKeys.forId(Integer.parseInt(words[2]));
        short version = Short.parseShort(words[3]);
        AbstractRequest request = AbstractRequest.parseRequest(
            api, version, new ByteBufferAccessor(ByteBuffer.wrap(HEX.parseHex(words[4])))).request;
        CompletableFuture<? extends ApiMessage> future =
            request instanceof WriteShareGroupStateRequest write ? service.writeState(null, write.data())
            : request instanceof ReadShareGroupStateRequest read ? service.readState(null, read.data())
            : request instanceof InitializeShareGroupStateRequest init ? service.initializeState(null, init.data())
            : request instanceof DeleteShareGroupStateRequest delete ? service.deleteState(null, delete.data())
            : service.readStateSummary(null, ((ReadShareGroupStateSummaryRequest) request).data());
        future.whenComplete((response, error) -> {
            if (error != null) {
                output.append("thrown ").append(ticket).append(' ').append(error.toString().replace('\n', ' ')).append('\n');
                return;
            }
            ByteBuffer bytes = MessageUtil.toByteBufferAccessor(response, version).buffer();
            byte[] found = new byte[bytes.remaining()];
            bytes.get(found);
            output.append("answer ").append(ticket).append(' ').append(Oracle.hex(found)).append('\n');
        });
    }

    public static void main(String[] given) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII), 1 << 16);
        PrintStream out = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false, "UTF-8");
        StateOracle oracle = null;
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ", -1);
            String said = "";
            try {
                if (words[0].equals("new")) {
                    oracle = new StateOracle(words[1], words[2]);
                } else {
                    oracle.command(words);
                    said = oracle.output.toString();
                    oracle.output.setLength(0);
                }
            } catch (Exception error) {
                java.io.StringWriter trace = new java.io.StringWriter();
                error.printStackTrace(new java.io.PrintWriter(trace));
                said = "error " + trace.toString().replace('\n', ' ') + "\n";
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
