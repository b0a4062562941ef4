import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Scanner;
import kafka.common.OffsetAndMetadata;
import kafka.message.ByteBufferMessageSet;
import kafka.message.CompressionCodec;
import kafka.message.GZIPCompressionCodec$;
import kafka.message.Message;
import kafka.message.MessageAndOffset;
import kafka.message.NoCompressionCodec$;
import kafka.message.SnappyCompressionCodec$;
import kafka.server.OffsetManager$;
import scala.collection.JavaConversions;

/** Kafka 0.8.2.2's own classes: message sets, and the records of its offset manager.
 *  Writes "set CODEC HEX", "key HEX GROUP TOPIC PARTITION", "value HEX OFFSET METADATA"; reads lines of the same
 *  beginnings and bytes from standard input, and writes "read ..." with what is in them. */
public final class OldFormats {
    static final HexFormat HEX = HexFormat.of();

    public static void main(String[] arguments) {
        CompressionCodec[] codecs = {NoCompressionCodec$.MODULE$, GZIPCompressionCodec$.MODULE$, SnappyCompressionCodec$.MODULE$};
        for (CompressionCodec codec : codecs) {
            List<Message> messages = new ArrayList<>();
            messages.add(new Message("first".getBytes(), "key".getBytes()));
            messages.add(new Message("second".getBytes()));
            messages.add(new Message(null, "deleted".getBytes()));
            messages.add(new Message(new byte[300], new byte[0]));
            ByteBufferMessageSet set = new ByteBufferMessageSet(codec, JavaConversions.asScalaBuffer(messages));
            System.out.println("set " + codec.name() + " " + hex(set.buffer()));
        }
        OffsetManager$ manager = OffsetManager$.MODULE$;
        for (int i = 0; i < 4; i++) {
            String group = "group-" + i, topic = i % 2 == 0 ? "orders" : "é";
            System.out.println("key " + HEX.formatHex(manager.offsetCommitKey(group, topic, i, (short) 0)) + " " + group + " " + topic + " " + i);
            long offset = i * 1_000_000_007L;
            System.out.println("value " + HEX.formatHex(manager.offsetCommitValue(new OffsetAndMetadata(offset, "m" + i, 1_400_000_000_000L + i))) + " " + offset + " m" + i);
        }
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] words = lines.nextLine().trim().split(" ");
            if (words.length < 2) continue;
            ByteBuffer buffer = ByteBuffer.wrap(HEX.parseHex(words[1]));
            if (words[0].equals("set")) {
                StringBuilder all = new StringBuilder("read set");
                for (MessageAndOffset one : JavaConversions.asJavaIterable(new ByteBufferMessageSet(buffer)))
                    all.append(" ").append(one.offset()).append(":").append(hex(one.message().key())).append(":").append(hex(one.message().payload())).append(":").append(one.message().isValid());
                System.out.println(all);
            } else if (words[0].equals("key")) System.out.println("read key " + manager.readMessageKey(buffer));
            else System.out.println("read value " + manager.readMessageValue(buffer));
        }
        System.out.flush();
    }

    static String hex(ByteBuffer of) {
        if (of == null) return "null";
        byte[] bytes = new byte[of.remaining()];
        of.duplicate().get(bytes);
        return HEX.formatHex(bytes);
    }
}
