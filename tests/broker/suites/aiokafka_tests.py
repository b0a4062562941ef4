"""aiokafka's own tests of its client, from a checkout of its repository.

Strategy: the folder of a checkout is given by COORDWIRE_AIOKAFKA. The tests start Kafka in a container;
fixtures that are added to a copy of them give a broker's address in its place. They run in a virtual
environment with the release that they belong to. Rule: what needs TLS, SASL, ACLs or the container is left
out.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

from coordwire.broker import Broker, BrokerConfig
from tests.broker.suites.checks import Checks
from tests.broker.suites.kafka_python import python_with
from tests.interop.maven import Unavailable

_RELEASE = "0.14.0"
_FILES = (
    "admin", "client", "cluster", "conn", "consumer", "coordinator", "fetcher", "pep492", "producer",
    "transactional_consumer", "transactional_producer",
)  # fmt: skip
_LEFT_OUT = "not ssl and not sasl and not kerberos and not acl"
_IMAGE = "kafka:2.13_4.0.0"
"""Named, not used: the tests take the release of Kafka from it."""
_WAIT = 540

_FIXTURES = """

@pytest.fixture(scope="session")
def kafka_server():
    host, _, port = os.environ["COORDWIRE_BOOTSTRAP"].split(",")[0].rpartition(":")
    return KafkaServer(host, int(port), 0, 0, 0, None)


def _nothing():
    return None


docker = pytest.fixture(_nothing, scope="session")
ssl_folder = pytest.fixture(_nothing, scope="session")
acl_manager = pytest.fixture(_nothing, scope="class")
kafka_config = pytest.fixture(_nothing, scope="class")
kerberos_utils = pytest.fixture(_nothing, scope="class")
"""


def _source() -> Path:
    given = os.environ.get("COORDWIRE_AIOKAFKA")
    if not given or not (Path(given) / "tests" / "conftest.py").is_file():
        raise Unavailable("COORDWIRE_AIOKAFKA names no checkout of aiokafka's repository")
    return Path(given)


def run(checks: Checks, only: tuple[str, ...] = ()) -> None:
    """`only`: names of files, such as "consumer"."""
    source = _source()
    packages = ["pytest", "pytest-asyncio", "pytest-mock", "docker"]
    python = python_with(f"aiokafka-tests-{_RELEASE}", f"aiokafka[lz4,snappy,zstd]=={_RELEASE}", *packages)
    checks.run("aiokafka", lambda: _files(source, python, only or _FILES))


def _files(source: Path, python: Path, names: tuple[str, ...]) -> None:
    quick = replace(
        BrokerConfig().coordinator, min_session_timeout_ms=6_000
    )  # Kafka's own, which a test needs
    config = BrokerConfig(num_partitions=2, coordinator=quick)
    with tempfile.TemporaryDirectory() as work, Broker.in_thread(config=config) as broker:
        shutil.copytree(source / "tests", Path(work) / "tests")
        shutil.copy(source / "pyproject.toml", work)
        with (Path(work) / "tests" / "conftest.py").open("a") as conftest:
            conftest.write(_FIXTURES)
        command = [str(python), "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "-W", "ignore"]
        result = subprocess.run(
            [
                *command, "-k", _LEFT_OUT, "--docker-image", _IMAGE, "--no-pull",
                *(f"tests/test_{name}.py" for name in names),
            ],
            env=os.environ | {"COORDWIRE_BOOTSTRAP": broker.bootstrap},
            cwd=work, capture_output=True, text=True, timeout=_WAIT, check=False,
        )  # fmt: skip
    output = result.stdout + result.stderr
    outcomes = re.findall(r"(?m)^(PASSED|FAILED|ERROR) (tests/.*)", output)
    bad = [text for outcome, text in outcomes if outcome != "PASSED"]
    print(f"    {len(outcomes) - len(bad)} tests passed, {len(bad)} failed")
    if result.returncode or not outcomes:
        kept = Path(tempfile.gettempdir()) / "aiokafka-failed.txt"
        kept.write_text(output)
        listed = "\n".join(bad) or f"status {result.returncode}"
        raise AssertionError(f"{listed}\nits output is in {kept}")
