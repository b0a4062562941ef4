"""The transaction coordinator in a Hypothesis state machine: statuses and epochs, whatever comes."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from coordwire.coordinator.transactions.transactional_id import BEFORE
from coordwire.enums import ErrorCode as E
from tests.coordinator.test_transaction_shard import TIMEOUT, A, B, Bench, producer


class Histories(RuleBasedStateMachine):
    """Any order of requests, failures, time and restarts keeps the rules of `BEFORE` in the log."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench(abort_interval_ms=1_000)
        self.producer = producer(-1, -1)
        self.marked: list[tuple[int, int]] = []

    @rule()
    def init(self) -> None:
        outcome = self.bench.init()
        if not outcome.error_code:
            self.producer = outcome

    @rule(place=st.sampled_from([A, B]), version=st.sampled_from([0, 2]))
    def add(self, place: tuple[str, int], version: int) -> None:
        self.bench.add(self.producer, place, version=version)

    @rule(committed=st.booleans(), version=st.sampled_from([0, 2]))
    def end(self, committed: bool, version: int) -> None:
        outcome = self.bench.end(self.producer, committed, version)
        if not outcome.error_code and outcome.producer_id >= 0:
            assert (outcome.producer_id, outcome.producer_epoch) > (
                self.producer.producer_id,
                self.producer.producer_epoch,
            )
            self.producer = outcome

    @precondition(lambda self: self.bench.markers)
    @rule(error=st.sampled_from([0, 0, E.NOT_LEADER_OR_FOLLOWER]))
    def mark(self, error: int) -> None:
        markers = self.bench.mark(error)
        self.marked.append((markers.producer_id, markers.producer_epoch))

    @rule(milliseconds=st.sampled_from([100, 1_000, TIMEOUT]))
    def pass_time(self, milliseconds: int) -> None:
        self.bench.advance(milliseconds)

    @rule(error=st.sampled_from([0, E.NOT_ENOUGH_REPLICAS]))
    def break_log(self, error: int) -> None:
        self.bench.error = error

    @rule()
    def restart(self) -> None:
        before = {name: entry.facts for name, entry in self.bench.shard.ids.items()}
        first = self.bench.first_id
        self.bench = Bench(log=self.bench.log, abort_interval_ms=1_000)
        self.bench.first_id = first
        after = self.bench.shard.ids
        for name, facts in before.items():
            if name in after:  # an id without a record is gone
                expected = after[name].facts  # of partitions it also has those whose marker is not recorded
                assert replace(expected, last_epoch=facts.last_epoch, places=facts.places) == facts

    @invariant()
    def statuses_follow_each_other(self) -> None:
        statuses = self.bench.statuses
        for before, after in pairwise(statuses):
            assert before in BEFORE[after]

    @invariant()
    def epochs_never_go_back(self) -> None:
        values: list[Any] = [record.value for record in self.bench.log]
        epochs = [(value.producer_id, value.producer_epoch) for value in values]
        assert epochs == sorted(epochs)
        assert self.marked == sorted(self.marked)


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=12, stateful_step_count=20, deadline=None)
