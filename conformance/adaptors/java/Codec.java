import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.Properties;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/** Apache Kafka's generated classes as a codec. */
public final class Codec {
    static final ObjectMapper JSON = new ObjectMapper();
    static final String[] PACKAGES = {
        "org.apache.kafka.common.message.", "org.apache.kafka.coordinator.group.generated.",
        "org.apache.kafka.coordinator.transaction.generated.", "org.apache.kafka.coordinator.share.generated.",
        "org.apache.kafka.common.metadata."};

    static Class<?> find(JsonNode request) {
        String name = request.get("api").asText();
        String direction = request.get("direction").asText();
        if (!request.get("api_key").isNull()) {
            name += direction.equals("request") ? "RequestData" : "ResponseData";
        } else if (direction.equals("header")) {
            name += "Data";
        }
        for (String each : PACKAGES) {
            try {
                return Class.forName(each + name);
            } catch (ClassNotFoundException elsewhere) {
                continue;
            }
        }
        return null;
    }

    static String write(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        return HexFormat.of().formatHex(buffer.array());
    }

    static void answer(JsonNode request, ObjectNode answer) throws Exception {
        Class<?> kind = find(request);
        short version = (short) request.get("version").asInt();
        Message message = kind == null ? null : (Message) kind.getConstructor().newInstance();
        if (kind == null || version < message.lowestSupportedVersion() || version > message.highestSupportedVersion()) {
            answer.put("lacks", "the message or the version");
            return;
        }
        Class<?> converter = Class.forName(kind.getName() + "JsonConverter");
        if (request.get("do").asText().equals("write")) {
            Object value = converter.getMethod("read", JsonNode.class, short.class).invoke(null, request.get("json"), version);
            answer.put("hex", write((Message) value, version));
            return;
        }
        message.read(new ByteBufferAccessor(ByteBuffer.wrap(HexFormat.of().parseHex(request.get("hex").asText()))), version);
        try {
            answer.set("json", (JsonNode) converter.getMethod("write", kind, short.class).invoke(null, message, version));
            answer.put("hex", write(message, version));
        } catch (RuntimeException | InvocationTargetException unwritable) {
            answer.remove("json");
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode request = JSON.readTree(line);
            ObjectNode answer = JSON.createObjectNode();
            try {
                if (request.get("do").asText().equals("name")) {
                    Properties release = new Properties();
                    release.load(Message.class.getResourceAsStream("/kafka/kafka-version.properties"));
                    answer.put("name", "kafka-clients " + release.getProperty("version") + " (Java)");
                } else {
                    answer(request, answer);
                }
            } catch (RuntimeException refused) {
                answer.put("refused", refused.toString());
            }
            System.out.println(JSON.writeValueAsString(answer));
        }
    }
}
