"""What changed in Kafka's coordinator from release to release: for each rule a short history that shows it.

`python -m tests.coordinator.release_histories FILE` finds them, runs them on Kafka's coordinators of all
releases, and writes the steps, which `python -m conformance --histories changes FILE` keeps. A random history
in which the rule matters is cut after the first step that comes out differently without it, and then loses
each step that is not needed for that.

Rules: on the kept history Kafka's releases before and after the change differ. The file has the histories in
the order of `CHANGES`, each as often as there are releases, oldest first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from unittest.mock import patch

from coordwire.coordinator.releases import RELEASES, rules_of
from coordwire.errors import EncodeError
from coordwire.messages import (
    DeleteGroupsRequest,
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
    TxnOffsetCommitRequest,
    find_message,
)
from tests.coordinator.archived_histories import archived
from tests.coordinator.foreign_logs import foreign_history
from tests.coordinator.generator import history
from tests.coordinator.histories import Outcome, Replayer, kafka_outcome
from tests.coordinator.oracle import oracle
from tests.coordinator.recorded_histories import (
    RecordedHistory,
    checksum,
    write_histories,
)
from tests.coordinator.rule_histories import unvalidated_groups
from tests.coordinator.rule_script import Script
from tests.coordinator.settings import has_streams, kafka_settings, settings
from tests.shares.group_histories import share_history

_MOST_TRIES = 4_000
_NEWEST_VERSIONS = {
    TxnOffsetCommitRequest.api_key: 5,
    DeleteGroupsRequest.api_key: 2,
    StreamsGroupHeartbeatRequest.api_key: 0,
    StreamsGroupDescribeRequest.api_key: 0,
}
"""Of the oldest release, where a later one has more."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change. rule: its name in `ReleaseRules`. since: the first release that has it. tickets: of Kafka, as
    far as one was found. text: in the words of the page. seed: where to look for a history that shows it, of
    this kind. script: writes it where random ones seldom show it.
    """

    rule: str
    since: str
    tickets: tuple[str, ...]
    text: str
    seed: int
    kind: str = "all"
    script: Callable[[Script], None] | None = None


CHANGES: Sequence[Change] = (
    Change(
        "migration_policy_binds_classic_members", "4.3.1", ("KAFKA-20640",),
        "JoinGroup into a consumer group is refused with INCONSISTENT_GROUP_PROTOCOL (23) where "
        "`group.consumer.migration.policy` is `disabled`; it was let in, or asked for a member id (79).",
        700_010,
    ),
    Change(
        "emptied_groups_are_assigned", "4.4.0", ("KAFKA-20442",),
        "A consumer, share or streams group that loses its last member also gets the record of its target's "
        "epoch: the group's new epoch, with the time 0. An empty group is described with assignment epoch = "
        "group epoch, and the next member is assigned at once, not after the assignment interval.",
        700_000,
    ),
    Change(
        "static_members_return_to_full_groups", "4.4.0", ("KAFKA-20601",),
        "Where a group is full, a static member that comes back is let in, or gets its own error "
        "(UNRELEASED_INSTANCE_ID, FENCED_INSTANCE_ID and others); it got GROUP_MAX_SIZE_REACHED (81). A "
        "streams member that joins again is let in, too.",
        700_040,
    ),
    Change(
        "votes_for_assignors_raise_epochs", "4.4.0", ("KAFKA-20434",),
        "When members' preferences give a consumer group another assignor, its epoch rises. While votes tie, "
        "each heartbeat may raise it: Kafka asks two hash tables, whose orders can differ.",
        700_004,
    ),
    Change(
        "returning_members_keep_targets", "4.4.0", ("KAFKA-20292",),
        "A static consumer that comes back under a new member id has its predecessor's target without a "
        "second record of it.",
        700_058,
    ),
    Change(
        "earlier_instance_ids_are_free", "4.4.0", (),
        "The instance id that a consumer had before it took another is free: it is unknown (25), where it "
        "was held until the group ended.",
        700_112,
    ),
    Change(
        "malformed_subscriptions_are_inconsistent", "4.4.0", ("KAFKA-20662",),
        "A malformed subscription in JoinGroup into a consumer group is answered with "
        "INCONSISTENT_GROUP_PROTOCOL (23), where it was UNKNOWN_SERVER_ERROR (-1).",
        700_003,
    ),
    Change(
        "impossible_lengths_are_malformed", "4.4.0", ("KAFKA-20570",),
        "An impossible length in a classic member's subscription or assignment counts as malformed: the "
        "rebalance completes, where it failed again and again.",
        700_008,
    ),
    Change(
        "member_ids_have_no_hyphens", "4.4.0", ("KAFKA-20072",),
        "Random member ids contain no hyphen; they only did not begin with one.",
        700_057,
    ),
    Change(
        "transactional_offsets_have_topic_ids", "4.4.0", ("KIP-1319",),
        "Offsets that are committed in a transaction have the topic's id in their records. TxnOffsetCommit 6 "
        "names topics by id, and answers STALE_MEMBER_EPOCH (113) and GROUP_ID_NOT_FOUND (69), where version "
        "5 answers ILLEGAL_GENERATION (22).",
        700_003,
    ),
    Change(
        "share_groups_stop_expiry", "4.4.0", (),
        "Expired offsets are looked for in share groups too. If a log has offsets of one, Kafka stumbles "
        "over them, and no offset of the partition expires.",
        700_002, "foreign",
    ),
    Change(
        "fenced_states_are_of_coordinators", "4.4.0", (),
        "The text of FENCED_STATE_EPOCH speaks of the coordinator, where it spoke of the share coordinator.",
        700_015, "shares",
    ),
    Change(
        "new_share_partitions_start_at_zero", "4.4.0", ("KAFKA-20742",),
        "New partitions of a topic that a share group knows are initialized with start offset 0; it was -1, "
        "so that `share.auto.offset.reset` decided, and records could be missed.",
        700_000, "shares",
    ),
    Change(
        "streams_members_report_more", "4.4.0", ("KAFKA-20169", "KAFKA-20719"),
        "Streams members may be static (`instanceId`, epoch -2), and report offsets of tasks and warm-ups, "
        "which were refused with INVALID_REQUEST (42). Answers say how often to report (60,000 ms) and which "
        "lag is acceptable (10,000, from version 1 on); StreamsGroupDescribe 1 names the assignor.",
        700_000, "streams",
    ),
    Change(
        "streams_joins_end_endpoints", "4.4.0", (),
        "A streams member that joins again without a user endpoint has none; its old one was kept.",
        700_142, "streams",
    ),
    Change(
        "streams_endpoint_epochs_follow_endpoints", "4.4.0", (),
        "The epoch of the endpoint information rises when an endpoint appears, changes or goes, also without "
        "other tasks, and no longer at each join.",
        700_049, "streams",
    ),
    Change(
        "streams_endpoints_have_existing_partitions", "4.4.0", ("KAFKA-20885",),
        "`partitionsByUserEndpoint` has of a task the partitions that the topic has, and leaves out topics "
        "without any; it could name partitions that do not exist.",
        700_074, "streams",
    ),
    Change(
        "streams_tasks_change_roles_at_once", "4.4.0", ("KAFKA-20665",),
        "A streams member's own task changes its role in place: from active to standby at once, while the "
        "active one waits for its revocation; from standby to active without being revoked first.",
        700_022, "streams",
    ),
    Change(
        "streams_targets_are_refined", "4.4.0", ("KAFKA-20665",),
        "Before members move to their targets, Kafka refines these, which is to place warm-up tasks; 4.4.0's "
        "refinement changes nothing, but what was refined is kept, and shows where a static member returns.",
        700_000, "streams",
    ),
    Change(
        "sticky_assignor_ranks_standbys", "4.4.0", ("KAFKA-20719", "KAFKA-20899"),
        "The sticky task assignor starts from the tasks that members have, not from their targets, ranks the "
        "members that know a task by the offsets they report, and passes over processes that have the task.",
        700_000, "streams",
    ),
    Change(
        "streams_topologies_are_validated_by_records", "4.4.0", (),
        "A streams group of which the log has members but no record of its epoch has the validated topology "
        "-1; it was 0.",
        0, script=unvalidated_groups,
    ),
)  # fmt: skip


def _seeds(change: Change) -> Iterator[int]:
    numbers = count(change.seed)
    if change.kind == "streams":
        return filter(has_streams, numbers)
    return numbers


def _steps(change: Change, seed: int) -> list[str]:
    if change.kind == "foreign":
        return foreign_history(seed)
    make = share_history if change.kind == "shares" else history
    return list(_as_all_releases_know_them(make(seed, 200, None, RELEASES[-1]).steps))


def _as_all_releases_know_them(steps: Sequence[str]) -> Iterator[str]:
    """The steps with requests in versions that the oldest release has, without those that can't be."""
    for step in steps:
        words = step.split(" ")
        if words[0] != "request" or int(words[3]) <= _NEWEST_VERSIONS.get(int(words[2]), int(words[3])):
            yield step
            continue
        message = find_message(int(words[2]), "request")
        body = bytes.fromhex(words[6]) if len(words) > 6 else b""
        version = _NEWEST_VERSIONS[int(words[2])]
        try:
            encoded = message.decode(body, version=int(words[3])).encode(version=version)
        except EncodeError:
            continue
        yield " ".join([*words[:3], str(version), *words[4:6], encoded.hex()])


