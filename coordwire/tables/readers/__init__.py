"""Files to rows: what runs on the workers.

files.py             paths, globs and URIs to files; files to bytes
object_ranges.py     an object of a store as memory, fetched as it is looked at; header_scouts.py: batch
                     headers ahead of the walk
file_origins.py      files to the topic, partition, broker and cluster that they are of
remote_segments.py   segments that remote storage has in another form
splits.py            files to parts, each of which one task reads
sources.py           which reader reads what
captures.py          captures to frames
frame_rows.py        frames and error codes to rows; plain_frames.py: most frames, column by column
segment_reader.py    a part of a segment to its batches; segment_bytes.py: its file, local or in a store;
                     segment_positions.py: where its batches begin, by the index beside it
segment_records.py   batches to records; segment_batches.py: their headers
coordinator_logs.py  segments of a coordinator's log to its records
log_copies.py        which files lag follows from; disk_lag.py: the lag
group_rows.py        the events of groups, in captures and coordinator logs, to rows
stream_offsets.py    which files of a growing folder are new
rows.py              values to Arrow batches
"""
