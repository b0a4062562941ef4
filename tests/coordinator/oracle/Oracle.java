package org.apache.kafka.coordinator.group;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.coordinator.common.runtime.CoordinatorEvent;
import org.apache.kafka.coordinator.common.runtime.CoordinatorEventProcessor;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRuntimeMetrics;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetrics;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.metrics.Metrics;

import com.yammer.metrics.core.MetricsRegistry;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Properties;
import java.util.concurrent.AbstractExecutorService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;

/**
 * Kafka's own group coordinator, one partition of it, without a broker: requests, time, failures and loads come in as
 * lines, answers and records go out. A command is one line of words; its output ends with a line of one full stop.
 *
 * new CONFIG=VALUE...                      a new coordinator at time 1000 with an empty log, loaded
 * request TICKET API VERSION UUID CLIENT BODY   (hex: 16 bytes for new ids, the client id, the request's body)
 * advance MILLISECONDS                     to that point in time
 * fail ERROR                               the next append fails
 * hold / commit                            hold back the high watermark / let it reach the end, and follow it again
 * topics [+ID:PARTITIONS:NAME|-ID]...      the image of the topics changes
 * end TICKET PRODUCER EPOCH COORDINATOR-EPOCH COMMIT|ABORT    a transaction ends
 * unload                                   give up the partition
 * load [END KEY:VALUE:PRODUCER:OFFSET...]  take it, with this log if one is given; the key C or A ends a transaction
 * begin-load                               take it, but be loading until `load`
 * repeat COUNT API VERSION UUID CLIENT BODY...  requests in turn, each so many times: "took NANOSECONDS ANSWERS" of the processor
 * timers                                   the deadlines of the coordinator's timers
 * config GROUP [CONFIG=VALUE...]           an operator sets a group's own configuration, or takes it back
 * persisted NUMBER HEX|ERROR [TOPIC:PARTITION:ERROR:OFFSET...]   the share coordinators answer a call of `persist`
 * assign ...                               an assignor by itself: OracleAssignors
 * table STEP...                            a table with snapshots by itself: OracleTables
 *
 * answer TICKET HEX; create TICKET TOPIC:PARTITIONS:REPLICAS:NAME=VALUE,...; ended TICKET ERROR; batch OFFSET PRODUCER EPOCH, then record KEY VALUE or marker KEY VALUE; failed ERROR; timer TIME KEY; persist NUMBER API HEX
 */
public final class Oracle {
    private static final TopicPartition PARTITION = new TopicPartition("__consumer_offsets", 0);
    private static final HexFormat HEX = HexFormat.of();

    private final StringBuilder output = new StringBuilder();
    private final OracleClock clock = new OracleClock(1000);
    private final OracleLog log = new OracleLog(output);
    private final OracleTopics topics = new OracleTopics();
    private final OraclePersister persister = new OraclePersister(output);
    private final CoordinatorRuntime<GroupCoordinatorShard, CoordinatorRecord> runtime;
    private final OracleRequests requests;
    private final GroupCoordinatorService service;
    private final GroupConfigManager groups;
    private int epoch = 0;

