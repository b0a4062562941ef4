"""The rehearsal of an upgrade: a recorded classic group, whose members become KIP-848's one after the other.

    group = find_group(items, "orders")
    rehearsed = rehearse(group, RehearsalConfig(releases=("4.4.0",)))
    print(rehearsed.releases[0].refusals)

recorded_group.py   the group as its log has it
captured_group.py   the group as a capture shows it
rolling_restart.py  its members restart in one order, on the coordinator of one release
rehearsal.py        all orders, or a sample, on all releases
advice.py           what an operator has to know or to change before

Rules: the group's last record is loaded by the coordinator, and its members go on from there as models of
clients. What a record does not say (a member's heartbeat interval, its other assignors) is the Java client's
default.
"""

from coordwire.designs.rehearsal.captured_group import find_captured_groups
from coordwire.designs.rehearsal.recorded_group import RecordedGroup, RecordedMember, find_groups
from coordwire.designs.rehearsal.rehearsal import Rehearsal, RehearsalConfig, ReleaseRehearsal, rehearse
from coordwire.designs.rehearsal.rolling_restart import (
    MemberRefusal,
    Restart,
    Roll,
    RollConfig,
    RollStep,
    roll,
)

__all__ = [
    "MemberRefusal",
    "RecordedGroup",
    "RecordedMember",
    "Rehearsal",
    "RehearsalConfig",
    "ReleaseRehearsal",
    "Restart",
    "Roll",
    "RollConfig",
    "RollStep",
    "find_captured_groups",
    "find_groups",
    "rehearse",
    "roll",
]
