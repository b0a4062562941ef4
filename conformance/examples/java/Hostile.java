import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;

public class Hostile {
    /** Put your decoder here: the bytes that it writes again; null for what it lacks; throws where it refuses. */
    static byte[] decode(Integer apiKey, String direction, int version, byte[] body) {
        return null;
    }

    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        int asked = 0;
        List<String> failures = new ArrayList<>();
        try (var lines = Files.lines(Path.of(System.getenv("CONFORMANCE"), "hostile.jsonl"))) {
            for (String line : (Iterable<String>) lines::iterator) {
                JsonNode v = mapper.readTree(line);
                byte[] body = HexFormat.of().parseHex(v.get("hex").asText());
                Integer key = v.get("api_key").isNull() ? null : v.get("api_key").asInt();
                String verdict = v.get("verdict").asText();
                boolean wrong;
                try {
                    byte[] again = decode(key, v.get("direction").asText(), v.get("version").asInt(), body);
                    if (again == null) {
                        continue;
                    }
                    wrong = verdict.equals("invalid") || verdict.equals("valid") && !Arrays.equals(again, body);
                } catch (RuntimeException refused) {
                    wrong = verdict.equals("valid");
                }
                asked++;
                if (wrong) {
                    failures.add(v.get("id").asText() + " is " + verdict);
                }
            }
        }
        if (asked == 0) {
            throw new AssertionError("nothing was read: put your decoder into decode");
        }
        if (!failures.isEmpty()) {
            throw new AssertionError(String.join("\n", failures));
        }
    }
}
