// A ZooKeeper server in this process that knows its clients by SASL's DIGEST-MD5, and Apache's own client at it.
//
//   java -Djava.security.auth.login.config=FILE -cp 'LIB/*' Sasl.java PORT FOLDER
//
// FILE: "Server" with DigestLoginModule and user_till="…", "Client" with username and password. The lines are the
// states that the client was told.

import java.io.File;
import java.net.InetSocketAddress;
import java.util.concurrent.*;
import org.apache.zookeeper.*;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.client.ZKClientConfig;
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
        KeeperState state;
        do {
            state = states.poll(900, TimeUnit.SECONDS);
            System.out.println("{\"op\":\"state\",\"result\":\"" + state + "\"}");
        } while (state == KeeperState.SyncConnected);
        client.close();
        factory.shutdown();
        Runtime.getRuntime().halt(0);
    }

    static ZooKeeper connect(String section, BlockingQueue<KeeperState> states) throws Exception {
        ZKClientConfig config = new ZKClientConfig();
        config.setProperty(ZKClientConfig.LOGIN_CONTEXT_NAME_KEY, section);
        return new ZooKeeper("127.0.0.1:" + port, 600000, event -> states.add(event.getState()), config);
    }
}
