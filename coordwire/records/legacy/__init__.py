"""Message sets, the format before record batches.

message_sets.py        message sets of magic 0 and 1, read
message_set_writer.py  the same, written
"""
