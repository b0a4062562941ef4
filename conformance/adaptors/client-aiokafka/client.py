"""aiokafka as a client under test, for `coordwire conformance client -- python client.py`."""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
from typing import Any

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition


def settings_of(task: dict[str, Any], client: type[Any]) -> dict[str, Any]:
    """Kafka's settings by this client's names; those that it lacks are left out."""
    own = inspect.signature(client.__init__).parameters
    names = {name.replace(".", "_"): value for name, value in task["settings"].items()}
    return {name: value for name, value in names.items() if name in own}


async def consume(task: dict[str, Any], report: dict[str, Any]) -> None:
    values = report["values"] = []
    consumer = AIOKafkaConsumer(task["topic"], **settings_of(task, AIOKafkaConsumer))
    try:
        await consumer.start()
        async with asyncio.timeout(task["seconds"]):
            while len(values) < task["records"]:
                batches = await consumer.getmany(timeout_ms=100)
                values += [text(record.value) for records in batches.values() for record in records]
                if batches and task["commit"]:
                    await consumer.commit()
    except TimeoutError:
        pass
    finally:
        await consumer.stop()


def text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


async def produce(task: dict[str, Any], report: dict[str, Any]) -> None:
    producer = AIOKafkaProducer(**settings_of(task, AIOKafkaProducer))
    try:
        await producer.start()
        if task["do"] == "transact":
            await producer.begin_transaction()
        sent = [
            await producer.send(task["topic"], value.encode(), partition=task["partition"])
            for value in task["values"]
        ]
        for each in sent:
            await each
            report["sent"] = report.get("sent", 0) + 1
        if task["do"] == "transact":
            if task["offset"] is not None:
                place = TopicPartition(task["topic"], task["partition"])
                await producer.send_offsets_to_transaction({place: task["offset"]}, task["group"])
            end = producer.commit_transaction if task["end"] == "commit" else producer.abort_transaction
            await end()
    finally:
        await producer.stop()


async def report_on(task: dict[str, Any]) -> dict[str, Any]:
    if task["do"] == "name":
        return {"name": f"aiokafka {aiokafka.__version__}"}
    for name, value in {"group.protocol": "consumer", "group.remote.assignor": "dice"}.items():
        if task["settings"].get(name) == value:
            return {"lacks": f"{name}={value}"}
    report: dict[str, Any] = {}
    try:
        async with asyncio.timeout(task["seconds"] + 5):
            await (consume if task["do"] == "consume" else produce)(task, report)
    except Exception as error:
        report["error"] = repr(error)
    return report


for line in sys.stdin:
    print(json.dumps(asyncio.run(report_on(json.loads(line)))), flush=True)
