"""What happened to groups: told by what coordinators keep in their logs, and by what went over the wire.

    files.py      a broker's directories to the coordinators' segments in them, and which log each belongs to
    offsets.py    one segment to coordinator records, transaction markers and what couldn't be read
    latest.py     what the records of many segments leave standing: transactions decided, keys compacted

Strategy: everything is an iterator over small frozen values that can be pickled, so that a command line shows
them one by one and a cluster works on them file by file. Rules: no rich, no pyarrow, no Spark in here; bytes
are hostile: what can't be read becomes a value that says so, and nothing but a system's `OSError` is raised.
"""
