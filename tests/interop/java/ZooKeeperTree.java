import java.io.File;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import org.apache.zookeeper.AsyncCallback;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;
import org.apache.zookeeper.server.NIOServerCnxnFactory;
import org.apache.zookeeper.server.ZooKeeperServer;

/** Random operations on a real ZooKeeper server, with what it answers and which watches fire.
 *  Arguments: first seed, number of histories, operations of each. Writes lines of words with tabs between:
 *    history SEED            a new root
 *    do SESSION OPERATION... what is asked; sessions are numbered from 0
 *    ok WORDS... | error CODE WORDS...
 *    event SESSION KIND PATH in the order in which the session's client got them */
public final class ZooKeeperTree {
    static final int SESSIONS = 3;
    static Random random;
    static ZooKeeperServer server;
    static String address, root;
    static final ZooKeeper[] clients = new ZooKeeper[SESSIONS];
    static final List<List<String>> events = new ArrayList<>();
    static final StringBuilder out = new StringBuilder();

    public static void main(String[] arguments) throws Exception {
        int first = Integer.parseInt(arguments[0]), count = Integer.parseInt(arguments[1]);
        int operations = Integer.parseInt(arguments[2]);
        File folder = Files.createTempDirectory("zookeeper").toFile();
        server = new ZooKeeperServer(folder, folder, 2000);
        NIOServerCnxnFactory factory = new NIOServerCnxnFactory();
        factory.configure(new InetSocketAddress("127.0.0.1", 0), 0);
        factory.startup(server);
        address = "127.0.0.1:" + factory.getLocalPort();
        for (int i = 0; i < SESSIONS; i++) { events.add(Collections.synchronizedList(new ArrayList<>())); open(i); }
        for (int seed = first; seed < first + count; seed++) {
            random = new Random(seed);
            root = "/h" + seed;
            out.append("history\t").append(seed).append('\n');
            clients[0].create(root, new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            for (int i = 0; i < operations; i++) act();
            for (int i = 0; i < SESSIONS; i++) { clients[i].close(); open(i); }
            for (List<String> of : events) of.clear();
            System.out.print(out);
            out.setLength(0);
        }
        System.out.flush();
        for (ZooKeeper client : clients) client.close();
        factory.shutdown();
        Files.walk(folder.toPath()).sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
        Runtime.getRuntime().halt(0);
    }

    static void open(int number) throws Exception {
        CountDownLatch up = new CountDownLatch(1);
        List<String> own = Collections.synchronizedList(new ArrayList<>()); // a closed client's events go nowhere
        events.set(number, own);
        clients[number] = new ZooKeeper(address, 30_000, event -> {
            if (event.getType() == Watcher.Event.EventType.None) {
                if (event.getState() == Watcher.Event.KeeperState.SyncConnected) up.countDown();
            } else own.add(event.getType() + "\t" + event.getPath().substring(root.length()));
        });
        up.await();
    }

    static String path() {
        StringBuilder path = new StringBuilder();
        int depth = random.nextInt(10) < 1 ? 0 : 1 + random.nextInt(3);
        for (int i = 0; i < depth; i++) path.append("/").append("abc".charAt(random.nextInt(3)));
        return path.toString();
    }

    static int version() { return random.nextInt(3) > 0 ? -1 : random.nextInt(3); }
    static String data() { return "d" + random.nextInt(1000); }

    static void act() throws Exception {
        int session = random.nextInt(SESSIONS);
        ZooKeeper client = clients[session];
        int kind = random.nextInt(100);
        String result;
        try {
            if (kind < 2) {
                say(session, "close");
                client.close();
                open(session);
                result = "ok";
            } else if (kind < 60) {
                String[] words = change();
                say(session, words);
                result = changed(client, words);
            } else if (kind < 70) {
                List<String[]> parts = new ArrayList<>();
                List<Op> ops = new ArrayList<>();
                List<String> words = new ArrayList<>(List.of("multi"));
                for (int i = 1 + random.nextInt(4); i > 0; i--) {
                    String[] part = random.nextInt(5) == 0 ? new String[] {"check", path(), "" + version()} : change();
                    parts.add(part);
                    ops.add(op(part));
                    words.add(String.join(" ", part));
                }
                say(session, words.toArray(new String[0]));
                try {
                    StringBuilder all = new StringBuilder("ok");
                    for (OpResult one : client.multi(ops))
                        all.append('\t').append(one instanceof OpResult.CreateResult
                            ? below(((OpResult.CreateResult) one).getPath()) : one instanceof OpResult.SetDataResult
                            ? "v" + ((OpResult.SetDataResult) one).getStat().getVersion() : "-");
                    result = all.toString();
                } catch (KeeperException failure) {
                    StringBuilder all = new StringBuilder("error\t" + failure.code().intValue());
                    if (failure.getResults() != null)
                        for (OpResult one : failure.getResults()) all.append('\t').append(((OpResult.ErrorResult) one).getErr());
                    result = all.toString();
                }
            } else {
                String path = path();
                boolean watch = random.nextInt(2) == 0;
                String name = kind < 80 ? "get" : kind < 90 ? "exists" : "children";
                say(session, name, path, "" + watch);
                Stat stat = new Stat();
                if (name.equals("get")) {
                    byte[] data = client.getData(root + path, watch, stat);
                    result = "ok\t" + new String(data) + "\t" + text(stat);
                } else if (name.equals("exists")) {
                    Stat there = client.exists(root + path, watch);
                    result = there == null ? "error\t-101" : "ok\t" + text(there);
                } else {
                    List<String> names = client.getChildren(root + path, watch, stat);
                    Collections.sort(names);
                    result = "ok\t" + String.join(",", names) + "\t" + text(stat);
                }
            }
        } catch (KeeperException failure) {
            result = "error\t" + failure.code().intValue();
        }
        out.append(result).append('\n');
        drain();
    }

    static String[] change() {
        int kind = random.nextInt(10);
        if (kind < 5) {
            int mode = random.nextInt(8);
            return new String[] {"create", path() + "/" + "abc".charAt(random.nextInt(3)), data(),
                mode < 4 ? "PERSISTENT" : mode < 6 ? "EPHEMERAL" : mode < 7 ? "PERSISTENT_SEQUENTIAL" : "EPHEMERAL_SEQUENTIAL"};
        }
        if (kind < 8) return new String[] {"delete", path() + "/" + "abc".charAt(random.nextInt(3)), "" + version()};
        return new String[] {"set", path(), data(), "" + version()};
    }

    static String changed(ZooKeeper client, String[] words) throws Exception {
        switch (words[0]) {
            case "create":
                return "ok\t" + below(client.create(root + words[1], words[2].getBytes(), ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.valueOf(words[3])));
            case "delete":
                client.delete(root + words[1], Integer.parseInt(words[2]));
                return "ok";
            default:
                return "ok\t" + text(client.setData(root + words[1], words[2].getBytes(), Integer.parseInt(words[3])));
        }
    }

    static Op op(String[] words) {
        switch (words[0]) {
            case "create": return Op.create(root + words[1], words[2].getBytes(), ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.valueOf(words[3]));
            case "delete": return Op.delete(root + words[1], Integer.parseInt(words[2]));
            case "set": return Op.setData(root + words[1], words[2].getBytes(), Integer.parseInt(words[3]));
            default: return Op.check(root + words[1], Integer.parseInt(words[2]));
        }
    }

    static String below(String path) { return path.substring(root.length()); }

    static String text(Stat stat) {
        int owner = -1;
        for (int i = 0; i < SESSIONS; i++) if (stat.getEphemeralOwner() == clients[i].getSessionId()) owner = i;
        return stat.getVersion() + " " + stat.getCversion() + " " + owner + " " + stat.getDataLength() + " "
            + stat.getNumChildren() + " " + (stat.getCzxid() == stat.getMzxid());
    }

    static void say(int session, String... words) {
        out.append("do\t").append(session).append('\t').append(String.join("\t", words)).append('\n');
    }

    /** Watches come before the answer to what is asked later, and the client's event thread keeps that order. */
    static void drain() throws Exception {
        for (int i = 0; i < SESSIONS; i++) {
            CountDownLatch done = new CountDownLatch(1);
            clients[i].exists(root, false, (AsyncCallback.StatCallback) (code, path, context, stat) -> done.countDown(), null);
            done.await();
            for (String event : events.get(i)) out.append("event\t").append(i).append('\t').append(event).append('\n');
            events.get(i).clear();
        }
    }
}
