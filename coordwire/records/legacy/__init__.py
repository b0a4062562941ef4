"""The formats before record batches.

message_sets.py        message sets of magic 0 and 1, read
message_set_writer.py  the same, written
kafka_07.py            the messages of Kafka 0.7
"""
