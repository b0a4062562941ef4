"""Planted bugs of share groups, and the kept histories that find them: `python -m tests.shares.planted_bugs`.

Each is a change of the text of one module. A process of its own imports the changed text and runs the kept
histories of one sort. Rules as in tests/coordinator/planted_bugs.py.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from tests.coordinator.planted_bugs import PlantedBug, Planter

_ROOT = Path(__file__).parents[2]


class ShareBug(NamedTuple):
    """A change, and the sort of histories that has to find it."""

    sort: str
    bug: PlantedBug


def _bug(sort: str, name: str, module: str, before: str, after: str) -> ShareBug:
    return ShareBug(sort, PlantedBug(name, module, before, after))


_PARTITION = "share_partition.partition"
_STATES = "share_partition.delivery_states"
_ACQUISITION = "share_partition.acquisition"
_HEARTBEAT = "share.heartbeat"
_STATE = "share_state.requests"
BUGS = [
    _bug(
        "partition",
        "records in flight are not counted",
        _ACQUISITION,
        "most = min(max_records, self.config.max_record_locks - self.in_flight)",
        "most = min(max_records, self.config.max_record_locks)",
    ),
    _bug(
        "partition",
        "more is acquired than there is room for",
        _ACQUISITION,
        "return self.in_flight < self.config.max_record_locks",
        "return True",
    ),
    _bug(
        "partition",
        "a gap of the loaded state is forgotten",
        _STATES,
        "if gap == -1 and batch.first_offset > previous + 1:",
        "if False:",
    ),
    _bug(
        "partition",
        "records that are done are counted twice when loaded",
        _STATES,
        "if state.is_terminal:\n                self.delivery_complete_count += len(in_flight)",
        "if state.is_terminal:\n                self.delivery_complete_count += 2 * len(in_flight)",
    ),
    _bug(
        "partition",
        "a record on its last delivery comes with others",
        _ACQUISITION,
        "if is_last and acquired:",
        "if False:",
    ),
    _bug(
        "partition",
        "deliveries are throttled too late",
        _ACQUISITION,
        "if delivered >= throttled_from and",
        "if delivered > throttled_from and",
    ),
    _bug(
        "partition",
        "batches are as long as what was fetched",
        _ACQUISITION,
        "if not record_limit and last - first + 1 > batch_size:",
        "if False:",
    ),
    _bug(
        "state",
        "a smaller state epoch can write",
        "share_state.requests",
        "        data.state_epoch != _NO_EPOCH\n        and known.state_epoch is not None\n"
        "        and known.state_epoch > data.state_epoch\n    ):\n"
        "        raise OperationRefused(ErrorCode.FENCED_STATE_EPOCH)\n"
        "    _check_topic(shard, key)\n    batches",
        "        False\n    ):\n"
        "        raise OperationRefused(ErrorCode.FENCED_STATE_EPOCH)\n"
        "    _check_topic(shard, key)\n    batches",
    ),
    _bug(
        "state",
        "a smaller leader epoch can write",
        _STATE,
        "if data.leader_epoch != _NO_EPOCH and known.leader_epoch > data.leader_epoch:\n"
        "        raise OperationRefused(ErrorCode.FENCED_LEADER_EPOCH)\n    if (",
        "if False:\n        raise OperationRefused(ErrorCode.FENCED_LEADER_EPOCH)\n    if (",
    ),
    _bug(
        "state",
        "what is initialized again keeps its snapshot epoch",
        _STATE,
        "known.state.snapshot_epoch + 1",
        "known.state.snapshot_epoch",
    ),
    _bug(
        "state",
        "states before the start offset are kept",
        "share_state.model",
        "if batch.last_offset >= start_offset",
        "if batch.last_offset + 1 >= start_offset",
    ),
    _bug(
        "state",
        "neighbours of one state stay apart",
        "share_state.model",
        "return first.last_offset + 1 == second.first_offset and first[2:] == second[2:]",
        "return False",
    ),
    _bug(
        "state",
        "an older state wins",
        "share_state.model",
        "if second[2:] < first[2:]:",
        "if second[2:] > first[2:]:",
    ),
    _bug(
        "groups",
        "a member is fenced by its previous epoch",
        _HEARTBEAT,
        "if epoch and epoch < member.epoch and epoch != member.previous_epoch:",
        "if epoch and epoch < member.epoch:",
    ),
    _bug(
        "groups",
        "a member joins a full group",
        _HEARTBEAT,
        "if member is None and len(group.members) >= limit:",
        "if member is None and len(group.members) > limit:",
    ),
    _bug(
        "groups",
        "a subscription changes without an epoch",
        _HEARTBEAT,
        "bumps = new.topics != old.topics",
        "bumps = False",
    ),
    _bug(
        "groups",
        "an assignment is sent only when it changes",
        _HEARTBEAT,
        "is_full = epoch == 0 or request.subscribed_topic_names is not None",
        "is_full = False",
    ),
    _bug(
        "groups",
        "targets are computed for the old epoch",
        _HEARTBEAT,
        "records.append(assignment_epoch_record(group.group_id, epoch, state.now))",
        "records.append(assignment_epoch_record(group.group_id, group.epoch, state.now))",
    ),
]


def find_planted(planted: ShareBug) -> str | None:
    """The first kept history that finds it."""
    command = [sys.executable, "-m", "tests.shares.planted_bugs", "--inside", planted.bug.name]
    output = subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, text=True).stdout
    return output.strip() or None


def _run(planted: ShareBug) -> None:
    sys.meta_path.insert(0, Planter(planted.bug))
    from tests.shares.kept_histories import differences

    try:
        print(next(differences(planted.sort), ""))
    except Exception as error:
        print(f"{planted.sort}: {type(error).__name__}: {error}")


def main() -> int:
    if "--inside" in sys.argv:
        _run(next(planted for planted in BUGS if planted.bug.name == sys.argv[-1]))
        return 0
    missed = 0
    print("| planted bug | found | seconds |\n|---|---|---:|", flush=True)
    for planted in BUGS:
        began = time.monotonic()
        place = find_planted(planted)
        missed += place is None
        where = ",".join((place or "not found").split(",")[:3]).split(":")[0]
        print(f"| {planted.bug.name} | {where} | {time.monotonic() - began:.1f} |", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
