"""Removal of secrets from a message's JSON form.

Rule: a value that is removed becomes null; its path is listed in `redacted` by the caller, so that `encode`
refuses the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from coordwire.capture import partial_messages

_UNDERSCORE = re.compile(r"_([a-z0-9])")


def redact(body: Any, paths: Iterable[str]) -> None:
    """Set the values at these paths to null."""
    for path in paths:
        *place, last = _json_steps(path)
        value = body
        for step in place:
            value = value[step]
        if last in value:
            value[last] = None


def _json_steps(path: str) -> list[Any]:
    """A path's steps in the JSON form, where unknown tagged fields have their numbers as text."""
    steps: list[Any] = []
    for step in partial_messages.steps(path):
        if step == "tags":
            steps.append("_tags")
        elif isinstance(step, int):
            steps.append(str(step) if steps[-1:] == ["_tags"] else step)
        else:
            steps.append(_UNDERSCORE.sub(lambda match: match[1].upper(), step))
    return steps
