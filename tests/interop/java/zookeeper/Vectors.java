// Writes random records by Apache ZooKeeper's own classes, or reads bytes with them.
//
//   java -cp 'LIB/*' Vectors.java write SEED COUNT     JSON lines: {"classes":[…],"fields":[{…}…],"hex":"…"}
//   java -cp 'LIB/*' Vectors.java read                 of each line "CLASS,CLASS HEX" the same, written again
//
// A vector is one record, or a header and the record after it, as they follow each other on the wire.

import java.io.*;
import java.lang.reflect.*;
import java.util.*;
import org.apache.jute.BinaryInputArchive;
import org.apache.jute.BinaryOutputArchive;
import org.apache.jute.Record;

public class Vectors {
    static final String PROTO = "org.apache.zookeeper.proto.", DATA = "org.apache.zookeeper.data.";
    static final String[] REQUESTS = {"CreateRequest", "CreateTTLRequest", "DeleteRequest", "ExistsRequest", "GetDataRequest",
        "SetDataRequest", "GetACLRequest", "SetACLRequest", "GetChildrenRequest", "GetChildren2Request", "SyncRequest",
        "CheckVersionRequest", "ReconfigRequest", "AuthPacket", "GetSASLRequest", "SetWatches", "SetWatches2",
        "AddWatchRequest", "RemoveWatchesRequest", "CheckWatchesRequest", "GetEphemeralsRequest",
        "GetAllChildrenNumberRequest"};
    static final String[] RESPONSES = {"CreateResponse", "Create2Response", "ExistsResponse", "GetDataResponse",
        "SetDataResponse", "GetACLResponse", "SetACLResponse", "GetChildrenResponse", "GetChildren2Response",
        "SyncResponse", "SetSASLResponse", "ErrorResponse", "GetEphemeralsResponse", "GetAllChildrenNumberResponse",
        "WhoAmIResponse", "WatcherEvent"};
    static final String[] ALONE = {"ConnectRequest", "ConnectResponse", "RequestHeader", "ReplyHeader", "MultiHeader"};
    static Random random;

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("read")) {
            BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
            for (String line; (line = lines.readLine()) != null; ) {
                String[] parts = line.split(" ");
                read(parts[0].split(","), bytes(parts.length > 1 ? parts[1] : ""));
            }
            return;
        }
        random = new Random(Long.parseLong(arguments[1]));
        int count = Integer.parseInt(arguments[2]);
        for (int i = 0; i < count; i++) {
            for (String name : ALONE) write(name);
            for (String name : REQUESTS) write("RequestHeader", name);
            for (String name : RESPONSES) write("ReplyHeader", name);
            for (String name : REQUESTS) write(name);
            for (String name : RESPONSES) write(name);
        }
    }

    static Class<?> find(String name) {
        try {
            return Class.forName(PROTO + name);
        } catch (ClassNotFoundException missing) {
            return null; // not in this release
        }
    }

    static void write(String... names) throws Exception {
        List<Record> records = new ArrayList<>();
        for (String name : names) {
            Class<?> type = find(name);
            if (type == null) return;
            records.add((Record) any(type, type));
        }
        print(names, records, false);
    }

    static void read(String[] names, byte[] data) throws Exception {
        ByteArrayInputStream stream = new ByteArrayInputStream(data);
        BinaryInputArchive archive = BinaryInputArchive.getArchive(stream);
        List<Record> records = new ArrayList<>();
        try {
            for (String name : names) {
                Record record = (Record) find(name).getDeclaredConstructor().newInstance();
                record.deserialize(archive, "record");
                records.add(record);
            }
        } catch (IOException refusal) {
            System.out.println("{\"refused\":true}");
            return;
        }
        print(names, records, stream.available() > 0);
    }

    static void print(String[] names, List<Record> records, boolean more) throws Exception {
        ByteArrayOutputStream stream = new ByteArrayOutputStream();
        BinaryOutputArchive archive = BinaryOutputArchive.getArchive(stream);
        StringBuilder line = new StringBuilder("{\"classes\":[");
        for (int i = 0; i < names.length; i++) line.append(i == 0 ? "\"" : ",\"").append(names[i]).append('"');
        line.append("],\"fields\":");
        List<Object> forms = new ArrayList<>();
        for (Record record : records) {
            record.serialize(archive, "record");
            forms.add(record);
        }
        json(line, forms);
        line.append(",\"hex\":\"");
        for (byte b : stream.toByteArray()) line.append(String.format("%02x", b));
        System.out.println(line.append(more ? "\",\"more\":true}" : "\"}"));
    }

    static byte[] bytes(String hex) {
        byte[] data = new byte[hex.length() / 2];
        for (int i = 0; i < data.length; i++) data[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
        return data;
    }

    // --- random values ---

    static Object any(Class<?> type, Type generic) throws Exception {
        if (type == int.class) return random.nextInt(3) == 0 ? random.nextInt() : random.nextInt(7) - 2;
        if (type == long.class) return random.nextInt(3) == 0 ? random.nextLong() : (long) random.nextInt(9) - 2;
        if (type == boolean.class) return random.nextBoolean();
        if (type == String.class) return random.nextInt(9) == 0 ? null : text();
        if (type == byte[].class) {
            if (random.nextInt(5) == 0) return null;
            byte[] data = new byte[random.nextInt(40)];
            random.nextBytes(data);
            return data;
        }
        if (type == List.class) {
            if (random.nextInt(7) == 0) return null;
            Class<?> element = (Class<?>) ((ParameterizedType) generic).getActualTypeArguments()[0];
            List<Object> items = new ArrayList<>();
            for (int i = random.nextInt(4); i > 0; i--) items.add(element == String.class ? text() : any(element, element));
            return items;
        }
        Object record = type.getDeclaredConstructor().newInstance();
        for (Field field : fields(type)) {
            Object value = any(field.getType(), field.getGenericType());
            field.set(record, value);
        }
        return record;
    }

    static String text() {
        String[] texts = {"", "/", "/consumers/g/ids", "digest", "user:hash", "\u00e9\u4e2d", "\ud835\udd28", "a\u0001b"};
        if (random.nextInt(12) == 0) return new String(new char[random.nextInt(300)]).replace('\0', 'x');
        return texts[random.nextInt(texts.length)];
    }

    static List<Field> fields(Class<?> type) {
        List<Field> fields = new ArrayList<>();
        for (Field field : type.getDeclaredFields())
            if (!Modifier.isStatic(field.getModifiers())) {
                field.setAccessible(true);
                fields.add(field);
            }
        return fields;
    }

    // --- JSON ---

    static void json(StringBuilder out, Object value) throws Exception {
        if (value == null || value instanceof Number || value instanceof Boolean) out.append(value);
        else if (value instanceof byte[]) out.append('"').append(Base64.getEncoder().encodeToString((byte[]) value)).append('"');
        else if (value instanceof String) {
            out.append('"');
            for (char c : ((String) value).toCharArray())
                if (c < 32 || c > 126 || c == '"' || c == '\\') out.append(String.format("\\u%04x", (int) c));
                else out.append(c);
            out.append('"');
        } else if (value instanceof List) {
            out.append('[');
            String comma = "";
            for (Object item : (List<?>) value) {
                out.append(comma);
                json(out, item);
                comma = ",";
            }
            out.append(']');
        } else {
            out.append('{');
            String comma = "";
            for (Field field : fields(value.getClass())) {
                out.append(comma).append('"').append(field.getName()).append("\":");
                json(out, field.get(value));
                comma = ",";
            }
            out.append('}');
        }
    }
}
