"""Committed offsets: stored, read, deleted, expired (KIP-211)."""
