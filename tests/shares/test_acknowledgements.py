"""Acknowledgements with many batches in a request: right answers, as a slow model has them; linear work."""

from __future__ import annotations

import random
from typing import Any

import pytest

from coordwire.coordinator.share_partition import (
    AcknowledgementBatch,
    AcknowledgementOutcome,
    SharePartition,
    SharePartitionConfig,
    StateWrite,
)
from tests.growth import assert_linear

LIMIT = 5
AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = 0, 1, 2, 4
_STATES = {0: ARCHIVED, 1: ACKNOWLEDGED, 2: AVAILABLE, 3: ARCHIVED}
RENEW = 4


def acquired_partition(count: int, batch_size: int = 500) -> SharePartition:
    """A partition whose records from 0 to before `count` the member "m" has, in batches of a size."""
    config = SharePartitionConfig(max_record_locks=count, delivery_count_limit=LIMIT)
    partition = SharePartition(config, now=0)
    partition.load(0, 1, [])
    fetched = [(first, min(first + batch_size, count) - 1) for first in range(0, count, batch_size)]
    runs = partition.acquire("m", fetched, fetch_offset=0, max_records=count, batch_size=batch_size)
    assert sum(last - first + 1 for first, last, _ in runs) == count
    return partition


def settled(partition: SharePartition, error_code: int = 0) -> AcknowledgementOutcome:
    """The outcome of the last acknowledgement, after its state was written."""
    outcomes = []
    while effects := list(partition.effects()):
        for effect in effects:
            if isinstance(effect, StateWrite):
                partition.written(effect.number, error_code)
            else:
                assert isinstance(effect, AcknowledgementOutcome)
                outcomes.append(effect)
    (outcome,) = outcomes
    return outcome


class Model:
    """Each record by itself: its state, and whether it was acquired; all of a request holds, or nothing."""

    def __init__(self, count: int) -> None:
        self.states = [ACQUIRED] * count

    def acknowledge(self, member_id: str, batches: list[AcknowledgementBatch], *, is_written: bool) -> bool:
        states = list(self.states)
        start = self.start
        for first, last, types in batches:
            if any(kind not in range(RENEW + 1) for kind in types):
                return False
            if last < start:
                continue
            if last >= len(states) or member_id != "m":
                return False
            for offset in range(max(first, start), last + 1):
                kind = types[offset - first] if len(types) > 1 else types[0]
                if states[offset] != ACQUIRED:
                    return False
                if kind != RENEW:
                    states[offset] = _STATES[kind]
        if is_written:
            self.states = states
        return is_written

    @property
    def start(self) -> int:
        """The first record that is not acknowledged or archived."""
        final = (ACKNOWLEDGED, ARCHIVED)
        return next(
            (offset for offset, state in enumerate(self.states) if state not in final), len(self.states)
        )


def random_batches(choice: random.Random, count: int, most: int) -> list[AcknowledgementBatch]:
    """Batches in order or not, right ones for the most part; now and then over the end, or twice the same."""
    batches = []
    offset = choice.randrange(count)
    for _ in range(choice.randint(1, most)):
        length = choice.choice([1, 1, 1, 2, 3, 10, 40])
        first = offset if choice.random() < 0.97 else choice.randrange(count + 2)
        last = first + length - 1
        if choice.random() < 0.97:
            last = min(last, count - 1)
        if last < first:
            break
        kinds = [choice.choice([0, 1, 1, 2, 3, RENEW]) for _ in range(choice.choice([1, last - first + 1]))]
        if choice.random() < 0.003:
            kinds[0] = choice.choice([-1, 5])
        batches.append(AcknowledgementBatch(first, last, kinds))
        offset = last + 1 + choice.choice([0, 0, 0, 1, 7])
        if offset >= count:
            break
    if choice.random() < 0.05:
        choice.shuffle(batches)
    return batches


def compare(seed: int, count: int, most: int, requests: int = 12) -> tuple[int, int]:
    """Compare a partition with the model; returns how many requests held, and how many were refused."""
    choice = random.Random(seed)
    partition, model = acquired_partition(count, choice.choice([1, 7, 64, count])), Model(count)
    results = [0, 0]
    for _ in range(requests):
        if model.start == count:
            break
        batches = random_batches(choice, count, most)
        if not batches:
            continue
        member_id, error = choice.choices(["m", "n"], [30, 1])[0], choice.choices([0, 15], [15, 1])[0]
        partition.acknowledge(member_id, batches)
        outcome = settled(partition, error)
        success = model.acknowledge(member_id, batches, is_written=not error)
        if error and not outcome.error_code:
            # Nothing was to be written: all was renewed, or before the start.
            assert all(set(batch.types) == {RENEW} or batch.last_offset < model.start for batch in batches)
            success = True
        assert (outcome.error_code == 0) == success, (seed, outcome)
        results[not success] += 1
        assert partition.start_offset == model.start, seed
        in_flight: dict[int, int] = {}
        for first, last, state, *_ in partition.records_in_flight:
            in_flight.update(dict.fromkeys(range(first, last + 1), int(state)))
        for offset in range(model.start, count):
            assert in_flight[offset] == model.states[offset], (seed, offset)
        complete = sum(state in (ACKNOWLEDGED, ARCHIVED) for state in model.states[model.start :])
        assert partition.delivery_complete_count == complete, seed
    return results[0], results[1]


def test_random_requests_are_answered_as_the_model_has_it() -> None:
    success, refused = 0, 0
    for seed in range(60):
        some_success, some_refused = compare(seed, 300, 25)
        success, refused = success + some_success, refused + some_refused
    assert success > 100
    assert refused > 50


@pytest.mark.parametrize("types", [[1], [2], [RENEW]])
def test_one_request_with_a_hundred_thousand_batches(types: list[int]) -> None:
    count = 100_000
    partition = acquired_partition(count, batch_size=count)
    batches = [AcknowledgementBatch(offset, offset, types) for offset in range(count)]
    partition.acknowledge("m", batches[:-1])
    assert settled(partition).error_code == 0
    states = partition.records_in_flight
    assert partition.start_offset == (count - 1 if types == [1] else 0)
    assert states[-1][:2] == (count - 1, count - 1)
    partition.acknowledge("m", [batches[-1], batches[0]])  # the first one is done, unless it was renewed
    code = settled(partition).error_code
    assert (code == 0) == (types != [2])


@pytest.mark.parametrize("kind", ["each record", "two batches", "all but some", "refused at the end"])
@pytest.mark.parametrize("types", [[1], [2], [RENEW]])
def test_work_is_linear_in_the_batches_of_a_request(kind: str, types: list[int]) -> None:
    def acquired(n: int) -> tuple[SharePartition, list[AcknowledgementBatch]]:
        partition = acquired_partition(n, batch_size=n if kind == "each record" else 2)
        step = 3 if kind == "all but some" else 1
        batches = [AcknowledgementBatch(offset, offset, types) for offset in range(0, n, step)]
        if kind == "refused at the end":
            batches.append(AcknowledgementBatch(n, n, types))
        return partition, batches

    def acknowledged(case: Any) -> None:
        partition, batches = case
        partition.acknowledge("m", batches)
        settled(partition)

    assert_linear(acquired, acknowledged, 400)
