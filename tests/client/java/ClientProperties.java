import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.JaasContext;

/** Reads lines "properties BASE64" or "login BASE64"; prints what Java and Kafka read in them, in base 64. */
public final class ClientProperties {
    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] parts = line.split(" ", -1);
            byte[] text = Base64.getDecoder().decode(parts[1]);
            try {
                System.out.println(parts[0].equals("properties") ? properties(text) : login(text));
            } catch (IllegalArgumentException refused) {
                System.out.println("refused");
            }
        }
    }

    private static String properties(byte[] text) throws Exception {
        Properties properties = new Properties();
        properties.load(new ByteArrayInputStream(text));
        Map<String, String> sorted = new TreeMap<>();
        properties.stringPropertyNames().forEach(name -> sorted.put(name, properties.getProperty(name)));
        return pairs(sorted);
    }

    private static String login(byte[] text) {
        Map<String, Password> settings =
            Map.of("sasl.jaas.config", new Password(new String(text, StandardCharsets.UTF_8)));
        List<AppConfigurationEntry> entries = JaasContext.loadClientContext(settings).configurationEntries();
        Map<String, String> sorted = new TreeMap<>();
        entries.get(0).getOptions().forEach((name, value) -> sorted.put(name, (String) value));
        return encoded(entries.get(0).getLoginModuleName()) + " " + pairs(sorted);
    }

    private static String pairs(Map<String, String> sorted) {
        List<String> parts = new ArrayList<>();
        sorted.forEach((name, value) -> parts.add(encoded(name) + "=" + encoded(value)));
        return String.join(",", parts);
    }

    private static String encoded(String text) {
        return Base64.getEncoder().withoutPadding().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }
}
