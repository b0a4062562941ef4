"""The lock of a broker's data folder: Kafka's own class, and the broker's, refuse what the other has."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from coordwire.broker.log.data_folder import DataFolder, DataFolderError
from coordwire.files.lock import lock
from tests.interop.conftest import give_up
from tests.interop.maven import COMPLETE, Unavailable, jars

pytestmark = pytest.mark.maven

SOURCE = Path(__file__).parent / "java" / "FolderLock.java"


class KafkaLock:
    """A JVM with Kafka's lock of one file."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, command: str) -> str:
        """The answer to "lock" or "unlock"."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()


@contextmanager
def kafka_lock(path: Path) -> Iterator[KafkaLock]:
    java = shutil.which("java")
    try:
        if java is None:
            raise Unavailable("java isn't installed")
        classes = f"{jars(COMPLETE, 'coordinator')}/*"
    except Unavailable as error:
        give_up(error)
    command = [java, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", classes, str(SOURCE), str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield KafkaLock(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(60) == 0


def opened(path: Path) -> DataFolder:
    return DataFolder(path, cluster_id="c", node_id=1)


def test_the_broker_and_kafka_see_each_others_lock(tmp_path: Path) -> None:
    folder = opened(tmp_path)
    with kafka_lock(tmp_path / ".lock") as kafka:
        assert kafka.ask("lock") == "false"
        folder.close({})
        assert kafka.ask("lock") == "true"
        with pytest.raises(DataFolderError, match="in use by another broker"):
            opened(tmp_path)
        assert kafka.ask("unlock") == "free"
        opened(tmp_path).close({})


def test_kafka_does_not_see_the_locks_of_files(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    with open(path, "w") as file, kafka_lock(path) as kafka:
        assert lock(file.fileno())
        assert kafka.ask("lock") == "true"
