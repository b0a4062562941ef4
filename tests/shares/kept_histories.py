"""The kept histories of share groups, which Kafka has judged, run again without Java."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.coordinator import recorded_histories as groups
from tests.coordinator.histories import Replayer
from tests.coordinator.recorded_histories import read_histories
from tests.coordinator.settings import settings
from tests.shares import partition_histories, state_histories
from tests.shares.comparison import KINDS, checksum

_FOLDER = Path(__file__).parents[1] / "data" / "share_groups"
GROUPS = _FOLDER / "groups.xz"
"""The histories of share groups beside groups of other kinds."""
_REPLAYERS: dict[str, Callable[[], Any]] = {
    "partition": partition_histories.Replayer,
    "state": state_histories.Replayer,
}

SORTS = (*KINDS, "groups")


def differences(sort: str) -> Iterator[str]:
    """The first difference of each kept history that comes out differently than Kafka made it."""
    for seed, steps, release in read_histories(_FOLDER / f"{sort}.xz"):
        if sort == "groups":
            group_replayer = Replayer(settings(seed, release))
            for number, (expected, step) in enumerate(steps):
                outcome = group_replayer.run(step)
                if groups.checksum(outcome.sorted(group_replayer.requests)) != expected:
                    yield f"{sort}, history {seed}, step {number}: {step[:200]}"
                    break
            continue
        replayer = _REPLAYERS[sort]()
        for number, (expected, step) in enumerate(steps):
            if checksum(KINDS[sort].normalized(replayer.run(step))) != expected:
                yield f"{sort}, history {seed}, step {number}: {step[:200]}"
                break
