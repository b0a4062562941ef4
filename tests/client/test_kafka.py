"""`coordwire call` at Apache Kafka's own brokers: every way in, also through a tap, every API that they have,
and the answers of Kafka's Admin."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coordwire.cli import cluster_options
from coordwire.cli.__main__ import main
from coordwire.client import connect_sync, read_properties, settings_of
from coordwire.messages.keys import FACTS
from coordwire.tap import KafkaTap
from tests.client.kafka_security import MECHANISMS, PASSWORD, GuardedKafka, guarded_kafka
from tests.interop.broker import BrokerError, Java
from tests.interop.conftest import give_up
from tests.interop.maven import CURRENT, PREVIOUS, Unavailable

pytestmark = pytest.mark.maven

SOURCE = Path(__file__).parent / "java" / "AdminAnswers.java"
RELEASES = {CURRENT: "recording", PREVIOUS: "broker"}

UNANSWERED = {"SaslHandshake", "SaslAuthenticate", "ControlledShutdown"}
"""What a connection begins with, and what a broker does not answer to a client."""

FIELDS = {
    "AddPartitionsToTxn": ["v3_and_below_transactional_id=t", "v3_and_below_producer_id=1",
                           "v3_and_below_topics=orders", "v3_and_below_topics.partitions=0"],
    "AlterReplicaLogDirs": ["--to", "node:1"],
    "Fetch": ["topics=orders", "topics.partitions.partition=0", "session_epoch=-1", "max_bytes=1000"],
    "DescribeConfigs": ["resources.resource_type=topic", "resources.resource_name=orders",
                        "resources.configuration_keys=null"],
    "DescribeLogDirs": ["topics=null"],
    "DescribeAcls": ["resource_type_filter=any", "pattern_type_filter=any", "operation=any",
                     "permission_type=any", "resource_name_filter=null", "principal_filter=null",
                     "host_filter=null"],
    "DescribeGroups": ["groups=payments"],
    "ConsumerGroupDescribe": ["group_ids=payments"],
    "DescribeTransactions": ["transactional_ids=t"],
    "DescribeTopicPartitions": ["topics=orders"],
    "FindCoordinator": ["coordinator_keys=payments"],
    "ListOffsets": ["topics=orders", *(f"topics.partitions.partition_index={n}" for n in range(3)),
                    "topics[0].partitions[0].timestamp=-1", "topics[0].partitions[1].timestamp=-1",
                    "topics[0].partitions[2].timestamp=-1"],
    "Metadata": ["topics=null"],
    "OffsetFetch": ["groups.group_id=payments", "groups.topics=null"],
    "Produce": ["acks=-1", "timeout_ms=1000"],
    "OffsetCommit": ["group_id=payments", "topics=orders", "topics.partitions.partition_index=1",
                     "topics.partitions.committed_offset=7"],
    "ApiVersions": ["client_software_name=a", "client_software_version=1"],
}  # fmt: skip
"""What an API needs to be answered with more than an error."""


@pytest.fixture(scope="module", params=RELEASES)
def kafka(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, certificate: tuple[Path, Path]
) -> Iterator[GuardedKafka]:
    folder = tmp_path_factory.mktemp("kafka")
    release: str = request.param
    project: Any = RELEASES[release]
    try:
        with guarded_kafka(Java(release, project), folder, certificate) as broker:
            _prepare(broker)
            yield broker
    except Unavailable as error:
        give_up(error)


def _prepare(kafka: GuardedKafka) -> None:
    """A topic, a committed offset, and the user's SCRAM credentials: made by `call` itself."""
    assert called(kafka.plain, "CreateTopics", "topics=orders", "topics.num_partitions=3",
                  "topics.replication_factor=1", "--yes")  # fmt: skip
    salted = kafka.folder / "salted"
    for number, (digest, size) in enumerate((("sha256", 32), ("sha512", 64)), 1):
        from hashlib import pbkdf2_hmac

        salted.write_bytes(pbkdf2_hmac(digest, PASSWORD.encode(), b"salt", 4_096, size))
        (kafka.folder / "salt").write_bytes(b"salt")
        called(
            kafka.plain, "AlterUserScramCredentials", "upsertions.name=ann", f"upsertions.mechanism={number}",
            "upsertions.iterations=4096", f"upsertions.salt=@{kafka.folder}/salt",
            f"upsertions.salted_password=@{salted}", "--yes",
        )  # fmt: skip


def called(*words: str, expected: tuple[int, ...] = (0,)) -> Any:
    """The body of an answer of `call`."""
    import contextlib
    import io

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["call", *words, "--format", "json"])
    assert status in expected, (words, status, err.getvalue())
    assert PASSWORD not in out.getvalue() + err.getvalue()
    lines = out.getvalue().splitlines()
    return json.loads(lines[0])["body"] if lines else None


