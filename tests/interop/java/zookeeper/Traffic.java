// A ZooKeeper server in this process and Apache's own client at it, with what the client was told.
//
//   java -cp 'LIB/*' Traffic.java PORT FOLDER SEED COUNT      COUNT random operations, and each other kind once
//   java -cp 'LIB/*' Traffic.java PORT FOLDER serve           the server alone, until standard input ends
//
// Lines that end in "/*3.5*/" need ZooKeeper 3.5 or later, in "/*3.6*/" 3.6: who runs this with an older one removes them.

import java.io.*;
import java.net.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;
import org.apache.zookeeper.*;
import org.apache.zookeeper.data.*;
import org.apache.zookeeper.server.*;

public class Traffic {
    static int port;
    static final BlockingQueue<String> events = new LinkedBlockingQueue<>();

    public static void main(String[] arguments) throws Exception {
        port = Integer.parseInt(arguments[0]);
        System.setProperty("zookeeper.4lw.commands.whitelist", "*");
        System.setProperty("zookeeper.extendedTypesEnabled", "true");
        System.setProperty("zookeeper.admin.enableServer", "false");
        System.setProperty("zookeeper.sasl.client", "false"); // 3.4 resolves its own name for it, which fails since Java 14
        File folder = new File(arguments[1]);
        Thread.setDefaultUncaughtExceptionHandler((thread, error) -> { error.printStackTrace(); Runtime.getRuntime().halt(1); });
        ZooKeeperServer server = new ZooKeeperServer(folder, folder, 250);
        server.setMinSessionTimeout(500);
        ServerCnxnFactory factory = ServerCnxnFactory.createFactory(new InetSocketAddress("127.0.0.1", port), 100);
        factory.startup(server);
        if (arguments[2].equals("serve")) {
            System.out.println("ready");
            while (System.in.read() >= 0) { }
        } else {
            Random random = new Random(Long.parseLong(arguments[2]));
            random(random, Integer.parseInt(arguments[3]));
            each(server);
            expire(server);
            for (String word : new String[] {"ruok", "srvr", "mntr"}) ask(word);
        }
        factory.shutdown();
        Runtime.getRuntime().halt(0);
    }

    // --- the client, and what it is told ---

    static ZooKeeper connect(int timeout) throws Exception {
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper client = new ZooKeeper("127.0.0.1:" + port, timeout, event -> {
            if (event.getType() == Watcher.Event.EventType.None) {
                if (event.getState() == Watcher.Event.KeeperState.SyncConnected) connected.countDown();
                events.add("{\"state\":\"" + event.getState() + "\"}");
            } else events.add("{\"event\":\"" + event.getType() + "\",\"path\":" + text(event.getPath()) + "}");
        });
        connected.await();
        System.out.println("{\"op\":\"connect\",\"session\":" + client.getSessionId() + ",\"timeout\":" + client.getSessionTimeout() + "}");
        return client;
    }

    interface Call { String run() throws Exception; }

    static void told(String op, String path, Call call) throws Exception {
        String result;
        int error = 0;
        try {
            result = call.run();
        } catch (KeeperException refusal) {
            error = refusal.code().intValue();
            result = "null";
        }
        System.out.println("{\"op\":\"" + op + "\",\"path\":" + text(path) + ",\"error\":" + error + ",\"result\":" + result + "}");
    }

    static String text(String value) {
        return value == null ? "null" : "\"" + value.replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
    }

    static String base64(byte[] data) {
        return data == null ? "null" : "\"" + Base64.getEncoder().encodeToString(data) + "\"";
    }

    static String names(List<String> names) {
        StringBuilder out = new StringBuilder("[");
        for (String name : names) out.append(out.length() > 1 ? "," : "").append(text(name));
        return out.append("]").toString();
    }

    static String stat(Stat s) {
        return s == null ? "null" : "[" + s.getCzxid() + "," + s.getMzxid() + "," + s.getCtime() + "," + s.getMtime() + "," + s.getVersion()
            + "," + s.getCversion() + "," + s.getAversion() + "," + s.getEphemeralOwner() + "," + s.getDataLength()
            + "," + s.getNumChildren() + "," + s.getPzxid() + "]";
    }

    static String acl(List<ACL> acl) {
        StringBuilder out = new StringBuilder("[");
        for (ACL entry : acl)
            out.append(out.length() > 1 ? "," : "").append("[" + entry.getPerms() + "," + text(entry.getId().getScheme()) + "," + text(entry.getId().getId()) + "]");
        return out.append("]").toString();
    }

