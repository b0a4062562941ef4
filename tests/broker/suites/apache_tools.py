"""Apache Kafka's command-line tools, each by its main class, against a broker that has data of every kind.

Strategy: the tools of one release from Maven Central's jars, with a JVM each, as their shell scripts start
them. The broker keeps its logs in a folder, which `kafka-dump-log` reads at the end. Rules: a tool passes if
it ends with status 0 and prints what it must; what a JVM says on stderr about its own logging is not judged.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from coordwire.broker import Broker, BrokerConfig
from coordwire.coordinator import CoordinatorConfig
from tests.broker.suites.checks import Checks
from tests.interop.broker import Java
from tests.interop.maven import COMPLETE

_TOOLS = "org.apache.kafka.tools."
_RECORDS = 1_000


class _Tools:
    """The tools with a broker's address."""

    def __init__(self, java: Java, bootstrap: str, folder: Path) -> None:
        self._java, self.bootstrap, self.folder = java, bootstrap, folder

    def run(self, tool: str, *arguments: str, expect: Iterable[str] = (), given: bytes = b"") -> str:
        """What a tool prints; each of `expect` must match in it."""
        return self.plain(tool, "--bootstrap-server", self.bootstrap, *arguments, expect=expect, given=given)

    def plain(self, tool: str, *arguments: str, expect: Iterable[str] = (), given: bytes = b"") -> str:
        name = tool if "." in tool and not tool.startswith(("consumer.", "reassign.")) else _TOOLS + tool
        message = self._java.pipe(given, name, *arguments, wait=90).decode(errors="replace")
        for pattern in expect:
            if not re.search(pattern, message):
                raise AssertionError(f"{tool} {' '.join(arguments)}: no {pattern!r} in\n{message[-3000:]}")
        return message

    def file(self, name: str, content: object) -> str:
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)


def run(checks: Checks, only: tuple[str, ...] = ()) -> None:
    """Run the tools; `only`: those of these names."""
    java = Java()
    with tempfile.TemporaryDirectory() as work:
        data = Path(work) / "data"
        config = BrokerConfig(coordinator=CoordinatorConfig(release=COMPLETE))  # as the tools are
        with Broker.in_thread(topics={"orders": 3}, data=data, config=config) as broker:
            tools = _Tools(java, broker.bootstrap, Path(work))
            for name, check in _CHECKS.items():
                if not only or name in only:
                    checks.run(name, lambda check=check: check(tools))  # type: ignore[misc]
        for name, dump in _DUMPS.items():
            if not only or "kafka-dump-log" in only:
                checks.run(f"kafka-dump-log {name}", lambda dump=dump: dump(tools, data))  # type: ignore[misc]


def _producer_perf_test(tools: _Tools) -> None:
    settings = tools.file("producer.properties", f"bootstrap.servers={tools.bootstrap}\nacks=all\n")
    plain = (
        "--topic",
        "orders",
        "--num-records",
        str(_RECORDS),
        "--record-size",
        "100",
        "--throughput",
        "-1",
    )
    tools.plain(
        "ProducerPerformance", *plain, "--command-config", settings, expect=[rf"{_RECORDS} records sent"]
    )
    tools.plain(
        "ProducerPerformance", *plain, "--command-config", settings, "--transactional-id", "perf",
        "--transaction-duration-ms", "100", expect=[rf"{_RECORDS} records sent"],
    )  # fmt: skip


def _console(tools: _Tools) -> None:
    given = b"".join(b"key-%d:value-%d\n" % (number, number) for number in range(100))
    properties = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    tools.run("ConsoleProducer", "--topic", "typed", *properties, given=given)
    for protocol in ("classic", "consumer"):
        result = tools.run(
            "consumer.ConsoleConsumer", "--topic", "typed", "--from-beginning", "--max-messages", "100",
            "--timeout-ms", "20000", "--group", f"console-{protocol}",
            "--formatter-property", "print.key=true", "--command-property", f"group.protocol={protocol}",
        )  # fmt: skip
        read = [line for line in result.splitlines() if line.startswith("key-")]
        assert sorted(read) == sorted(f"key-{number}\tvalue-{number}" for number in range(100)), result[
            -1000:
        ]


