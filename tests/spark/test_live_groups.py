"""docs/how-to/live-groups.md as it is, by Spark's own Kafka source, at our broker and at Apache Kafka's.

Commits, ends, lag and members are those that Kafka's own tools print."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="pyspark isn't installed: pip install 'coordwire[spark]'")

from pyspark.sql import functions as f

from coordwire.broker import Broker
from tests.interop.broker import Broker as RealBroker
from tests.interop.broker import Java
from tests.interop.conftest import give_up
from tests.interop.maven import Unavailable
from tests.spark.table_jars import jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.skipif(not hasattr(f, "arrow_udf"), reason="PySpark is older than 4.1")

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "live-groups.md"
BLOCKS = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
WAIT = 120


class Tools:
    """Apache Kafka's tools at one broker."""

    def __init__(self, java: Java, bootstrap: str) -> None:
        self.java, self.bootstrap = java, bootstrap

    def run(self, tool: str, *arguments: str, given: bytes = b"") -> list[list[str]]:
        """The words of each line that a tool prints."""
        output = self.java.pipe(given, tool, "--bootstrap-server", self.bootstrap, *arguments, wait=WAIT)
        return [line.split() for line in output.decode().splitlines()]

    def create(self, topic: str) -> None:
        self.run("org.apache.kafka.tools.TopicCommand", "--create", "--topic", topic, "--partitions", "3")

    def produce(self, topic: str, first: int, last: int) -> None:
        lines = b"".join(b"k%d:v%d\n" % (number, number) for number in range(first, last))
        keyed = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
        self.run("org.apache.kafka.tools.ConsoleProducer", "--topic", topic, *keyed, given=lines)

    def groups(self) -> set[tuple[str, str, int, int, int, int]]:
        """Group, topic, partition, commit, end and lag of each partition with a commit."""
        rows = self.run(GROUPS, "--describe", "--all-groups", "--offsets")
        return {
            (row[0], row[1], *map(int, row[2:6]))  # type: ignore[misc]
            for row in rows
            if len(row) >= 6 and row[2].isdigit() and row[3] != "-"
        }

    def members(self) -> set[tuple[str, ...]]:
        """Group, member, host and client of each member."""
        rows = self.run(GROUPS, "--describe", "--all-groups", "--members")
        return {tuple(row[:4]) for row in rows if len(row) >= 5 and row[0] != "GROUP"}

    def ends(self, topic: str) -> set[tuple[str, int, int]]:
        rows = self.run("org.apache.kafka.tools.GetOffsetShell", "--topic", topic)
        split = [row[0].split(":") for row in rows]
        return {(name, int(partition), int(offset)) for name, partition, offset in split}


@pytest.fixture(params=["coordwire", "kafka"])
def tools(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tools]:
    try:
        java = Java()
    except Unavailable as error:
        give_up(error)
    if request.param == "coordwire":
        with Broker.in_thread() as broker:
            yield Tools(java, broker.bootstrap)
    else:
        settings = {
            "offsets.topic.num.partitions": "5", "offsets.topic.replication.factor": "1",
            "share.coordinator.state.topic.replication.factor": "1",
        }  # fmt: skip
        (tmp_path / "broker").mkdir()
        with RealBroker(java, tmp_path / "broker" / "data", settings) as real:
            yield Tools(java, real.address)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.5)


def test_groups_lag_and_queries(spark: SparkSession, tools: Tools, tmp_path: Path) -> None:
    for jar in jars("kafka"):
        spark.sql(f"ADD JAR '{jar}'")
    for topic in ("orders", "lines"):
        tools.create(topic)
        tools.produce(topic, 0, 60)
    reading = ("--from-beginning", "--timeout-ms", "60000")
    tools.run(CONSOLE, "--topic", "lines", "--group", "partly", *reading, "--max-messages", "25")
    tools.run(CONSOLE, "--topic", "orders", "--group", "removed", *reading, "--max-messages", "60")
    tools.run(GROUPS, "--delete", "--group", "removed")
    members = [
        tools.java.start(
            CONSOLE, "--bootstrap-server", tools.bootstrap, "--topic", "orders", "--from-beginning",
            "--group", protocol, "--command-property", f"group.protocol={protocol}",
            output=tmp_path / f"{protocol}.txt",
        )
        for protocol in ("classic", "consumer")
    ]  # fmt: skip
    names: dict[str, Any] = {}
    try:
        run(BLOCKS[0], names, tools.bootstrap)
        run(BLOCKS[1], names)
        assert names["spark"].version == spark.version

        def read_all() -> bool:
            printed = {row[:3]: row[3:] for row in tools.groups()}
            return {name for name, *_ in printed} == {"partly", "classic", "consumer"} and all(
                lag == 0 for (name, *_), (*_, lag) in printed.items() if name != "partly"
            )

        until(read_all)
        expected = tools.members()
        assert {group for group, *_ in expected} == {"classic", "consumer"}
        names["query"].processAllAvailable()
        actual = spark.sql("SELECT group_id, memberId, clientHost, clientId FROM members").collect()
        assert {tuple(row) for row in actual} == expected
        types = {(row.group_id, row.type) for row in spark.table("members").collect()}
        assert types == {("classic", "classic"), ("consumer", "consumer")}
    finally:
        for process in members:
            process.terminate()
        for process in members:
            process.wait()
    try:
        tools.produce("orders", 60, 100)
        run(BLOCKS[2], names)
        rows = names["with_lag"](spark.table("commits"), "committed_offset")
        columns = ("group_id", "topic", "partition", "committed_offset", "end_offset", "lag")
        lags = {tuple(row) for row in rows.select(*columns).collect()}
        assert lags == tools.groups()
        assert sum(row[-1] for row in lags) == 35 + 2 * 40
    finally:
        names["query"].stop()
        spark.conf.unset("spark.sql.streaming.kafka.useDeprecatedOffsetFetching")
    own_query(spark, tools, tmp_path / "checkpoint", names)


def own_query(spark: SparkSession, tools: Tools, checkpoint: Path, names: dict[str, Any]) -> None:
    """The lag of a query of Spark's own: what was produced since, whether a batch was planned or not."""

    def batch() -> None:
        source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", tools.bootstrap)
        rows = source.option("subscribe", "orders,lines").option("startingOffsets", "earliest").load()
        writer = rows.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()

    def lag() -> tuple[set[tuple[str, int, int]], int]:
        run(BLOCKS[3], names, checkpoint=checkpoint)
        rows = names["with_lag"](names["read_offsets"](str(checkpoint)), "next_offset").collect()
        return {(row.topic, row.partition, row.end_offset) for row in rows}, sum(row.lag for row in rows)

    ends = tools.ends("orders") | tools.ends("lines")
    batch()
    assert lag() == (ends, 0)
    tools.produce("lines", 60, 77)
    ends = tools.ends("orders") | tools.ends("lines")
    assert lag() == (ends, 17)
    batch()
    assert lag() == (ends, 0)
    last = max((checkpoint / "commits").iterdir(), key=lambda path: (path.name.isdigit(), path.name))
    os.unlink(last)  # as if it had been killed before the batch was done
    assert lag() == (ends, 17)


def run(code: str, names: dict[str, Any], bootstrap: str = "", checkpoint: Path | None = None) -> None:
    """A block of the page, with the test's own addresses."""
    for written, meant in {"broker-1:9092": bootstrap, "/checkpoints/orders": str(checkpoint or "")}.items():
        if meant:
            assert written in code
            code = code.replace(written, meant)
    exec(compile(code, str(PAGE), "exec"), names)
