"""kafka-python as a client under test, for `coordwire conformance client -- python client.py`."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import kafka
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata


def settings_of(task: dict[str, Any], client: type[Any]) -> dict[str, Any]:
    """Kafka's settings by this client's names; those that it lacks are left out."""
    names = {name.replace(".", "_"): value for name, value in task["settings"].items()}
    return {name: value for name, value in names.items() if name in client.DEFAULT_CONFIG}


def consume(task: dict[str, Any], report: dict[str, Any]) -> None:
    values = report["values"] = []
    end = time.monotonic() + task["seconds"]
    consumer = KafkaConsumer(task["topic"], **settings_of(task, KafkaConsumer))
    try:
        while len(values) < task["records"] and time.monotonic() < end:
            batches = consumer.poll(timeout_ms=100)
            values += [text(record.value) for records in batches.values() for record in records]
            if batches and task["commit"]:
                consumer.commit(timeout_ms=1000 * (end - time.monotonic()))
    finally:
        consumer.close(timeout_ms=1000)


def text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def produce(task: dict[str, Any], report: dict[str, Any]) -> None:
    end = time.monotonic() + task["seconds"]
    producer = KafkaProducer(**settings_of(task, KafkaProducer))
    try:
        if task["do"] == "transact":
            producer.init_transactions()
            producer.begin_transaction()
        sent = [
            producer.send(task["topic"], value.encode(), partition=task["partition"])
            for value in task["values"]
        ]
        for each in sent:
            each.get(timeout=end - time.monotonic())
            report["sent"] = report.get("sent", 0) + 1
        if task["do"] == "transact":
            if task["offset"] is not None:
                place = TopicPartition(task["topic"], task["partition"])
                offset = OffsetAndMetadata(task["offset"], "", -1)
                producer.send_offsets_to_transaction({place: offset}, task["group"])
            if task["end"] == "commit":
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    finally:
        producer.close(timeout=1)


def report_on(task: dict[str, Any]) -> dict[str, Any]:
    if task["do"] == "name":
        return {"name": f"kafka-python {kafka.__version__}"}
    if task["settings"].get("group.protocol") == "consumer":
        return {"lacks": "group.protocol=consumer"}
    report: dict[str, Any] = {}
    try:
        (consume if task["do"] == "consume" else produce)(task, report)
    except Exception as error:
        report["error"] = repr(error)
    return report


for line in sys.stdin:
    print(json.dumps(report_on(json.loads(line))), flush=True)
