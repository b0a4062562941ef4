"""The brokers that answer: Apache Kafka's with its StandardAuthorizer, and this one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from coordwire.broker import Broker, BrokerConfig
from tests.broker.authorized.run import ADMIN, USER
from tests.broker.corners.brokers import RELEASE
from tests.interop.broker import Broker as KafkaBroker
from tests.interop.broker import Java, free_port

_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:ANONYMOUS;User:{ADMIN}",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "auto.create.topics.enable": "true",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,USERS:SASL_PLAINTEXT",
    "listener.name.users.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.users.plain.sasl.jaas.config": (
        f"{_LOGIN} required " + " ".join(f'user_{name}="{name}"' for name in (ADMIN, USER)) + ";"
    ),
}


@contextmanager
def kafka() -> Iterator[tuple[str, int]]:
    """The address at which users authenticate to a real broker. Raises `Unavailable`."""
    with TemporaryDirectory() as place:
        folder = Path(place) / "logs"
        folder.mkdir()
        port = free_port()
        broker = KafkaBroker(
            Java(RELEASE, "recording"), folder, _SETTINGS, features={"eligible.leader.replicas.version": 0}
        )
        properties = Path(place) / "server.properties"
        lines = properties.read_text()
        own = next(line for line in lines.splitlines() if line.startswith("listeners="))
        own = f"{own.partition('=')[2]},USERS://127.0.0.1:{port}"
        properties.write_text(f"{lines}listeners={own}\nadvertised.listeners={own}\n")
        with broker:
            yield "127.0.0.1", port


@contextmanager
def ours() -> Iterator[tuple[str, int]]:
    """The address of this package's broker."""
    config = BrokerConfig.kafka(
        users={ADMIN: ADMIN, USER: USER},
        authorizer=True,
        super_users=(f"User:{ADMIN}",),
        offsets_partitions=1,
        transactions_partitions=1,
    )
    with Broker.in_thread(config=config) as broker:
        yield broker.addresses[0]
