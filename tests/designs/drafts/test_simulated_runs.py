"""D1 to D10 over a run of the simulator for each design.

`python -m tests.designs.drafts.simulated_runs` has more.
"""

from __future__ import annotations

from typing import Any, cast

import pytest

from coordwire.designs.drafts.actions import FetchersStarted, Noted
from coordwire.designs.simulator.drafts import DRAFT_DESIGNS
from coordwire.messages.draft_1 import Draft1StartRequest
from coordwire.messages.draft_2 import Draft2PingResponse, Draft2RegisterConsumerResponse
from tests.designs.drafts.checkers import check
from tests.designs.drafts.cluster import Entry
from tests.designs.drafts.simulated_runs import simulated_run


@pytest.mark.parametrize("design", list(DRAFT_DESIGNS))
def test_the_invariants_hold(design: str) -> None:
    cluster = simulated_run(design, 2)
    assert cluster.world.steps > 1_500
    kinds = {type(entry.what) for entry in cluster.history}
    assert {FetchersStarted, Noted} <= kinds
    assert design == "zookeeper" or len(kinds) >= 8  # the draft's messages, and what is done


def test_a_consumer_that_registers_again_during_a_rebalance_is_stopped_before_it_is_started() -> None:
    """Its Stop went over the connection that it has lost; the Start came over the new one."""
    cluster = simulated_run("draft-1", 13)
    notes = [entry.what.name for entry in cluster.history if isinstance(entry.what, Noted)]
    assert "RebalanceAttemptFailed" in notes
    assert "IllegalStateException" not in notes


def test_what_a_process_sent_before_its_crash_is_its_own_when_it_arrives() -> None:
    """A ping is held by a cut; its node runs the next process when it goes on."""
    assert simulated_run("draft-3", 7009).world.steps > 1_500


def test_the_checkers_see_what_is_wrong_in_such_a_run() -> None:
    """A history with an entry too many: a Start for a consumer that fetches, an owner for too long."""
    cluster = simulated_run("draft-2", 1)
    started = next(entry for entry in cluster.history if isinstance(entry.what, FetchersStarted))
    at = cluster.history.index(started) + 1
    start = Entry(started.time, "coordinator-1", Draft1StartRequest(), started.name)
    cluster.history.insert(at, start)
    assert [text[:3] for text in check(cast(Any, cluster))] == ["D3:"]
    cluster.history.remove(start)
    gone = Entry(started.time, "coordinator-1", Noted("ConsumerFailed", f"group/{started.name}"))
    answer = Entry(started.time, started.name, Draft2PingResponse(consumer_id=""), "coordinator-1")
    cluster.history[at:at] = [answer, gone]
    assert any(text.startswith("D4:") for text in check(cast(Any, cluster)))
    del cluster.history[at : at + 2]
    accepted = next(
        entry for entry in cluster.history if isinstance(entry.what, Draft2RegisterConsumerResponse)
    )
    cluster.history.append(accepted)
    assert [text[:3] for text in check(cast(Any, cluster))] == ["D7:"]
