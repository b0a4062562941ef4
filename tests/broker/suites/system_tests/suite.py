"""Apache Kafka's system tests, by ducktape, against our brokers: n of m, each that fails with its reason.

Strategy: kafkatest from a checkout of Kafka's repository (COORDWIRE_KAFKA), in a copy to which nodes.py and
service.py are added; its clients and tools are Apache's, of one release from Maven Central, in the layout of
an installed Kafka. Of each test the parameters that this broker has are run: KRaft (no ZooKeeper), the new
coordinator, plain listeners, clients of the release at hand. Rules: what is changed in the copy is listed in
`_CHANGES`; whoever may not make namespaces, or has no checkout, is told so. `only` is a part of a test's name
with its parameters.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.broker.suites.checks import Checks
from tests.broker.suites.kafka_python import python_with
from tests.interop.maven import Unavailable, jars

_DUCKTAPE = ("ducktape==0.12.0", "crc32c", "psutil", "requests", "setuptools<81")
_FILES = (
    "sanity_checks/test_bounce.py",
    "tests/client/compression_test.py",
    "tests/client/consumer_protocol_migration_test.py",
    "tests/client/consumer_rolling_upgrade_test.py",
    "tests/client/consumer_test.py",
    "tests/client/pluggable_test.py",
    "tests/core/consumer_group_command_test.py",
    "tests/core/get_offset_shell_test.py",
    "tests/core/group_mode_transactions_test.py",
    "tests/core/transactions_test.py",
)
_WANTED = {
    "metadata_quorum": ("ISOLATED_KRAFT",),
    "use_new_coordinator": (True,),
    "security_protocol": ("PLAINTEXT",),
    "consumer_version": ("dev",),
    "producer_version": ("dev",),
}
"""By a parameter's name the values with which a test is run; metadata_quorum must be among its parameters."""

_CHANGES = {
    "services/kafka/__init__.py": (
        "\nfrom .util",
        "\nfrom coordwire_service import KafkaService\nfrom .util",
    ),
    "services/verifiable_consumer.py": (
        '        cmd += " --reset-policy %s --group-id %s --topic %s --session-timeout %s" % \\\n'
        "               (self.reset_policy, self.group_id, self.topic,\n"
        "                self.session_timeout_sec*1000)\n",
        '        cmd += " --reset-policy %s --group-id %s --topic %s" % \\\n'
        "               (self.reset_policy, self.group_id, self.topic)\n"
        "        if not self.is_consumer_group_protocol_enabled():\n"
        '            cmd += " --session-timeout %s" % (self.session_timeout_sec*1000)\n',
    ),
}
"""In these files of kafkatest the first text becomes the second: our service; the session's time of a group
of KIP-848, which later clients refuse, is the broker's setting."""

_COLLECTED = re.compile(
    r"<module=([\w.]+), cls=(\w+), function=(\w+), injected_args=(.*), file=.*, ignore=False"
)
_CLIENTS = "4.0.0"
"""The release of clients and tools that is next to the tests: later ones print warnings that they read."""

_QUICK_JVM = "-Xshare:auto -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""For programs of a few seconds each, a dozen at once."""

_WAIT = 900
"""Seconds for one test."""


def run(checks: Checks, only: tuple[str, ...] = ()) -> None:
    """Run the tests, in whose names and parameters one of `only` is; all without."""
    source = _source()
    python = python_with("system-tests", *_DUCKTAPE)
    with tempfile.TemporaryDirectory() as work:
        suite = _Ducktape(python, Path(work), source)
        for symbol in suite.collected():
            if not only or any(part in symbol for part in only):
                checks.run(symbol, lambda symbol=symbol: suite.run(symbol))  # type: ignore[misc]


def _source() -> Path:
    given = os.environ.get("COORDWIRE_KAFKA")
    if not given or not (Path(given) / "tests" / "kafkatest").is_dir():
        raise Unavailable("COORDWIRE_KAFKA names no checkout of Apache Kafka's repository")
    if shutil.which("unshare") is None or os.geteuid():
        raise Unavailable("nodes are namespaces of Linux, which only root can make")
    return Path(given)


class _Ducktape:
    """The tests' copy with our service, and an installed Kafka beside it."""

    def __init__(self, python: Path, work: Path, source: Path) -> None:
        self._python, self._work, self._tests = python, work, work / "tests"
        kafka = work / "kafka"
        shutil.copytree(source / "bin", kafka / "bin")
        (kafka / "libs").symlink_to(jars(_CLIENTS, "broker"))
        shutil.copytree(source / "tests", self._tests)
        here = Path(__file__).parent
        for name in ("nodes", "service"):
            shutil.copy(here / f"{name}.py", self._tests / f"coordwire_{name}.py")
        for name, (before, after) in _CHANGES.items():
            file = self._tests / "kafkatest" / name
            text = file.read_text()
            if before not in text:
                raise Unavailable(f"{name} of this checkout is another than the one that was tried")
            file.write_text(text.replace(before, after, 1))
        path = os.pathsep.join([str(self._tests), str(here.parents[3])])
        self._environment = os.environ | {
            "COORDWIRE_KAFKA_HOME": str(kafka), "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1",
            "KAFKA_JVM_PERFORMANCE_OPTS": _QUICK_JVM,
        }  # fmt: skip

    def _ducktape(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(self._python.with_name("ducktape")), "--cluster", "coordwire_nodes.NamespaceCluster"]
        return subprocess.run(
            [*command, "--results-root", str(self._work / "results"), *arguments], cwd=self._tests,
            env=self._environment, capture_output=True, text=True, timeout=_WAIT, check=False,
        )  # fmt: skip

    def collected(self) -> Iterator[str]:
        """The tests' symbols, as ducktape takes them."""
        output = self._ducktape("--collect-only", *(f"kafkatest/{name}" for name in _FILES)).stdout
        for module, cls, function, text in _COLLECTED.findall(output):
            given: dict[str, Any] = ast.literal_eval(text) or {}
            if "metadata_quorum" in given and all(
                given[name] in values for name, values in _WANTED.items() if name in given
            ):
                yield f"{module.replace('.', '/')}.py::{cls}.{function}@{json.dumps(given)}"

    def run(self, symbol: str) -> None:
        """Run one test; raises `AssertionError` with what ducktape says of it."""
        ended = self._ducktape(symbol)
        report = self._work / "results" / "latest" / "report.json"
        results = json.loads(report.read_text())["results"] if report.exists() else []
        if ended.returncode or [each["test_status"] for each in results] != ["PASS"]:
            kept = Path(tempfile.mkdtemp(prefix="system-test-"))
            shutil.copytree(self._work / "results" / "latest", kept, dirs_exist_ok=True)
            summary = "\n".join(each["summary"] for each in results) or ended.stdout[-2000:]
            raise AssertionError(f"{summary[:600]}\nwhat it said is in {kept}")
