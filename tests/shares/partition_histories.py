"""Histories of one share partition: steps as lines, ours run on them, and random ones that grow on ours.

    replayer = Replayer(); replayer.run("new 2000 5 30000 true"); replayer.run("acquire m1 BATCH_OPTIMIZED
    ...")

The steps are those of oracle/PartitionOracle.java; what comes out of each is its outcome and the partition's
whole state, so that a difference shows in the step that makes it.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable

from coordwire.coordinator.share_partition import (
    AcknowledgementBatch,
    AcknowledgementOutcome,
    AcquisitionFailed,
    OffsetRange,
    SharePartition,
    SharePartitionConfig,
    StateBatch,
    StateWrite,
    translated_error,
)
from coordwire.coordinator.share_partition.effects import aborted_ranges
from coordwire.enums import ErrorCode
from coordwire.errors import Malformed

START = 1_000


class Replayer:
    """One partition of ours."""

    def __init__(self) -> None:
        self.partition = SharePartition(now=START)
        self.state = "EMPTY"
        self.held = False
        self.waiting: list[int] = []
        self.lines: list[str] = []

    def run(self, step: str) -> list[str]:
        """Run a step; the lines that it led to."""
        words = step.split(" ")
        self.lines = []
        if words[0] == "new":
            locks, deliveries, lock_ms = map(int, words[1:4])
            config = SharePartitionConfig(
                max_record_locks=locks, delivery_count_limit=deliveries, lock_duration_ms=lock_ms,
                renews=words[4] == "true",
            )  # fmt: skip
            self.__init__()  # type: ignore[misc]
            self.partition = SharePartition(config, now=START)
            return []
        getattr(self, "_" + words[0].replace("-", "_"))(words)
        self._pump()
        self._show()
        return self.lines

    # --- steps ---

    def _load(self, words: list[str]) -> None:
        batches = []
        for word in words[3:]:
            first, last, state, count = map(int, word.split(":"))
            batches.append(StateBatch(first, last, count, state))
        try:
            self.partition.load(int(words[1]), int(words[2]), batches)
        except Malformed:
            self.state = "FAILED"
            self.lines.append("loaded UNKNOWN_SERVER_ERROR")
        else:
            self.state = "ACTIVE"
            self.lines.append("loaded NONE")

    def _load_error(self, words: list[str]) -> None:
        self.state = "FAILED"
        self.lines.append("loaded " + ErrorCode(translated_error(ErrorCode[words[1]])).name)

    def _acquire(self, words: list[str]) -> None:
        batches, aborted = words[6:], list[str]()
        if "aborted" in batches:
            place = batches.index("aborted")
            batches, aborted = batches[:place], batches[place + 1 :]
        ranges: list[OffsetRange] = []
        kinds = []
        for word in batches:
            base, count, producer, kind = word.split(":")
            ranges.append((int(base), int(base) + int(count) - 1))
            kinds.append((int(producer), kind))
        archived: list[OffsetRange] = []
        if aborted:
            firsts = [
                (int(first), int(producer)) for producer, first in (word.split(":") for word in aborted)
            ]
            facts = [
                (*place, producer, kind in "tac", kind == "a")
                for place, (producer, kind) in zip(ranges, kinds, strict=True)
            ]
            archived = aborted_ranges(facts, firsts)
        try:
            acquired = self.partition.acquire(
                words[1], ranges, fetch_offset=int(words[5]), max_records=int(words[4]),
                batch_size=int(words[3]), record_limit=words[2] == "RECORD_LIMIT", aborted=archived,
            )  # fmt: skip
        except AcquisitionFailed:
            self.lines.append("thrown")
        else:
            self.lines.append(" ".join(["acquired", *(f"{run[0]}:{run[1]}:{run[2]}" for run in acquired)]))

    def _ack(self, words: list[str]) -> None:
        batches = []
        for word in words[3:]:
            first, last, types = word.split(":")
            batches.append(AcknowledgementBatch(int(first), int(last), list(map(int, types.split(",")))))
        self.partition.acknowledge(words[2], batches)

    def _release(self, words: list[str]) -> None:
        self.partition.release(words[2])

    def _start(self, words: list[str]) -> None:
        self.partition.move_start(int(words[1]))

    def _advance(self, words: list[str]) -> None:
        while not self.partition.advance(int(words[1])):
            self._pump()

    def _hold(self, words: list[str]) -> None:
        self.held = True

    def _flow(self, words: list[str]) -> None:
        self.held = False

    def _written(self, words: list[str]) -> None:
        error = ErrorCode[words[2]]
        self.partition.written(self.waiting.pop(int(words[1])), int(error))

    # --- what comes out ---

    def _pump(self) -> None:
        for effect in self.partition.effects():
            if isinstance(effect, StateWrite):
                batches = (":".join(map(str, batch)) for batch in effect.batches)
                facts = (effect.state_epoch, effect.start_offset, effect.delivery_complete_count)
                self.lines.append(" ".join(["write", *map(str, facts), *batches]))
                if self.held:
                    self.waiting.append(effect.number)
                else:
                    self.partition.written(effect.number)
            else:
                assert isinstance(effect, AcknowledgementOutcome)
                name = ErrorCode(effect.error_code).name
                message = f" {effect.message}" if effect.message else ""
                self.lines.append(f"outcome {effect.ticket} {name}{message}")

    def _show(self) -> None:
        partition = self.partition
        facts = (
            partition.start_offset, partition.end_offset, partition.delivery_complete_count,
            partition.state_epoch,
        )  # fmt: skip
        searches = str(partition._searches).lower()
        self.lines.append(" ".join(["state", self.state, *map(str, facts), searches]))
        for batch in partition._batches:
            runs = [(batch.first, batch.last, batch.batch_state)]
            if batch.batch_state is None:
                runs = [(offset, offset, own) for offset, own in enumerate(batch.offsets, batch.first)]
            for first, last, state in runs:
                assert state is not None
                lock = "-" if state.lock is None else str(state.lock.deadline)
                self.lines.append(
                    f"records {first}:{last} {state.state.name} {state.delivery_count} "
                    f"{state.member_id or '-'} {lock}"
                )
        following = partition.next_fetch_offset()
        self.lines.append(f"next {following} {str(partition.can_acquire()).lower()}")


def normalized(lines: Iterable[str]) -> list[str]:
    """Kafka's lines, without the wording of errors that this package has none of."""
    result = []
    for line in lines:
        words = line.split(" ")
        if words[0] == "thrown":
            line = "thrown"
        elif words[0] == "outcome" and words[2] not in ("NONE", "INVALID_RECORD_STATE", "INVALID_REQUEST"):
            line = " ".join(words[:3])
        result.append(line)
    return result


