"""The stories of random groups, by their coordinator's own events and as a capture shows them.

world.py     a shard, virtual time, and what a capture at the broker sees
clients.py   consumers of the classic protocol and of KIP-848, that behave mostly well; newer_clients.py:
             members of share groups and of streams groups
scripts.py   what happens in one history, by its seed
events.py    a story by its events; frames.py: what frames show besides
compare.py   where the two stories differ, generation by generation; members.py: member by member
faults.py    faults that are planted, and found
causes.py    whether causes and begins are the same; excuses.py: what no frame shows
"""
