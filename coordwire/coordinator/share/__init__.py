"""Share groups (KIP-932): membership, the states of their partitions, and their offsets.

heartbeat.py        members, targets (simple_assignor.py)
partition_states.py which partitions' states the share coordinator initializes, has and deletes
offsets.py          describing, altering and deleting where a group reads from
records.py kind.py
                    how groups are kept, asked and shown
"""
