"""The names of `coordwire.dialects.zookeeper_multi`, for those who import them from here."""

from coordwire.dialects.zookeeper_multi import MultiOperation, encode_operations, read_operations

__all__ = ["MultiOperation", "encode_operations", "read_operations"]
