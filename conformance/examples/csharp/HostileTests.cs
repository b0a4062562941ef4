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
        foreach (var line in File.ReadLines(path))
        {
            var v = JsonDocument.Parse(line).RootElement;
            var (id, verdict) = (v.GetProperty("id").GetString(), v.GetProperty("verdict").GetString());
            var body = Convert.FromHexString(v.GetProperty("hex").GetString()!);
            var key = v.GetProperty("api_key");
            byte[]? again;
            try
            {
                again = Decode(key.ValueKind == JsonValueKind.Null ? null : key.GetInt32(),
                    v.GetProperty("direction").GetString()!, v.GetProperty("version").GetInt32(), body);
            }
            catch (FormatException) // what your decoder throws, and nothing else
            {
                Assert.True(verdict != "valid", id);
                continue;
            }
            if (again == null) continue;
            Assert.True(verdict != "invalid", id);
            if (verdict == "valid") Assert.Equal(body, again);
        }
    }
}