# --- with and without a rule ---


def without_rule(rule: str) -> AbstractContextManager[object]:
    """A context in which the newest release lacks a rule."""
    changed = replace(rules_of(RELEASES[-1]), **{rule: False})
    return patch("coordwire.coordinator.state.rules_of", lambda release: changed)


def outcomes(seed: int, steps: Sequence[str], release: str) -> Iterator[Outcome]:
    replayer = Replayer(settings(seed, release))
    for step in steps:
        yield replayer.run(step).sorted(replayer.requests)


def _first_difference(seed: int, steps: Sequence[str], rule: str) -> int | None:
    """The first step that comes out differently without the rule."""
    replayer = Replayer(settings(seed, RELEASES[-1]))
    with without_rule(rule):
        other = Replayer(settings(seed, RELEASES[-1]))
    for number, step in enumerate(steps):
        outcome = replayer.run(step)
        with without_rule(rule):
            if other.run(step) != outcome:
                return number
    return None


def _is_sound(steps: Sequence[str]) -> bool:
    """Whether a log is loaded only where none is."""
    loads = [step.split(" ")[0] for step in steps if "load" in step.split(" ")[0]]
    return all(
        before in ("unload", "begin-load") for before, step in pairwise(["load", *loads]) if step == "load"
    )


def _differs(seed: int, rule: str, steps: Sequence[str]) -> bool:
    """Whether the last step, and no other, differs. False for steps that make no history."""
    try:
        return _is_sound(steps) and _first_difference(seed, steps, rule) == len(steps) - 1
    except Exception:
        return False


