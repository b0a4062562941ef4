import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Collections;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder;
import org.apache.kafka.common.security.oauthbearer.internals.OAuthBearerClientInitialResponse;
import org.apache.kafka.common.security.scram.internals.ScramMessages;
import org.apache.kafka.connect.runtime.distributed.ConnectProtocol;
import org.apache.kafka.connect.runtime.distributed.ExtendedAssignment;
import org.apache.kafka.connect.runtime.distributed.ExtendedWorkerState;
import org.apache.kafka.connect.runtime.distributed.IncrementalCooperativeConnectProtocol;
import org.apache.kafka.connect.util.ConnectorTaskId;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.internals.assignment.AssignmentInfo;
import org.apache.kafka.streams.processor.internals.assignment.SubscriptionInfo;
import org.apache.kafka.streams.state.HostInfo;

/**
 * What Apache Kafka's own classes write into opaque bytes, and read from them.
 *
 * <p>{@code samples} prints one of each kind and version: name, version, hex, with tabs between. {@code again} reads
 * such lines, without the version, and prints what Kafka writes after reading them; "refused: why" where it doesn't.
 */
public final class Inside {
    private static final List<TopicPartition> HELD =
        List.of(new TopicPartition("orders", 0), new TopicPartition("orders", 2), new TopicPartition("bills", 1));

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("samples")) {
            assignors();
            connect();
            streams();
            security();
            return;
        }
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split("\t", -1);
            try {
                ByteBuffer bytes = ByteBuffer.wrap(HexFormat.of().parseHex(parts[1]));
                System.out.println(HexFormat.of().formatHex(again(parts[0], bytes)));
            } catch (Exception refused) {
                System.out.println("refused: " + String.valueOf(refused).replace('\n', ' '));
            }
        }
    }

    private static byte[] again(String name, ByteBuffer bytes) throws Exception {
        switch (name) {
            case "AssignmentInfo":
                return plain(AssignmentInfo.decode(bytes).encode());
            case "SubscriptionInfoData":
                return plain(SubscriptionInfo.decode(bytes).encode());
            case "ConnectProtocolAssignment": {
                short version = bytes.getShort(0);
                return plain(version == 0
                    ? ConnectProtocol.serializeAssignment(ConnectProtocol.deserializeAssignment(bytes))
                    : IncrementalCooperativeConnectProtocol.serializeAssignment(
                        IncrementalCooperativeConnectProtocol.deserializeAssignment(bytes), version > 1));
            }
            case "ConnectProtocolSubscription": {
                short version = bytes.getShort(0);
                return plain(version == 0
                    ? ConnectProtocol.serializeMetadata(ConnectProtocol.deserializeMetadata(bytes))
                    : IncrementalCooperativeConnectProtocol.serializeMetadata(
                        IncrementalCooperativeConnectProtocol.deserializeMetadata(bytes), version > 1));
            }
            case "ScramClientFirst":
                return new ScramMessages.ClientFirstMessage(plain(bytes)).toBytes();
            case "ScramServerFirst":
                return new ScramMessages.ServerFirstMessage(plain(bytes)).toBytes();
            case "ScramClientFinal":
                return new ScramMessages.ClientFinalMessage(plain(bytes)).toBytes();
            case "ScramServerFinal":
                return new ScramMessages.ServerFinalMessage(plain(bytes)).toBytes();
            case "OAuthBearerToken":
                return new OAuthBearerClientInitialResponse(plain(bytes)).toBytes();
            default:
                throw new IllegalArgumentException(name);
        }
    }

    @SuppressWarnings("removal")
    private static void assignors() {
        ConsumerGroupMetadata group = new ConsumerGroupMetadata("payments", 7, "m", Optional.empty());
        StickyAssignor sticky = new StickyAssignor();
        sticky.onAssignment(new Assignment(HELD), group);
        print("StickyAssignorUserData", 1, sticky.subscriptionUserData(Set.of()));
        CooperativeStickyAssignor cooperative = new CooperativeStickyAssignor();
        cooperative.onAssignment(new Assignment(HELD), group);
        print("CooperativeStickyAssignorUserData", 0, cooperative.subscriptionUserData(Set.of()));
    }

    private static void connect() {
        List<ConnectorTaskId> tasks = List.of(new ConnectorTaskId("sink", 0), new ConnectorTaskId("sink", 3));
        short none = 0;
        print("ConnectProtocolSubscription", 0,
            ConnectProtocol.serializeMetadata(new ConnectProtocol.WorkerState("http://w1:8083/", 42)));
        print("ConnectProtocolAssignment", 0, ConnectProtocol.serializeAssignment(
            new ConnectProtocol.Assignment(none, "leader-1", "http://w2:8083/", 42, List.of("sink"), tasks)));
        for (short version = 1; version < 3; version++) {
            ExtendedAssignment given = new ExtendedAssignment(version, (short) 1, "leader-1", "http://w2:8083/", 42,
                List.of("sink"), tasks, List.of("source"), List.of(new ConnectorTaskId("source", 1)), 300000);
            print("ConnectProtocolAssignment", version,
                IncrementalCooperativeConnectProtocol.serializeAssignment(given, version > 1));
            print("ConnectProtocolSubscription", version, IncrementalCooperativeConnectProtocol.serializeMetadata(
                new ExtendedWorkerState("http://w1:8083/", 42, given), version > 1));
            print("ConnectProtocolSubscription", version, IncrementalCooperativeConnectProtocol.serializeMetadata(
                new ExtendedWorkerState("http://w1:8083/", 42, null), version > 1));
        }
    }

    private static void streams() {
        ProcessId process = new ProcessId(UUID.fromString("00010203-0405-0607-0809-0a0b0c0d0e0f"));
        for (int version = 1; version < 12; version++) {
            String named = version > 10 ? "north" : null;
            Map<TaskId, Long> sums = new TreeMap<>();
            sums.put(new TaskId(0, 1, named), -2L);
            sums.put(new TaskId(1, 0, named), version < 7 ? -3L : 12345L);
            print("SubscriptionInfoData", version, new SubscriptionInfo(version, version < 3 ? -1 : 11, process,
                "app-1:8080", sums, (byte) 5, 0, Map.of("rack", "r1")).encode());
            Map<TaskId, Set<TopicPartition>> standby = new LinkedHashMap<>();
            standby.put(new TaskId(1, 0, named), Set.of(new TopicPartition("orders", 0)));
            Map<HostInfo, Set<TopicPartition>> hosts = new LinkedHashMap<>();
            hosts.put(new HostInfo("app-1", 8080), Set.of(new TopicPartition("orders", 1)));
            hosts.put(new HostInfo("app-2", 8080), Set.of());
            Map<HostInfo, Set<TopicPartition>> others =
                Collections.singletonMap(new HostInfo("app-2", 8080), Set.of(new TopicPartition("orders", 0)));
            AssignmentInfo info = new AssignmentInfo(version, version < 3 ? -1 : 11,
                Arrays.asList(new TaskId(0, 1, named), new TaskId(1, 1, named)), standby, hosts, others, version < 4 ? 0 : 2);
            info.setNextRebalanceTime(1700000000000L);
            print("AssignmentInfo", version, info.encode());
        }
    }

    private static void security() throws Exception {
        byte[] some = {0, 1, 2, 3, 4, 5, 6, 7};
        print("ScramClientFirst", 0, new ScramMessages.ClientFirstMessage("ann=2C", "n0", Map.of()).toBytes());
        print("ScramClientFirst", 0,
            new ScramMessages.ClientFirstMessage("token-1", "n0", Map.of("tokenauth", "true")).toBytes());
        print("ScramServerFirst", 0, new ScramMessages.ServerFirstMessage("n0", "n1", some, 4096).toBytes());
        ScramMessages.ClientFinalMessage proved = new ScramMessages.ClientFinalMessage("n,,".getBytes(), "n0n1");
        proved.proof(some);
        print("ScramClientFinal", 0, proved.toBytes());
        print("ScramServerFinal", 0, new ScramMessages.ServerFinalMessage(null, some).toBytes());
        print("ScramServerFinal", 0, new ScramMessages.ServerFinalMessage("invalid-proof", null).toBytes());
        print("OAuthBearerToken", 0, new OAuthBearerClientInitialResponse("aGVhZA.cGF5.c2ln", "ann", null).toBytes());
        KafkaPrincipal principal = new KafkaPrincipal("User", "ann", true);
        print("DefaultPrincipalData", 0, new DefaultKafkaPrincipalBuilder(null, null).serialize(principal));
    }

    private static void print(String name, int version, ByteBuffer bytes) {
        print(name, version, plain(bytes));
    }

    private static void print(String name, int version, byte[] bytes) {
        System.out.println(name + "\t" + version + "\t" + HexFormat.of().formatHex(bytes));
    }

    private static byte[] plain(ByteBuffer buffer) {
        ByteBuffer copy = buffer.duplicate();
        copy.rewind();
        byte[] bytes = new byte[copy.remaining()];
        copy.get(bytes);
        return bytes;
    }
}
