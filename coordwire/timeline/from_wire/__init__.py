"""Events of groups from captured traffic.

timeline.py         captures' entries to events; cluster_timeline.py: those of one cluster; clusters.py:
                    which cluster each broker belongs to
group_conversations.py  requests and answers about groups, each to its group's state
group_frames.py     what one frame says of a group; cluster_answers.py: coordinators, topics, settings
repeated_answers.py answers to Fetch, Metadata and ApiVersions that repeat one, known by their bytes
group_table.py      all groups in some captures, by the protocol that each speaks at the time
classic_group.py    a classic group, by its frames; classic_requests.py: its members' requests, and
                    JoinGroups without an answer; classic_state.py: its members and its rebalance;
                    classic_silence.py: who went without a request; classic_timers.py: the coordinator's
                    timers, replayed; written_generation.py: what a move of the coordinator leaves
modern_group.py     a group whose coordinator assigns, by its heartbeats; modern_state.py: its members and
                    its rebalance; reconciliation.py: how far the members are; epoch_causes.py: what
                    raises its epoch, and what an answer has shown of that, also of members of which no
                    frame shows anything
migrating_group.py  a consumer group that may have classic members too
member_death.py     which members are out without a word; connection_ends.py: how their connections ended
coordinators.py     which broker coordinates each group, and when it is away
rebalance_cost.py   what waited while partitions had no consumer
commits.py          commits and transactions
"""
