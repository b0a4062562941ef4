"""What real clients do with a broker; run with the Python that has them, prints JSON.

Usage: python clients_run.py SCENARIO BOOTSTRAP
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

COUNT = 300


def confluent(bootstrap: str, protocol: str = "classic") -> dict[str, Any]:
    """librdkafka: an idempotent producer, a group of two, committed offsets, an admin."""
    from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic

    failures: list[str] = []
    results: dict[str, Any] = {"codecs": []}
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "compression.type": codec}
        )
        for number in range(COUNT // 5):
            producer.produce(
                "orders",
                key=str(number),
                value=f"{codec} {number}",
                on_delivery=lambda error, _: failures.append(str(error)) if error else None,
            )
        if producer.flush(10) == 0 and not failures:
            results["codecs"].append(codec)
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": f"g-{protocol}",
        "auto.offset.reset": "earliest",
        "group.protocol": protocol,
    }
    consumers = [Consumer(settings), Consumer(settings)]
    seen: set[str] = set()
    for consumer in consumers:
        consumer.subscribe(["orders"])
    end = time.monotonic() + 20
    shared = False
    while time.monotonic() < end and not (len(seen) == COUNT and shared):
        for consumer in consumers:
            for message in consumer.consume(200, 0.05):
                if message.error() is None:
                    seen.add(message.value().decode())
        parts = [len(consumer.assignment()) for consumer in consumers]
        shared = shared or (sum(parts) == 6 and all(parts))
    results["seen"], results["shared"] = len(seen), shared
    for consumer in consumers:
        if consumer.assignment():
            try:
                consumer.commit(asynchronous=False)
            except KafkaException as error:  # it has read nothing since it was given its partitions
                if error.args[0].code() != KafkaError._NO_OFFSET:
                    raise
        consumer.close()
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": f"g-{protocol}"})
    committed = reader.committed([TopicPartition("orders", index) for index in range(6)], 10)
    results["committed"] = sum(one.offset for one in committed)
    reader.close()
    admin = AdminClient({"bootstrap.servers": bootstrap})
    name = f"made-{protocol}"
    admin.create_topics([NewTopic(name, 3, 1)])[name].result(10)
    results["partitions"] = len(admin.list_topics(timeout=10).topics[name].partitions)
    admin.delete_topics([name])[name].result(10)
    described = admin.describe_consumer_groups([f"g-{protocol}"])
    results["state"] = next(iter(described.values())).result(10).state.name
    return results


def kip_848(bootstrap: str) -> dict[str, Any]:
    return confluent(bootstrap, "consumer")


def kafka_python(bootstrap: str) -> dict[str, Any]:
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition

    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for number in range(COUNT):
        producer.send("orders", key=b"%d" % number, value=b"%d" % number)
    producer.flush()
    consumer = KafkaConsumer(
        "orders",
        bootstrap_servers=bootstrap,
        group_id="g",
        auto_offset_reset="earliest",
        consumer_timeout_ms=10_000,
    )
    seen: set[bytes] = set()
    for message in consumer:
        seen.add(message.value)
        if len(seen) == COUNT:
            break
    consumer.commit()
    places = [TopicPartition("orders", index) for index in range(6)]
    results = {
        "seen": len(seen),
        "ends": sum(consumer.end_offsets(places).values()),
        "beginnings": sum(consumer.beginning_offsets(places).values()),
        "committed": sum(consumer.committed(place) or 0 for place in places),
    }
    consumer.close()
    producer.close()
    return results


def aiokafka(bootstrap: str) -> dict[str, Any]:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async def main() -> dict[str, Any]:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True)
        await producer.start()
        for number in range(COUNT):
            await producer.send("orders", b"%d" % number)
        await producer.flush()
        consumer = AIOKafkaConsumer(
            "orders", bootstrap_servers=bootstrap, group_id="g", auto_offset_reset="earliest"
        )
        await consumer.start()
        seen: set[bytes] = set()
        async with asyncio.timeout(20):
            async for message in consumer:
                seen.add(message.value)
                if len(seen) == COUNT:
                    break
        await consumer.commit()
        committed = sum([await consumer.committed(place) or 0 for place in consumer.assignment()])
        await consumer.stop()
        await producer.stop()
        return {"seen": len(seen), "committed": committed}

    return asyncio.run(main())


def _seen(bootstrap: str, isolation: str) -> list[str]:
    """What a consumer of librdkafka finds in orders, up to its end."""
    from confluent_kafka import Consumer, KafkaError

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"reader-{isolation}-{time.monotonic_ns()}",
            "auto.offset.reset": "earliest",
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    consumer.subscribe(["orders"])
    seen: list[str] = []
    ended: set[int] = set()
    end = time.monotonic() + 20
    while time.monotonic() < end and len(ended) < 6:
        for message in consumer.consume(200, 0.05):
            error = message.error()
            if error is None:
                seen.append(message.value().decode())
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
    consumer.close()
    return sorted(seen)


def confluent_transactions(bootstrap: str) -> dict[str, Any]:
    """librdkafka: a commit, an abort, offsets in a transaction, a producer that is fenced."""
    from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

    settings = {"bootstrap.servers": bootstrap, "transactional.id": "t"}
    producer = Producer(settings)
    producer.init_transactions(20)
    for value, commit in (("one", True), ("lost", False), ("two", True)):
        producer.begin_transaction()
        for partition in range(6):
            producer.produce("orders", value=f"{value} {partition}", partition=partition)
        producer.flush(10)
        if commit:
            producer.commit_transaction(20)
        else:
            producer.abort_transaction(20)
    results: dict[str, Any] = {
        "committed": _seen(bootstrap, "read_committed"),
        "all": len(_seen(bootstrap, "read_uncommitted")),
    }
    group = {"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest"}
    consumer = Consumer(group | {"enable.auto.commit": False})
    consumer.subscribe(["orders"])
    end = time.monotonic() + 20
    while time.monotonic() < end and not consumer.consume(10, 0.1):
        pass
    offsets = []
    for offset, commit in ((5, True), (7, False)):
        producer.begin_transaction()
        producer.send_offsets_to_transaction(
            [TopicPartition("orders", 0, offset)], consumer.consumer_group_metadata(), 20
        )
        if commit:
            producer.commit_transaction(20)
        else:
            producer.abort_transaction(20)
        offsets.append(consumer.committed([TopicPartition("orders", 0)], 10)[0].offset)
    consumer.close()
    results["offsets"] = offsets
    producer.begin_transaction()
    producer.produce("orders", value="late", partition=0)
    producer.flush(10)
    second = Producer(settings)
    second.init_transactions(20)
    try:
        producer.commit_transaction(20)
        results["fenced"] = "no"
    except KafkaException as error:
        results["fenced"] = error.args[0].name()
    second.begin_transaction()
    second.produce("orders", value="kept", partition=0)
    second.commit_transaction(20)
    results["after"] = _seen(bootstrap, "read_committed")[:1]
    return results


def kafka_python_transactions(bootstrap: str) -> dict[str, Any]:
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.structs import OffsetAndMetadata

    def produced(name: str = "t") -> Any:
        producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=name)
        producer.init_transactions()
        return producer

    producer = produced()
    for value, commit in ((b"one", True), (b"lost", False), (b"two", True)):
        producer.begin_transaction()
        for partition in range(6):
            producer.send("orders", value, partition=partition)
        if commit:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    place = TopicPartition("orders", 0)
    consumer = KafkaConsumer(
        "orders",
        bootstrap_servers=bootstrap,
        group_id="g",
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        enable_auto_commit=False,
        consumer_timeout_ms=10_000,
    )
    seen: list[str] = []
    for message in consumer:
        seen.append(message.value.decode())
        if len(seen) == 12:
            break
    offsets = []
    for offset, commit in ((5, True), (7, False)):
        producer.begin_transaction()
        at = OffsetAndMetadata(offset, "", -1)
        producer.send_offsets_to_transaction({place: at}, "g")
        if commit:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
        offsets.append(consumer.committed(place))
    producer.begin_transaction()
    producer.send("orders", b"late", partition=0).get(10)
    second = produced()
    try:
        producer.commit_transaction()
        fenced = "no"
    except Exception as error:
        fenced = type(error).__name__
    second.close()
    producer.close(timeout=1)
    consumer.close()
    return {"seen": sorted(seen), "offsets": offsets, "fenced": fenced}


def aiokafka_transactions(bootstrap: str) -> dict[str, Any]:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
    from aiokafka.errors import KafkaError

    async def main() -> dict[str, Any]:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id="t")
        await producer.start()
        for value, commit in ((b"one", True), (b"lost", False), (b"two", True)):
            await producer.begin_transaction()
            for partition in range(6):
                await producer.send_and_wait("orders", value, partition=partition)
            if commit:
                await producer.commit_transaction()
            else:
                await producer.abort_transaction()
        consumer = AIOKafkaConsumer(
            "orders",
            bootstrap_servers=bootstrap,
            group_id="g",
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            enable_auto_commit=False,
        )
        await consumer.start()
        seen: list[str] = []
        async with asyncio.timeout(20):
            async for message in consumer:
                seen.append(message.value.decode())
                if len(seen) == 12:
                    break
        offsets = []
        place = TopicPartition("orders", 0)
        for offset, commit in ((5, True), (7, False)):
            await producer.begin_transaction()
            await producer.send_offsets_to_transaction({place: offset}, "g")
            if commit:
                await producer.commit_transaction()
            else:
                await producer.abort_transaction()
            await asyncio.sleep(0.2)  # this client does not ask for stable offsets
            offsets.append(await consumer.committed(place))
        await producer.begin_transaction()
        await producer.send_and_wait("orders", b"late", partition=0)
        second = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id="t")
        await second.start()
        try:
            await producer.commit_transaction()
            fenced = "no"
        except KafkaError as error:
            fenced = type(error).__name__
        await second.stop()
        await consumer.stop()
        return {"seen": sorted(seen), "offsets": offsets, "fenced": fenced}

    return asyncio.run(main())


def leave_open(bootstrap: str) -> dict[str, Any]:
    """librdkafka: a transaction that is committed, and one that is left open by a process that ends."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "t"})
    producer.init_transactions(20)
    for value, commit in (("kept", True), ("open", False)):
        producer.begin_transaction()
        producer.produce("orders", value=value, partition=0)
        producer.flush(10)
        if commit:
            producer.commit_transaction(20)
    return {}


