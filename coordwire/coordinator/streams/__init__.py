"""Streams groups (KIP-1071): heartbeats, topologies, tasks."""
