"""`ZooKeeperTree` against a real Apache ZooKeeper, on operations that run now. Needs a JDK and Maven."""

from __future__ import annotations

import pytest

from tests.designs.drafts.zookeeper_operations_oracle import differences, operation_count
from tests.interop.conftest import give_up
from tests.interop.maven import Unavailable
from tests.interop.zookeeper_tree import RELEASES, record

pytestmark = pytest.mark.maven


@pytest.mark.parametrize("release", RELEASES)
def test_fresh_operations_have_the_same_answers_and_events(release: str) -> None:
    try:
        lines = record(release, first=500, count=5)
    except Unavailable as error:
        give_up(error)
    assert operation_count(lines) == 1_000
    assert list(differences(lines)) == []
