"""The diagrams of the coordinator's page are those of the code, and the tables have what histories reach."""

from __future__ import annotations

import pytest

from coordwire.coordinator.model.classic_group import CLASSIC_TRANSITIONS, ClassicGroupModel, GroupState
from coordwire.coordinator.refusal import OperationRefused
from tests.coordinator import reach
from tests.coordinator.diagrams import CONSUMER_TRANSITIONS, PAGE, with_diagrams


def test_the_pages_diagrams_are_the_codes() -> None:
    page = PAGE.read_text()
    assert with_diagrams(page) == page, "run python -m tests.coordinator.diagrams"


def test_a_page_without_a_place_is_refused() -> None:
    with pytest.raises(ValueError, match="expected one place for the diagram classic, found 0"):
        with_diagrams("# Nothing")


@pytest.mark.parametrize("before", GroupState)
@pytest.mark.parametrize("after", GroupState)
def test_a_group_enters_a_state_by_the_table_only(before: GroupState, after: GroupState) -> None:
    group = ClassicGroupModel("g", 0, state=before)
    if (before, after) in CLASSIC_TRANSITIONS:
        group.enter(after, 1)
        assert (group.state, group.previous_state, group.state_since) == (after, before, 1)
    else:
        with pytest.raises(OperationRefused):
            group.enter(after, 1)
        assert group.state is before


def test_the_table_of_consumer_groups_has_what_histories_reach() -> None:
    known = {(before.value, after.value) for before, after in CONSUMER_TRANSITIONS}
    assert known >= reach.CONSUMER_TRANSITIONS
