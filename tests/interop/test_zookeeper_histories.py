"""Our ZooKeeper consumer against Kafka's own, on histories that are recorded now, in minutes each.

Needs a JDK and Maven, and a machine with little else to do: sessions end where their consumers are held up.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.designs.drafts.zookeeper_histories import read_histories, replay, undisturbed
from tests.interop.conftest import give_up
from tests.interop.maven import Unavailable
from tests.interop.zookeeper_histories import RELEASES, record

pytestmark = [pytest.mark.long, pytest.mark.maven]


@pytest.mark.parametrize("light", [False, True])
@pytest.mark.parametrize("release", RELEASES)
def test_fresh_histories_leave_the_same_nodes(release: str, light: bool, tmp_path: Path) -> None:
    try:
        record(release, tmp_path, first=900 + light, count=6, threads=6, light=light)
    except Unavailable as error:
        give_up(error)
    histories = [undisturbed(history) for history in read_histories([tmp_path])]
    assert histories
    assert [difference for history in histories for difference in replay(history).differences] == []
