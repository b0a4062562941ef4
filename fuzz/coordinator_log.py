"""Whatever a coordinator's log holds, each record, marker and unreadable range is one item, in order; what
they leave standing and the story that they tell come without an error, and a rebalance that begins ends."""

from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from coordwire.logs import TOPICS, Log, LogRecord, encode_log_record, find_record
from coordwire.messages import EndTxnMarker
from coordwire.messages.record_types import RECORD_TYPES
from coordwire.records import ControlType, Record, control_record, encode_batch
from coordwire.testing import strategies
from coordwire.timeline.events import RebalanceBegan, RebalanceEnded
from coordwire.timeline.from_log.compaction import decide, latest
from coordwire.timeline.from_log.coordinator_log import CoordinatorRecord, Marker, guess_log, read_records
from coordwire.timeline.from_log.events import log_timeline, topic_names
from fuzz._run import main

LOGS: list[Log] = list(TOPICS)
NAMES = ["", "a", "b"]


@st.composite
def known(draw: st.DrawFn) -> Record:
    """A record of some type, about one of a few groups and members."""
    log = draw(st.sampled_from(LOGS))
    number = draw(st.sampled_from(sorted(RECORD_TYPES[log])))
    classes = find_record(log, number)
    version = draw(st.sampled_from(classes.value.versions))
    value = draw(st.none() | strategies.messages(classes.value, version=version))
    key = None if classes.key is None else draw(strategies.messages(classes.key, version=0))
    for name in ("group", "group_id", "member_id", "topic"):
        if hasattr(key, name):
            setattr(key, name, draw(st.sampled_from(NAMES)))
    if classes.key is None and value is None:
        return Record()
    record = LogRecord(log=log, type=number, key=key, value=value, version=None if value is None else version)
    pair = encode_log_record(record)
    return Record(timestamp=draw(st.integers(-1, 1 << 45)), key=pair[0], value=pair[1])


anything = st.builds(Record, key=st.none() | st.binary(max_size=9), value=st.none() | st.binary(max_size=9))
PRODUCERS = st.integers(1, 2)


@st.composite
def a_batch(draw: st.DrawFn) -> tuple[bytes, int]:
    """A batch, and how many items it is."""
    producer = {
        "producer_id": draw(PRODUCERS),
        "producer_epoch": 0,
        "base_sequence": 0,
        "transactional": True,
    }
    if draw(st.integers(0, 3)) == 0:
        kind = draw(st.sampled_from([ControlType.COMMIT, ControlType.ABORT]))
        marker = control_record(kind, EndTxnMarker(coordinator_epoch=1))
        return encode_batch([marker], control=True, **producer), 1  # type: ignore[arg-type]
    rows = draw(st.lists(known() | anything, min_size=1, max_size=4))
    options = draw(st.sampled_from([{}, producer]))
    return encode_batch(rows, **options), len(rows)  # type: ignore[arg-type]


@given(st.lists(a_batch(), max_size=5), st.sampled_from(LOGS), st.binary(max_size=30))
def fuzz(parts: list[tuple[bytes, int]], log: Log, rest: bytes) -> None:
    data = b"".join(part for part, _ in parts)
    items = list(read_records(data, log=log))
    assert [type(item) in (CoordinatorRecord, Marker) for item in items] == [True] * sum(n for _, n in parts)
    assert pickle.loads(pickle.dumps(items)) == items
    assert len(list(decide(items))) == len(items)
    latest_offsets = latest(items)
    assert len(latest_offsets.records) + len(latest_offsets.pending) <= len(items)
    events = list(log_timeline(items, topic_names(items)))
    assert pickle.loads(pickle.dumps(events)) == events
    begun = sum(isinstance(event, RebalanceBegan) for event in events)
    assert begun == sum(isinstance(event, RebalanceEnded) for event in events)
    torn = list(read_records(data + rest, log=guess_log(data)))
    assert len(torn) >= len(items)


if __name__ == "__main__":
    main(fuzz)
