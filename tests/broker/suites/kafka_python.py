"""kafka-python's own integration tests, from a checkout of its repository.

Strategy: its source distribution lacks a part of its tests, so the folder of a checkout is given by
COORDWIRE_KAFKA_PYTHON; a virtual environment with pytest runs them, and they find the broker
by KAFKA_URI. Rules: those of SASL and TLS start a Kafka broker of their own, and are skipped by themselves.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from coordwire.broker import Broker, BrokerConfig
from tests.broker.suites.checks import Checks
from tests.interop.maven import Unavailable, cache

_RELEASE = "4.2.0"
_FILES = ("consumer", "producer", "admin")
_WAIT = 540


def _source() -> Path:
    given = os.environ.get("COORDWIRE_KAFKA_PYTHON")
    if not given or not (Path(given) / "test" / "integration").is_dir():
        raise Unavailable("COORDWIRE_KAFKA_PYTHON names no checkout of kafka-python's repository")
    return Path(given)


def python_with(name: str, *needed: str) -> Path:
    """The Python of an environment with these packages, made once for a name. Raises `Unavailable`."""
    folder = cache() / f"{name}-{sys.version_info.major}.{sys.version_info.minor}"
    python = folder / "bin" / "python"
    if not (folder / "made").exists():
        venv.create(folder, with_pip=True, clear=True)
        command = [str(python), "-m", "pip", "install", "-q", *needed]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            raise Unavailable(f"pip: {result.stderr.strip()[-300:]}")
        (folder / "made").touch()
    return python


def run(checks: Checks, only: tuple[str, ...] = ()) -> None:
    """`only`: "consumer", "producer" or "admin"."""
    source, python = _source(), python_with("kafka-python-tests", "pytest", "pytest-mock", "pytest-timeout")
    for name in only or _FILES:
        checks.run(name, lambda name=name: _file(source, python, name))  # type: ignore[misc]


def _file(source: Path, python: Path, name: str) -> None:
    config = BrokerConfig(num_partitions=4, as_of=_RELEASE.rpartition(".")[0])
    with tempfile.TemporaryDirectory() as work, Broker.in_thread(config=config) as broker:
        (Path(work) / _RELEASE / "kafka-bin").mkdir(parents=True)
        environment = os.environ | {
            "KAFKA_VERSION": _RELEASE,
            "KAFKA_URI": f"kafka://{broker.bootstrap}",
            "KAFKA_ROOT": f"{work}/{_RELEASE}/kafka-bin",
            "PYTHONPATH": str(source),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        command = [str(python), "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "--timeout=120"]
        result = subprocess.run(
            [*command, f"test/integration/test_{name}_integration.py"],
            env=environment, cwd=source, capture_output=True, text=True, timeout=_WAIT, check=False,
        )  # fmt: skip
    output = result.stdout + result.stderr
    outcomes = re.findall(r"(?m)^(PASSED|FAILED|ERROR|SKIPPED) (.*)", output)
    passed = sum(outcome == "PASSED" for outcome, _ in outcomes)
    bad = [text for outcome, text in outcomes if outcome in ("FAILED", "ERROR")]
    print(f"    {passed} tests passed, {len(bad)} failed")
    if result.returncode or not passed:
        kept = Path(tempfile.gettempdir()) / f"kafka-python-{name}-failed.txt"
        kept.write_text(output)
        listed = "\n".join(bad) or f"status {result.returncode}"
        raise AssertionError(f"{listed}\nwhat it said is in {kept}")
