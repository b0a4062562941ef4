"""The programs of the client matrix: each client with its command, built once into the cache.

Strategy: the sources in `clients` and `java` are copied beside the dependencies that the language's own
registry gives (npm, the Go proxy, crates.io, Maven Central); a folder in the cache bears the checksum of its
sources. Rule: `Unavailable` says why a client can't be had.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from tests.interop.broker import Java
from tests.interop.maven import Unavailable, cache

_SOURCES = Path(__file__).parent
_KAFKAJS, _SARAMA, _FRANZ_GO, _CRATE = "2.2.4", "v1.61.1", "v1.22.2", "0.39.0"


@dataclass(frozen=True, slots=True)
class MatrixClient:
    """A client. command: how its program is started; no_kip_848: why it has no such cell, "" where it has."""

    name: str
    language: str
    command: Callable[[], list[str]]
    no_kip_848: str = ""


def _run(work: Path, *command: str) -> None:
    result = shutil.which(command[0])
    if result is None:
        raise Unavailable(f"{command[0]} isn't installed")
    done = subprocess.run([result, *command[1:]], cwd=work, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"{' '.join(command[:2])}: {(done.stderr or done.stdout).strip()[-500:]}")


def _built(name: str, steps: Sequence[Sequence[str]]) -> Path:
    """The folder with a program's sources, in which the steps have been run. Raises `Unavailable`."""
    source = _SOURCES / "clients" / name
    paths = sorted(path for path in source.rglob("*") if path.is_file())
    state = crc32(repr(steps).encode() + b"".join(path.read_bytes() for path in paths))
    folder = cache() / f"client-{name}-{state:08x}"
    if not folder.exists():
        cache().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache()) as work:
            made = Path(work) / "made"
            shutil.copytree(source, made)
            for step in steps:
                _run(made, *step)
            made.rename(folder)
    return folder


def _python(name: str) -> list[str]:
    home = os.environ.get("COORDWIRE_CLIENTS")
    if not home:
        raise Unavailable("COORDWIRE_CLIENTS names no virtual environment with Kafka clients")
    return [str(Path(home) / "bin" / "python"), str(_SOURCES / "clients" / "python_clients.py"), name]


def _java() -> list[str]:
    return Java(project="streams", flags=["-Xshare:auto"]).command(str(_SOURCES / "java" / "Member.java"))


def _go(name: str, module: str) -> list[str]:
    steps = (("go", "mod", "init", "member"), ("go", "get", module), ("go", "build", "-o", "member", "."))
    return [str(_built(name, steps) / "member")]


def _kafkajs() -> list[str]:
    installed = ("npm", "install", "--no-audit", "--no-fund", f"kafkajs@{_KAFKAJS}")
    folder = _built("kafkajs", (("npm", "init", "-y"), installed))
    return [shutil.which("node") or "node", str(folder / "main.js")]


def _rust() -> list[str]:
    folder = _built("rust", (("cargo", "build", "--quiet", "--release"),))
    return [str(folder / "target" / "release" / "member")]


_NONE = "the client has no KIP-848"
CLIENTS = [
    MatrixClient("confluent-kafka", "Python", lambda: _python("confluent-kafka")),
    MatrixClient("kafka-python", "Python", lambda: _python("kafka-python"), _NONE),
    MatrixClient("aiokafka", "Python", lambda: _python("aiokafka"), _NONE),
    MatrixClient("kafka-clients", "Java", _java),
    MatrixClient("franz-go", "Go", lambda: _go("franz_go", f"github.com/twmb/franz-go/pkg/kgo@{_FRANZ_GO}")),
    MatrixClient("sarama", "Go", lambda: _go("sarama", f"github.com/IBM/sarama@{_SARAMA}"), _NONE),
    MatrixClient("kafkajs", "JavaScript", _kafkajs, _NONE),
    MatrixClient("rdkafka", "Rust", _rust),
]
