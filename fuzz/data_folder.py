"""Whatever became of a broker's data folder while no broker had it (files cut, extended, flipped, swapped,
removed, replaced by folders, links and pipes, others added): a broker starts or refuses with a sentence that
names the place. It waits for nothing, removes and changes no file of others, and keeps each confirmed batch
that is whole: in the file if it refuses, for readers if it starts; without an end in order some may be in a
file that is set aside."""

from __future__ import annotations

import os
import re
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from stat import S_ISREG
from types import FrameType

from hypothesis import given
from hypothesis import strategies as st

from coordwire.broker.cluster.cluster_state import ClusterState
from coordwire.broker.cluster.disk_logs import DiskLogs, open_cluster
from coordwire.broker.log.data_folder import DataFolderError
from coordwire.broker.log.partition_log import PartitionLog
from coordwire.broker.log.validation import AppendRules, one_batch
from coordwire.broker.settings.broker_config import BrokerConfig
from coordwire.records import Record, encode_batch
from fuzz._run import main

NOW = 1_700_000_000_000
PATIENCE = 3
"""Seconds after which a start hangs, as with a pipe that nobody writes to."""

REMOVED = frozenset({".kafka_cleanshutdown"})
"""What a start removes."""

FOREIGN = (
    "notes.txt", "orders-0/notes.txt", "orders-0/00000000000000000007.log.bak", "orders-0/.hidden",
    "orders-1/00000000000000000003.log.deleted", "orders-x/thesis.txt", "thesis-0.d/thesis.txt",
)  # fmt: skip
"""Files that no broker has written; of those the data folder has some."""


# --- a folder as a broker leaves it ---


def opened(path: Path) -> ClusterState:
    return open_cluster(path, clock=lambda: NOW, config=BrokerConfig(offsets_partitions=1), nodes=(1,))


def batch(text: bytes, sequence: int = -1, producer: int = -1) -> bytes:
    epoch = -1 if producer < 0 else 0
    return encode_batch(
        [Record(timestamp=NOW, value=text)],
        base_offset=0,
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
    )


def append(log: PartitionLog, data: bytes) -> None:
    log.append(one_batch(data, 13), AppendRules(), NOW)


@dataclass(frozen=True, slots=True)
class Sample:
    """A data folder: its files by path; the confirmed batches of its topic, as they are stored."""

    files: dict[str, bytes]
    batches: tuple[bytes, ...]


@cache
def sample(in_order: bool) -> Sample:
    """in_order: whether the broker was stopped, not killed."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "data"
        cluster = opened(path)
        topic = cluster.create_topic(
            "orders", 2, settings={"segment.bytes": "400", "index.interval.bytes": "99"}
        )
        cluster.offsets_topic()
        for partition in topic.partitions:
            for number in range(9):
                text = b"%d of %d" % (number, partition.index) * 3
                append(partition.log, batch(text, number // 2, 7) if number % 2 else batch(text))
        stored = tuple(bytes(batch.raw) for part in topic.partitions for batch in part.log.batches())
        end(cluster, in_order)
        files = {
            str(file.relative_to(path)): file.read_bytes()
            for file in sorted(path.rglob("*"))
            if file.is_file()
        }
    return Sample(files, stored)


def end(cluster: ClusterState, in_order: bool) -> None:
    if in_order:
        cluster.close()
    else:
        assert isinstance(cluster.logs, DiskLogs)
        cluster.logs.abandon()


# --- what became of it ---


@dataclass(frozen=True, slots=True)
class Damage:
    """What happens to a file. at, amount: where and how much, as parts of 1; other: a second file."""

    kind: str
    name: str
    other: str
    at: float
    amount: int
    noise: bytes


NAMES = sorted({*sample(False).files, *sample(True).files})
LOGS = [name for name in NAMES if name.endswith(".log") and name.startswith("orders")]
KINDS = (
    "cut", "cut", "zeros", "garbage", "flip", "flip", "flip", "swap", "delete", "folder", "link inside",
    "link outside", "dangling link", "pipe", "hole", "delete folder", "file for folder", "link for folder",
    "far partition", "empty log",
)  # fmt: skip
DAMAGES = st.builds(
    Damage,
    st.sampled_from(KINDS),
    st.sampled_from(NAMES) | st.sampled_from(LOGS),
    st.sampled_from(NAMES) | st.sampled_from(LOGS),
    st.floats(0, 1, exclude_max=True),
    st.integers(1, 5_000),
    st.binary(min_size=1, max_size=100),
)


def apply(damage: Damage, data: Path, outside: Path) -> None:
    """Do it, as far as the file is still there."""
    path, other = data / damage.name, data / damage.other
    folder = path.parent
    if damage.kind == "far partition":
        (data / f"orders-{damage.amount * 400_000}").mkdir(exist_ok=True)
        return
    if folder.is_symlink() or not folder.is_dir():
        return
    if damage.kind == "empty log":
        (folder / f"{damage.amount:020}.log").touch()
    elif damage.kind.endswith("folder") and folder != data and damage.kind != "folder":
        shutil.rmtree(folder)
        if damage.kind == "file for folder":
            folder.write_bytes(damage.noise)
        elif damage.kind == "link for folder":
            folder.symlink_to(outside)
    elif path.is_file() and not path.is_symlink():
        change(damage, path, other, outside)


def change(damage: Damage, path: Path, other: Path, outside: Path) -> None:
    """Change one file, or swap two."""
    content = path.read_bytes()
    at = int(damage.at * len(content))
    if damage.kind == "cut":
        path.write_bytes(content[:at])
    elif damage.kind == "zeros":
        path.write_bytes(content + bytes(damage.amount))
    elif damage.kind == "garbage":
        path.write_bytes(content + damage.noise)
    elif damage.kind == "hole":
        path.write_bytes(content[:at] + damage.noise + content[at + damage.amount % 200 :])
    elif damage.kind == "flip" and content:
        flipped = bytes([content[at] ^ 1 << damage.amount % 8])
        path.write_bytes(content[:at] + flipped + content[at + 1 :])
    elif damage.kind == "swap":
        if other.is_file() and not other.is_symlink():
            path.write_bytes(other.read_bytes())
            other.write_bytes(content)
    else:
        path.unlink()
        if damage.kind == "folder":
            path.mkdir()
        elif damage.kind == "link inside" and other != path:
            path.symlink_to(other)
        elif damage.kind == "link outside":
            path.symlink_to(outside / "thesis.txt")
        elif damage.kind == "dangling link":
            path.symlink_to(outside / "nothing")
        elif damage.kind == "pipe":
            os.mkfifo(path)


# --- what has to be true ---


@contextmanager
def patience() -> Iterator[None]:
    """Fail what waits for ever."""

    def hangs(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"the broker hangs for {PATIENCE} s")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def contents(folder: Path) -> dict[str, bytes | None]:
    """What is in a folder: of files their bytes, None for anything else."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if S_ISREG(path.lstat().st_mode) else None
        for path in sorted(folder.rglob("*"))
    }


