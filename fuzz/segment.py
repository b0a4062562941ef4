"""Any bytes as a segment, with any bytes for indexes beside it: verifying, finding and cutting end, and
recovering keeps every batch that reading finds, accounts for every byte, and leaves the original alone."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from coordwire import limits
from coordwire.records import Record, encode_batch
from coordwire.segments import Segment, SegmentCounts, recover
from fuzz._run import main
from fuzz.records import INPUTS, SEEDS

RUN = [encode_batch([Record(3 * n + i, 1000 + n, b"k", b"v" * n) for i in range(3)]) for n in range(8)]
LOGS = st.one_of(
    INPUTS,
    st.lists(st.one_of(st.sampled_from(RUN + SEEDS), st.binary(max_size=40), INPUTS), max_size=6).map(
        b"".join
    ),
)
INDEXES = st.dictionaries(
    st.sampled_from(["index", "timeindex", "txnindex", "snapshot"]), st.binary(max_size=100), max_size=4
)


def look(path: Path, offset: int, timestamp: int, size: int) -> list[int]:
    """Read it in every way; where its batches stand."""
    with Segment(path) as segment:
        segment_counts = SegmentCounts()
        for fault in segment.verify(counts=segment_counts, check_records=False):
            assert fault.reason
            assert fault.position + fault.length <= path.with_name(fault.file).stat().st_size
        reader = segment.batches(on_error="skip", check_records=False)
        positions = [batch.position for batch in reader]
        assert segment_counts.batches == len(positions)
        assert segment_counts.bad_bytes == sum(unreadable.length for unreadable in reader.skipped) + len(
            reader.remainder
        )
        batch = segment.find(offset=offset)
        assert batch is None or batch.last_offset >= offset
        with limits(decompressed=1 << 20):
            for fault in segment.verify():
                assert fault.reason
        ranges = list(segment.cuts(size))
        assert sum(end - start for start, end in ranges) == segment.size
        assert all(start < end for start, end in ranges)
    return positions


def save(path: Path, out: Path) -> None:
    data = path.read_bytes()
    (one,) = recover([path], out)
    assert path.read_bytes() == data
    clean = one.log.read_bytes()
    assert len(clean) + one.bad_bytes == len(data)
    pieces, at, result = [], 0, 0
    if one.ranges:
        bad = Path(f"{one.log}.quarantine").read_bytes()
        for line in map(json.loads, Path(f"{one.log}.quarantine.jsonl").read_text().splitlines()):
            kept, start = line["position"] - at, line["quarantinePosition"]
            pieces += [clean[result : result + kept], bad[start : start + line["length"]]]
            result, at = result + kept, line["position"] + line["length"]
    assert b"".join([*pieces, clean[result:]]) == data
    with Segment(one.log) as copy:
        last = -1
        for batch in copy.batches():
            batch.check()
            assert batch.last_offset > last
            last = batch.last_offset


@given(LOGS, INDEXES, st.integers(-1, 1 << 41), st.integers(-1, 2000), st.integers(1, 500))
def fuzz(data: bytes, indexes: dict[str, bytes], offset: int, timestamp: int, size: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "orders-0" / "00000000000000000000.log"
        path.parent.mkdir()
        path.write_bytes(data)
        for kind, content in indexes.items():
            path.with_suffix(f".{kind}").write_bytes(content)
        look(path, offset, timestamp, size)
        save(path, Path(folder) / "out")


if __name__ == "__main__":
    main(fuzz)
