//! kafka-protocol as a codec. A panic ends the process, and fails the vector.
use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::{ApiKey, RequestKind, ResponseKind};
use serde_json::{json, Value};
use std::io::{BufRead, Write};

fn answer(request: &Value) -> Value {
    match request["do"].as_str() {
        Some("name") => return json!({"name": "kafka-protocol 0.18.0 (Rust)"}),
        Some("read") => (),
        _ => return json!({"lacks": "Kafka's JSON"}),
    }
    let key = request["api_key"].as_i64().and_then(|key| ApiKey::try_from(key as i16).ok());
    let version = request["version"].as_i64().unwrap() as i16;
    let Some(key) = key.filter(|key| (key.valid_versions().min..=key.valid_versions().max).contains(&version)) else {
        return json!({"lacks": "the message or the version"});
    };
    let mut body = Bytes::from(hex::decode(request["hex"].as_str().unwrap()).unwrap());
    let mut again = BytesMut::new();
    let (read, written) = if request["direction"] == "request" {
        let read = RequestKind::decode(key, &mut body, version);
        let written = read.as_ref().map(|message| message.encode(&mut again, version).is_ok());
        (read.as_ref().err().map(|error| error.to_string()), written.unwrap_or(false))
    } else {
        let read = ResponseKind::decode(key, &mut body, version);
        let written = read.as_ref().map(|message| message.encode(&mut again, version).is_ok());
        (read.as_ref().err().map(|error| error.to_string()), written.unwrap_or(false))
    };
    match read {
        Some(reason) => json!({"refused": reason}),
        None if written => json!({"hex": hex::encode(again)}),
        None => json!({}),
    }
}

fn main() {
    let mut out = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line.unwrap()).unwrap();
        writeln!(out, "{}", answer(&request)).unwrap();
        out.flush().unwrap();
    }
}
