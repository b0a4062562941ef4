"""What must not be shown unless it is asked for: passwords, tokens, keys.

Strategy: a table of field paths by message; a secret's place is a path like those of errors
("topics[0].configs[2].value"). Configs are secret where their name says so, or where the broker does. Bytes
that nobody could read may hold anything: they are withheld wherever they might come from such a message.

Rules: better one field too many than one too few; a field that is null or empty hides nothing and is left
alone, so that it can be encoded again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from coordwire.capture.entries import FrameEntry
from coordwire.errors import DecodeError
from coordwire.frames import read_response
from coordwire.layout import Message
from coordwire.messages.keys import FACTS

FIELDS: dict[str, tuple[str, ...]] = {
    "SaslAuthenticateRequest": ("auth_bytes",),
    "SaslAuthenticateResponse": ("auth_bytes",),
    "AlterUserScramCredentialsRequest": ("upsertions[].salt", "upsertions[].salted_password"),
    "CreateDelegationTokenResponse": ("hmac",),
    "RenewDelegationTokenRequest": ("hmac",),
    "ExpireDelegationTokenRequest": ("hmac",),
    "DescribeDelegationTokenResponse": ("tokens[].hmac",),
    "EnvelopeRequest": ("request_data",),
    "EnvelopeResponse": ("response_data",),
    "CreateTopicsRequest": ("topics[].configs[].value",),
    "CreateTopicsResponse": ("topics[].configs[].value",),
    "DescribeConfigsResponse": ("results[].configs[].value", "results[].configs[].synonyms[].value"),
    "AlterConfigsRequest": ("resources[].configs[].value",),
    "IncrementalAlterConfigsRequest": ("resources[].configs[].value",),
    "UserScramCredentialRecord": ("salt", "stored_key", "server_key"),
    "ConfigRecord": ("value",),
}
"""Where secrets stand. A field called `value` is one only beside a name that says so."""

NAMES = re.compile(
    r"passw|passphrase|secret|jaas|credential|token.*key|(private|access|api|master)[._-]?key"
    r"|keystore\.(key|certificate)|truststore\.certificate",
    re.IGNORECASE,
)
"""Configs whose values are secret; with Kafka's own of type PASSWORD among them."""

_STEPS = {name: [path.replace("[]", ".[]").split(".") for path in paths] for name, paths in FIELDS.items()}
_SCRAM = (b"r=", b"v=", b"e=", b"n,", b"p=", b"y,")
_LATER = 8  # a version this far beyond the newest isn't a version
_KEYS = {
    key for key, facts in FACTS.items() for side in ("Request", "Response") if facts.name + side in FIELDS
}


def find(message: Message | None) -> list[str]:
    """The paths of a message's secrets."""
    paths = _STEPS.get(type(message).__name__)
    if paths is None:
        return []
    return [place for steps in paths for place in _places(message, steps, "", False)]


def _places(value: Any, steps: list[str], path: str, named: bool) -> Iterator[str]:
    step, *rest = steps
    if step == "[]":
        for index, element in enumerate(value or ()):
            yield from _places(element, rest, f"{path}[{index}]", named)
        return
    named = named or _says_secret(value)
    inside = getattr(value, step)
    here = f"{path}.{step}" if path else step
    if rest:
        yield from _places(inside, rest, here, named)
    elif inside and (named or step != "value"):
        yield here


def _says_secret(value: Any) -> bool:
    """Whether a config's name, or the broker, calls its value a secret."""
    name = getattr(value, "name", None)
    return bool(getattr(value, "is_sensitive", False)) or (isinstance(name, str) and bool(NAMES.search(name)))


def withheld(entry: FrameEntry) -> bool:
    """Whether the bytes of an entry that couldn't be read whole must not be shown."""
    if entry.token:
        return True
    if entry.api_key is None:
        return entry.direction == "request" or _reads_as_secret(entry.body)
    if entry.call is not None:  # before Kafka 0.8 nobody had a secret
        return False
    facts = FACTS.get(entry.api_key)
    if facts is None or entry.api_version is None:  # no Kafka's request: a token, perhaps
        return True
    return entry.api_key in _KEYS or not 0 <= entry.api_version <= facts.last + _LATER


def _reads_as_secret(body: bytes) -> bool:
    """Whether an answer to nobody knows what could be one that holds secrets."""
    if body.startswith(_SCRAM):
        return True
    for key in _KEYS:
        facts = FACTS[key]
        for version in range(facts.first, facts.last + 1):
            try:
                frame = read_response(body, key, version)
            except DecodeError:
                continue
            if find(frame.message):
                return True
    return False
