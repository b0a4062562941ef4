"""One member of a group by a Python client.

`python_member.py LIBRARY BOOTSTRAP GROUP NAME TOPICS [KEY=VALUE ...]`.

LIBRARY: confluent (librdkafka), kpy (kafka-python), aio (aiokafka). "close" on standard input ends it as a
client that is closed does. Rules: what runs it has the libraries; nothing else of the project is imported.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
import threading
import time
from collections.abc import Iterable
from typing import Any

__all__ = ["main"]

closing = threading.Event()


def main() -> None:
    library, bootstrap, group, name, topics, *pairs = sys.argv[1:]
    settings: dict[str, Any] = dict(pair.split("=", 1) for pair in pairs)
    threading.Thread(target=_read, daemon=True).start()
    runs = {"confluent": confluent, "kpy": kafka_python, "aio": aiokafka}
    runs[library](bootstrap, group, name, topics.split(","), settings)


def _read() -> None:
    for line in sys.stdin:
        if line.strip() == "close":
            closing.set()


def assigned(partitions: Iterable[Any]) -> None:
    """Say what the member has now, as Member.java does."""
    names = ",".join(sorted(f"{partition.topic}-{partition.partition}" for partition in partitions))
    sys.stdout.write(f"assigned {time.time_ns() // 1_000_000} {names}\n")
    sys.stdout.flush()


def confluent(bootstrap: str, group: str, name: str, topics: list[str], settings: dict[str, Any]) -> None:
    configs = {
        "bootstrap.servers": bootstrap, "group.id": group, "client.id": name,
        "auto.offset.reset": "earliest", "auto.commit.interval.ms": 1000, "fetch.wait.max.ms": 2000,
        "enable.metrics.push": "false", **settings,
    }  # fmt: skip
    consumer = importlib.import_module("confluent_kafka").Consumer(configs)
    consumer.subscribe(topics, on_assign=lambda _, partitions: assigned(partitions))
    while not closing.is_set():
        consumer.poll(0.1)
    consumer.close()


def kafka_python(bootstrap: str, group: str, name: str, topics: list[str], settings: dict[str, Any]) -> None:
    kafka = importlib.import_module("kafka")
    numbers = {key: int(value) if value.isdigit() else value for key, value in settings.items()}
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap, group_id=group, client_id=name, auto_offset_reset="earliest",
        auto_commit_interval_ms=1000, fetch_max_wait_ms=2000, **numbers,
    )  # fmt: skip
    consumer.subscribe(topics)
    had: Any = set()
    while not closing.is_set():
        consumer.poll(timeout_ms=100)
        if consumer.assignment() != had:
            had = consumer.assignment()
            assigned(had)
    consumer.close()


def aiokafka(bootstrap: str, group: str, name: str, topics: list[str], settings: dict[str, Any]) -> None:
    asyncio.run(_aiokafka(bootstrap, group, name, topics, settings))


async def _aiokafka(
    bootstrap: str, group: str, name: str, topics: list[str], settings: dict[str, Any]
) -> None:
    aio = importlib.import_module("aiokafka")
    numbers = {key: int(value) if value.isdigit() else value for key, value in settings.items()}
    consumer = aio.AIOKafkaConsumer(
        *topics, bootstrap_servers=bootstrap, group_id=group, client_id=name, auto_offset_reset="earliest",
        auto_commit_interval_ms=1000, fetch_max_wait_ms=2000, **numbers,
    )  # fmt: skip
    await consumer.start()
    had: Any = set()
    while not closing.is_set():
        await consumer.getmany(timeout_ms=100)
        if consumer.assignment() != had:
            had = consumer.assignment()
            assigned(had)
    await consumer.stop()


if __name__ == "__main__":
    main()
