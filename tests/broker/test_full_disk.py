"""A file system that is full, or has no room for another file: what was confirmed is there afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordwire.broker.log.validation import RefusedRecords
from coordwire.enums import ErrorCode
from tests.broker.core import batch
from tests.broker.test_disk import append, killed, opened, verified


@pytest.fixture(params=["size=300k", "nr_inodes=60"])
def small(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A folder in a small file system of its own."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a file system")
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", request.param, "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a file system cannot be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_what_was_confirmed_outlives_a_full_disk(small: Path) -> None:
    filler = small / "filler"
    filler.mkdir()
    for number in range(5):
        (filler / str(number)).write_bytes(bytes(20_000))
    cluster = opened(small / "data")
    log = cluster.create_topic("orders", 1, settings={"segment.bytes": "3000"}).partitions[0].log
    confirmed: list[int] = []
    codes: set[int] = set()
    number = refused = 0
    while refused < 20:
        try:
            data = batch(b"%d" % number * 20, producer_id=7, producer_epoch=0, base_sequence=len(confirmed))
            append(log, data)
        except RefusedRecords as refusal:
            codes.add(refusal.code)
            refused += 1
        else:
            confirmed.append(number)
        number += 1
    values = [b"%d" % one * 20 for one in confirmed]
    assert len(values) > 10
    assert codes == {ErrorCode.KAFKA_STORAGE_ERROR}
    assert [bytes(record.value or b"") for one in log.batches() for record in one] == values
    killed(cluster)
    shutil.rmtree(filler)
    reopened = opened(small / "data")
    log = reopened.topics["orders"].partitions[0].log
    assert [bytes(record.value or b"") for one in log.batches() for record in one] == values
    append(log, batch(b"last", producer_id=7, producer_epoch=0, base_sequence=len(confirmed)))
    reopened.close()
    verified(small / "data")
