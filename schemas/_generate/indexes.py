"""Rows to the modules about all messages: their index, and what is known of each without importing it.

Rule: as in `emit.py`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from schemas._generate.text import BANNER, STEP, WIDTH, Text, quoted
from schemas._generate.walk import ModuleRow, records, secret_paths
from schemas.vocabulary import LOGS, Api


def index_text(modules: list[ModuleRow]) -> str:
    """`coordwire/messages/__init__.py`: the messages by name, imported when first asked for."""
    text = Text()
    text.add(
        BANNER.format(source="all of schemas/"),
        '"""Every message by its name; a message\'s module is imported when it is first asked for.',
        "",
        "Message classes only: the structs inside them are imported from their own modules.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from importlib import import_module",
        "from typing import TYPE_CHECKING, Any, Literal, overload",
        "",
        "if TYPE_CHECKING:",
        "    from coordwire.codec import Message, Request, Response",
    )
    for module in modules:
        names = sorted(message.name for message in module.messages)
        line = f"    from coordwire.messages.{module.name} import {', '.join(names)}"
        if len(line) <= WIDTH:
            text.add(line)
        else:
            text.add(f"    from coordwire.messages.{module.name} import (")
            text.add(*[f"        {name}," for name in names], "    )")
    exports = sorted((message.name, module.name) for module in modules for message in module.messages)
    text.add("", "__all__ = [", *[f'    "{name}",' for name, _ in exports], '    "find_message",', "]")
    text.add("", "_MODULES = {", *[f'    "{name}": "{module}",' for name, module in exports], "}")
    apis = sorted(((m.api.key, m) for m in modules if m.api), key=lambda pair: pair[0])
    text.add("", "_APIS = {", *[f'    {key}: "{m.api.name}",' for key, m in apis if m.api], "}")
    text.add(
        "",
        "",
        "def __getattr__(name: str) -> type[Message]:",
        "    module = _MODULES.get(name)",
        "    if module is None:",
        '        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")',
        '    found: type[Message] = getattr(import_module(f"{__name__}.{module}"), name)',
        "    globals()[name] = found",
        "    return found",
        "",
        "",
        "def __dir__() -> list[str]:",
        "    return sorted(__all__)",
        "",
        "",
        "@overload",
        'def find_message(key: int, direction: Literal["request"]) -> type[Request[Any]]: ...',
        "@overload",
        'def find_message(key: int, direction: Literal["response"]) -> type[Response]: ...',
        "@overload",
        "def find_message(key: int | str, direction: str | None = None) -> type[Message]: ...",
        "def find_message(key: int | str, direction: str | None = None) -> type[Message]:",
        '    """The class of a message: `find_message(11, "request")`, `find_message("JoinGroupRequest")`.',
        "",
        '    key: an api key, an API\'s name or a message\'s own. direction: "request" or "response"; only a',
        "    message's own name does without.",
        "",
        "    Raises `KeyError` if there is none, with the reason and the nearest name.",
        '    """',
        "    whole = direction is None and key in _MODULES",
        "    if whole:",
        "        name = str(key)",
        "    else:",
        "        from coordwire.codec.names import full_name  # what is above it loads the field tables",
        "",
        "        name = full_name(key, direction, _APIS, _MODULES)",
        "    return globals().get(name) or __getattr__(name)",
    )
    return str(text)


def keys_text(modules: list[ModuleRow]) -> str:
    """`coordwire/messages/keys.py`: the api keys and what is known of each without importing it."""
    text = Text()
    text.add(
        BANNER.format(source="all of schemas/"),
        '"""The api keys, and the facts about each API that need no message class."""',
        "",
        "from __future__ import annotations",
        "",
        "from enum import IntEnum",
        "from typing import NamedTuple",
        "",
        "",
        "class ApiKey(IntEnum):",
        '    """The API of a request, by its key.',
        "",
        "    >>> from coordwire import ApiKey",
        "    >>> ApiKey.JOIN_GROUP.value, ApiKey(12).name",
        "    (11, 'HEARTBEAT')",
        '    """',
        "",
    )
    apis = sorted((m.api for m in modules if m.api), key=lambda api: api.key)
    text.add(*[f"    {_snake(api.name).upper()} = {api.key}" for api in apis])
    text.add(
        "",
        "",
        "class ApiFacts(NamedTuple):",
        '    """What is known of an API.',
        "",
        "    first, last: its versions; flexible: the first flexible one. coordinator: which one answers",
        "    it, None for none. answered_by: who does, a coordinator too; partitions: the path of those",
        "    whose leaders or share coordinators do. modifies: whether it changes something, or a field",
        "    with the value with which it does. listeners: which of Kafka's listeners accept it.",
        "    deprecated: the versions that Kafka deprecated; unstable: the version whose layout may still",
        "    change. errors: the codes that a response is known to carry, by their names in `ErrorCode`;",
        "    besides, a broker may answer any request with UNKNOWN_SERVER_ERROR, REQUEST_TIMED_OUT,",
        "    UNSUPPORTED_VERSION or INVALID_REQUEST. request_headers, response_headers: the header before",
        "    a message, as {first version: header version}, in order.",
        '    """',
        "",
        "    name: str",
        "    first: int",
        "    last: int",
        "    flexible: int | None",
        "    coordinator: str | None",
        "    description: str",
        "    changes: dict[int, str]",
        "    request_headers: dict[int, int]",
        "    response_headers: dict[int, int]",
        '    listeners: tuple[str, ...] = ("broker",)',
        "    deprecated: range = range(0)",
        "    unstable: int | None = None",
        "    errors: tuple[str, ...] = ()",
        '    answered_by: str = "any broker"',
        "    partitions: str | None = None",
        "    modifies: bool | tuple[str, bool] = False",
        "",
        "",
        "FACTS: dict[int, ApiFacts] = {",
    )
    for api in apis:
        text.add(f"    {api.key}: ApiFacts(")
        text.depth += 2
        coordinator = f'"{api.coordinator}"' if api.coordinator else "None"
        first, last = api.versions
        text.add(f'"{api.name}",', f"{first},", f"{last},", f"{api.flexible},", f"{coordinator},")
        text.add(f"{quoted(api.doc)},")
        if api.changes:
            changes = [f"    {version}: {quoted(change)}," for version, change in sorted(api.changes.items())]
            text.add("{", *changes, "},")
        else:
            text.add("{},")
        text.add(f"{api.request_headers},", f"{api.response_headers},")
        text.add(*_api_facts(api))
        text.depth -= 2
        text.add("    ),")
    text.add("}  # fmt: skip")
    return str(text)


