"""Peers in Rust and Go, as programs that are built when the benchmark runs.

peers.py      builds and runs them
__main__.py   `python -m tests.bench.native`: the table
rust/, go/    their sources: `kafka-protocol`, and `kmsg` of franz-go
"""
