"""The names of `coordwire.dialects`, for those who import them from here."""

from coordwire.dialects import (
    CALLS,
    AlternativeDialect,
    Call,
    ConnectionDialect,
    Dialect,
    DraftFrame,
    Grammar,
    find_alternative,
    find_call,
    find_dialect,
)

__all__ = [
    "CALLS",
    "AlternativeDialect",
    "Call",
    "ConnectionDialect",
    "Dialect",
    "DraftFrame",
    "Grammar",
    "find_alternative",
    "find_call",
    "find_dialect",
]