def error_conditions_text(modules: list[ModuleRow]) -> str:
    """`coordwire/messages/error_conditions.py`: when errors come; only `api` reads it."""
    text = Text()
    text.add(
        BANNER.format(source="all of schemas/"),
        '"""When the errors of an API come, as far as it is known, by api key and name."""',
        "",
        "from __future__ import annotations",
        "",
        "ERROR_CONDITIONS: dict[int, dict[str, str]] = {",
    )
    for api in sorted((module.api for module in modules if module.api), key=lambda api: api.key):
        conditions = {error: condition for error, condition in api.error_conditions.items() if condition}
        if conditions:
            text.add(f"    {api.key}: {{")
            text.add(*[f'        "{error}": {quoted(conditions[error])},' for error in conditions])
            text.add("    },")
    text.add("}")
    return str(text)


def _api_facts(api: Api) -> Iterable[str]:
    """The facts that differ from the defaults of `ApiFacts`."""
    if api.listeners != ("broker",):
        yield f"listeners={_tuple(api.listeners)},"
    if api.deprecated is not None:
        first, last = api.deprecated
        yield f"deprecated=range({f'{first}, ' if first else ''}{last + 1}),"
    if api.unstable is not None:
        yield f"unstable={api.unstable},"
    if api.answered_by != "any broker":
        yield f"answered_by={quoted(api.answered_by)},"
    if api.partitions is not None:
        yield f"partitions={quoted(api.partitions)},"
    if isinstance(api.modifies, tuple):
        yield f"modifies=({quoted(api.modifies[0])}, {api.modifies[1]}),"
    elif api.modifies:
        yield "modifies=True,"
    if api.errors:
        yield "errors=("
        errors = " ".join(f"{quoted(error)}," for error in api.errors)
        yield from (STEP + line for line in textwrap.wrap(errors, WIDTH - 12))
        yield "),"


def _tuple(names: tuple[str, ...]) -> str:
    return f"({', '.join(quoted(name) for name in names)}{',' * (len(names) == 1)})"


def secret_paths_text(modules: list[ModuleRow]) -> str:
    """`coordwire/messages/secret_paths.py`: where secrets are, without importing the messages."""
    text = Text()
    text.add(
        BANNER.format(source="all of schemas/"),
        '"""Which fields hold secrets: their paths by message, as the schemas mark them."""',
        "",
        "from __future__ import annotations",
        "",
        "SECRET_PATHS: dict[str, tuple[str, ...]] = {",
    )
    for name, paths in secret_paths(modules).items():
        line = f'    "{name}": {_tuple(tuple(paths))},'
        exploded = [f'    "{name}": (', *[f'        "{path}",' for path in paths], "    ),"]
        text.add(*([line] if text.fits(line) else exploded))
    text.add("}", '"""A field called `value` is secret only beside a name that says so."""')
    return str(text)


def record_types_text(modules: list[ModuleRow]) -> str:
    """`coordwire/messages/record_types.py`: which messages are in the logs, without importing them."""
    text = Text()
    text.add(
        BANNER.format(source="all of schemas/"),
        '"""The logs that brokers keep for themselves, and the messages in them, by record type."""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import Literal, NamedTuple, TypeAlias",
        "",
    )
    names = [f'"{log}"' for log in LOGS]
    text.add(f"Log: TypeAlias = Literal[{', '.join(names)}]")
    text.add("", "TOPICS: dict[Log, str] = {", *[f'    "{log}": "{topic}",' for log, topic in LOGS.items()])
    text.add(
        "}",
        '"""The topic that holds each log."""',
        "",
        "",
        "class RecordNames(NamedTuple):",
        '    """The messages in a record\'s key and value; `key` is None where a log has no keys."""',
        "",
        "    key: str | None",
        "    value: str",
        "",
        "",
        "RECORD_TYPES: dict[Log, dict[int, RecordNames]] = {",
    )
    for log, types in records(modules).items():
        with text.block(f'    "{log}": {{'):
            for record_type, roles in sorted(types.items()):
                key = f'"{roles["key"]}"' if "key" in roles else "None"
                with text.deeper():
                    text.call(f"{record_type}: RecordNames", [key, f'"{roles["value"]}"'], ",")
        text.add("    },")
    text.add("}")
    return str(text)


def _snake(name: str) -> str:
    return "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")