# --- random histories ---

_ERRORS = (
    "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "GROUP_ID_NOT_FOUND",
    "UNKNOWN_TOPIC_OR_PARTITION", "FENCED_LEADER_EPOCH", "FENCED_STATE_EPOCH", "UNSUPPORTED_VERSION",
    "SASL_AUTHENTICATION_FAILED", "INVALID_REQUEST", "NETWORK_EXCEPTION",
)  # fmt: skip
_MEMBERS = ("m1", "m2", "m3")


class Generator:
    """A random history that grows on ours. counts: what it reached."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.replayer = Replayer()
        self.steps: list[str] = []
        self.outcomes: list[list[str]] = []
        self.counts: Counter[str] = Counter()
        self.now = START
        self.ticket = 0
        self.log: list[tuple[int, int, int, str]] = []
        self.open: dict[int, int] = {}
        self.aborted: list[tuple[int, int]] = []
        self.end = self.log_start = 0
        self.reads_committed = self.chance.random() < 0.3
        self.fetched: tuple[int, list[tuple[int, int, int, str]]] | None = None

    def step(self, text: str) -> None:
        self.steps.append(text)
        lines = self.replayer.run(text)
        self.outcomes.append(lines)
        for line in lines:
            words = line.split(" ")
            if words[0] in ("outcome", "records"):
                self.counts[" ".join([words[0], words[2]])] += 1
            else:
                self.counts[words[0]] += 1

    def grow(self, count: int) -> None:
        chance = self.chance
        renews = chance.random() < 0.9
        locks = chance.choice([20, 50, 200]) if renews else chance.choice([100, 200])
        deliveries = chance.choice([2, 3, 5, 10])
        lock_ms = chance.choice([1_000, 15_000]) if renews else 15_000
        self.step(f"new {locks} {deliveries} {lock_ms} {str(renews).lower()}")
        self.lock_ms = lock_ms
        self._load()
        while len(self.steps) < count and self.replayer.state == "ACTIVE":
            chance.choices(
                [
                    self._produce, self._fetch, self._acquire, self._acknowledge, self._release, self._start,
                    self._advance, self._hold, self._written,
                ],
                [3, 3, 8, 9, 1, 0.4, 3, 0.7, 3],
            )[0]()  # fmt: skip

    def _load(self) -> None:
        chance = self.chance
        if chance.random() < 0.02:
            self.step("load-error " + chance.choice(_ERRORS))
            return
        start = chance.choice([0, 0, 5, 100])
        self.end = self.log_start = start
        batches = []
        if chance.random() < 0.4:
            offset = start + chance.choice([0, 0, 0, 3])
            for _ in range(chance.randint(1, 5)):
                last = offset + chance.randint(0, 6)
                batches.append(
                    f"{offset}:{last}:{chance.choice([0, 0, 2, 4, 4, 3 if chance.random() < 0.1 else 2])}"
                    f":{chance.randint(1, 4)}"
                )
                offset = last + 1 + chance.choice([0, 0, 0, 2])
            if chance.random() < 0.05:
                first = chance.choice([start - 1, offset])
                batches.append(f"{first}:{first - chance.choice([0, 1])}:0:1")
            while self.end < offset + 5:
                self._append(chance.randint(1, 5))
        self.step(" ".join(["load", str(start), str(chance.randint(0, 9)), *batches]))

    # --- the log ---

    def _append(self, count: int) -> None:
        chance = self.chance
        kind, producer = "r", -1
        if self.reads_committed and chance.random() < 0.7:
            producer = chance.choice([7, 8])
            if producer in self.open and chance.random() < 0.4:
                kind, count = chance.choice("ac"), 1
                first = self.open.pop(producer)
                if kind == "a":
                    self.aborted.append((producer, first))
            else:
                kind = "t"
                self.open.setdefault(producer, self.end)
        if chance.random() < 0.05:
            self.end += chance.randint(1, 4)  # compacted away
        self.log.append((self.end, count, producer, kind))
        self.end += count

    def _produce(self) -> None:
        for _ in range(self.chance.randint(1, 4)):
            self._append(self.chance.choice([1, 2, 5, 5, 10]))

    def _fetch(self) -> None:
        """Read batches now, to acquire them now or after other steps."""
        offset = self.replayer.partition.next_fetch_offset()
        self.counts["fetch"] += 1
        if offset < self.log_start or offset > self.end:
            self.fetched = None
            return
        limit = min(self.open.values(), default=self.end) if self.reads_committed else self.end
        batches = [batch for batch in self.log if batch[0] + batch[1] > offset and batch[0] < limit]
        self.fetched = offset, batches[: self.chance.choice([1, 2, 3, 10])]

    def _acquire(self) -> None:
        chance = self.chance
        if self.fetched is None or chance.random() < 0.9:
            self._fetch()
        if self.fetched is None or not self.fetched[1]:
            return
        offset, batches = self.fetched
        self.fetched = None
        words = [":".join(map(str, batch)) for batch in batches]
        upper = batches[-1][0] + batches[-1][1]
        aborted = [entry for entry in self.aborted if entry[1] < upper] if self.reads_committed else []
        if aborted:
            words.append("aborted")
            words += [f"{producer}:{first}" for producer, first in aborted]
        mode = chance.choice(["BATCH_OPTIMIZED", "BATCH_OPTIMIZED", "RECORD_LIMIT"])
        size, most = chance.choice([1, 3, 10, 500]), chance.choice([1, 2, 5, 20, 500, 500])
        member = chance.choice(_MEMBERS)
        self.step(f"acquire {member} {mode} {size} {most} {offset} {' '.join(words)}")

    # --- members ---

    def _acknowledge(self) -> None:
        chance = self.chance
        runs = self.replayer.partition.records_in_flight
        member = chance.choice(_MEMBERS)
        own = [run for run in runs if run[4] == member]
        batches = []
        if own and chance.random() < 0.93:
            start = chance.randrange(len(own))
            chosen = own[start : start + chance.choice([1, 1, 2, 5])]
            merged: list[list[int]] = []
            for first, last, *_ in chosen:
                if merged and merged[-1][1] + 1 == first and chance.random() < 0.9:
                    merged[-1][1] = last
                else:
                    merged.append([first, last])
            for first, last in merged:
                if last > first and chance.random() < 0.3:
                    first = chance.randint(first, last)
                if last > first and chance.random() < 0.3:
                    last = chance.randint(first, last)
                if chance.random() < 0.04:
                    last += chance.randint(1, 6)
                if chance.random() < 0.04:
                    first = max(0, first - chance.randint(1, 6))
                batches.append((first, last))
        elif runs:
            run = chance.choice(runs)
            batches.append((run[0], run[1]))
        else:
            batches.append((chance.randint(0, 20), chance.randint(20, 30)))
        words = []
        for first, last in batches:
            kinds = [0, 1, 1, 1, 2, 2, 3, 4] + ([5, -1] if chance.random() < 0.03 else [])
            count = last - first + 1
            per_offset = count > 1 and chance.random() < 0.4
            types = [chance.choice(kinds) for _ in range(count if per_offset else 1)]
            words.append(f"{first}:{last}:{','.join(map(str, types))}")
        self.ticket += 1
        self.step(f"ack {self.ticket} {member} {' '.join(words)}")

    def _release(self) -> None:
        self.ticket += 1
        self.step(f"release {self.ticket} {self.chance.choice(_MEMBERS)}")

    def _start(self) -> None:
        if self.end > self.log_start:
            self.log_start = self.chance.randint(self.log_start, self.end)
            self.step(f"start {self.log_start}")

    def _advance(self) -> None:
        self.now += self.chance.choice([1, 100, self.lock_ms // 2, self.lock_ms // 2, self.lock_ms])
        self.step(f"advance {self.now}")

    def _hold(self) -> None:
        self.step("flow" if self.replayer.held else "hold")

    def _written(self) -> None:
        waiting = self.replayer.waiting
        if waiting:
            error = self.chance.choice(_ERRORS) if self.chance.random() < 0.3 else "NONE"
            self.step(f"written {self.chance.randrange(len(waiting))} {error}")


def history(seed: int, steps: int = 120) -> Generator:
    grown = Generator(seed)
    grown.grow(steps)
    return grown
