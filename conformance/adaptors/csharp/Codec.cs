// A codec in C#: put yours into Read. Not run by the suite's tests, which have no .NET.
using System.Text.Json;

static object Read(int? apiKey, string direction, int version, byte[] body)
{
    return new { lacks = "everything" };
}

while (Console.ReadLine() is { } line)
{
    using var document = JsonDocument.Parse(line);
    var request = document.RootElement;
    object answer;
    try
    {
        answer = request.GetProperty("do").GetString() switch
        {
            "name" => new { name = "my codec 1.0 (C#)" },
            "read" => Read(
                request.GetProperty("api_key").ValueKind == JsonValueKind.Null ? null : request.GetProperty("api_key").GetInt32(),
                request.GetProperty("direction").GetString()!,
                request.GetProperty("version").GetInt32(),
                Convert.FromHexString(request.GetProperty("hex").GetString()!)),
            _ => new { lacks = "Kafka's JSON" },
        };
    }
    catch (Exception refused) when (refused is FormatException or InvalidDataException)
    {
        answer = new { refused = refused.Message };
    }
    Console.WriteLine(JsonSerializer.Serialize(answer));
}
