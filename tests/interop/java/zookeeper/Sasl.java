// A ZooKeeper server in this process that knows its clients by SASL's DIGEST-MD5, and Apache's own client at it.
//
//   java -Djava.security.auth.login.config=FILE -cp 'LIB/*' Sasl.java PORT FOLDER
//
// FILE: "Server" with DigestLoginModule and user_till="…"; "Client" and "Wrong" with username and password.
// The lines are what the client was told: with the right password, and with a wrong one.

import java.io.File;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.*;
import org.apache.zookeeper.*;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.client.ZKClientConfig;
import org.apache.zookeeper.data.*;
import org.apache.zookeeper.server.*;

public class Sasl {
    static int port;

    public static void main(String[] arguments) throws Exception {
        port = Integer.parseInt(arguments[0]);
        System.setProperty("zookeeper.admin.enableServer", "false");
        File folder = new File(arguments[1]);
        ZooKeeperServer server = new ZooKeeperServer(folder, folder, 30000);
        ServerCnxnFactory factory = ServerCnxnFactory.createFactory(new InetSocketAddress("127.0.0.1", port), 100);
        factory.startup(server);
        BlockingQueue<KeeperState> states = new LinkedBlockingQueue<>();
        ZooKeeper client = connect("Client", states);
        await(states, KeeperState.SaslAuthenticated);
        List<ACL> own = List.of(new ACL(ZooDefs.Perms.ALL, new Id("sasl", "till")));
        client.create("/till", "receipt".getBytes(StandardCharsets.UTF_8), own, CreateMode.PERSISTENT);
        told("getData", new String(client.getData("/till", false, null), StandardCharsets.UTF_8));
        client.close();
        BlockingQueue<KeeperState> others = new LinkedBlockingQueue<>();
        ZooKeeper stranger = connect("Wrong", others);
        await(others, KeeperState.AuthFailed);
        stranger.close();
        factory.shutdown();
        Runtime.getRuntime().halt(0);
    }

    static ZooKeeper connect(String section, BlockingQueue<KeeperState> states) throws Exception {
        ZKClientConfig config = new ZKClientConfig();
        config.setProperty(ZKClientConfig.LOGIN_CONTEXT_NAME_KEY, section);
        return new ZooKeeper("127.0.0.1:" + port, 600000, event -> states.add(event.getState()), config);
    }

    static void await(BlockingQueue<KeeperState> states, KeeperState wanted) throws Exception {
        KeeperState state;
        do {
            state = states.poll(900, TimeUnit.SECONDS);
            if (state == null) throw new IllegalStateException("no " + wanted);
            told("state", state.toString());
        } while (state != wanted);
    }

    static void told(String what, String value) {
        System.out.println("{\"op\":\"" + what + "\",\"result\":\"" + value + "\"}");
    }
}
