"""What each client of the matrix does, with the clients for Python; run with the Python that has them.

Usage: python python_clients.py CLIENT produce BOOTSTRAP TOPIC COUNT
                                       consume PROTOCOL BOOTSTRAP TOPIC GROUP ISOLATION STOPS
                                       transact BOOTSTRAP TOPIC INPUT ID GROUP

Rules, of the programs in the other languages too: `produce` writes the numbers from 0 on, in partitions by
their keys. `consume` joins a group and prints "partition offset value" for each record, until as many records
were "stop"; it commits what it has read, and leaves. `transact` commits "one" into each of 6 partitions,
aborts "lost", commits "two" with offset 5 of the input's partition 0, and then lets another producer of the
same id fence it; what the first gets is printed after "fenced".
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

PARTITIONS = 6


def is_new_record(partition: int, offset: int, value: bytes) -> bool:
    """Print a record; whether it is the one that stops."""
    print(partition, offset, value.decode(), flush=True)
    return value == b"stop"


class Confluent:
    @staticmethod
    def produce(bootstrap: str, topic: str, count: str) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        for number in range(int(count)):
            producer.produce(topic, key=str(number), value=str(number))
        assert producer.flush(30) == 0

    @staticmethod
    def consume(protocol: str, bootstrap: str, topic: str, group: str, isolation: str, stops: str) -> None:
        from confluent_kafka import Consumer

        settings = {"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": protocol}
        consumer = Consumer(settings | {"auto.offset.reset": "earliest", "isolation.level": isolation})
        consumer.subscribe([topic])
        remaining = int(stops)
        while remaining:
            message = consumer.poll(1)
            if message is not None and message.error() is None:
                remaining -= is_new_record(message.partition(), message.offset(), message.value())
        consumer.commit(asynchronous=False)
        consumer.close()

    @staticmethod
    def transact(bootstrap: str, topic: str, given: str, name: str, group: str) -> None:
        from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

        def made() -> Any:
            producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
            producer.init_transactions(30)
            return producer

        def begin(producer: Any, value: str) -> None:
            producer.begin_transaction()
            for partition in range(PARTITIONS):
                producer.produce(topic, value=value, partition=partition)

        producer = made()
        begin(producer, "one")
        producer.commit_transaction(30)
        begin(producer, "lost")
        producer.flush(30)
        producer.abort_transaction(30)
        begin(producer, "two")
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
        place = TopicPartition(given, 0, 5)
        producer.send_offsets_to_transaction([place], consumer.consumer_group_metadata(), 30)
        producer.commit_transaction(30)
        made()
        try:
            begin(producer, "fenced")
            producer.commit_transaction(30)
            print("fenced: no")
        except KafkaException as error:
            print("fenced:", error.args[0].name())


class KafkaPython:
    @staticmethod
    def produce(bootstrap: str, topic: str, count: str) -> None:
        from kafka import KafkaProducer

        producer = KafkaProducer(bootstrap_servers=bootstrap)
        for number in range(int(count)):
            producer.send(topic, key=b"%d" % number, value=b"%d" % number)
        producer.flush()
        producer.close()

    @staticmethod
    def consume(protocol: str, bootstrap: str, topic: str, group: str, isolation: str, stops: str) -> None:
        from kafka import KafkaConsumer

        consumer = KafkaConsumer(
            topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest",
            isolation_level=isolation,
        )  # fmt: skip
        remaining = int(stops)
        for message in consumer:
            remaining -= is_new_record(message.partition, message.offset, message.value)
            if not remaining:
                break
        consumer.commit()
        consumer.close()

    @staticmethod
    def transact(bootstrap: str, topic: str, given: str, name: str, group: str) -> None:
        from kafka import KafkaProducer, TopicPartition
        from kafka.structs import OffsetAndMetadata

        def made() -> Any:
            producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=name)
            producer.init_transactions()
            return producer

        def begin(producer: Any, value: bytes) -> None:
            producer.begin_transaction()
            for partition in range(PARTITIONS):
                producer.send(topic, value, partition=partition)

        producer = made()
        begin(producer, b"one")
        producer.commit_transaction()
        begin(producer, b"lost")
        producer.flush()
        producer.abort_transaction()
        begin(producer, b"two")
        producer.send_offsets_to_transaction({TopicPartition(given, 0): OffsetAndMetadata(5, "", -1)}, group)
        producer.commit_transaction()
        second = made()
        try:
            begin(producer, b"fenced")
            producer.commit_transaction()
            print("fenced: no")
        except Exception as error:
            print("fenced:", type(error).__name__)
        second.close()
        producer.close(timeout=1)


class AioKafka:
    @staticmethod
    async def produce(bootstrap: str, topic: str, count: str) -> None:
        from aiokafka import AIOKafkaProducer

        async with AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True) as producer:
            for number in range(int(count)):
                await producer.send(topic, key=b"%d" % number, value=b"%d" % number)

    @staticmethod
    async def consume(
        protocol: str, bootstrap: str, topic: str, group: str, isolation: str, stops: str
    ) -> None:
        from aiokafka import AIOKafkaConsumer

        consumer = AIOKafkaConsumer(
            topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest",
            isolation_level=isolation,
        )  # fmt: skip
        async with consumer:
            remaining = int(stops)
            async for message in consumer:
                remaining -= is_new_record(message.partition, message.offset, message.value)
                if not remaining:
                    break
            await consumer.commit()

    @staticmethod
    async def transact(bootstrap: str, topic: str, given: str, name: str, group: str) -> None:
        from aiokafka import AIOKafkaProducer, TopicPartition
        from aiokafka.errors import KafkaError

        async def made() -> Any:
            producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=name)
            await producer.start()
            return producer

        async def begin(producer: Any, value: bytes) -> None:
            await producer.begin_transaction()
            for partition in range(PARTITIONS):
                await producer.send_and_wait(topic, value, partition=partition)

        producer = await made()
        await begin(producer, b"one")
        await producer.commit_transaction()
        await begin(producer, b"lost")
        await producer.abort_transaction()
        await begin(producer, b"two")
        await producer.send_offsets_to_transaction({TopicPartition(given, 0): 5}, group)
        await producer.commit_transaction()
        second = await made()
        try:
            await begin(producer, b"fenced")
            await producer.commit_transaction()
            print("fenced: no")
        except KafkaError as error:
            print("fenced:", type(error).__name__)
        await second.stop()


CLIENTS: dict[str, Any] = {"confluent-kafka": Confluent, "kafka-python": KafkaPython, "aiokafka": AioKafka}

if __name__ == "__main__":
    action: Callable[..., Any] = getattr(CLIENTS[sys.argv[1]], sys.argv[2])
    done = action(*sys.argv[3:])
    if done is not None:
        asyncio.run(done)
