use std::io::{BufRead, BufReader};

/// Put your decoder here: the bytes that it writes again, an error where it refuses, None for what it lacks.
fn decode(_api_key: Option<i64>, _direction: &str, _version: i64, _body: &[u8]) -> Option<Result<Vec<u8>, String>> {
    None
}

#[test]
fn hostile() {
    let (mut asked, mut failures) = (0, vec![]);
    let path = std::env::var("CONFORMANCE").unwrap() + "/hostile.jsonl";
    for line in BufReader::new(std::fs::File::open(path).unwrap()).lines() {
        let v: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        let (id, verdict) = (v["id"].as_str().unwrap(), v["verdict"].as_str().unwrap());
        // Too large an allocation ends the process: here is which vector it was.
        std::fs::write(concat!(env!("CARGO_TARGET_TMPDIR"), "/last"), id).unwrap();
        let body = hex::decode(v["hex"].as_str().unwrap()).unwrap();
        let direction = v["direction"].as_str().unwrap();
        let Some(got) = decode(v["api_key"].as_i64(), direction, v["version"].as_i64().unwrap(), &body) else {
            continue;
        };
        asked += 1;
        if verdict == "invalid" && got.is_ok() || verdict == "valid" && got.as_ref() != Ok(&body) {
            failures.push(format!("{id} is {verdict}: {got:x?}"));
        }
    }
    assert!(asked > 0, "nothing was read: put your decoder into decode");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
