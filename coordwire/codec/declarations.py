"""What the body of a generated class says of each field: its wire form beside its type and default.

Strategy: `field`, `array` and `struct` give a dataclass field that carries the row of the field table, and
`rows` collects the rows once the dataclass is whole. Rules: a field that says no default has the default of
its type: zero, empty, or a fresh struct; for a type checker each is of any type, as `dataclasses.field` is.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from coordwire.codec.fields import FOREVER, NEVER, Field
from coordwire.codec.primitives import ZERO_UUID

if TYPE_CHECKING:
    from coordwire.codec.message import Struct

__all__ = ["array", "field", "rows", "struct"]

_ROW = "row"
_DEFAULTS: dict[str, Any] = {
    "bool": False,
    "float64": 0.0,
    "uuid": ZERO_UUID,
    "string": "",
    "bytes": b"",
    "records": b"",
}
"""The defaults of the types that are not integers."""
_TYPES_OWN: Any = object()


def field(
    type: str,
    *,
    since: int = 0,
    until: int = FOREVER,
    default: Any = _TYPES_OWN,
    null: int = NEVER,
    null_until: int = FOREVER,
    tag: int | None = None,
    ignorable: bool = False,
    fixed: bool = False,
    embedded: tuple[tuple[str, str], ...] = (),
    unprefixed: bool = False,
    entity: str | None = None,
    secret: bool = False,
) -> Any:
    """A field that holds one value. since, until: the versions that have it; the others as in `Field`."""
    if default is _TYPES_OWN:
        default = _DEFAULTS.get(type, 0)
    row = Field(
        "", type, since, until, False, None, null, default, tag, ignorable, fixed, embedded, null_until,
        unprefixed, entity, secret,
    )  # fmt: skip
    return dataclasses.field(default=default, metadata={_ROW: row})


def array(
    of: str | type[Struct],
    *,
    since: int = 0,
    until: int = FOREVER,
    default: tuple[()] | None = (),
    null: int = NEVER,
    null_until: int = FOREVER,
    tag: int | None = None,
    ignorable: bool = False,
    fixed: bool = False,
    unprefixed: bool = False,
    entity: str | None = None,
) -> Any:
    """An array: of a type, by its word, or of a struct. default: empty, or None for null."""
    kind, cls = (of, None) if isinstance(of, str) else ("struct", of)
    row = Field(
        "", kind, since, until, True, cls, null, default, tag, ignorable, fixed, (), null_until, unprefixed,
        entity,
    )  # fmt: skip
    if default is None:
        return dataclasses.field(default=None, metadata={_ROW: row})
    return dataclasses.field(default_factory=list, metadata={_ROW: row})


def struct(
    of: type[Struct],
    *,
    since: int = 0,
    until: int = FOREVER,
    default: int | None = 0,
    null: int = NEVER,
    null_until: int = FOREVER,
    tag: int | None = None,
    ignorable: bool = False,
) -> Any:
    """A struct. default: one whose fields have theirs, or None for null."""
    row = Field("", "struct", since, until, False, of, null, default, tag, ignorable, null_until=null_until)
    if default is None:
        return dataclasses.field(default=None, metadata={_ROW: row})
    return dataclasses.field(default_factory=of, metadata={_ROW: row})


def rows(declared: dict[str, dataclasses.Field[Any]]) -> list[Field]:
    """The rows of a dataclass's fields, named; empty for one whose fields say nothing of the wire."""
    found = []
    for name, each in declared.items():
        row: Field | None = each.metadata.get(_ROW)
        if row is not None:
            object.__setattr__(row, "name", name)  # known only now
            found.append(row)
    return found
