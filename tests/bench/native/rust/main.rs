//! Decodes and encodes the messages of a folder, as often as standard input asks, and prints the processor's
//! nanoseconds: a line "CASE decode|encode COUNT" each.

use std::hint::black_box;
use std::io::BufRead;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::{
    HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, MetadataResponse, OffsetCommitRequest,
};
use kafka_protocol::protocol::{Decodable, Encodable};

fn now() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn decoded<T: Decodable>(wire: &Bytes, version: i16) -> T {
    T::decode(&mut wire.clone(), version).expect("a message that decodes")
}

fn encoded<T: Encodable>(message: &T, size: usize, version: i16) -> BytesMut {
    let mut out = BytesMut::with_capacity(size);
    message.encode(&mut out, version).expect("a message that encodes");
    out
}

fn run<T: Decodable + Encodable>(wire: &Bytes, version: i16, work: &str, count: usize) -> f64 {
    let message: T = decoded(wire, version);
    assert_eq!(encoded(&message, wire.len(), version), wire, "other bytes than were decoded");
    let start = now();
    for _ in 0..count {
        match work {
            "decode" => drop(black_box(decoded::<T>(black_box(wire), version))),
            _ => drop(black_box(encoded(black_box(&message), wire.len(), version))),
        }
    }
    now() - start
}

fn main() {
    let folder = std::env::args().nth(1).expect("a folder");
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("a line");
        let words: Vec<&str> = line.split(' ').collect();
        let wire = Bytes::from(std::fs::read(format!("{folder}/{}", words[0])).expect("a file"));
        let (work, count) = (words[1], words[2].parse().expect("a number"));
        let spent = match words[0] {
            "0" => run::<HeartbeatRequest>(&wire, 4, work, count),
            "1" => run::<JoinGroupRequest>(&wire, 9, work, count),
            "2" => run::<JoinGroupResponse>(&wire, 9, work, count),
            "3" => run::<OffsetCommitRequest>(&wire, 8, work, count),
            _ => run::<MetadataResponse>(&wire, 12, work, count),
        };
        println!("{spent}");
    }
}
