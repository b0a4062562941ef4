"""Files to rows: what runs on the workers.

files.py             paths, globs and URIs to files; files to bytes
object_ranges.py     an object of a store as memory, fetched as it is looked at
file_origins.py      files to the topic, partition, broker and cluster that they are of
splits.py            files to parts, each of which one task reads
sources.py           which reader reads what
captures.py          captures to frames
chains.py            chains of rotated files, in stages
frame_rows.py        frames and error codes to rows, most frames column by column
frame_selection.py   which frames have rows
segment_reader.py    a part of a segment to its batches
segment_rows.py      batches to rows of their headers and of their records
coordinator_logs.py  segments of a coordinator's log to its records
disk_lag.py          lag by what is on disk
group_rows.py        the events of groups, in captures and coordinator logs, to rows
traffic_rows.py      frames to sums by minute, client, connection, API and partition
stream_offsets.py    which files of a growing folder are new; growing_captures.py: captures that grow
rows.py              values to Arrow batches
"""
