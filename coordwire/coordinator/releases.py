"""Releases of Apache Kafka whose group coordinator this one equals, and what each has where they differ.

`CoordinatorConfig.release` chooses one. What differs is a rule with a name; the code asks for the rule where
the behaviour lives, never for a version. A patch may change records too, so that releases are named whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRules:
    """The rules of a release; all are False in the oldest.

    migration_policy_binds_classic_members: JoinGroup into a consumer group is refused where the migration of
    groups is disabled. emptied_groups_are_assigned: a group that loses its last member has the epoch of a
    target too, so that the next member is assigned at once. static_members_return_to_full_groups: they count
    already. votes_for_assignors_raise_epochs: when another assignor is the preferred one.
    returning_members_keep_targets: a static member under a new id has its predecessor's target without
    another record. earlier_instance_ids_are_free: when their member takes another.
    malformed_subscriptions_are_inconsistent: of JoinGroup into a consumer group; else they are an unknown
    error. impossible_lengths_are_malformed: in what classic members say; else they are an unknown error.
    member_ids_have_no_hyphens: the random ones; else they don't begin with one.
    transactional_offsets_have_topic_ids: in their records. share_groups_stop_expiry: no offset expires while
    a share group has one. fenced_states_are_of_coordinators: so the text of FENCED_STATE_EPOCH says, which
    spoke of share coordinators. new_share_partitions_start_at_zero: those of a topic that the group knows,
    so that no record of them is missed.
    streams_members_report_more: they may be static, and tell offsets of tasks; answers and descriptions say
    more. streams_joins_end_endpoints: a member that joins without one has none.
    streams_endpoint_epochs_follow_endpoints: the epoch rises as they change, not as members join.
    streams_endpoints_have_existing_partitions: of a task those that the topic has; else as many as it has.
    streams_tasks_change_roles_at_once: a member need not give up a task that it gets in another role.
    streams_targets_are_refined: by a step that changes nothing yet. sticky_assignor_ranks_standbys: by what
    members report; it starts from the tasks that they have, not from their targets.
    streams_topologies_are_validated_by_records: those of a group without a record of its epoch are not.
    """

    migration_policy_binds_classic_members: bool = False
    emptied_groups_are_assigned: bool = False
    static_members_return_to_full_groups: bool = False
    votes_for_assignors_raise_epochs: bool = False
    returning_members_keep_targets: bool = False
    earlier_instance_ids_are_free: bool = False
    malformed_subscriptions_are_inconsistent: bool = False
    impossible_lengths_are_malformed: bool = False
    member_ids_have_no_hyphens: bool = False
    transactional_offsets_have_topic_ids: bool = False
    share_groups_stop_expiry: bool = False
    fenced_states_are_of_coordinators: bool = False
    new_share_partitions_start_at_zero: bool = False
    streams_members_report_more: bool = False
    streams_joins_end_endpoints: bool = False
    streams_endpoint_epochs_follow_endpoints: bool = False
    streams_endpoints_have_existing_partitions: bool = False
    streams_tasks_change_roles_at_once: bool = False
    streams_targets_are_refined: bool = False
    sticky_assignor_ranks_standbys: bool = False
    streams_topologies_are_validated_by_records: bool = False


_4_3_0 = ReleaseRules()
_4_3_1 = replace(_4_3_0, migration_policy_binds_classic_members=True)
_4_4_0 = replace(
    _4_3_1,
    emptied_groups_are_assigned=True,
    static_members_return_to_full_groups=True,
    votes_for_assignors_raise_epochs=True,
    returning_members_keep_targets=True,
    earlier_instance_ids_are_free=True,
    malformed_subscriptions_are_inconsistent=True,
    impossible_lengths_are_malformed=True,
    member_ids_have_no_hyphens=True,
    transactional_offsets_have_topic_ids=True,
    share_groups_stop_expiry=True,
    fenced_states_are_of_coordinators=True,
    new_share_partitions_start_at_zero=True,
    streams_members_report_more=True,
    streams_joins_end_endpoints=True,
    streams_endpoint_epochs_follow_endpoints=True,
    streams_endpoints_have_existing_partitions=True,
    streams_tasks_change_roles_at_once=True,
    streams_targets_are_refined=True,
    sticky_assignor_ranks_standbys=True,
    streams_topologies_are_validated_by_records=True,
)

_RULES: Mapping[str, ReleaseRules] = {"4.3.0": _4_3_0, "4.3.1": _4_3_1, "4.4.0": _4_4_0}

RELEASES = tuple(_RULES)
"""Oldest first."""


@cache
def full_release(name: str) -> str:
    """The release of this name; for "4.3", its newest known patch. Raises `ValueError` for another name."""
    patches = [release for release in RELEASES if name in (release, release.rpartition(".")[0])]
    if not patches:
        raise ValueError(f"expected a release of {', '.join(RELEASES)}, got {name!r}")
    return patches[-1]


def rules_of(release: str) -> ReleaseRules:
    """The rules of a full release."""
    return _RULES[release]
