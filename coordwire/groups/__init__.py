"""What happened to groups, by what went over the wire and by what coordinators keep in their logs.

    log_files.py        a broker's directories to the coordinators' segments in them, and which log each is of
    coordinator_log.py  one segment to coordinator records, transaction markers and what couldn't be read
    latest.py           what still holds of the records of many segments: transactions decided, keys compacted

    timeline_events.py  what can happen to a group: the rows of its timeline
    timeline.py         captures' entries to events; log_timeline.py: a log's records to the same events
    group.py            one group's state; by protocol: classic.py, modern.py, draft_groups.py
    joining.py          the JoinGroups that wait for their responses
    commits.py          commits and transactions; lag.py: how far groups are behind
    story.py            what a group's events amount to

Strategy: everything is an iterator over small frozen values that can be pickled: a command line shows them
one by one and a cluster works on them file by file. Rules: neither rich nor pyarrow nor Spark is imported
here; bytes are untrusted: what can't be read becomes a value that says so, and nothing is raised but the
system's `OSError`, and `CodecUnavailable` for a codec that isn't installed; memory is bounded.
"""