def whole_batches(files: dict[str, bytes | None], stored: tuple[bytes, ...]) -> dict[str, set[bytes]]:
    """The confirmed batches that are in the logs of each of the topic's folders, or set aside there."""
    logs: dict[str, list[bytes]] = {}
    for name, content in files.items():
        folder, _, file = name.rpartition("/")
        is_log = re.fullmatch(r"[0-9]{20}\.log(\.[0-9]+\.deleted)?", file)
        if content and folder in ("orders-0", "orders-1") and is_log:
            logs.setdefault(folder, []).append(content)
    return {
        folder: {one for one in stored if any(one in log for log in parts)} for folder, parts in logs.items()
    }


def check_files(before: dict[str, bytes | None], after: dict[str, bytes | None], planted: set[str]) -> None:
    """Nothing is missing, and what nobody here wrote is as it was."""
    aside = set() if is_clean(before) else {re.sub(r"\.[0-9]+\.deleted$", "", name) for name in after}
    missing = before.keys() - after.keys() - REMOVED - aside
    assert not missing, missing
    for name in planted:
        assert after[name] == before[name], name


def is_clean(files: dict[str, bytes | None]) -> bool:
    """Whether the last broker ended in order, as far as one can see."""
    return files.get(".kafka_cleanshutdown") is not None


def start(data: Path) -> ClusterState | None:
    """The broker's cluster; None if it refuses, in a sentence about the place."""
    with patience():
        try:
            return opened(data)
        except DataFolderError as error:
            assert (
                str(data) in error.reason
                or "__cluster_metadata" in error.reason
                or "is led by" in error.reason
            )
        except OSError as error:
            assert str(data) in str(error), error
    return None


def check(data: Path, outside: Path, planted: set[str], stored: tuple[bytes, ...]) -> None:
    """Start a broker on the folder, twice."""
    before, others = contents(data), contents(outside)
    whole = whole_batches(before, stored)
    for _ in range(2):
        cluster = start(data)
        after = contents(data)
        check_files(before, after, planted)
        assert contents(outside) == others
        kept = whole_batches(after, stored)
        for folder, batches in whole.items():
            assert batches <= kept.get(folder, set()), folder
        if cluster is None:
            assert before.keys() | {".lock"} >= after.keys() - {"meta.properties"} - made(after)
            continue
        try:
            read = {
                f"orders-{part.index}": {bytes(batch.raw) for batch in part.log.batches()}
                for part in cluster.topics["orders"].partitions
            } if "orders" in cluster.topics else {}  # fmt: skip
            aside = {} if is_clean(before) else whole_batches(
                {name: content for name, content in after.items() if name.endswith(".deleted")}, stored
            )  # fmt: skip
            for folder, batches in whole.items():
                assert batches <= read[folder] | aside.get(folder, set()), folder
            for part in cluster.topics["orders"].partitions if "orders" in cluster.topics else ():
                append(part.log, batch(b"after"))
        finally:
            end(cluster, in_order=False)


def made(after: dict[str, bytes | None]) -> set[str]:
    """What a start may add before it finds what it refuses."""
    return {name for name in after if name.startswith(("orders-", "__c"))}


@given(st.booleans(), st.lists(DAMAGES, min_size=1, max_size=3), st.sets(st.sampled_from(FOREIGN)))
def fuzz(in_order: bool, damages: list[Damage], foreign: set[str]) -> None:
    made_by_broker = sample(in_order)
    with tempfile.TemporaryDirectory() as place:
        data, outside = Path(place) / "data", Path(place) / "outside"
        outside.mkdir()
        (outside / "thesis.txt").write_bytes(b"all my work")
        files: dict[str, bytes] = made_by_broker.files | dict.fromkeys(foreign, b"mine")
        for name, content in files.items():
            path = data / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        for damage in damages:
            apply(damage, data, outside)
        planted = {name for name in foreign if (data / name).is_file()}
        check(data, outside, planted, made_by_broker.batches)


if __name__ == "__main__":
    main(fuzz)
