"""What real clients do while a broker has faults; run with the Python that has them, prints JSON.

Usage: python faults_run.py CLIENT BOOTSTRAP TOPIC…

For each topic: records are produced one after the other, read by a group of the topic's name, committed.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

COUNT = 6
TIMEOUT_MS = 700


def confluent(bootstrap: str, topic: str) -> dict[str, Any]:
    from confluent_kafka import Consumer, KafkaException, Producer

    common = {
        "bootstrap.servers": bootstrap,
        "client.id": "confluent",
        "socket.timeout.ms": TIMEOUT_MS,
        "reconnect.backoff.ms": 10,
        "retry.backoff.ms": 10,
    }
    failures: list[str] = []
    producer = Producer(common | {"enable.idempotence": True, "request.timeout.ms": TIMEOUT_MS})
    for number in range(COUNT):
        producer.produce(
            topic, str(number), on_delivery=lambda error, _: failures.append(str(error)) if error else None
        )
        producer.flush(10)
    consumer = Consumer(
        common
        | {
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 50,
        }
    )
    consumer.subscribe([topic])
    seen: list[str] = []
    end = time.monotonic() + 20
    while time.monotonic() < end and len(seen) < COUNT:
        for message in consumer.consume(COUNT, 0.1):
            if message.error() is None:
                seen.append(message.value().decode())
    retries = 0
    while True:
        try:
            consumer.commit(asynchronous=False)
            break
        except KafkaException:
            retries += 1
            if retries > 20:
                raise
            time.sleep(0.05)
    consumer.close()
    return {"failures": failures, "seen": seen}


def kafka_python(bootstrap: str, topic: str) -> dict[str, Any]:
    from kafka import KafkaConsumer, KafkaProducer
    from kafka.errors import KafkaError

    common: dict[str, Any] = {
        "bootstrap_servers": bootstrap,
        "client_id": "kafka-python",
        "request_timeout_ms": TIMEOUT_MS,
        "reconnect_backoff_ms": 10,
        "retry_backoff_ms": 10,
        "metadata_max_age_ms": 1000,
    }
    producer = KafkaProducer(**common, retries=10)
    for number in range(COUNT):
        producer.send(topic, b"%d" % number).get(10)
    producer.close()
    consumer = KafkaConsumer(
        topic,
        **common | {"request_timeout_ms": 2_000},
        session_timeout_ms=1_500,
        heartbeat_interval_ms=400,
        group_id=topic,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        consumer_timeout_ms=20_000,
        fetch_max_wait_ms=50,
    )
    seen: list[str] = []
    for message in consumer:
        seen.append(message.value.decode())
        if len(seen) == COUNT:
            break
    for _ in range(5):
        try:
            consumer.commit()
            break
        except KafkaError:  # the answer was lost
            time.sleep(0.05)
    consumer.close()
    return {"failures": [], "seen": seen}


def aiokafka(bootstrap: str, topic: str) -> dict[str, Any]:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async def main() -> list[str]:
        common: dict[str, Any] = {
            "bootstrap_servers": bootstrap,
            "client_id": "aiokafka",
            "request_timeout_ms": TIMEOUT_MS,
            "retry_backoff_ms": 10,
        }
        producer = AIOKafkaProducer(**common, enable_idempotence=True)
        await producer.start()
        for number in range(COUNT):
            async with asyncio.timeout(20):
                await producer.send_and_wait(topic, b"%d" % number)
        await producer.stop()
        consumer = AIOKafkaConsumer(
            topic,
            **common,
            group_id=topic,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            fetch_max_wait_ms=50,
        )
        await consumer.start()
        seen: list[str] = []
        async with asyncio.timeout(20):
            async for message in consumer:
                seen.append(message.value.decode())
                if len(seen) == COUNT:
                    break
            await consumer.commit()
        await consumer.stop()
        return seen

    return {"failures": [], "seen": asyncio.run(main())}


CLIENTS = {"confluent": confluent, "kafka-python": kafka_python, "aiokafka": aiokafka}

if __name__ == "__main__":
    _, client, bootstrap, *topics = sys.argv
    print(json.dumps({topic: CLIENTS[client](bootstrap, topic) for topic in topics}))
