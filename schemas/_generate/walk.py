"""Declarations to rows: which modules, messages, structs and fields there are, by their final names.

Rules: a struct's name is that of the variable that holds it; names are unique within a module and message
names within the whole protocol. Anything ambiguous, undocumented or unknown fails here, with its place.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import schemas
from schemas._words import ORDER
from schemas.headers import RequestHeader, ResponseHeader
from schemas.vocabulary import ANSWERED_BY, FOREVER, LOGS, Api, Array, Message, Named, Struct

NEVER = 32768
LISTENERS = {"broker", "controller", "zkBroker"}


class SchemaError(Exception):
    """A declaration that can't be generated from."""


@dataclass(frozen=True)
class Row:
    """One field, as `coordwire.codec.Field` will have it."""

    name: str
    doc: str
    type: str
    first: int
    last: int
    array: bool
    struct: StructRow | None
    null: int
    null_until: int
    default: object
    tag: int | None
    ignorable: bool
    fixed: bool
    embedded: tuple[tuple[str, str], ...]
    unprefixed: bool
    entity: str | None
    secret: bool

    def exists(self, version: int) -> bool:
        return self.first <= version <= self.last

    def nullable(self, version: int) -> bool:
        return self.null <= version <= self.null_until


@dataclass(frozen=True)
class StructRow:
    """A nested struct; `message` is set for those of their own."""

    name: str
    doc: str
    flexible: int
    fields: tuple[Row, ...]
    message: Message | None = None
    short_counts: bool = False


@dataclass
class ModuleRow:
    """One generated module: structs before their users, messages last."""

    name: str
    source: str
    doc: str
    structs: list[StructRow] = field(default_factory=list)

    @property
    def messages(self) -> list[StructRow]:
        return [row for row in self.structs if row.message is not None]

    @property
    def api(self) -> Api | None:
        return next((row.message.api for row in self.messages if row.message and row.message.api), None)

    def response(self, request: StructRow) -> StructRow | None:
        """The response to an API's request; None for anything else."""
        message = request.message
        if message is None or message.api is None or message.direction != "request":
            return None
        for row in self.messages:
            if row.message and row.message.api is message.api and row.message.direction == "response":
                return row
        raise SchemaError(f"{self.source}: {request.name} has no response")

    def request(self, response: StructRow) -> StructRow | None:
        """The request that an API's response answers; None for whatever is not one."""
        message = response.message
        if message is None or message.api is None or message.direction != "response":
            return None
        rows = (row for row in self.messages if row.message and row.message.api is message.api)
        return next(row for row in rows if row.message and row.message.direction == "request")


def modules() -> list[ModuleRow]:
    """All modules, by name."""
    rows = []
    check_folders(Path(schemas.__path__[0]))
    for info in pkgutil.walk_packages(schemas.__path__, "schemas."):
        if info.ispkg or ".vocabulary" in info.name or "._" in info.name:
            continue
        module = importlib.import_module(info.name)
        rows.append(_Walk(module).run())
    rows.sort(key=lambda row: row.name)
    _unique("module", [row.name for row in rows])
    _unique("message", [struct.name for row in rows for struct in row.messages])
    _unique("api key", [(row.api.key, m.message.direction) for row in rows if row.api
                        for m in row.messages if m.message])  # fmt: skip
    records(rows)
    for row in rows:
        if row.api:
            _check_facts(row.api)
    return rows


def check_folders(root: Path) -> None:
    """Refuse a folder whose schemas no walk over packages finds."""
    for path in sorted(root.rglob("*.py")):
        if not path.with_name("__init__.py").exists():
            raise SchemaError(f"{path.parent.relative_to(root)} has schemas and no __init__.py")