def take_over(bootstrap: str) -> dict[str, Any]:
    """librdkafka: the next producer of that id, and what a reader of committed records finds."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "t"})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce("orders", value="next", partition=0)
    producer.commit_transaction(20)
    return {"seen": _seen(bootstrap, "read_committed")}


def sasl(bootstrap: str) -> dict[str, Any]:
    """librdkafka and kafka-python by each mechanism, and with a wrong password."""
    from confluent_kafka.admin import AdminClient
    from kafka import KafkaConsumer

    results: dict[str, Any] = {}
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        found: list[bool | str] = []
        for password in ("p=,w", "wrong"):
            settings = {
                "bootstrap.servers": bootstrap,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": mechanism,
                "sasl.username": "ann",
                "sasl.password": password,
            }
            try:
                topics = AdminClient(settings, logger=None).list_topics(timeout=1.5).topics
                found.append("orders" in topics)
            except Exception as error:
                found.append(type(error).__name__)
        try:
            consumer = KafkaConsumer(
                bootstrap_servers=bootstrap,
                security_protocol="SASL_PLAINTEXT",
                sasl_mechanism=mechanism,
                sasl_plain_username="ann",
                sasl_plain_password="p=,w",
            )
            found.append("orders" in consumer.topics())
            consumer.close()
        except Exception as error:
            found.append(f"{type(error).__name__} {error}")
        results[mechanism] = found
    return results


SCENARIOS = {
    "sasl": sasl,
    "confluent_transactions": confluent_transactions,
    "kafka_python_transactions": kafka_python_transactions,
    "aiokafka_transactions": aiokafka_transactions,
    "leave_open": leave_open,
    "take_over": take_over,
    "confluent": confluent,
    "kip_848": kip_848,
    "kafka_python": kafka_python,
    "aiokafka": aiokafka,
}

if __name__ == "__main__":
    print(json.dumps(SCENARIOS[sys.argv[1]](sys.argv[2])))
