"""How fast messages decode and encode, beside other libraries.

`python -m tests.bench` prints one Markdown table of interleaved rounds, the numbers of
docs/explanation/performance.md (`--short`: the five messages only);
`pytest tests/bench/bench_messages.py` runs the same work under pytest-benchmark. The ordinary test run
collects neither: no file here is named `test_*.py`.
"""
