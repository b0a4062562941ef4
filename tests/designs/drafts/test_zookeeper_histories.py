"""Our ZooKeeper consumer against kept histories of Kafka's own, 0.8.2.2 and 1.1.1, without Java."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.designs.drafts.zookeeper_histories import History, Verdict, read_histories, replay

KEPT = Path(__file__).parent.parent.parent / "data" / "zookeeper_consumer"
RELEASES = ("0.8.2.2", "1.1.1")
DEFAULT = 20
"""Histories of a release that are replayed by default."""


def kept(release: str) -> list[History]:
    return list(read_histories([KEPT / f"{release}.jsonl.xz"]))


def judged(history: History) -> Verdict:
    return replay(history, history.header["schedules"], attempts=1)


@pytest.mark.parametrize("release", RELEASES)
def test_nodes_are_those_of_kafkas_own_consumer(release: str) -> None:
    histories = kept(release)
    assert len(histories) > 50
    for history in histories[:DEFAULT]:
        assert history.header["kafka"] == release
        assert judged(history).differences == ()


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
def test_all_kept_histories_agree(release: str) -> None:
    assert [
        difference for history in kept(release)[DEFAULT:] for difference in judged(history).differences
    ] == []


def test_a_difference_is_found() -> None:
    """The comparison fails where an owner, an offset or a registration is another."""
    history = next(one for one in kept("1.1.1") if one.header["strategy"] == "range")
    step = next(
        step
        for step in history.steps
        if any("/owners/" in node["path"] and node["data"] for node in step["nodes"])
    )
    node = next(node for node in step["nodes"] if "/owners/" in node["path"] and node["data"])
    node["data"] += "1"
    assert node["path"] in {difference.path for difference in judged(history).differences}