    static String results(List<OpResult> results) {
        StringBuilder out = new StringBuilder("[");
        for (OpResult result : results) {
            out.append(out.length() > 1 ? "," : "");
            if (result instanceof OpResult.CreateResult) out.append(text(((OpResult.CreateResult) result).getPath()));
            else if (result instanceof OpResult.SetDataResult) out.append(stat(((OpResult.SetDataResult) result).getStat()));
            else if (result instanceof OpResult.ErrorResult) out.append(((OpResult.ErrorResult) result).getErr());
            else if (result instanceof OpResult.GetDataResult) out.append(base64(((OpResult.GetDataResult) result).getData())); /*3.6*/
            else if (result instanceof OpResult.GetChildrenResult) out.append(names(((OpResult.GetChildrenResult) result).getChildren())); /*3.6*/
            else out.append("true");
        }
        return out.append("]").toString();
    }

    static void events() throws Exception {
        Thread.sleep(150);
        List<String> all = new ArrayList<>();
        events.drainTo(all);
        for (String event : all) System.out.println(event);
    }

    // --- what it does ---

    static void random(Random random, int count) throws Exception {
        ZooKeeper one = connect(4000), two = connect(4000);
        String[] paths = {"/a", "/b", "/a/x", "/a/y", "/b/é", "/b/long-" + new String(new char[200]).replace('\0', 'n'), "/a/x/1", "/c"};
        for (int i = 0; i < count; i++) {
            ZooKeeper client = random.nextBoolean() ? one : two;
            String path = paths[random.nextInt(paths.length)];
            byte[] data = random.nextInt(6) == 0 ? null : new byte[random.nextInt(30)];
            if (data != null) random.nextBytes(data);
            boolean watch = random.nextInt(3) == 0;
            int version = random.nextInt(4) - 1;
            CreateMode mode = CreateMode.values()[random.nextInt(4)];
            switch (random.nextInt(9)) {
            case 0: case 1: told("create", path, () -> text(client.create(path, data, ZooDefs.Ids.OPEN_ACL_UNSAFE, mode))); break;
            case 2: told("delete", path, () -> { client.delete(path, version); return "null"; }); break;
            case 3: told("exists", path, () -> stat(client.exists(path, watch))); break;
            case 4: told("getData", path, () -> { Stat s = new Stat(); byte[] d = client.getData(path, watch, s); return "[" + base64(d) + "," + stat(s) + "]"; }); break;
            case 5: told("setData", path, () -> stat(client.setData(path, data, version))); break;
            case 6: told("getChildren2", path, () -> { Stat s = new Stat(); List<String> n = client.getChildren(path, watch, s); return "[" + names(n) + "," + stat(s) + "]"; }); break;
            case 7: told("getChildren", path, () -> names(client.getChildren(path, watch))); break;
            default: told("multi", path, () -> {
                try {
                    return results(client.multi(Arrays.asList(Op.create(path + "-m", data, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL_SEQUENTIAL),
                        Op.setData(path, data, version), Op.check(path, version), Op.create(path + "-n", data, ZooDefs.Ids.READ_ACL_UNSAFE, mode), Op.delete(path + "-n", -1))));
                } catch (KeeperException refusal) {
                    return results(refusal.getResults());
                }
            });
            }
        }
        events();
        one.close();
        System.out.println("{\"op\":\"close\"}");
        events();
        two.close();
        System.out.println("{\"op\":\"close\"}");
    }

