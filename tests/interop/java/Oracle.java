import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;

/**
 * Apache Kafka's generated classes behind a pipe: what they make of JSON and of bytes.
 *
 * <p>Strategy: commands come in batches; a batch is read whole before the first answer is written, so neither side
 * ever waits for the other to drain a pipe. Classes are found by reflection, so one source serves every release.
 *
 * <p>Rules (numbers are big-endian): a batch is int32 count, then the commands; a command is
 * int8 what, UTF class, int16 version, int32 length, that many bytes. An answer is int8 parts, then each part as
 * int32 length and bytes; -1 parts means refused, and one part with the reason follows. End of input ends it.
 *
 * <pre>
 *   V  -                 -> first and last version, in decimal, as two parts
 *   J  JSON text         -> the bytes that Kafka writes
 *   B  bytes             -> JSON text, the bytes written again, number of bytes left over
 *   R  bytes             -> number of bytes left over after reading alone
 *   S  -                 -> the fields of this version, a line each: path, type ("[]" before it for an array),
 *                           whether it may be null, and its tag or -
 *   H  -                 -> the header versions of a request and of its response, in decimal, as two parts
 *   E  -                 -> the constants of the enum with this full name, a line each: name, number, and
 *                           whether it is an error that may be retried; of another class its static numbers
 * </pre>
 */
public final class Oracle {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    /** Where Kafka keeps generated classes: of the protocol, of the coordinators' logs, of the metadata log. */
    private static final List<String> PACKAGES = List.of(
        "org.apache.kafka.common.message.",
        "org.apache.kafka.coordinator.group.generated.",
        "org.apache.kafka.coordinator.transaction.generated.",
        "org.apache.kafka.coordinator.share.generated.",
        "org.apache.kafka.common.metadata.");

    /** A message class with its converter's two methods. */
    private record Kind(Class<?> message, Method read, Method write) {
        static Kind find(String name) throws ReflectiveOperationException {
            Class<?> message = find(name, PACKAGES);
            Class<?> converter = Class.forName(message.getName() + "JsonConverter");
            return new Kind(message, converter.getMethod("read", JsonNode.class, short.class),
                converter.getMethod("write", message, short.class, boolean.class));
        }

        private static Class<?> find(String name, List<String> packages) throws ClassNotFoundException {
            for (String each : packages) {
                try {
                    return Class.forName(each + name);
                } catch (ClassNotFoundException elsewhere) {
                    continue;
                }
            }
            throw new ClassNotFoundException(name);
        }

        Message fresh() throws ReflectiveOperationException {
            return (Message) message.getConstructor().newInstance();
        }
    }

    private record Command(char what, String name, short version, byte[] data) {
        static Command read(DataInputStream in) throws IOException {
            char what = (char) in.readByte();
            String name = in.readUTF();
            short version = in.readShort();
            return new Command(what, name, version, in.readNBytes(in.readInt()));
        }
    }

    private final Map<String, Kind> kinds = new HashMap<>();

    /** The constants of an enum; its number is the first field of its own that is one. */
    private static List<byte[]> constants(String name) throws ReflectiveOperationException {
        Class<?> kind = Class.forName(name);
        StringBuilder found = new StringBuilder();
        Field number = null;
        for (Field field : kind.getDeclaredFields()) {
            Class<?> type = field.getType();
            if (type != byte.class && type != short.class && type != int.class) {
                continue;
            }
            boolean shared = Modifier.isStatic(field.getModifiers());
            field.setAccessible(true);
            if (shared && !kind.isEnum()) {
                found.append(field.getName() + " " + field.get(null) + " false\n");
            } else if (!shared && number == null) {
                number = field;
            }
        }
        if (!kind.isEnum()) {
            return List.of(text(found));
        }
        for (Object constant : kind.getEnumConstants()) {
            boolean retry = constant instanceof Errors && ((Errors) constant).exception() instanceof RetriableException;
            found.append(((Enum<?>) constant).name() + " " + number.get(constant) + " " + retry + "\n");
        }
        return List.of(text(found));
    }