@pytest.mark.parametrize("way", ["SSL", *MECHANISMS])
def test_each_way_in(kafka: GuardedKafka, way: str) -> None:
    file = str(kafka.properties(way))
    cluster = called("--config", file, "DescribeCluster")
    assert [broker["brokerId"] for broker in cluster["brokers"]] == [1]
    words = FIELDS["ListOffsets"]
    topics = called("--config", file, "ListOffsets", *words)["topics"]
    assert [partition["errorCode"] for partition in topics[0]["partitions"]] == [0, 0, 0]


def words_for(tap: KafkaTap, config: Path | None = None) -> list[str]:
    """The address of a tap, and how a client authenticates if it does."""
    return [tap.bootstrap] if config is None else [tap.bootstrap, "--config", str(config)]


def asked_through(tap: KafkaTap, config: Path | None = None) -> None:
    """Ask any broker and the leaders, at the addresses that the tap gives out."""
    (node,) = called(*words_for(tap, config), "DescribeCluster")["brokers"]
    assert f"127.0.0.1:{node['port']}" in tap.bootstrap
    topics = called(*words_for(tap, config), "ListOffsets", *FIELDS["ListOffsets"])["topics"]
    assert [partition["errorCode"] for partition in topics[0]["partitions"]] == [0, 0, 0]
    counts = tap.counts
    assert counts.requests_in == counts.requests_out == counts.responses_in == counts.responses_out
    assert set(counts.changed) == {"addresses"}
    assert (counts.refused, counts.unread, counts.unmatched) == (0, 0, 0)


@pytest.mark.parametrize("way", ["SSL", *MECHANISMS])
def test_a_tap_has_each_way_in(kafka: GuardedKafka, way: str) -> None:
    """TLS and SASL are the tap's; clients have neither."""
    settings = settings_of(read_properties(kafka.properties(way)))
    with KafkaTap(settings) as tap:
        asked_through(tap)