    static void each(ZooKeeperServer server) throws Exception {
        ZooKeeper client = connect(4000);
        client.addAuthInfo("digest", "user:pass-word".getBytes(StandardCharsets.UTF_8));
        told("create", "/own", () -> text(client.create("/own", "mine".getBytes(), ZooDefs.Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT)));
        told("getACL", "/own", () -> { Stat s = new Stat(); List<ACL> acl = client.getACL("/own", s); return "[" + acl(acl) + "," + stat(s) + "]"; });
        told("setACL", "/own", () -> stat(client.setACL("/own", ZooDefs.Ids.READ_ACL_UNSAFE, -1)));
        told("setData", "/own", () -> stat(client.setData("/own", null, -1)));
        told("create", "/digest", () -> text(client.create("/digest", null, Arrays.asList(new ACL(31, new Id("digest", "user:ZGlnZXN0LW9mLXVzZXI="))), CreateMode.PERSISTENT)));
        told("sync", "/own", () -> { CountDownLatch done = new CountDownLatch(1); client.sync("/own", (rc, path, context) -> done.countDown(), null); done.await(); return "null"; });
        told("create2", "/two", () -> { Stat s = new Stat(); String p = client.create("/two", "2".getBytes(), ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT, s); return "[" + text(p) + "," + stat(s) + "]"; }); /*3.5*/
        told("createContainer", "/container", () -> { Stat s = new Stat(); String p = client.create("/container", null, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.CONTAINER, s); return "[" + text(p) + "," + stat(s) + "]"; }); /*3.5*/
        told("createTtl", "/ttl", () -> { Stat s = new Stat(); String p = client.create("/ttl", null, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_WITH_TTL, s, 60000); return "[" + text(p) + "," + stat(s) + "]"; }); /*3.5*/
        Watcher watcher = event -> { };
        told("exists", "/two", () -> stat(client.exists("/two", watcher))); /*3.5*/
        told("checkWatches", "/two", () -> { client.removeWatches("/two", watcher, Watcher.WatcherType.Any, false); return "null"; }); /*3.5*/
        told("getData", "/two", () -> { Stat s = new Stat(); byte[] d = client.getData("/two", watcher, s); return "[" + base64(d) + "," + stat(s) + "]"; }); /*3.5*/
        told("removeWatches", "/two", () -> { client.removeAllWatches("/two", Watcher.WatcherType.Any, false); return "null"; }); /*3.5*/
        told("addWatch", "/two", () -> { client.addWatch("/two", AddWatchMode.PERSISTENT_RECURSIVE); return "null"; }); /*3.6*/
        told("create", "/two/below", () -> text(client.create("/two/below", null, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL))); /*3.6*/
        told("getEphemerals", "/", () -> names(client.getEphemerals("/"))); /*3.6*/
        told("getAllChildrenNumber", "/", () -> "" + client.getAllChildrenNumber("/")); /*3.6*/
        told("whoAmI", null, () -> "" + client.whoAmI().size()); /*3.6*/
        told("multiRead", "/two", () -> results(client.multi(Arrays.asList(Op.getData("/two"), Op.getChildren("/two"), Op.getData("/none"))))); /*3.6*/
        told("getConfig", "/zookeeper/config", () -> { client.getConfig(false, new Stat()); return "null"; }); /*3.5*/
        told("exists", "/not-there", () -> stat(client.exists("/not-there", true)));
        told("getChildren", "/own", () -> names(client.getChildren("/own", true)));
        Thread.sleep(1800); // pings
        events();
        client.close();
        System.out.println("{\"op\":\"close\"}");
    }

    /** The client's socket ends, and it connects again with its watches; then the server ends its session. */
    static void expire(ZooKeeperServer server) throws Exception {
        ZooKeeper client = connect(4000);
        told("exists", "/a-watched", () -> stat(client.exists("/a-watched", true)));
        told("create", "/ephemeral", () -> text(client.create("/ephemeral", null, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL)));
        cut(server, client.getSessionId());
        Thread.sleep(1500);
        told("create", "/a-watched", () -> text(client.create("/a-watched", null, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT)));
        events();
        server.closeSession(client.getSessionId());
        Thread.sleep(2500);
        events();
        System.out.println("{\"op\":\"expired\",\"alive\":" + client.getState().isAlive() + "}");
    }

    static void cut(ZooKeeperServer server, long session) throws Exception {
        java.lang.reflect.Method id = ServerCnxn.class.getDeclaredMethod("getSessionId");
        id.setAccessible(true);
        for (ServerCnxn connection : server.getServerCnxnFactory().getConnections())
            if (((Long) id.invoke(connection)) == session) {
                java.lang.reflect.Method close = null;
                for (java.lang.reflect.Method method : connection.getClass().getMethods())
                    if (method.getName().equals("close") && (close == null || method.getParameterCount() > 0)) close = method;
                close.setAccessible(true);
                if (close.getParameterCount() == 0) close.invoke(connection);
                else close.invoke(connection, close.getParameterTypes()[0].getEnumConstants()[0]);
            }
    }

    static void ask(String word) throws Exception {
        try (Socket socket = new Socket("127.0.0.1", port)) {
            socket.getOutputStream().write(word.getBytes());
            byte[] reply = new byte[1 << 16];
            int length = 0, more;
            while ((more = socket.getInputStream().read(reply, length, reply.length - length)) > 0) length += more;
            System.out.println("{\"op\":\"" + word + "\",\"bytes\":" + length + "}");
        }
    }
}
