"""Hypothesis, or what to install."""

from __future__ import annotations

try:
    from hypothesis import strategies as st
except ImportError as missing:
    raise ImportError(
        "coordwire.testing.strategies needs hypothesis: pip install 'coordwire[hypothesis]'"
    ) from missing

__all__ = ["st"]
