// A codec in C#: put yours into Read. It is C# 7, which Mono compiles; it was not tried with .NET.
using System;
using System.IO;
using System.Linq;
using System.Runtime.Serialization.Json;
using System.Text;
using System.Xml;
using System.Xml.Linq;

static class Codec
{
    // What your codec made of the bytes: ("lacks", ""), ("hex", what it writes again); throws where it refuses.
    static (string name, string value) Read(int? apiKey, string direction, int version, byte[] body)
    {
        return ("lacks", "everything");
    }

    static (string name, string value) Answer(XElement request)
    {
        switch (request.Element("do").Value)
        {
            case "name":
                return ("name", "my codec 1.0 (C#)");
            case "read":
                var hex = request.Element("hex").Value;
                var body = Enumerable.Range(0, hex.Length / 2).Select(i => Convert.ToByte(hex.Substring(2 * i, 2), 16));
                var key = request.Element("api_key").Value;
                return Read(
                    key == "" ? null : (int?)int.Parse(key),
                    request.Element("direction").Value,
                    int.Parse(request.Element("version").Value),
                    body.ToArray());
            default:
                return ("lacks", "Kafka's JSON");
        }
    }

    static void Main()
    {
        var output = Console.OpenStandardOutput();
        for (var line = Console.ReadLine(); line != null; line = Console.ReadLine())
        {
            (string name, string value) answer;
            try
            {
                var reader = JsonReaderWriterFactory.CreateJsonReader(Encoding.UTF8.GetBytes(line), XmlDictionaryReaderQuotas.Max);
                answer = Answer(XElement.Load(reader));
            }
            catch (Exception refused) when (refused is FormatException || refused is InvalidDataException)
            {
                answer = ("refused", refused.Message);
            }
            var writer = JsonReaderWriterFactory.CreateJsonWriter(output, Encoding.UTF8, false);
            new XElement("root", new XAttribute("type", "object"), new XElement(answer.name, answer.value)).WriteTo(writer);
            writer.Flush();
            output.WriteByte((byte)'\n');
            output.Flush();
        }
    }
}