def _topics(tools: _Tools) -> None:
    made = ("--topic", "made", "--partitions", "2")
    tools.run(
        "TopicCommand", "--create", *made, "--config", "retention.ms=3600000", expect=["Created topic made"]
    )
    tools.run("TopicCommand", "--list", expect=[r"(?m)^made$", r"(?m)^orders$"])
    tools.run(
        "TopicCommand", "--describe", "--topic", "made",
        expect=["PartitionCount: 2", "retention.ms=3600000", r"Leader: 1\s+Replicas: 1\s+Isr: 1"],
    )  # fmt: skip
    tools.run("TopicCommand", "--alter", "--topic", "made", "--partitions", "4")
    tools.run("TopicCommand", "--describe", "--topic", "made", expect=["PartitionCount: 4"])
    tools.run("TopicCommand", "--describe", "--unavailable-partitions")
    tools.run("TopicCommand", "--delete", "--topic", "made")
    assert "made" not in tools.run("TopicCommand", "--list").split()


def _consumer_groups(tools: _Tools) -> None:
    command = "consumer.group.ConsumerGroupCommand"
    tools.run(command, "--list", expect=["console-classic", "console-consumer"])
    tools.run(command, "--list", "--state", expect=[r"console-classic\s+Empty"])
    tools.run(
        command, "--list", "--type", expect=[r"console-classic\s+Classic", r"console-consumer\s+Consumer"]
    )
    for group in ("console-classic", "console-consumer"):
        tools.run(command, "--describe", "--group", group, expect=[rf"{group}\s+typed\s+0\s+100\s+100\s+0"])
        tools.run(command, "--describe", "--group", group, "--state", expect=[rf"{group}\s.*Empty\s+.*0"])
        tools.run(command, "--describe", "--group", group, "--members", "--verbose")
    reset = ("--group", "console-classic", "--reset-offsets", "--topic", "typed")
    tools.run(command, *reset, "--to-offset", "42", "--execute", expect=[r"typed\s+0\s+42"])
    tools.run(
        command, *reset, "--to-datetime", "2020-01-01T00:00:00.000", "--dry-run", expect=[r"typed\s+0\s+0"]
    )
    tools.run(command, "--describe", "--group", "console-classic", expect=[r"typed\s+0\s+42\s+100\s+58"])
    tools.run(
        command, "--delete-offsets", "--group", "console-classic", "--topic", "typed", expect=["Successful"]
    )
    tools.run(command, "--delete", "--group", "console-classic", expect=["successful"])
    assert "console-classic" not in tools.run(command, "--list").split()


def _transactions(tools: _Tools) -> None:
    result = tools.run("TransactionsCommand", "list", expect=[r"perf\S*\s+1\s+\d+\s+CompleteCommit"])
    name = next(line.split()[0] for line in result.splitlines() if line.startswith("perf"))
    tools.run("TransactionsCommand", "describe", "--transactional-id", name, expect=["CompleteCommit"])
    tools.run(
        "TransactionsCommand", "describe-producers", "--topic", "orders", "--partition", "0", expect=["None"]
    )
    tools.run("TransactionsCommand", "find-hanging", "--broker-id", "1", expect=["ProducerEpoch"])


def _configs(tools: _Tools) -> None:
    command = "kafka.admin.ConfigCommand"
    topic = ("--entity-type", "topics", "--entity-name", "orders")
    change = ("--alter", "--add-config", "max.message.bytes=2000000,cleanup.policy=[compact,delete]")
    tools.run(command, *topic, *change, expect=["Completed updating config for topic orders"])
    tools.run(
        command, *topic, "--describe", expect=["max.message.bytes=2000000", r"cleanup.policy=compact,delete"]
    )
    tools.run(command, *topic, "--describe", "--all", expect=["retention.ms=604800000"])
    tools.run(
        command,
        *topic,
        "--alter",
        "--delete-config",
        "max.message.bytes,cleanup.policy",
        expect=["Completed"],
    )
    group = ("--entity-type", "groups", "--entity-name", "g")
    tools.run(
        command, *group, "--alter", "--add-config", "consumer.session.timeout.ms=46000", expect=["Completed"]
    )
    tools.run(command, *group, "--describe", expect=["consumer.session.timeout.ms=46000"])
    broker = ("--entity-type", "brokers", "--entity-name", "1")
    tools.run(command, *broker, "--describe", "--all", expect=["offsets.topic.num.partitions=50"])
    tools.run(command, *broker, "--alter", "--add-config", "log.cleaner.threads=2", expect=["Completed"])
    tools.run(command, *broker, "--describe", expect=["log.cleaner.threads=2"])
    user = ("--entity-type", "users", "--entity-name", "bob")
    tools.run(
        command, *user, "--alter", "--add-config", "SCRAM-SHA-256=[password=secret]", expect=["Completed"]
    )
    quota = ("--alter", "--add-config", "producer_byte_rate=1024")
    tools.run(command, *user, *quota, expect=["Completed"])
    tools.run(
        command, *user, "--describe", expect=["producer_byte_rate=1024", "SCRAM-SHA-256=iterations=4096"]
    )
    tools.run(command, *user, "--alter", "--delete-config", "SCRAM-SHA-256", expect=["Completed"])


