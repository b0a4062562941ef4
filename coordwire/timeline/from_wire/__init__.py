"""Events of groups from captured traffic: what members and coordinators were seen to do.

capture_timeline.py captures' entries to events
group_frames.py     what one frame says of a group; other_answers.py: coordinators, topics, settings
steady_beats.py     heartbeats that repeat the last one, known by their bytes
group_table.py      all groups in some captures, by the protocol that each speaks at the time
classic.py          a classic group, whose parts are
  classic_state.py    what is known of it; classic_requests.py: what its members' requests contain
  classic_joins.py    JoinGroups and the generations that they form; joining.py: those that wait
  classic_signs.py    what begins a rebalance
  classic_silence.py  who is out without a word; classic_timers.py: the coordinator's timers, replayed
modern.py           a group whose coordinator assigns, whose parts are
  modern_rebalances.py  rebalances by epochs; modern_epochs.py: whose doing an epoch is
  modern_silence.py   who is out without a word; reconciliation.py: how far the members are
migrating_group.py  a consumer group that may have classic members too
member_death.py     which members are out without a word; connection_ends.py: how their connections ended
rebalance_cost.py   what waited while partitions had no consumer
commits.py          commits and transactions
"""
