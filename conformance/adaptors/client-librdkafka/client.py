"""librdkafka (confluent-kafka) as a client under test: `coordwire conformance client -- python client.py`."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import confluent_kafka
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

NAMES = {"fetch.max.wait.ms": "fetch.wait.max.ms"}
"""Kafka's names for which this client has another."""

RETRIED = {
    "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "ILLEGAL_GENERATION", "NOT_COORDINATOR",
    "REBALANCE_IN_PROGRESS", "UNKNOWN_MEMBER_ID", "UNKNOWN_TOPIC_OR_PART",
}  # fmt: skip
"""Errors after which it tries again."""

OWN = {
    "client.id", "retry.backoff.ms", "retry.backoff.max.ms", "reconnect.backoff.ms", "bootstrap.servers",
    "reconnect.backoff.max.ms",
}  # fmt: skip
PRODUCER = {
    "acks", "linger.ms", "delivery.timeout.ms", "request.timeout.ms", "enable.idempotence", "batch.size",
    "transactional.id", "transaction.timeout.ms",
}  # fmt: skip
CONSUMER = {
    "auto.offset.reset", "enable.auto.commit", "fetch.wait.max.ms", "group.id", "group.protocol",
    "group.instance.id", "session.timeout.ms", "heartbeat.interval.ms", "group.remote.assignor",
    "isolation.level", "check.crcs", "fetch.max.bytes", "max.partition.fetch.bytes",
}  # fmt: skip


def settings_of(task: dict[str, Any], own: set[str]) -> dict[str, Any]:
    """Kafka's settings by this client's names; those that it lacks are left out."""
    names = {NAMES.get(name, name): value for name, value in task["settings"].items()}
    chosen = {name: value for name, value in names.items() if name in OWN | own}
    if chosen.get("auto.offset.reset") == "none":
        chosen["auto.offset.reset"] = "error"
    if "fetch.max.bytes" in chosen:
        chosen["message.max.bytes"] = chosen["fetch.max.bytes"]  # which must not be more
    return chosen | {"log_level": 0}


def consume(task: dict[str, Any], report: dict[str, Any]) -> None:
    values = report["values"] = []
    end, failure = time.monotonic() + task["seconds"], None
    consumer = Consumer(settings_of(task, CONSUMER))
    try:
        consumer.subscribe([task["topic"]])
        while len(values) < task["records"] and time.monotonic() < end:
            message = consumer.poll(0.1)
            if message is None:
                continue
            if error := message.error():  # after some it tries again by itself
                failure = KafkaException(error)
                if error.fatal() or (error.code() > 0 and error.name() not in RETRIED):
                    break
                continue
            values.append(None if message.value() is None else message.value().decode())
            if task["commit"]:
                consumer.commit(message, asynchronous=False)
        if failure is not None and len(values) < task["records"]:
            raise failure
    finally:
        consumer.close()


def produce(task: dict[str, Any], report: dict[str, Any]) -> None:
    end = time.monotonic() + task["seconds"]
    failures: list[KafkaException] = []

    def delivered(error: Any, _: Message) -> None:
        if error is None:
            report["sent"] = report.get("sent", 0) + 1
        else:
            failures.append(KafkaException(error))

    producer = Producer(settings_of(task, PRODUCER))
    if task["do"] == "transact":
        producer.init_transactions(task["seconds"])
        producer.begin_transaction()
    for value in task["values"]:
        producer.produce(task["topic"], value.encode(), partition=task["partition"], on_delivery=delivered)
    remaining = producer.flush(end - time.monotonic())
    if failures:
        raise failures[0]
    if remaining:
        raise TimeoutError(f"{remaining} records are not acknowledged")
    if task["do"] == "transact":
        if task["offset"] is not None:
            place = TopicPartition(task["topic"], task["partition"], task["offset"])
            bootstrap = {"bootstrap.servers": task["settings"]["bootstrap.servers"], "log_level": 0}
            member = Consumer(bootstrap | {"group.id": task["group"]})
            group = member.consumer_group_metadata()
            member.close()
            producer.send_offsets_to_transaction([place], group, task["seconds"])
        (producer.commit_transaction if task["end"] == "commit" else producer.abort_transaction)(
            end - time.monotonic()
        )


def report_on(task: dict[str, Any]) -> dict[str, Any]:
    if task["do"] == "name":
        return {"name": f"librdkafka {confluent_kafka.libversion()[0]}"}
    if task["settings"].get("group.protocol") == "consumer":
        for name in ("session.timeout.ms", "heartbeat.interval.ms"):
            task["settings"].pop(name, None)  # which the coordinator sets
    report: dict[str, Any] = {}
    try:
        (consume if task["do"] == "consume" else produce)(task, report)
    except Exception as error:
        report["error"] = repr(error)
    return report


for line in sys.stdin:
    print(json.dumps(report_on(json.loads(line))), flush=True)