def _check_facts(api: Api) -> None:
    first, last = api.versions
    if set(api.listeners) - LISTENERS or not api.listeners:
        raise SchemaError(f"{api.name}: listeners are {', '.join(sorted(LISTENERS))}, not {api.listeners}")
    if api.answered_by not in ANSWERED_BY:
        raise SchemaError(f"{api.name}: answered by {', '.join(ANSWERED_BY)}, not {api.answered_by!r}")
    if api.deprecated and not first <= api.deprecated[0] <= api.deprecated[1] <= last:
        raise SchemaError(f"{api.name}: versions {first} to {last}, deprecated {api.deprecated}")
    if api.unstable is not None and not first <= api.unstable <= last:
        raise SchemaError(f"{api.name}: versions {first} to {last}, unstable {api.unstable}")
    _check_headers(api, "request", api.request_headers, RequestHeader)
    _check_headers(api, "response", api.response_headers, ResponseHeader)
    _unique(f"{api.name}: error", list(api.errors))
    for error, condition in api.error_conditions.items():
        if condition and not (condition.endswith(".") and condition[0] == condition[0].strip()):
            raise SchemaError(
                f"{api.name}: the condition of {error} is a sentence with a period, not {condition!r}"
            )
    untold = [version for version in range(first + 1, last + 1) if version not in api.changes]
    if untold:
        raise SchemaError(f"{api.name}: changes= lacks what version {', '.join(map(str, untold))} brought")
    if unknown := [version for version in api.changes if not first < version <= last]:
        raise SchemaError(f"{api.name}: versions {first} to {last}, changes= of {unknown[0]}")


def _check_headers(api: Api, direction: str, headers: dict[int, int], header: Message) -> None:
    """Apply Kafka's rules for the headers before an API's messages (KAFKA-20923)."""
    first, last = api.versions
    starts, numbers = list(headers), list(headers.values())
    rules = {
        f"begin with version {first}": starts[:1] == [first],
        f"begin in versions {first} to {last}, in order": starts == sorted(starts) and starts[-1] <= last,
        "do not fall": numbers == sorted(numbers),
        f"are {header.versions[0]} to {header.versions[-1]}": set(numbers) <= set(header.versions),
    }
    if broken := [rule for rule, is_kept in rules.items() if not is_kept]:
        raise SchemaError(f"{api.name}: headers of {direction}s {broken[0]}, not {headers}")


def secret_paths(modules: list[ModuleRow]) -> dict[str, list[str]]:
    """The paths of secret fields ("topics[].configs[].value") by message."""
    paths_of = {message.name: list(_secrets(message, "")) for row in modules for message in row.messages}
    return {name: paths for name, paths in sorted(paths_of.items()) if paths}


def _secrets(struct: StructRow, prefix: str) -> Iterator[str]:
    for row in struct.fields:
        path = f"{prefix}{row.name}{'[]' if row.array else ''}"
        if row.secret:
            yield path
        if row.struct is not None:
            yield from _secrets(row.struct, f"{path}.")


def records(modules: list[ModuleRow]) -> dict[str, dict[int, dict[str, str]]]:
    """What is in the logs: message names by log, record type and role."""
    types_of: dict[str, dict[int, dict[str, str]]] = {log: {} for log in LOGS}
    for message in (struct.message for row in modules for struct in row.messages):
        if message is None or message.log_role is None:
            continue
        log, record_type, role = message.log_role
        if log not in LOGS or role not in ("key", "value"):
            raise SchemaError(f"{message.name}: there is no {role} in a log {log}")
        names = types_of[log].setdefault(record_type, {})
        if role in names:
            raise SchemaError(f"{message.name} and {names[role]} are both the {role} of {log} {record_type}")
        names[role] = message.name
    for log, types in types_of.items():
        expected = {"value"} if log == "metadata" else {"key", "value"}
        for record_type, names in types.items():
            if names.keys() != expected:
                raise SchemaError(f"{log} {record_type} has {', '.join(names.values())} alone")
    return types_of