    /** The fields of a schema, structs' fields behind them. */
    private static void fields(Schema schema, String prefix, StringBuilder found) throws ReflectiveOperationException {
        Field inside = TaggedFields.class.getDeclaredField("fields");
        inside.setAccessible(true);
        for (BoundField bound : schema.fields()) {
            if (bound.def.type instanceof TaggedFields) {
                Map<?, ?> tagged = (Map<?, ?>) inside.get(bound.def.type);
                for (Map.Entry<?, ?> one : tagged.entrySet()) {
                    field((org.apache.kafka.common.protocol.types.Field) one.getValue(), prefix, one.getKey() + "", found);
                }
            } else {
                field(bound.def, prefix, "-", found);
            }
        }
    }

    private static void field(org.apache.kafka.common.protocol.types.Field field, String prefix, String tag,
            StringBuilder found) throws ReflectiveOperationException {
        Type type = field.type;
        Type inner = type.isArray() ? type.arrayElementType().get() : type;
        boolean struct = inner instanceof Schema;
        String name = struct ? "STRUCT" : inner.toString().replace("COMPACT_", "").replace("NULLABLE_", "");
        String array = type.isArray() ? "[]" : "";
        found.append(prefix + field.name + " " + array + name + " " + type.isNullable() + " " + tag + "\n");
        if (struct) {
            fields((Schema) inner, prefix + field.name + ".", found);
        }
    }

    private List<byte[]> answer(Command command) throws ReflectiveOperationException, IOException {
        if (command.what == 'E') {
            return constants(command.name);
        }
        Kind kind = kinds.get(command.name);
        if (kind == null) {
            kind = Kind.find(command.name);
            kinds.put(command.name, kind);
        }
        short version = command.version;
        switch (command.what) {
            case 'V': {
                Message message = kind.fresh();
                return List.of(text(message.lowestSupportedVersion()), text(message.highestSupportedVersion()));
            }
            case 'H': {
                ApiMessageType type = ApiMessageType.fromApiKey(((ApiMessage) kind.fresh()).apiKey());
                return List.of(text(type.requestHeaderVersion(version)), text(type.responseHeaderVersion(version)));
            }
            case 'S': {
                Schema[] schemas = (Schema[]) kind.message.getField("SCHEMAS").get(null);
                StringBuilder found = new StringBuilder();
                fields(schemas[version], "", found);
                return List.of(text(found));
            }
            case 'J': {
                JsonNode json = MAPPER.readTree(command.data);
                return List.of(write((Message) kind.read.invoke(null, json, version), version));
            }
            case 'B':
            case 'R': {
                ByteBuffer buffer = ByteBuffer.wrap(command.data);
                Message message = kind.fresh();
                message.read(new ByteBufferAccessor(buffer), version);
                if (command.what == 'R') {
                    return List.of(text(buffer.remaining()));
                }
                Object json = kind.write.invoke(null, message, version, true);
                return List.of(MAPPER.writeValueAsBytes(json), write(message, version), text(buffer.remaining()));
            }
            default:
                throw new IllegalArgumentException("no such command: " + command.what);
        }
    }

    private static byte[] write(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        if (buffer.hasRemaining()) {
            throw new IllegalStateException("size() says " + buffer.remaining() + " bytes more than write() wrote");
        }
        return buffer.array();
    }

    private static byte[] text(Object value) {
        return value.toString().getBytes(StandardCharsets.UTF_8);
    }

    public static void main(String[] arguments) throws IOException {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 16));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out, 1 << 16));
        Oracle oracle = new Oracle();
        while (true) {
            Command[] batch;
            try {
                batch = new Command[in.readInt()];
            } catch (EOFException end) {
                return;
            }
            for (int i = 0; i < batch.length; i++) {
                batch[i] = Command.read(in);
            }
            for (Command command : batch) {
                List<byte[]> parts;
                try {
                    parts = oracle.answer(command);
                    out.writeByte(parts.size());
                } catch (Exception | LinkageError refused) {
                    boolean wrapped = refused instanceof InvocationTargetException && refused.getCause() != null;
                    parts = List.of(text(wrapped ? refused.getCause() : refused));
                    out.writeByte(-1);
                }
                for (byte[] part : parts) {
                    out.writeInt(part.length);
                    out.write(part);
                }
            }
            out.flush();
        }
    }
}
