"""Histories of groups whose truth is known: a cluster in virtual time, and what a timeline tells of it.

cluster.py     several brokers, which die, stall and hand over the group; clients find its coordinator
script.py      what happens in one history, by its seed
comparison.py  where the timeline's rows, read back from its JSON, differ from what happened
gaps.py        the same of partitions without a consumer
"""
