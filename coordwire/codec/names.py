"""Names of messages: the message of a key or name and a direction, and suggestions for unknown names.

Rules: it imports nothing of this package, and difflib only for an error. Names are matched as they are
written; suggestions ignore case.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

DIRECTIONS = ("request", "response")
MOST_COMPARED = 100
"""Characters of a name that are compared: the cost grows with their square."""


def suggestion(name: str, names: Iterable[str]) -> str:
    """`; did you mean JoinGroup?` for the nearest of `names`, ignoring case; empty if none is near."""
    from difflib import get_close_matches

    known = {known_name.lower(): known_name for known_name in names}
    near = get_close_matches(name[:MOST_COMPARED].lower(), known, 1)
    return f"; did you mean {known[near[0]]}?" if near else ""


def full_name(
    key: int | str, direction: str | None, apis: Mapping[int, str], messages: Collection[str]
) -> str:
    """The name of the message that a key or name means, with its direction where that decides.

    key: an api key, an API's name or a message's. apis: names by api key; messages: the names that there are.
    Raises `KeyError` with the reason.
    """
    if direction is not None and direction not in DIRECTIONS:
        raise KeyError(f"a direction is request or response, got {direction!r}")
    if isinstance(key, str):
        name = key
        if name in messages:
            if direction == "request" and name.endswith("Response"):
                raise KeyError(f"{name} is a response")
            if direction == "response" and name.endswith("Request"):
                raise KeyError(f"{name} is a request")
            return name
        if f"{name}Request" not in messages:
            hint = suggestion(name, [*apis.values(), *messages])
            raise KeyError(f"{name[:MOST_COMPARED]} is not a message{hint}")
    else:
        if key not in apis:
            raise KeyError(f"api key {key} is unknown")
        name = apis[key]
    if direction is None:
        raise KeyError(f"{name} is an API: its messages are {name}Request and {name}Response")
    if (message := name + direction.capitalize()) not in messages:
        raise KeyError(f"{name} has no {direction}")
    return message
