"""The checkers of D1 to D10 find what they are for: each bug is planted into a machine, and a run breaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from coordwire.designs.drafts.draft_1_consumer import FirstDraftConsumer
from coordwire.designs.drafts.draft_2_broker import DetailedDesignBroker
from coordwire.designs.drafts.draft_2_consumer import DetailedDesignConsumer
from coordwire.designs.drafts.draft_3_broker import NewConsumerBroker
from coordwire.designs.drafts.draft_3_consumer import NewConsumer
from coordwire.designs.drafts.overview import OverviewBroker, OverviewConsumer
from coordwire.designs.drafts.pinging_coordinator import PingingCoordinator
from coordwire.designs.drafts.zookeeper_consumer import ZooKeeperConsumer
from tests.designs.drafts.simulated_runs import END_MS, simulated_run


class Bug(NamedTuple):
    """design, seed: a run that shows it; sentence: what begins what the checker says."""

    name: str
    design: str
    seed: int
    sentence: str
    cls: type
    method: str
    change: Callable[[Any], Any]
    end_ms: int = END_MS


def nothing(real: Any) -> Any:
    """A procedure without a step, in the place of one."""

    def replaced(self: Any, *_: Any) -> Any:
        return None
        yield

    return replaced


def unwritten(real: Any) -> Any:
    """A commit that forgets what it should write."""

    def commit(self: Any, group: Any) -> Any:
        group.unsaved = {}
        return None
        yield

    return commit


def ignored(real: Any) -> Any:
    return lambda self, *_: None


def at_once(real: Any) -> Any:
    """Requests are sent, and their answers not awaited."""

    def broadcast(self: Any, group: Any, members: Any, messages: Any) -> Any:
        for name, message in messages.items():
            self.send_to(members[name], message)
        return True
        yield

    return broadcast


def impatient(real: Any) -> Any:
    def count(self: Any, consumer: Any) -> None:
        consumer.failures = consumer.max_retries
        real(self, consumer)

    return count


def pinging_on(real: Any) -> Any:
    """The ping task stays, and the socket too."""

    def remove(self: Any, consumer: Any) -> None:
        connection = consumer.connection
        real(self, consumer)
        if connection is not None:
            consumer.connection = connection
            self._ping(consumer)

    return remove


def at_every_ping(real: Any) -> Any:
    def answered(self: Any, consumer: Any, response: Any) -> None:
        real(self, consumer, response)
        group = self.groups[consumer.group_id]
        group.registered.add(consumer.consumer_id)
        self.try_rebalance(group)

    return answered


def late_or_not(real: Any) -> Any:
    """Whichever Start was answered, the last one counts as answered."""
    return lambda self, consumer, response, request: real(self, consumer, response, consumer.pending)


def another_handler(real: Any) -> Any:
    def find(self: Any, group: Any) -> int:
        group.queued = False
        self._next_handler = (self._next_handler + 1) % len(self._queues)
        return int(self._next_handler)

    return find


def offsets_always(real: Any) -> Any:
    """Offsets whatever auto-commit is."""

    def offsets(self: Any) -> Any:
        config, self.config = self.config, type(self.config)(
            group_id="", consumer_id="", topic_count="", auto_commit=True
        )  # fmt: skip
        try:
            return real(self)
        finally:
            self.config = config

    return offsets


def only_stopped(real: Any) -> Any:
    return lambda self: self.stop_fetchers()


def claimed(real: Any) -> Any:
    """A claim that fails is not noticed."""

    def claim(self: Any, threads: Any) -> Any:
        yield from real(self, threads)
        return True

    return claim


def at_once_answered(self: Any, group: Any) -> Any:
    self._answer_all(group)
    return
    yield


def same_id(real: Any) -> Any:
    def join(self: Any, *words: Any) -> None:
        self._ids = 0
        real(self, *words)

    return join


BUGS = [
    Bug("no wait after the election", "draft-2", 2, "D1:", DetailedDesignBroker, "_await_until",
        lambda real: lambda self, group: self._wait_is_over(group)),
    Bug("any handler", "draft-2", 11, "D2:", DetailedDesignBroker, "find_handler", another_handler),
    Bug("Stop is not awaited", "draft-2", 1, "D3:", PingingCoordinator, "broadcast", at_once),
    Bug("no commit", "draft-2", 1, "D3:", PingingCoordinator, "commit", unwritten),
    Bug("offsets of what it has lost", "draft-2", 11, "D3:", DetailedDesignConsumer, "on_lost", only_stopped),
    Bug("Stop is not obeyed", "draft-1", 1, "D3:", FirstDraftConsumer, "stop_fetchers", ignored),
    Bug("a late answer counts", "draft-1", 25, "D3:", PingingCoordinator, "answered", late_or_not),
    Bug("failed too soon", "draft-2", 4, "D4:", PingingCoordinator, "count_failure", impatient),
    Bug("pinged on", "draft-2", 4, "D4:", PingingCoordinator, "remove", pinging_on),
    Bug("reads on in silence", "draft-2", 4, "D5:", DetailedDesignConsumer, "on_lost", ignored),
    Bug("rebalances for nothing", "draft-2", 1, "D6:", PingingCoordinator, "answered_ping", at_every_ping,
        end_ms=20_000),
    Bug("no backoff", "draft-2", 11, "D8:", DetailedDesignBroker, "back_off", nothing),
    Bug("offsets in spite of it", "draft-2", 1, "D9:", DetailedDesignConsumer, "_offsets", offsets_always,
        end_ms=8_000),
    Bug("connections stay", "draft-2-overview", 1, "D5:", OverviewConsumer, "on_lost", ignored),
    Bug("no wait for those broken", "draft-2-overview", 3, "overview:", OverviewBroker, "_await_until",
        lambda real: lambda self, group: self._wait_is_over(group)),
    Bug("claims that fail", "zookeeper", 1, "D10:", ZooKeeperConsumer, "_claim", claimed),
    Bug("one id for two", "draft-3", 1, "draft 3:", NewConsumerBroker, "_on_Draft3JoinGroupRequest", same_id),
    Bug("answered before it is written", "draft-3-loaded", 2, "draft 3:", NewConsumerBroker, "_store",
        lambda real: lambda self, group: at_once_answered(self, group)),
    Bug("no lease", "draft-3", 4, "draft 3:", NewConsumer, "_stop_at", ignored),
]  # fmt: skip


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bug.cls, bug.method, bug.change(getattr(bug.cls, bug.method)))
    with pytest.raises(AssertionError) as broken:
        simulated_run(bug.design, bug.seed, end_ms=bug.end_ms)
    assert bug.sentence in str(broken.value)
