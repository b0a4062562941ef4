package driver;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.*;
import java.lang.reflect.Field;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import kafka.consumer.*;
import kafka.javaapi.consumer.ConsumerConnector;
import kafka.server.KafkaServerStartable;
import org.I0Itec.zkclient.ZkConnection;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.zookeeper.*;
import org.apache.zookeeper.data.Stat;
import org.apache.zookeeper.server.*;

/** Random histories of Kafka's own ZookeeperConsumerConnector on a real ZooKeeper server with real brokers.
 *  Arguments: output folder, first seed, number of histories, threads. One file of JSON lines for each seed. */
public final class Driver {
    static final ObjectMapper JSON = new ObjectMapper();
    static final boolean OLD = Boolean.getBoolean("old"); // 0.8.2.2: topics are nodes that the driver writes, as kafka-topics.sh did
    static final String KAFKA = OLD ? "0.8.2.2" : "1.1.1", ZOOKEEPER = OLD ? "3.4.6" : "3.4.10";
    static final boolean LIGHT = Boolean.getBoolean("light"); // brokers, topics and states are nodes that the driver writes: no messages
    static final int QUIET_MS = 1000, SESSION_MS = 2500, RETRIES = 8, BACKOFF_MS = 300, COMMIT_MS = 200;

    public static void main(String[] args) throws Exception {
        Path out = Paths.get(args[0]);
        Files.createDirectories(out);
        int first = Integer.parseInt(args[1]), count = Integer.parseInt(args[2]);
        ExecutorService pool = Executors.newFixedThreadPool(Integer.parseInt(args[3]));
        List<Future<?>> all = new ArrayList<>();
        for (int seed = first; seed < first + count; seed++) {
            int one = seed;
            all.add(pool.submit(() -> {
                try {
                    new History(one, out).run();
                    System.out.println("history " + one + " done");
                } catch (Throwable t) {
                    System.out.println("history " + one + " FAILED " + t);
                    t.printStackTrace();
                }
            }));
        }
        for (Future<?> f : all) f.get();
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    // --- one consumer ---

    static final class Consumer {
        String label, group, id, clientId;
        ConsumerConnector connector;
        kafka.consumer.ZookeeperConsumerConnector inner;
        Map<String, Object> spec;
        String error;
        boolean alive = true;
        long session;
        AtomicLong consumed = new AtomicLong();
        List<Thread> threads = new ArrayList<>();

        /** By way of zkUtils (0.9 and on) or of zkClient (0.8). */
        ZooKeeper zooKeeper() throws Exception {
            Object client;
            try {
                client = field(field(inner, "zkUtils"), "zkClient");
            } catch (NoSuchFieldException e) {
                client = field(inner, "zkClient");
            }
            return ((ZkConnection) field(client, "_connection")).getZookeeper();
        }
    }

    static Object field(Object of, String suffix) throws Exception {
        for (Class<?> c = of.getClass(); c != null; c = c.getSuperclass())
            for (Field f : c.getDeclaredFields())
                if (f.getName().equals(suffix) || f.getName().endsWith("$" + suffix)) {
                    f.setAccessible(true);
                    return f.get(of);
                }
        throw new NoSuchFieldException(suffix);
    }

    // --- one history ---

    static final class History {
        final int seed;
        final Random random;
        final Path dir, file;
        final List<Map<String, Object>> lines = new ArrayList<>();
        final Map<Integer, KafkaServerStartable> brokers = new TreeMap<>();
        final Map<String, Consumer> consumers = new ConcurrentSkipListMap<>();
        final Map<Long, String> sessions = new ConcurrentHashMap<>();
        final Map<String, Integer> topics = new TreeMap<>(), replication = new TreeMap<>();
        ZooKeeperServer server;
        NIOServerCnxnFactory factory;
        ZooKeeper admin;
        String connect, strategy;
        boolean explicitIds, autoCommit;
        int number = 0;
        List<String> freeTopics, freeIds;
        List<Map<String, Object>> roundRobinSpec = new ArrayList<>();

        History(int seed, Path out) throws Exception {
            this.seed = seed;
            random = new Random(seed * 7919L + 13);
            dir = Files.createTempDirectory("h11-" + seed + "-");
            file = out.resolve(String.format("history-%03d.jsonl", seed));
        }

        boolean chance(double p) { return random.nextDouble() < p; }
        <T> T pick(List<T> of) { return of.get(random.nextInt(of.size())); }

        void run() throws Exception {
            strategy = seed % 4 == 3 ? "roundrobin" : "range";
            explicitIds = chance(0.5);
            autoCommit = !chance(0.2);
            freeTopics = new ArrayList<>(List.of("t", "t1", "t10", "t2", "logs", "logs.a", "A", "b-c", "_x", "orders"));
            Collections.shuffle(freeTopics, random);
            if (chance(0.3)) freeTopics.add(random.nextInt(4), "__consumer_offsets");
            if (chance(0.1)) freeTopics.add(random.nextInt(4), "__transaction_state");
            freeIds = new ArrayList<>(List.of("c1", "c10", "c2", "c1-0", "C", "c.1", "c_1", "a", "z-1", "0", "host-1-2", "c1-1"));
            Collections.shuffle(freeIds, random);
            startZooKeeper();
            try {
                int count = 1 + random.nextInt(3);
                boolean none = chance(0.12);
                Map<String, Object> head = new LinkedHashMap<>();
                head.put("kind", "history");
                head.put("history", seed);
                head.put("kafka", KAFKA);
                head.put("light", LIGHT);
                head.put("zookeeper", ZOOKEEPER);
                head.put("strategy", strategy);
                head.put("consumer_ids", explicitIds ? "consumer.id" : "default");
                head.put("auto_commit", autoCommit);
                head.put("session_timeout_ms", SESSION_MS);
                head.put("rebalance_max_retries", RETRIES);
                head.put("rebalance_backoff_ms", BACKOFF_MS);
                head.put("auto_commit_interval_ms", COMMIT_MS);
                head.put("quiet_ms", QUIET_MS);
                lines.add(head);
                for (int b = 0; b < count; b++) startBroker(b);
                step(action("setup", "brokers", new ArrayList<>(brokers.keySet())), null);
                int initial = 1 + random.nextInt(3);
                for (int i = 0; i < initial; i++) addTopic(true);
                step(action("topics", "topics", new TreeMap<>(topics)), null);
                if (none) {
                    List<Integer> ids = new ArrayList<>(brokers.keySet());
                    for (int b : ids) stopBroker(b);
                    step(action("broker_down", "brokers", ids), null);
                }
                int steps = 10 + random.nextInt(11);
                for (int i = 0; i < steps; i++) act();
                // leave all
                List<Map<String, Object>> last = new ArrayList<>();
                for (Consumer c : alive()) last.add(shutdown(c));
                step(action("burst", "actions", last), null);
            } finally {
                try {
                    write();
                } finally { // a broker that is stopped after ZooKeeper's end may wait for it for good
                    Thread end = new Thread(this::close);
                    end.setDaemon(true);
                    end.start();
                    end.join(20_000);
                }
            }
        }

        Map<String, Object> action(Object... pairs) {
            Map<String, Object> m = new LinkedHashMap<>();
            m.put("do", pairs[0]);
            for (int i = 1; i < pairs.length; i += 2) m.put((String) pairs[i], pairs[i + 1]);
            return m;
        }

        List<Consumer> alive() {
            List<Consumer> l = new ArrayList<>();
            for (Consumer c : consumers.values()) if (c.alive) l.add(c);
            return l;
        }

        void act() throws Exception {
            List<Consumer> living = alive();
            double d = random.nextDouble();
            if (living.isEmpty() || (d < 0.27 && living.size() < 6)) {
                Map<String, Object> a = spec();
                start(a);
                step(a, null);
            } else if (d < 0.38) {
                step(shutdown(pick(living)), null);
            } else if (d < 0.47) {
                Consumer c = pick(living);
                kill(c);
                awaitGone(List.of(c));
                step(action("kill", "consumer", c.label), null);
            } else if (d < 0.52) {
                Consumer c = pick(living);
                expire(c);
                step(action("expire", "consumer", c.label), null);
            } else if (d < 0.62 && !brokers.isEmpty() && !freeTopics.isEmpty()) {
                String t = addTopic(false);
                step(action("add_topic", "topic", t, "partitions", topics.get(t)), null);
            } else if (d < 0.71 && !brokers.isEmpty()) {
                String t = pick(new ArrayList<>(topics.keySet()));
                int n = topics.get(t) + 1 + random.nextInt(3);
                List<Integer> ids = new ArrayList<>(brokers.keySet());
                if (replication.get(t) > ids.size()) return;
                List<List<Integer>> where = new ArrayList<>();
                for (int p = topics.get(t); p < n; p++) {
                    Collections.shuffle(ids, random);
                    where.add(new ArrayList<>(ids.subList(0, replication.get(t))));
                }
                if (OLD || LIGHT) {
                    @SuppressWarnings("unchecked")
                    Map<String, Object> node = JSON.readValue(admin.getData("/brokers/topics/" + t, false, null), Map.class);
                    @SuppressWarnings("unchecked")
                    Map<String, Object> parts = (Map<String, Object>) node.get("partitions");
                    for (List<Integer> one : where) parts.put("" + parts.size(), one);
                    admin.setData("/brokers/topics/" + t, JSON.writeValueAsBytes(node), -1);
                } else {
                    Admin.addPartitions(bootstrap(), t, n, where);
                }
                topics.put(t, n);
                step(action("add_partitions", "topic", t, "partitions", n), null);
            } else if (d < 0.76 && !brokers.isEmpty()) {
                List<Integer> ids = new ArrayList<>(brokers.keySet());
                List<Integer> down = chance(0.3) ? ids : List.of(pick(ids));
                for (int b : down) stopBroker(b);
                step(action("broker_down", "brokers", down), null);
            } else if (d < 0.83 && brokers.size() < 3) {
                List<Integer> off = new ArrayList<>(List.of(0, 1, 2));
                off.removeAll(brokers.keySet());
                int b = pick(off);
                startBroker(b);
                step(action("broker_up", "brokers", List.of(b)), null);
            } else if (d < 0.92 && !brokers.isEmpty() && !LIGHT) {
                produce();
            } else {
                burst();
            }
        }

        /** Two or three actions at once. */
        void burst() throws Exception {
            List<Map<String, Object>> todo = new ArrayList<>();
            List<Runnable> work = new ArrayList<>();
            List<Consumer> living = alive(), killed = Collections.synchronizedList(new ArrayList<>());
            Collections.shuffle(living, random);
            int n = 2 + random.nextInt(2), started = 0;
            for (int i = 0; i < n; i++) {
                int kind = random.nextInt(4);
                if (kind == 0 && living.size() > 1) {
                    Consumer c = living.remove(0);
                    Map<String, Object> a = action("shutdown", "consumer", c.label);
                    todo.add(a);
                    work.add(() -> shutdown(c));
                } else if (kind == 1 && living.size() > 1) {
                    Consumer c = living.remove(0);
                    todo.add(action("kill", "consumer", c.label));
                    work.add(() -> { kill(c); killed.add(c); });
                } else if (alive().size() + started < 6) {
                    Map<String, Object> a = spec();
                    todo.add(a);
                    started++;
                    work.add(() -> start(a));
                }
            }
            if (todo.isEmpty()) return;
            List<Thread> threads = new ArrayList<>();
            for (Runnable r : work) { Thread t = new Thread(r); t.start(); threads.add(t); }
            for (Thread t : threads) t.join(60_000);
            awaitGone(killed);
            step(action("burst", "actions", todo), null);
        }

        // --- consumers ---

        Map<String, Object> spec() {
            String label = "k" + (++number);
            Map<String, Object> a = action("start", "consumer", label, "group", chance(0.8) ? "g1" : "g-2");
            List<Consumer> living = alive();
            if (explicitIds && chance(0.04) && !living.isEmpty()) {
                Consumer other = pick(living); // an id that is taken
                a.put("group", other.group);
                a.put("consumer_id", other.spec.get("consumer_id"));
            } else if (explicitIds) a.put("consumer_id", freeIds.isEmpty() ? "more" + number : freeIds.remove(0));
            if (strategy.equals("roundrobin") && !roundRobinSpec.isEmpty() && !chance(0.04)) {
                a.putAll(roundRobinSpec.get(0)); // it needs identical subscriptions
                return a;
            }
            Map<String, Object> s = new LinkedHashMap<>();
            if (chance(0.62)) {
                Map<String, Integer> count = new LinkedHashMap<>();
                List<String> names = new ArrayList<>(topics.keySet());
                if (!freeTopics.isEmpty() && chance(0.25)) names.add(freeTopics.get(0)); // not there yet
                Collections.shuffle(names, random);
                int n = 1 + random.nextInt(Math.min(3, names.size()));
                if (chance(0.1)) n = names.size();
                for (int i = 0; i < n; i++) count.put(names.get(i), chance(0.07) ? 11 + random.nextInt(2) : 1 + random.nextInt(3));
                s.put("topics", count);
            } else {
                s.put("filter", chance(0.6) ? "white_list" : "black_list");
                s.put("regex", pick(List.of(".*", "t.*", "t", "t1,t2", "logs.*", "t[0-9]+", "A|b-c", "_.*", "(t|logs)(\\.a)?", "__.*", "o.+|t", "\"t1\"")));
                s.put("streams", 1 + random.nextInt(3));
            }
            if (strategy.equals("roundrobin") && roundRobinSpec.isEmpty()) roundRobinSpec.add(s);
            a.putAll(s);
            return a;
        }

        @SuppressWarnings("unchecked")
        Consumer start(Map<String, Object> a) {
            Consumer c = new Consumer();
            c.label = (String) a.get("consumer");
            c.group = (String) a.get("group");
            c.spec = a;
            c.clientId = "h" + seed + "-" + c.label;
            Properties p = new Properties();
            p.put("group.id", c.group);
            p.put("client.id", c.clientId);
            p.put("zookeeper.connect", connect);
            p.put("zookeeper.session.timeout.ms", "" + SESSION_MS);
            p.put("zookeeper.connection.timeout.ms", "20000");
            p.put("zookeeper.sync.time.ms", "200");
            p.put("rebalance.max.retries", "" + RETRIES);
            p.put("rebalance.backoff.ms", "" + BACKOFF_MS);
            p.put("auto.commit.enable", "" + autoCommit);
            p.put("auto.commit.interval.ms", "" + COMMIT_MS);
            p.put("auto.offset.reset", "smallest");
            p.put("partition.assignment.strategy", strategy);
            p.put("fetch.wait.max.ms", "500");
            p.put("refresh.leader.backoff.ms", LIGHT ? "60000" : "200");
            p.put("queued.max.message.chunks", "2");
            p.put("socket.timeout.ms", "5000");
            if (a.get("consumer_id") != null) p.put("consumer.id", a.get("consumer_id"));
            consumers.put(c.label, c);
            try {
                c.connector = kafka.consumer.Consumer.createJavaConsumerConnector(new ConsumerConfig(p));
                c.inner = (kafka.consumer.ZookeeperConsumerConnector) field(c.connector, "underlying");
                c.id = (String) field(c.inner, "consumerIdString");
                a.put("id", c.id);
                c.session = c.zooKeeper().getSessionId();
                sessions.put(c.session, c.label);
                List<KafkaStream<byte[], byte[]>> streams = new ArrayList<>();
                if (a.containsKey("topics")) {
                    Map<String, Integer> count = (Map<String, Integer>) a.get("topics");
                    for (List<KafkaStream<byte[], byte[]>> l : c.connector.createMessageStreams(count).values()) streams.addAll(l);
                } else {
                    String regex = (String) a.get("regex");
                    TopicFilter filter = a.get("filter").equals("white_list") ? new Whitelist(regex) : new Blacklist(regex);
                    streams.addAll(c.connector.createMessageStreamsByFilter(filter, (Integer) a.get("streams")));
                }
                for (KafkaStream<byte[], byte[]> s : streams) {
                    Thread t = new Thread(() -> {
                        try {
                            ConsumerIterator<byte[], byte[]> it = s.iterator();
                            while (it.hasNext()) { it.next(); c.consumed.incrementAndGet(); }
                        } catch (Throwable e) { /* ended */ }
                    });
                    t.setDaemon(true);
                    t.start();
                    c.threads.add(t);
                }
                a.put("result", "ok");
            } catch (Throwable t) {
                a.put("result", t.getClass().getSimpleName());
                a.put("message", String.valueOf(t.getMessage()));
                if (!(t instanceof kafka.common.ConsumerRebalanceFailedException)) { // it has not registered
                    if (c.connector != null) c.connector.shutdown();
                    c.alive = false;
                }
            }
            return c;
        }

        Map<String, Object> shutdown(Consumer c) {
            c.alive = false;
            c.connector.shutdown();
            return action("shutdown", "consumer", c.label);
        }

        /** The process dies: nothing of it runs on, its socket closes, its session is not closed. */
        void kill(Consumer c) {
            try {
                c.alive = false;
                ZooKeeper zk = c.zooKeeper();
                Object cnxn = field(zk, "cnxn");
                ((ClientCnxn) cnxn).disconnect(); // stops its threads; no closeSession is sent
                ((AtomicBoolean) field(c.inner, "isShuttingDown")).set(true);
                Thread later = new Thread(() -> {
                    try {
                        Object scheduler = field(c.inner, "scheduler");
                        ((ScheduledThreadPoolExecutor) field(scheduler, "executor")).shutdownNow();
                    } catch (Throwable t) { /* not started */ }
                    try {
                        scala.Option<?> f = (scala.Option<?>) field(c.inner, "fetcher");
                        if (f.isDefined()) ((ConsumerFetcherManager) f.get()).stopConnections();
                    } catch (Throwable t) { /* as it is */ }
                    for (Thread t : c.threads) t.interrupt();
                });
                later.setDaemon(true);
                later.start();
                later.join(5000);
            } catch (Throwable t) {
                throw new RuntimeException(t);
            }
        }

        void awaitGone(List<Consumer> killed) throws Exception {
            long end = System.currentTimeMillis() + 20_000;
            for (Consumer c : killed)
                while (server.getZKDatabase().getSessions().contains(c.session) && System.currentTimeMillis() < end) Thread.sleep(50);
        }

        /** The server ends the session; the client learns of it, and opens another. */
        void expire(Consumer c) throws Exception {
            long before = c.session;
            server.closeSession(before);
            long end = System.currentTimeMillis() + 20_000;
            while (System.currentTimeMillis() < end) {
                ZooKeeper zk = c.zooKeeper(); // none for a moment, while ZkClient connects anew
                long now = zk == null ? 0 : zk.getSessionId();
                if (now != before && now != 0) {
                    c.session = now;
                    sessions.put(now, c.label);
                    return;
                }
                Thread.sleep(30);
            }
            throw new IllegalStateException("no new session");
        }

        // --- brokers and topics ---

        void startBroker(int id) {
            if (LIGHT) {
                Map<String, Object> node = new LinkedHashMap<>();
                node.put("jmx_port", -1);
                node.put("timestamp", "" + System.currentTimeMillis());
                node.put("endpoints", List.of("PLAINTEXT://127.0.0.1:1"));
                node.put("host", "127.0.0.1");
                node.put("version", 1);
                node.put("port", 1);
                try {
                    for (String path : List.of("/brokers", "/brokers/ids", "/brokers/topics", "/consumers")) writePersistent(path, null);
                    admin.create("/brokers/ids/" + id, JSON.writeValueAsBytes(node), ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
                } catch (Exception e) { throw new RuntimeException(e); }
                brokers.put(id, null);
                return;
            }
            Properties p = new Properties();
            p.put("broker.id", "" + id);
            p.put("zookeeper.connect", connect);
            p.put("zookeeper.session.timeout.ms", "15000");
            p.put("zookeeper.connection.timeout.ms", "20000");
            p.put("listeners", "PLAINTEXT://127.0.0.1:0");
            p.put("log.dirs", dir.resolve("broker-" + id).toString());
            p.put("num.network.threads", "1");
            p.put("num.io.threads", "2");
            p.put("num.recovery.threads.per.data.dir", "1");
            p.put("log.cleaner.enable", "false");
            p.put("background.threads", "1");
            p.put("controlled.shutdown.enable", "false");
            p.put("auto.create.topics.enable", "false");
            p.put("auto.leader.rebalance.enable", "false");
            p.put("offsets.topic.num.partitions", "1");
            p.put("offsets.topic.replication.factor", "1");
            p.put("log.index.size.max.bytes", "65536");
            p.put("group.initial.rebalance.delay.ms", "0");
            KafkaServerStartable b;
            try {
                if (OLD) {
                    int port;
                    try (java.net.ServerSocket free = new java.net.ServerSocket(0)) { port = free.getLocalPort(); }
                    p.remove("listeners");
                    p.put("host.name", "127.0.0.1");
                    p.put("port", "" + port);
                    Class<?> config = Class.forName("kafka.server.KafkaConfig");
                    b = (KafkaServerStartable) KafkaServerStartable.class.getConstructor(config)
                            .newInstance(config.getConstructor(Properties.class).newInstance(p));
                } else {
                    b = (KafkaServerStartable) KafkaServerStartable.class.getMethod("fromProps", Properties.class).invoke(null, p);
                }
            } catch (ReflectiveOperationException | IOException e) {
                throw new RuntimeException(e);
            }
            b.startup();
            brokers.put(id, b);
            noteBroker(id);
        }

        void noteBroker(int id) {
            try {
                Stat s = new Stat();
                admin.getData("/brokers/ids/" + id, false, s);
                sessions.put(s.getEphemeralOwner(), "broker " + id);
            } catch (Exception e) { throw new RuntimeException(e); }
        }

        void writePersistent(String path, byte[] data) throws Exception {
            try { admin.create(path, data, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT); } catch (KeeperException.NodeExistsException e) { /* there */ }
        }

        void stopBroker(int id) {
            if (LIGHT) {
                brokers.remove(id);
                try { admin.delete("/brokers/ids/" + id, -1); } catch (Exception e) { throw new RuntimeException(e); }
                return;
            }
            KafkaServerStartable b = brokers.remove(id);
            b.shutdown();
            b.awaitShutdown();
        }

        String bootstrap() throws Exception {
            List<String> l = new ArrayList<>();
            for (int id : brokers.keySet()) {
                Map<?, ?> m = JSON.readValue(admin.getData("/brokers/ids/" + id, false, null), Map.class);
                l.add("127.0.0.1:" + m.get("port"));
            }
            return String.join(",", l);
        }

        String addTopic(boolean initial) throws Exception {
            String t = freeTopics.remove(0);
            int n = chance(0.1) ? 11 + random.nextInt(3) : 1 + random.nextInt(6);
            List<Integer> ids = new ArrayList<>(brokers.keySet());
            Map<Integer, List<Integer>> where = new TreeMap<>();
            int replicas = chance(0.3) ? Math.min(2, ids.size()) : 1;
            for (int p = 0; p < n; p++) {
                Collections.shuffle(ids, random);
                where.put(p, new ArrayList<>(ids.subList(0, replicas)));
            }
            if (OLD || LIGHT) {
                Map<String, Object> node = new LinkedHashMap<>();
                node.put("version", 1);
                node.put("partitions", where);
                admin.create("/brokers/topics/" + t, JSON.writeValueAsBytes(node), ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
                Thread.sleep(300);
            } else {
                Admin.createTopic(bootstrap(), t, where);
            }
            topics.put(t, n);
            replication.put(t, replicas);
            return t;
        }

        void produce() throws Exception {
            String t = pick(new ArrayList<>(topics.keySet()));
            Properties p = new Properties();
            p.put("bootstrap.servers", bootstrap());
            p.put("max.block.ms", "3000");
            p.put("request.timeout.ms", "3000");
            p.put("retries", "0");
            Map<String, Integer> done = new TreeMap<>();
            try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(p, new ByteArraySerializer(), new ByteArraySerializer())) {
                for (int part = 0; part < topics.get(t); part++) {
                    Map<?, ?> state;
                    try {
                        state = JSON.readValue(admin.getData("/brokers/topics/" + t + "/partitions/" + part + "/state", false, null), Map.class);
                    } catch (KeeperException.NoNodeException e) { continue; }
                    if (!brokers.containsKey((Integer) state.get("leader"))) continue;
                    int n = random.nextInt(6), ok = 0;
                    List<Future<RecordMetadata>> sent = new ArrayList<>();
                    for (int i = 0; i < n; i++) sent.add(producer.send(new ProducerRecord<>(t, part, null, "m".getBytes())));
                    for (Future<RecordMetadata> f : sent) try { f.get(); ok++; } catch (ExecutionException e) { /* not stored */ }
                    if (ok > 0) done.put("" + part, ok);
                }
            }
            Thread.sleep(600); // fetches and the commit that follows
            step(action("produce", "topic", t, "messages", done), null);
        }

        // --- dumps ---

        void quiet() throws Exception {
            long last = -1, since = System.currentTimeMillis(), begin = since;
            while (true) {
                long sum = server.getZKDatabase().getDataTreeLastProcessedZxid();
                for (Consumer c : consumers.values()) sum += c.consumed.get() << 20;
                long now = System.currentTimeMillis();
                if (sum != last) { last = sum; since = now; }
                if (now - since >= QUIET_MS || now - begin > 60_000) return;
                Thread.sleep(40);
            }
        }

        void step(Map<String, Object> action, Object unused) throws Exception {
            long begin = System.currentTimeMillis();
            quiet();
            Map<String, Object> line = new LinkedHashMap<>();
            line.put("kind", "step");
            line.put("history", seed);
            line.put("step", lines.size() - 1);
            line.put("action", action);
            line.put("waited_ms", System.currentTimeMillis() - begin);
            if (System.currentTimeMillis() - begin > 60_000) line.put("not_quiet", true);
            List<String> spurious = new ArrayList<>();
            Map<String, Object> live = new TreeMap<>();
            for (Consumer c : alive()) {
                try {
                    long now = c.zooKeeper().getSessionId();
                    if (now != c.session) { spurious.add(c.label); c.session = now; sessions.put(now, c.label); }
                } catch (Exception e) { spurious.add(c.label + " " + e); }
                Map<String, Object> one = new LinkedHashMap<>();
                one.put("rebalances", rebalances(c));
                one.put("messages", c.consumed.get());
                live.put(c.label, one);
            }
            line.put("alive", live);
            if (!spurious.isEmpty()) line.put("sessions_lost_by_themselves", spurious);
            List<Map<String, Object>> nodes = new ArrayList<>();
            for (String top : List.of("/brokers", "/consumers")) dump(top, nodes);
            line.put("nodes", nodes);
            lines.add(line);
        }

        Object rebalances(Consumer c) {
            for (Map.Entry<com.yammer.metrics.core.MetricName, com.yammer.metrics.core.Metric> e :
                    com.yammer.metrics.Metrics.defaultRegistry().allMetrics().entrySet())
                if (e.getKey().getName().equals("RebalanceRateAndTime") && e.getKey().getMBeanName().contains("clientId=" + c.clientId + ","))
                    return ((com.yammer.metrics.core.Timer) e.getValue()).count();
                else if (e.getKey().getName().equals("RebalanceRateAndTime") && e.getKey().getMBeanName().endsWith("clientId=" + c.clientId))
                    return ((com.yammer.metrics.core.Timer) e.getValue()).count();
            return null;
        }

        void dump(String path, List<Map<String, Object>> into) throws Exception {
            Stat stat = new Stat();
            byte[] data;
            List<String> children;
            try {
                data = admin.getData(path, false, stat);
                children = new ArrayList<>(admin.getChildren(path, false));
            } catch (KeeperException.NoNodeException e) { return; }
            Map<String, Object> n = new LinkedHashMap<>();
            n.put("path", path);
            n.put("data", data == null ? null : new String(data, StandardCharsets.UTF_8));
            n.put("ephemeral", stat.getEphemeralOwner() != 0);
            n.put("version", stat.getVersion());
            if (stat.getEphemeralOwner() != 0) n.put("owner", sessions.getOrDefault(stat.getEphemeralOwner(), "?"));
            into.add(n);
            Collections.sort(children);
            for (String c : children) dump(path + "/" + c, into);
        }

        void write() throws Exception {
            try (BufferedWriter w = Files.newBufferedWriter(file)) {
                for (Map<String, Object> l : lines) { w.write(JSON.writeValueAsString(l)); w.write("\n"); }
            }
        }

        // --- ZooKeeper ---

        void startZooKeeper() throws Exception {
            File d = dir.resolve("zookeeper").toFile();
            d.mkdirs();
            server = new ZooKeeperServer(d, d, 500);
            factory = new NIOServerCnxnFactory();
            factory.configure(new InetSocketAddress("127.0.0.1", 0), 0);
            factory.startup(server);
            server.setMaxSessionTimeout(60_000);
            connect = "127.0.0.1:" + factory.getLocalPort();
            CountDownLatch up = new CountDownLatch(1);
            admin = new ZooKeeper(connect, 30_000, e -> { if (e.getState() == Watcher.Event.KeeperState.SyncConnected) up.countDown(); });
            up.await(20, TimeUnit.SECONDS);
        }

        void close() {
            for (Consumer c : alive()) try { c.connector.shutdown(); } catch (Throwable t) { /* going */ }
            for (int id : new ArrayList<>(brokers.keySet())) try { stopBroker(id); } catch (Throwable t) { /* going */ }
            try { admin.close(); } catch (Throwable t) { /* going */ }
            try { factory.shutdown(); server.shutdown(); } catch (Throwable t) { /* going */ }
            try {
                Files.walk(dir).sorted(Comparator.reverseOrder()).forEach(p -> p.toFile().delete());
            } catch (Throwable t) { /* scratch */ }
        }
    }
}
