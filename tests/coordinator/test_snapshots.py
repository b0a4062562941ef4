"""A snapshot dictionary against the plainest model: whole copies of every epoch."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from coordwire.coordinator.snapshots import Snapshots, TimelineHashMap
from tests.coordinator.table_histories import (
    kafka_lines,
    our_lines,
    read_tables,
    table_checksum,
    table_history,
)
from tests.interop.conftest import give_up
from tests.interop.maven import Unavailable

KEYS = st.sampled_from("abc")


class AgainstCopies(RuleBasedStateMachine):
    """Epochs as copies: the first is what is durable, the last what is now."""

    def __init__(self) -> None:
        super().__init__()
        self.snapshots = Snapshots()
        self.table: TimelineHashMap[str, int] = TimelineHashMap(self.snapshots)
        self.now: dict[str, int] = {}
        self.epochs: list[tuple[int, dict[str, int]]] = [(0, {})]

    @rule(key=KEYS, value=st.integers(0, 9))
    def put(self, key: str, value: int) -> None:
        self.table[key] = self.now[key] = value

    @rule(key=KEYS)
    def remove(self, key: str) -> None:
        assert self.table.pop(key) == self.now.pop(key, None)

    @rule(by=st.integers(1, 3))
    def write(self, by: int) -> None:
        epoch = self.epochs[-1][0] + by
        self.snapshots.begin(epoch)
        self.epochs.append((epoch, dict(self.now)))

    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.epochs) - 1))
        del self.epochs[:index]
        self.snapshots.commit(self.epochs[0][0])

    @rule(data=st.data())
    def revert(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.epochs) - 1))
        del self.epochs[index + 1 :]
        epoch, copy = self.epochs[-1]
        self.snapshots.revert(epoch)
        self.now = dict(copy)

    @invariant()
    def reads_are_right(self) -> None:
        assert dict(self.table.items()) == self.now
        assert {key: self.table.committed(key) for key in "abc" if self.table.committed(key) is not None} == (
            self.epochs[0][1]
        )
        assert dict(self.table.committed_items()) == self.epochs[0][1]
        assert len(self.table) == len(self.now)


AgainstCopies.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestSnapshots = AgainstCopies.TestCase


# --- the order of Kafka's and Java's tables ---


def test_kept_tables_have_the_order_of_kafkas_and_javas() -> None:
    kinds: Counter[str] = Counter()
    for expected, history in read_tables():
        assert table_checksum(our_lines(history)) == expected, history
        kinds[history[0]] += 1
    assert kinds == {"table": 200, "map": 400, "set": 200}


@pytest.mark.maven
def test_tables_have_the_order_of_kafkas_and_javas() -> None:
    histories = [table_history(seed) for seed in range(4_000_000, 4_000_800)]
    try:
        outputs = kafka_lines(histories)
    except Unavailable as error:
        give_up(error)
    for history, lines in zip(histories, outputs, strict=True):
        assert our_lines(history) == lines, history
