"""Events of groups from what coordinators wrote into their logs.

files.py            a broker's directories to the coordinators' segments in them, and which log each is of
coordinator_log.py  one segment to coordinator records, transaction markers and what couldn't be read
compaction.py       what still holds of the records of many segments: transactions decided, keys compacted
events.py           a log's records to events
"""
