"""A real Kafka broker with a listener for each way in: plain, TLS with client certificates, SASL over TLS."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.interop.broker import Broker, Java, free_port

PASSWORD = "a secret of ann"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_SECURITY = "org.apache.kafka.common.security."
_PLAIN = f'{_SECURITY}plain.PlainLoginModule required username="ann" password="{PASSWORD}"'
_SCRAM = f"{_SECURITY}scram.ScramLoginModule required"
_BEARER = f"{_SECURITY}oauthbearer.OAuthBearerLoginModule required"


@dataclass(frozen=True)
class GuardedKafka:
    """The broker's addresses, and where its certificate is."""

    java: Java
    plain: str
    tls: str
    sasl: str
    folder: Path

    def properties(self, way: str) -> Path:
        """The client.properties for a way in: "SSL", or a mechanism of SASL."""
        path = self.folder / f"{way}.properties"
        lines = [f"ssl.truststore.location={self.folder}/chain.pem", "ssl.truststore.type=PEM"]
        if way == "SSL":
            lines += [
                f"bootstrap.servers={self.tls}", "security.protocol=SSL",
                f"ssl.keystore.location={self.folder}/both.pem", "ssl.keystore.type=PEM",
            ]  # fmt: skip
        else:
            login = {"PLAIN": f"{_PLAIN};", "OAUTHBEARER": f'{_BEARER} unsecuredLoginStringClaim_sub="ann";'}
            scram = f'{_SCRAM} username="ann" password="{PASSWORD}";'
            lines += [
                f"bootstrap.servers={self.sasl}", "security.protocol=SASL_SSL", f"sasl.mechanism={way}",
                f"sasl.jaas.config={login.get(way, scram)}",
            ]  # fmt: skip
        path.write_text("\n".join(lines) + "\n")
        return path


@contextmanager
def guarded_kafka(java: Java, folder: Path, certificate: tuple[Path, Path]) -> Iterator[GuardedKafka]:
    """A broker of a release, with its files in a folder."""
    chain, key = certificate
    (folder / "chain.pem").write_text(chain.read_text())
    (folder / "both.pem").write_text(key.read_text() + chain.read_text())
    plain, controller, tls, sasl = (free_port() for _ in range(4))
    listeners = {"PLAINTEXT": plain, "CONTROLLER": controller, "SSL": tls, "SASL_SSL": sasl}
    text = ",".join(f"{name}://127.0.0.1:{port}" for name, port in listeners.items())
    guard = "listener.name.sasl_ssl"
    settings = {
        "listeners": text,
        "advertised.listeners": ",".join(part for part in text.split(",") if "CONTROLLER" not in part),
        "listener.security.protocol.map": ",".join(
            f"{name}:{'PLAINTEXT' if name == 'CONTROLLER' else name}" for name in listeners
        ),
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "3",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": f"{folder}/both.pem",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": f"{folder}/chain.pem",
        "listener.name.ssl.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        f"{guard}.plain.sasl.jaas.config": f'{_PLAIN} user_ann="{PASSWORD}";',
        f"{guard}.scram-sha-256.sasl.jaas.config": f"{_SCRAM};",
        f"{guard}.scram-sha-512.sasl.jaas.config": f"{_SCRAM};",
        f"{guard}.oauthbearer.sasl.jaas.config": f'{_BEARER} unsecuredLoginStringClaim_sub="broker";',
        "connections.max.reauth.ms": "3600000",
    }
    broker = Broker(java, folder / "data", settings)
    broker.port = plain  # where it is asked whether it is up
    with broker:
        yield GuardedKafka(java, f"127.0.0.1:{plain}", f"127.0.0.1:{tls}", f"127.0.0.1:{sasl}", folder)
