"""Brokers' own logs: records of internal topics, and files of their disks with what Kafka prints of them.

Rules: the records and the disks stand once, in tests/data/logs and tests/data/segments, and are only given
addresses here; what a file holds is what `kafka-dump-log` of the same release printed, line by line.
"""

from __future__ import annotations

import json
import re
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent.parent / "tests" / "data"
RECORDS_RELEASE = "4.3.0"
DISKS = {"broker-4.3.0": "4.3.0", "broker-3.9.2-old-formats": "3.9.2"}
"""Archives of disks, with their brokers' releases."""


def records() -> Iterator[dict[str, Any]]:
    """Keys and values of internal topics and the metadata log."""
    seen: Counter[str] = Counter()
    for line in (DATA / "logs" / "records.jsonl").read_text("utf-8").splitlines():
        one = json.loads(line)
        version = "tombstone" if one["version"] is None else f"v{one['version']}"
        stem = f"log-records/{one['log'].replace('_', '-')}/{one['type']}/{version}"
        seen[stem] += 1
        yield {"id": f"{stem}/{seen[stem]}", "release": RECORDS_RELEASE, **one}


def segments() -> Iterator[dict[str, Any]]:
    """Each file of a disk of which the tool said something."""
    for name, release in DISKS.items():
        with tarfile.open(DATA / "segments" / f"{name}.tar.xz") as tar:
            files = {one.name: one for one in tar if one.isfile() and one.name.startswith("data/")}
            for path in sorted(files):
                if f"{path}.txt" in files:
                    yield _segment(tar, path, release, decoded=f"{path}.decoded.txt" in files)


def _segment(tar: tarfile.TarFile, path: str, release: str, *, decoded: bool) -> dict[str, Any]:
    def content(name: str) -> bytes:
        file = tar.extractfile(name)
        assert file is not None
        return file.read()

    _, folder, file = path.split("/")
    place = re.fullmatch(r"(.*)-(\d+)", folder)
    assert place is not None, folder
    one = {
        "id": f"segments/{release}/{folder}/{file}",
        "release": release,
        "topic": place[1],
        "partition": int(place[2]),
        "file": file,
        "kind": file.rpartition(".")[2],
        "hex": content(path).hex(),
        "dump": content(f"{path}.txt").decode().splitlines(),
    }
    if decoded:
        one["decoded"] = content(f"{path}.decoded.txt").decode().splitlines()
    return one
