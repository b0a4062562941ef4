import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.Stores;

/**
 * One instance of a Streams application: `java Stream BOOTSTRAP APPLICATION NAME TOPIC FOLDER [KEY=VALUE ...]`; it
 * counts the records of a topic by key, in memory. "close" on standard input ends it; "add" and "remove" change its
 * threads; each state that it is in is a line on standard output.
 */
public final class Stream {
    private Stream() {
    }

    public static void main(String[] args) throws Exception {
        Properties all = new Properties();
        all.put("bootstrap.servers", args[0]);
        all.put("application.id", args[1]);
        all.put("client.id", args[2]);
        all.put("state.dir", args[4]);
        all.put("group.protocol", "streams");
        all.put("default.key.serde", Serdes.ByteArraySerde.class.getName());
        all.put("default.value.serde", Serdes.ByteArraySerde.class.getName());
        all.put("enable.metrics.push", "false");
        all.put("fetch.max.wait.ms", "2000");
        all.put("commit.interval.ms", "1000");
        for (int index = 5; index < args.length; index++) {
            String[] pair = args[index].split("=", 2);
            all.put(pair[0], pair[1]);
        }
        StreamsBuilder builder = new StreamsBuilder();
        builder.<byte[], byte[]>stream(args[3]).groupByKey()
            .count(Materialized.<byte[], Long>as(Stores.inMemoryKeyValueStore("counts"))
                .withKeySerde(Serdes.ByteArray()).withValueSerde(Serdes.Long()));
        KafkaStreams streams = new KafkaStreams(builder.build(), all);
        streams.setStateListener((now, before) -> System.out.println("assigned " + now));
        streams.start();
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(System.in))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.equals("add")) {
                    streams.addStreamThread();
                } else if (line.equals("remove")) {
                    streams.removeStreamThread();
                } else if (line.equals("close")) {
                    break;
                }
            }
        }
        streams.close(new KafkaStreams.CloseOptions().leaveGroup(args.length > 5 && args[5].equals("x.leave=true")));
        System.exit(0);
    }
}