def _get_offsets(tools: _Tools) -> None:
    for time in ("latest", "earliest", "max-timestamp", "earliest-local", "latest-tiered"):
        result = tools.run("GetOffsetShell", "--topic", "orders", "--time", time)
        offsets = dict(re.findall(r"orders:(\d):(\d*)", result))
        if time == "latest":
            assert sum(int(one) for one in offsets.values()) > 2 * _RECORDS, result  # the markers too
        if time == "earliest":
            assert offsets == dict.fromkeys("012", "0"), result
    tools.run("GetOffsetShell", "--topic-partitions", "typed:0", expect=["typed:0:100"])


def _leader_election(tools: _Tools) -> None:
    for kind in ("preferred", "unclean"):
        tools.run(
            "LeaderElectionCommand",
            "--election-type",
            kind,
            "--all-topic-partitions",
            expect=["^$|Valid|success"],
        )
    tools.run(
        "LeaderElectionCommand", "--election-type", "preferred", "--topic", "orders", "--partition", "0",
        expect=["Valid replica already elected"],
    )  # fmt: skip


def _log_dirs(tools: _Tools) -> None:
    result = tools.run("LogDirsCommand", "--describe", "--topic-list", "orders")
    offsets = json.loads(result.splitlines()[-1])
    (place,) = offsets["brokers"][0]["logDirs"]
    assert place["error"] is None
    assert place["logDir"] == str((tools.folder / "data").resolve())
    sizes = {one["partition"]: one["size"] for one in place["partitions"]}
    assert sizes.keys() == {"orders-0", "orders-1", "orders-2"}, result
    tools.run("LogDirsCommand", "--describe", "--broker-list", "1", expect=["__consumer_offsets-0"])


def _api_versions(tools: _Tools) -> None:
    result = tools.run("BrokerApiVersionsCommand", expect=[r"Produce\(0\): 0 to 13 \[usable: 13\]"])
    assert "UNKNOWN" not in result


def _delete_records(tools: _Tools) -> None:
    expected = {"partitions": [{"topic": "typed", "partition": 0, "offset": 30}], "version": 1}
    tools.run(
        "DeleteRecordsCommand",
        "--offset-json-file",
        tools.file("delete.json", expected),
        expect=["low_watermark: 30"],
    )
    tools.run("GetOffsetShell", "--topic", "typed", "--time", "earliest", expect=["typed:0:30"])


def _cluster(tools: _Tools) -> None:
    tools.plain(
        "ClusterTool", "cluster-id", "--bootstrap-server", tools.bootstrap, expect=[r"Cluster ID: \S{22}"]
    )
    tools.plain(
        "ClusterTool", "list-endpoints", "--bootstrap-server", tools.bootstrap, expect=[r"127\.0\.0\.1"]
    )


def _features(tools: _Tools) -> None:
    tools.run(
        "FeatureCommand",
        "describe",
        expect=["transaction.version.*FinalizedVersionLevel: 2", "metadata.version.*4.3-IV0"],
    )


def _groups(tools: _Tools) -> None:
    tools.run("GroupsCommand", "--list", expect=[r"console-consumer\s+Consumer\s+consumer"])
    tools.run("GroupsCommand", "--list", "--consumer", expect=["console-consumer"])


