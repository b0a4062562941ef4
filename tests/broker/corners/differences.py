"""Where two brokers' outcomes of a case differ.

Rules: a field that one has as by default and the other has not is compared with its default. A text beside
an error may say more than Kafka's: where Kafka gives none, or the general one of the error code.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_DEFAULT = "default"
_GENERAL = "This most likely occurs because of a request being malformed"
"""How Kafka's general text of INVALID_REQUEST begins."""


def differing(kafkas: Any, own: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The places at which outcomes differ, with what is there."""
    if isinstance(kafkas, dict) and isinstance(own, dict):
        for name in sorted(kafkas.keys() | own.keys()):
            theirs, ours = kafkas.get(name, _DEFAULT), own.get(name, _DEFAULT)
            if name.endswith("error_message") and _says_more(theirs, ours, own):
                continue
            yield from differing(theirs, ours, f"{place}.{name}")
    elif isinstance(kafkas, list) and isinstance(own, list) and len(kafkas) == len(own):
        for number, (one, other) in enumerate(zip(kafkas, own, strict=True)):
            yield from differing(one, other, f"{place}[{number}]")
    elif kafkas != own:
        yield place, kafkas, own


def _says_more(theirs: Any, ours: Any, around: dict[str, Any]) -> bool:
    if not isinstance(ours, str) or "error_code" not in around:
        return False
    return theirs in (None, _DEFAULT) or theirs.startswith(_GENERAL)