@pytest.mark.parametrize("way", MECHANISMS[:3])
def test_a_tap_authenticates_as_a_user(
    kafka: GuardedKafka, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with --config for TLS, and --user."""
    monkeypatch.setenv("COORDWIRE_PASSWORD", PASSWORD)
    config = trusting(kafka)
    parser = ArgumentParser()
    cluster_options.configure(parser)
    arguments = ["--to", kafka.sasl, "--config", str(config), "--user", "ann", "--mechanism", way]
    options = parser.parse_args(arguments, Namespace(command="tap"))
    with KafkaTap(cluster_options.settings(options)) as tap:
        asked_through(tap)


@pytest.mark.parametrize("way", MECHANISMS)
def test_sasl_passes_through_a_tap(kafka: GuardedKafka, way: str) -> None:
    """The client authenticates, without TLS; TLS is between the tap and Kafka."""
    upstream = settings_of(read_properties(trusting(kafka)), bootstrap=kafka.sasl)
    path = kafka.properties(way)
    path.write_text(path.read_text().replace("SASL_SSL", "SASL_PLAINTEXT"))
    with KafkaTap(upstream) as tap:
        asked_through(tap, path)
        assert PASSWORD.encode() not in tap.traffic.pcap()
    if way != "OAUTHBEARER":
        path.write_text(path.read_text().replace(PASSWORD, "wrong"))
        with KafkaTap(upstream) as tap:
            called(*words_for(tap, path), "DescribeCluster", expected=(2,))


def trusting(kafka: GuardedKafka) -> Path:
    """A client.properties with TLS alone."""
    path = kafka.folder / "trusting.properties"
    path.write_text(
        f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={kafka.folder}/chain.pem\n"
    )
    return path


def test_a_wrong_password_and_a_client_without_a_certificate(kafka: GuardedKafka) -> None:
    for way in MECHANISMS[:3]:
        path = kafka.properties(way)
        path.write_text(path.read_text().replace(PASSWORD, "wrong"))
        assert called("--config", str(path), "DescribeCluster", expected=(2,)) is None
    path = kafka.properties("SSL")
    path.write_text("\n".join(line for line in path.read_text().splitlines() if "keystore" not in line))
    assert called("--config", str(path), "DescribeCluster", expected=(2,)) is None


def test_each_api_that_the_broker_has_is_answered(kafka: GuardedKafka) -> None:
    with connect_sync(kafka.plain) as client:
        offered = [key for key in client.session().versions if key in FACTS]
    names = [FACTS[key].name for key in offered]
    assert len(names) >= 60
    late = {"DeleteTopics", "UnregisterBroker"}
    failures: dict[str, str] = {}
    for name in sorted(names, key=lambda name: (name in late, name)):
        if name in UNANSWERED:
            continue
        try:
            called(kafka.plain, name, "--yes", "--timeout", "20", *FIELDS.get(name, []), expected=(0, 1))
        except AssertionError as error:
            failures[name] = str(error).splitlines()[0]
    assert failures == {}


def test_answers_are_those_of_kafkas_admin(kafka: GuardedKafka) -> None:
    called(kafka.plain, "OffsetCommit", *FIELDS["OffsetCommit"], "--yes", expected=(0, 1))
    try:
        lines = kafka.java.run(str(SOURCE), kafka.plain, wait=120).splitlines()
    except BrokerError as error:
        pytest.fail(str(error))
    admin = dict(line.split("=", 1) for line in lines if "=" in line and line[0].islower())
    assert ours(kafka.plain, int(admin["leader"])) == admin


def test_its_groups_are_watched(kafka: GuardedKafka, capsys: pytest.CaptureFixture[str]) -> None:
    called(kafka.plain, "OffsetCommit", *FIELDS["OffsetCommit"], "--yes", expected=(0, 1))
    assert main(["watch", kafka.plain, "--rounds", "3", "--format", "json"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    commits = [
        event for event in events if event["group"] == "payments" and event["event"] == "offsetCommitted"
    ]
    assert {(event["partition"], event["offset"]) for event in commits} == {(1, 7)}


def ours(bootstrap: str, leader: int) -> dict[str, str]:
    """The same facts from `call`, written as the Java program writes them."""
    cluster = called(bootstrap, "DescribeCluster")
    metadata = called(bootstrap, "Metadata", "topics=null")
    (orders,) = (topic for topic in metadata["topics"] if topic["name"] == "orders")
    partitions = [
        f"{row['partitionIndex']}:{row['leaderId']}:{listed(row['replicaNodes'])}"
        for row in orders["partitions"]
    ]
    offsets = called(bootstrap, "ListOffsets", *FIELDS["ListOffsets"])["topics"][0]["partitions"]
    committed = called(bootstrap, "OffsetFetch", *FIELDS["OffsetFetch"])["groups"][0]["topics"]
    names = {topic["topicId"]: topic["name"] for topic in metadata["topics"]}
    committed_offsets = {
        f"{topic.get('name') or names[topic['topicId']]}-{row['partitionIndex']}": row["committedOffset"]
        for topic in committed
        for row in topic["partitions"]
        if row["committedOffset"] >= 0
    }
    directories = [
        f"{row['logDir']} "
        + listed(
            f"{topic['name']}-{partition['partitionIndex']}"
            for topic in row["topics"]
            for partition in topic["partitions"]
        )
        for row in called(bootstrap, "DescribeLogDirs", "topics=null")["results"]
    ]
    versions = called(bootstrap, "ApiVersions", *FIELDS["ApiVersions"])
    features = versions.get("finalizedFeatures", [])
    users = called(bootstrap, "DescribeUserScramCredentials", "users=null")["results"]
    log = ["topics.topic_name=__cluster_metadata", "topics.partitions.partition_index=0"]
    quorum = called(bootstrap, "DescribeQuorum", *log)["topics"][0]["partitions"][0]
    assert quorum["leaderId"] == leader
    return {
        "cluster": cluster["clusterId"],
        "nodes": listed(f"{row['brokerId']} {row['host']} {row['port']}" for row in cluster["brokers"]),
        "topics": listed(topic["name"] for topic in metadata["topics"]),
        "topic": f"{orders['topicId']} {listed(partitions)}",
        "config": configs(bootstrap, "topic", "orders"),
        "broker": configs(bootstrap, "broker", "1"),
        "offsets": mapped((f"orders-{row['partitionIndex']}", row["offset"]) for row in offsets),
        "groups": listed(group["groupId"] for group in called(bootstrap, "ListGroups")["groups"]),
        "committed": mapped(committed_offsets.items()),
        "users": listed(user["user"] for user in users),
        "quotas": str(len(called(bootstrap, "DescribeClientQuotas")["entries"] or [])),
        "leader": str(quorum["leaderId"]),
        "features": listed(f"{feature['name']} {feature['maxVersionLevel']}" for feature in features),
        "directories": listed(directories),
    }


def configs(bootstrap: str, kind: str, name: str) -> str:
    words = [
        f"resources.resource_type={kind}",
        f"resources.resource_name={name}",
        "resources.configuration_keys=null",
    ]
    entries = called(bootstrap, "DescribeConfigs", *words, "--show-secrets")["results"][0]["configs"]
    return listed(f"{each['name']} {'null' if each['value'] is None else each['value']}" for each in entries)


def listed(values: Any) -> str:
    return f"[{', '.join(sorted(map(str, values)))}]".replace("\n", " ")


def mapped(pairs: Any) -> str:
    return "{" + ", ".join(f"{name}={value}" for name, value in sorted(pairs)) + "}"