def _unique(kind: str, names: list[Any]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise SchemaError(f"{kind} {name} is declared twice")


def _check_words(named: Named, message: Message, place: str) -> None:
    for outer, inner in pairwise(named.around):
        if ORDER.index(outer) >= ORDER.index(inner):
            raise SchemaError(f"{place}: {outer} is around {inner}; the order is {', '.join(ORDER)}")
    if not any(map(named.exists, message.versions)):
        since = f"from {named.first} on" if named.last == FOREVER else f"{named.first} to {named.last}"
        had = f"{message.versions[0]} to {message.versions[-1]}"
        raise SchemaError(f"{place} is in versions {since}; {message.name} has versions {had}")


class _Walk:
    """One schema module."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.names = {id(value): name for name, value in vars(module).items() if isinstance(value, Struct)}
        path = module.__name__.split(".")
        self.row = ModuleRow(path[-1], "/".join(path) + ".py", (module.__doc__ or "").strip())
        self.structs: dict[int, StructRow] = {}

    def run(self) -> ModuleRow:
        if not self.row.doc:
            raise SchemaError(f"{self.row.source} has no docstring")
        for name, value in vars(self.module).items():
            if isinstance(value, Message) and value.module == self.module.__name__:
                if value.name != name:
                    raise SchemaError(f"{self.row.source}: {value.name} is held by the variable {name}")
                self._struct(value, value)
        _unique(f"{self.row.source}: struct", [struct.name for struct in self.row.structs])
        return self.row

    def _struct(self, struct: Struct, message: Message) -> StructRow:
        if id(struct) in self.structs:
            return self.structs[id(struct)]
        name = self.names.get(id(struct))
        if name is None:
            raise SchemaError(f"{self.row.source}: a struct inside {message.name} has no variable of its own")
        doc = struct.doc or (message.api.doc if message.api and struct is message else "")
        if not doc:
            raise SchemaError(f"{self.row.source}: {name} has no description")
        flexible = NEVER if message.flexible is None else message.flexible
        fields = tuple(self._field(named, name, message) for named in struct.fields)
        if any(field.unprefixed for field in fields[:-1]) or (
            fields and fields[-1].unprefixed and flexible != NEVER
        ):
            raise SchemaError(f"{self.row.source}: in {name} a field follows one without a length")
        own = message if struct is message else None
        row = StructRow(name, doc, flexible, fields, own, message.short_counts)
        self.structs[id(struct)] = row
        self.row.structs.append(row)
        return row

    def _field(self, named: Named, owner: str, message: Message) -> Row:
        place = f"{self.row.source}: {owner}.{named.name}"
        if not named.doc.strip():
            raise SchemaError(f"{place} has no doc")
        _check_words(named, message, place)
        word = named.word
        array = isinstance(word, Array)
        if array:
            word = word.subcon
        if isinstance(word, Array):
            raise SchemaError(f"{place}: an array of arrays is nowhere in Kafka")
        if named.tag is not None and named.first < (message.flexible or 0):
            raise SchemaError(f"{place} is tagged in versions that aren't flexible")
        unprefixed = getattr(named.word, "unprefixed", False)
        inner = self._struct(word, message) if isinstance(word, Struct) else None
        if named.secret and (array or inner is not None):
            raise SchemaError(f"{place}: only a single value is marked as a secret")
        if inner is not None and not unprefixed and any(field.unprefixed for field in inner.fields):
            raise SchemaError(f"{place}: what has no length can't be inside what has no size")
        leaf = None if inner else word  # a Struct gives its fields as attributes
        embedded: dict[str, Message] = getattr(leaf, "embedded", {})
        return Row(
            name=named.name,
            doc=named.doc,
            type=word.kind,
            first=named.first,
            last=FOREVER if named.last >= message.versions[-1] else named.last,
            array=array,
            struct=inner,
            null=NEVER if named.nullable_since is None else named.nullable_since,
            null_until=named.nullable_until,
            default=() if array and named.default is not None else named.default,
            tag=named.tag,
            ignorable=named.ignorable,
            fixed=named.fixed,
            embedded=tuple((kind, declaration.name) for kind, declaration in embedded.items()),
            unprefixed=unprefixed,
            entity=getattr(leaf, "entity", None),
            secret=named.secret,
        )