def _end_to_end(tools: _Tools) -> None:
    tools.run(
        "EndToEndLatency", "--topic", "latency", "--num-records", "200", "--producer-acks", "all",
        "--record-size", "20", expect=["Avg latency", "Percentiles"],
    )  # fmt: skip


def _consumer_perf_test(tools: _Tools) -> None:
    tools.run(
        "ConsumerPerformance", "--topic", "orders", "--num-records", str(2 * _RECORDS), "--timeout", "20000",
        expect=[r"data\.consumed\.in\.MB"],
    )  # fmt: skip


def _reassign(tools: _Tools) -> None:
    plan = tools.file(
        "plan.json", {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1]}]}
    )
    tools.run(
        "reassign.ReassignPartitionsCommand",
        "--reassignment-json-file",
        plan,
        "--execute",
        expect=["Successfully started"],
    )
    tools.run(
        "reassign.ReassignPartitionsCommand",
        "--reassignment-json-file",
        plan,
        "--verify",
        expect=["is complete"],
    )
    tools.run("reassign.ReassignPartitionsCommand", "--list", expect=["No partition reassignments found"])


def _client_metrics(tools: _Tools) -> None:
    tools.run("ClientMetricsCommand", "--list")


_CHECKS: dict[str, Callable[[_Tools], None]] = {
    "kafka-producer-perf-test": _producer_perf_test,
    "kafka-console-producer, kafka-console-consumer": _console,
    "kafka-topics": _topics,
    "kafka-consumer-groups": _consumer_groups,
    "kafka-transactions": _transactions,
    "kafka-configs": _configs,
    "kafka-get-offsets": _get_offsets,
    "kafka-leader-election": _leader_election,
    "kafka-log-dirs": _log_dirs,
    "kafka-broker-api-versions": _api_versions,
    "kafka-delete-records": _delete_records,
    "kafka-cluster": _cluster,
    "kafka-features": _features,
    "kafka-groups": _groups,
    "kafka-e2e-latency": _end_to_end,
    "kafka-consumer-perf-test": _consumer_perf_test,
    "kafka-reassign-partitions": _reassign,
    "kafka-client-metrics": _client_metrics,
}


def _dump(tools: _Tools, paths: list[Path], *arguments: str, expect: Iterable[str]) -> None:
    files = ",".join(str(path) for path in paths if path.stat().st_size)
    said = tools.plain("DumpLogSegments", *arguments, "--files", files, expect=expect)
    for complaint in (
        "isvalid: false",
        "Found timestamp mismatch",
        "Index sanity check failed",
        "Mismatches in",
    ):
        assert complaint not in said, said[-3000:]


def _dump_topics(tools: _Tools, data: Path) -> None:
    kinds = ("log", "index", "timeindex", "txnindex", "snapshot")
    paths = [path for kind in kinds for path in sorted(data.glob(f"orders-*/*.{kind}"))]
    _dump(
        tools,
        paths,
        "--deep-iteration",
        "--print-data-log",
        expect=["isTransactional: true", "endTxnMarker: COMMIT"],
    )


def _dump_offsets(tools: _Tools, data: Path) -> None:
    _dump(
        tools, sorted(data.glob("__consumer_offsets-*/*.log")), "--offsets-decoder", "--print-data-log",
        expect=["console-consumer", '"topic":"typed"'],
    )  # fmt: skip


def _dump_transactions(tools: _Tools, data: Path) -> None:
    _dump(
        tools, sorted(data.glob("__transaction_state-*/*.log")), "--transaction-log-decoder",
        "--print-data-log", expect=["perf", "CompleteCommit|transactionStatus"],
    )  # fmt: skip


def _dump_metadata(tools: _Tools, data: Path) -> None:
    _dump(
        tools, sorted(data.glob("__cluster_metadata-0/*.log")), "--cluster-metadata-decoder",
        "--print-data-log", expect=['"type":"TOPIC_RECORD"', '"name":"orders"'],
    )  # fmt: skip


_DUMPS: dict[str, Callable[[_Tools, Path], None]] = {
    "of a topic": _dump_topics,
    "of __consumer_offsets": _dump_offsets,
    "of __transaction_state": _dump_transactions,
    "of __cluster_metadata": _dump_metadata,
}
