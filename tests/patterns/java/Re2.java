// What RE2/J says of patterns: a line of base64 texts in, a pattern and then names; a line out: for each name
// a digit for a whole match and one for a match anywhere, or why the pattern is refused. A pattern on which
// RE2/J fails otherwise than by PatternSyntaxException is answered with "F" and the exception.
import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.Base64;

public class Re2 {
    public static void main(String[] arguments) throws IOException {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        var out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] texts = line.split(" ", -1);
            for (int i = 0; i < texts.length; i++)
                texts[i] = new String(Base64.getDecoder().decode(texts[i]), StandardCharsets.UTF_8);
            out.println(answer(texts));
        }
        out.flush();
    }

    private static String answer(String[] texts) {
        try {
            Pattern pattern = Pattern.compile(texts[0]);
            var digits = new StringBuilder();
            for (int i = 1; i < texts.length; i++)
                digits.append(pattern.matcher(texts[i]).matches() ? 1 : 0)
                    .append(pattern.matcher(texts[i]).find() ? 1 : 0);
            return digits.toString();
        } catch (PatternSyntaxException refused) {
            return "E " + refused.getDescription();
        } catch (RuntimeException | StackOverflowError failed) {
            return "F " + failed.getClass().getSimpleName();
        }
    }
}
