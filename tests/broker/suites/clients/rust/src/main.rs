// What each client of the matrix does, with rdkafka; see ../../python_clients.py.
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::producer::{BaseProducer, BaseRecord, DefaultProducerContext, Producer};
use rdkafka::{Offset, TopicPartitionList};
use std::time::Duration;

const PARTITIONS: i32 = 6;
const WAIT: Duration = Duration::from_secs(30);

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let given: Vec<&str> = given.iter().map(String::as_str).collect();
    match given[0] {
        "produce" => produce(given[1], given[2], given[3].parse()?),
        "consume" => consume(given[1], given[2], given[3], given[4], given[5], given[6].parse()?),
        "transact" => transact(given[1], given[2], given[3], given[4], given[5]),
        other => Err(other.into()),
    }
}

fn produce(bootstrap: &str, topic: &str, count: usize) -> Outcome {
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("enable.idempotence", "true")
        .create()?;
    for number in 0..count {
        let text = number.to_string();
        producer
            .send(BaseRecord::to(topic).key(&text).payload(&text))
            .map_err(|(error, _)| error)?;
    }
    producer.flush(WAIT)?;
    Ok(())
}

fn consume(
    protocol: &str, bootstrap: &str, topic: &str, group: &str, isolation: &str, stops: usize,
) -> Outcome {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("group.id", group)
        .set("group.protocol", protocol)
        .set("auto.offset.reset", "earliest")
        .set("isolation.level", isolation)
        .create()?;
    consumer.subscribe(&[topic])?;
    let mut left = stops;
    while left > 0 {
        if let Some(Ok(message)) = consumer.poll(Duration::from_secs(1)) {
            let value = String::from_utf8_lossy(message.payload().unwrap_or(b"")).into_owned();
            println!("{} {} {}", message.partition(), message.offset(), value);
            if value == "stop" {
                left -= 1;
            }
        }
    }
    consumer.commit_consumer_state(CommitMode::Sync)?;
    Ok(())
}

fn made(bootstrap: &str, id: &str) -> Result<BaseProducer<DefaultProducerContext>, KafkaError> {
    let producer: BaseProducer<DefaultProducerContext> = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("transactional.id", id)
        .create()?;
    producer.init_transactions(WAIT)?;
    Ok(producer)
}

fn begin(producer: &BaseProducer<DefaultProducerContext>, topic: &str, value: &str) -> Result<(), KafkaError> {
    producer.begin_transaction()?;
    for partition in 0..PARTITIONS {
        producer
            .send(BaseRecord::<(), str>::to(topic).partition(partition).payload(value))
            .map_err(|(error, _)| error)?;
    }
    producer.flush(WAIT)
}

fn transact(bootstrap: &str, topic: &str, input: &str, id: &str, group: &str) -> Outcome {
    let producer = made(bootstrap, id)?;
    begin(&producer, topic, "one")?;
    producer.commit_transaction(WAIT)?;
    begin(&producer, topic, "lost")?;
    producer.abort_transaction(WAIT)?;
    begin(&producer, topic, "two")?;
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("group.id", group)
        .create()?;
    let mut offsets = TopicPartitionList::new();
    offsets.add_partition_offset(input, 0, Offset::Offset(5))?;
    let metadata = consumer.group_metadata().ok_or("no metadata of the group")?;
    producer.send_offsets_to_transaction(&offsets, &metadata, WAIT)?;
    producer.commit_transaction(WAIT)?;
    let _second = made(bootstrap, id)?;
    let ended = begin(&producer, topic, "fenced").and_then(|()| producer.commit_transaction(WAIT));
    match ended {
        Ok(()) => println!("fenced: no"),
        Err(error) => println!("fenced: {error}"),
    }
    Ok(())
}