    private Oracle(Map<String, Object> settings) {
        AbstractConfig properties = new AbstractConfig(
            Utils.mergeConfigs(List.of(GroupCoordinatorConfig.CONFIG_DEF, ShareGroupConfig.CONFIG_DEF)),
            settings, Map.of(), false);
        GroupCoordinatorConfig config = new GroupCoordinatorConfig(properties);
        GroupCoordinatorMetrics metrics = new GroupCoordinatorMetrics(new MetricsRegistry(), new Metrics());
        ShareGroupConfig shares = new ShareGroupConfig(properties);
        groups = OracleRelease.groups(config, shares);
        runtime = new CoordinatorRuntime.Builder<GroupCoordinatorShard, CoordinatorRecord>()
            .withTime(clock)
            .withTimer(clock)
            .withLogPrefix("")
            .withLogContext(OracleRelease.LOG)
            .withEventProcessor(new Queue())
            .withPartitionWriter(log)
            .withLoader(log)
            .withCoordinatorShardBuilderSupplier(() ->
                new GroupCoordinatorShard.Builder(config, groups).withAuthorizerPlugin(Optional.empty()))
            .withWriteTimeout(Duration.ofMillis(config.offsetCommitTimeoutMs()))
            .withCoordinatorRuntimeMetrics((CoordinatorRuntimeMetrics) Proxy.newProxyInstance(
                Oracle.class.getClassLoader(), new Class<?>[] {CoordinatorRuntimeMetrics.class}, (self, method, given) -> null))
            .withCoordinatorMetrics(metrics)
            .withSerializer(new GroupCoordinatorRecordSerde())
            .withCompression(Compression.NONE)
            .withAppendLingerMs(OptionalInt.empty())
            .withExecutorService(new SameThread())
            .withCachedBufferMaxBytesSupplier(() -> 1 << 20)
            .build();
        service = OracleRelease.service(config, runtime, metrics, groups, persister, clock);
        service.startup(() -> 1);
        requests = new OracleRequests(service, topics, output);
        runtime.onMetadataUpdate(
            new KRaftCoordinatorMetadataImage(topics.image).emptyDelta(), new KRaftCoordinatorMetadataImage(topics.image));
        showTopics();
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
            case "topics" -> topics(words);
            case "end" -> runtime.scheduleTransactionCompletion("end", PARTITION, Long.parseLong(words[2]),
                Short.parseShort(words[3]), Integer.parseInt(words[4]), TransactionResult.valueOf(words[5]), (short) 0)
                .whenComplete((none, error) -> output.append("ended ").append(words[1]).append(' ')
                    .append(error == null ? Errors.NONE : Errors.forException(error)).append('\n'));
            case "unload" -> {
                log.stopLoading();
                runtime.scheduleUnloadOperation(PARTITION, OptionalInt.of(epoch++));
                clock.beginTerm();
            }
            case "load" -> load(words);
            case "begin-load" -> {
                log.slow = true;
                runtime.scheduleLoadOperation(PARTITION, epoch++);
            }
            case "config" -> {
                Properties properties = new Properties();
                for (int index = 2; index < words.length; index++) {
                    String[] pair = words[index].split("=", 2);
                    properties.put(pair[0], pair[1]);
                }
                groups.updateGroupConfig(words[1], properties);
            }
            case "persisted" -> persister.persisted(words);
            case "repeat" -> repeat(Integer.parseInt(words[1]), words);
            case "assign" -> OracleAssignors.assign(words, topics, output);
            case "table" -> OracleTables.run(words, output);
            case "map" -> OracleTables.map(words, output);
            case "set" -> OracleTables.set(words, output);
            case "timers" -> clock.forEach((time, key) ->
                output.append("timer ").append(time).append(' ').append(key).append('\n'));
            default -> throw new IllegalArgumentException("no such command: " + words[0]);
        }
    }

    private void request(String[] words) throws Exception {
        String ticket = words[1];
        ApiKeys api = ApiKeys.forId(Integer.parseInt(words[2]));
        short version = Short.parseShort(words[3]);
        ByteBuffer id = ByteBuffer.wrap(HEX.parseHex(words[4]));
        OracleIds.next(id.getLong(), id.getLong());
        String client = words[5].equals("-") ? null : new String(HEX.parseHex(words[5]), StandardCharsets.UTF_8);
        byte[] body = words.length > 6 ? HEX.parseHex(words[6]) : new byte[0];
        AbstractRequest request =
            AbstractRequest.parseRequest(api, version, new ByteBufferAccessor(ByteBuffer.wrap(body))).request;
        RequestContext context = context(api, version, client, Integer.parseInt(ticket));
        requests.handle(context, request).whenComplete((response, error) -> {
            if (error != null) {
                output.append("thrown ").append(ticket).append(' ').append(error.toString().replace('\n', ' ')).append('\n');
                return;
            }
            ByteBuffer bytes;
            try {
                bytes = MessageUtil.toByteBufferAccessor(response.data(), version).buffer();
            } catch (RuntimeException unwritable) {  // as KafkaApis answers what it can't write
                bytes = MessageUtil.toByteBufferAccessor(
                    request.getErrorResponse(0, unwritable).data(), version).buffer();
            }
            byte[] found = new byte[bytes.remaining()];
            bytes.get(found);
            output.append("answer ").append(ticket).append(' ').append(hex(found)).append('\n');
        });
    }

    private void repeat(int count, String[] words) throws Exception {
        ApiKeys api = ApiKeys.forId(Integer.parseInt(words[2]));
        short version = Short.parseShort(words[3]);
        AbstractRequest[] bodies = new AbstractRequest[words.length - 6];
        for (int index = 0; index < bodies.length; index++) {
            byte[] body = HEX.parseHex(words[6 + index]);
            bodies[index] =
                AbstractRequest.parseRequest(api, version, new ByteBufferAccessor(ByteBuffer.wrap(body))).request;
        }
        RequestContext context = context(api, version, new String(HEX.parseHex(words[5]), StandardCharsets.UTF_8), 0);
        java.lang.management.ThreadMXBean threads = java.lang.management.ManagementFactory.getThreadMXBean();
        long begun = threads.getCurrentThreadCpuTime();
        int answers = 0;
        for (int turn = 0; turn < count; turn++) {
            for (AbstractRequest request : bodies) {
                answers += requests.handle(context, request).isDone() ? 1 : 0;
            }
        }
        output.append("took ").append(threads.getCurrentThreadCpuTime() - begun).append(' ').append(answers).append('\n');
    }

    private static RequestContext context(ApiKeys api, short version, String client, int ticket) throws Exception {
        return new RequestContext(
            new RequestHeader(api, version, client, ticket), "1", InetAddress.getByAddress(new byte[] {127, 0, 0, 1}),
            KafkaPrincipal.ANONYMOUS, new ListenerName("PLAINTEXT"), SecurityProtocol.PLAINTEXT,
            ClientInformation.EMPTY, false);
    }

    private void topics(String[] words) {
        topics.begin();
        List<GroupCoordinatorShard.DeletedTopic> deleted = new ArrayList<>();
        for (int index = 1; index < words.length; index++) {
            String[] parts = words[index].substring(1).split(":", 3);
            Uuid id = Uuid.fromString(parts[0]);
            if (words[index].charAt(0) == '+') {
                topics.put(id, parts[2], Integer.parseInt(parts[1]));
            } else {
                deleted.add(new GroupCoordinatorShard.DeletedTopic(id, topics.name(id)));
                topics.remove(id);
            }
        }
        topics.end();
        runtime.onMetadataUpdate(
            new KRaftCoordinatorMetadataDelta(topics.delta), new KRaftCoordinatorMetadataImage(topics.image));
        showTopics();
        if (!deleted.isEmpty()) {
            runtime.scheduleWriteAllOperation("on-topics-deleted", shard -> shard.onTopicsDeleted(deleted));
            java.util.Set<Uuid> ids = new java.util.HashSet<>();
            deleted.forEach(topic -> ids.add(topic.id()));
            runtime.scheduleWriteAllOperation("maybe-cleanup-share-group-state", shard -> shard.maybeCleanupShareGroupState(ids));
        }
    }

    /** Let the service see the topics too; its own way to the runtime deletes what has no name any more. */
    private void showTopics() {
        try {
            java.lang.reflect.Field field = GroupCoordinatorService.class.getDeclaredField("metadataImage");
            field.setAccessible(true);
            field.set(service, new KRaftCoordinatorMetadataImage(topics.image));
        } catch (ReflectiveOperationException none) {
            throw new IllegalStateException(none);
        }
    }

    private void load(String[] words) {
        if (words.length > 1) {
            log.entries.clear();
            log.endOffset = Long.parseLong(words[1]);
            for (int index = 2; index < words.length; index++) {
                String[] parts = words[index].split(":", -1);
                long producer = Long.parseLong(parts[2]);
                short producerEpoch = (short) (producer < 0 ? -1 : 0);
                TransactionResult end = parts[0].equals("C") ? TransactionResult.COMMIT
                    : parts[0].equals("A") ? TransactionResult.ABORT : null;
                log.entries.add(new OracleLog.Entry(Long.parseLong(parts[3]), producer, producerEpoch, end,
                    end == null ? HEX.parseHex(parts[0]) : null, parts[1].equals("-") ? null : HEX.parseHex(parts[1])));
            }
        }
        if (log.slow) {
            log.finishLoading();
        } else {
            runtime.scheduleLoadOperation(PARTITION, epoch++);
        }
    }

    public static String hex(byte[] bytes) {
        return bytes == null ? "-" : HEX.formatHex(bytes);
    }

    public static void main(String[] given) throws Exception {
        OracleIds.install();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII), 1 << 16);
        PrintStream out = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false, "UTF-8");
        Oracle oracle = null;
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ", -1);
            String said = "";
            try {
                if (words[0].equals("new")) {
                    Map<String, Object> settings = new HashMap<>();
                    for (int index = 1; index < words.length; index++) {
                        String[] pair = words[index].split("=", 2);
                        settings.put(pair[0], pair[1]);
                    }
                    oracle = new Oracle(settings);
                } else {
                    oracle.command(words);
                }
            } catch (Exception error) {
                said = "error " + error.toString().replace('\n', ' ') + '\n';
            }
            if (oracle != null) {
                out.print(oracle.output);
                oracle.output.setLength(0);
            }
            out.print(said + ".\n");
            if (!input.ready()) {
                out.flush();
            }
        }
    }

    /** Runs each event at once, one after the other. */
    public static final class Queue implements CoordinatorEventProcessor {
        private final Deque<CoordinatorEvent> events = new ArrayDeque<>();
        private boolean running = false;

        @Override
        public void enqueueLast(CoordinatorEvent event) {
            events.addLast(event);
            run();
        }

        @Override
        public void enqueueFirst(CoordinatorEvent event) {
            events.addFirst(event);
            run();
        }

        private void run() {
            if (running) {
                return;
            }
            running = true;
            while (!events.isEmpty()) {
                CoordinatorEvent event = events.removeFirst();
                try {
                    event.run();
                } catch (Throwable error) {
                    event.complete(error);
                }
            }
            running = false;
        }

        @Override
        public void close() {
        }
    }

    public static final class SameThread extends AbstractExecutorService implements ExecutorService {
        @Override
        public void execute(Runnable task) {
            task.run();
        }

        @Override
        public void shutdown() {
        }

        @Override
        public List<Runnable> shutdownNow() {
            return List.of();
        }

        @Override
        public boolean isShutdown() {
            return false;
        }

        @Override
        public boolean isTerminated() {
            return false;
        }

        @Override
        public boolean awaitTermination(long timeout, TimeUnit unit) {
            return true;
        }
    }
}