def _shrunk(steps: list[str], shows: Callable[[list[str]], bool]) -> list[str]:
    """The history without what is not needed to show it."""
    size = len(steps) // 2
    while size:
        place = 0
        while place < len(steps) - 1:
            shorter = steps[:place] + steps[min(place + size, len(steps) - 1) :]
            if shows(shorter):
                steps = shorter
            else:
                place += size
        size //= 2
    return steps


# --- Kafka's ---


def _kafkas(seed: int, steps: Sequence[str]) -> list[RecordedHistory]:
    """What each release made of the history."""
    recorded = []
    for release in RELEASES:
        outputs = oracle(release).run([kafka_settings(seed), *steps])[1:]
        requests = Replayer(settings(seed, release))
        sums = []
        for step, lines in zip(steps, outputs, strict=True):
            requests.run(step)
            sums.append((checksum(kafka_outcome(lines).sorted(requests.requests)), step))
        recorded.append(RecordedHistory(seed, sums, release))
    return recorded


def _is_shown(change: Change, recorded: Sequence[RecordedHistory]) -> bool:
    """Whether the change is what the releases of Kafka differ by, and ours as they."""
    sums = {history.release: [crc for crc, _ in history.steps] for history in recorded}
    before = RELEASES[RELEASES.index(change.since) - 1]
    if sums[before] == sums[change.since]:
        return False
    return all(
        [
            checksum(outcome)
            for outcome in outcomes(history.seed, [step for _, step in history.steps], history.release)
        ]
        == sums[history.release]
        for history in recorded
    )


def _found(change: Change) -> list[RecordedHistory]:
    if change.script is not None:
        script = Script(RELEASES[0])
        change.script(script)
        recorded = _kafkas(change.seed, script.steps)
        assert _is_shown(change, recorded), change.rule
        return recorded
    for seed, _ in zip(_seeds(change), range(_MOST_TRIES), strict=False):
        steps = _steps(change, seed)
        number = _first_difference(seed, steps, change.rule)
        if number is None:
            continue
        steps = _shrunk(steps[: number + 1], partial(_differs, seed, change.rule))
        recorded = _kafkas(seed, steps)
        if _is_shown(change, recorded):
            print(f"{change.rule}: history {seed}, {len(steps)} steps", flush=True)
            return recorded
    raise LookupError(f"no history shows {change.rule}")


def changed_histories() -> Iterator[tuple[Change, Sequence[RecordedHistory]]]:
    """Each change with its kept history, as each release has it."""
    recorded, size = archived("changes"), len(RELEASES)
    return zip(CHANGES, (recorded[at : at + size] for at in range(0, len(recorded), size)), strict=True)


# --- the page ---


def page_rows() -> Iterator[str]:
    """The lines of the page's tables, by release."""
    for release in RELEASES[1:]:
        yield f"## {release}"
        for change in CHANGES:
            if change.since == release:
                yield f"| {change.text} | {', '.join(change.tickets) or 'none found'} | `{change.rule}` |"


def main() -> int:
    write_histories(Path(sys.argv[1]), [history for change in CHANGES for history in _found(change)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
