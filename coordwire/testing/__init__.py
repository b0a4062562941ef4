"""Support for tests: Hypothesis strategies for messages, frames and hostile bytes
(`coordwire.testing.strategies`). Needs hypothesis, which the extra `hypothesis` brings."""
