"""What happened to groups: told by what went over the wire, and by what coordinators keep in their logs.

    files.py        a broker's directories to the coordinators' segments in them, and which log each is of
    offsets.py      one segment to coordinator records, transaction markers and what couldn't be read
    latest.py       what the records of many segments leave standing: transactions decided, keys compacted

    events.py       what can happen to a group: the rows that a story is made of
    timeline.py     captures' entries to events; log_timeline.py: a log's records to the same events
    group.py        one group's state; classic.py, modern.py, drafts.py: what feeds it, by protocol
    commits.py      commits and transactions; lag.py: how far groups are behind
    story.py        what a group's events amount to

Strategy: everything is an iterator over small frozen values that can be pickled, so that a command line shows
them one by one and a cluster works on them file by file. Rules: no rich, no pyarrow, no Spark in here; bytes
are hostile: what can't be read becomes a value that says so, and nothing but a system's `OSError` and a codec
that isn't installed is raised; memory is bounded.
"""
