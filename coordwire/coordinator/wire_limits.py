"""What a string of the protocol has room for: clients' own fit, what a coordinator composes of them may not.

A member id made of a long client id, and a message that quotes a long name, are longer than any version of a
response or record can carry. Apache Kafka finds that when it writes them, and answers UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

__all__ = ["fits"]

_MOST_BYTES = 32_767
_BYTES_A_CHARACTER = 4


def fits(text: str | None) -> bool:
    """Whether a response or a record can carry this text."""
    if text is None or len(text) * _BYTES_A_CHARACTER <= _MOST_BYTES:
        return True
    return len(text.encode("utf-8", "surrogatepass")) <= _MOST_BYTES
