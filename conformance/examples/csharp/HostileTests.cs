using System.Text.Json;
using Xunit;

public class HostileTests
{
    // Put your decoder here: the bytes that it writes again; null for what it lacks; throws where it refuses.
    static byte[]? Decode(int? apiKey, string direction, int version, byte[] body) => null;

    [Fact]
    public void Hostile()
    {
        var path = Path.Combine(Environment.GetEnvironmentVariable("CONFORMANCE")!, "hostile.jsonl");
        var asked = 0;
        var failures = new List<string>();
        foreach (var line in File.ReadLines(path))
        {
            var v = JsonDocument.Parse(line).RootElement;
            var (id, verdict) = (v.GetProperty("id").GetString(), v.GetProperty("verdict").GetString());
            var body = Convert.FromHexString(v.GetProperty("hex").GetString()!);
            var key = v.GetProperty("api_key");
            bool wrong;
            try
            {
                var again = Decode(key.ValueKind == JsonValueKind.Null ? null : key.GetInt32(),
                    v.GetProperty("direction").GetString()!, v.GetProperty("version").GetInt32(), body);
                if (again == null) continue;
                wrong = verdict == "invalid" || verdict == "valid" && !again.SequenceEqual(body);
            }
            catch (FormatException) // what your decoder throws, and nothing else
            {
                wrong = verdict == "valid";
            }
            asked++;
            if (wrong) failures.Add($"{id} is {verdict}");
        }
        Assert.True(asked > 0, "nothing was read: put your decoder into Decode");
        Assert.Empty(failures);
    }
}
