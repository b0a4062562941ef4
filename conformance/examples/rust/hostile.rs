use std::io::{BufRead, BufReader};

/// Put your decoder here: the bytes that it writes again, an error where it refuses, None for what it lacks.
fn decode(_api_key: Option<i64>, _direction: &str, _version: i64, _body: &[u8]) -> Option<Result<Vec<u8>, String>> {
    None
}

#[test]
fn hostile() {
    let path = std::env::var("CONFORMANCE").unwrap() + "/hostile.jsonl";
    for line in BufReader::new(std::fs::File::open(path).unwrap()).lines() {
        let v: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        let body = hex::decode(v["hex"].as_str().unwrap()).unwrap();
        let direction = v["direction"].as_str().unwrap();
        let got = decode(v["api_key"].as_i64(), direction, v["version"].as_i64().unwrap(), &body);
        match (v["verdict"].as_str().unwrap(), got) {
            ("invalid", Some(Ok(again))) => panic!("{} is invalid: {again:x?}", v["id"]),
            ("valid", Some(result)) => assert_eq!(result, Ok(body), "{}", v["id"]),
            _ => {}
        }
    }
}
