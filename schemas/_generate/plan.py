"""Rows to plans: what one version of a struct looks like on the wire, comparable, so that runs can share.

Rules: a plan holds all that the text of a decoder or encoder depends on, and nothing else. Least sizes and
costs follow `coordwire.layout.tables`, which a test holds them to.
"""

from __future__ import annotations

from dataclasses import dataclass

from schemas._generate.walk import Row, StructRow

FIXED = {
    "int8": ("b", 1), "int16": ("h", 2), "int32": ("i", 4), "int64": ("q", 8), "uint16": ("H", 2),
    "uint32": ("I", 4), "float64": ("d", 8), "bool": ("B", 1), "uuid": ("16s", 16),
}  # fmt: skip
"""The struct code and size of the types whose size is fixed."""

_COST = {"bool": 0, "uuid": 128, "string": 80, "bytes": 80, "records": 80}


@dataclass(frozen=True)
class Node:
    """One field on the wire in one version. short: its count is an int16."""

    row: Row
    null: bool
    compact: bool
    short: bool
    inner: Plan | None
    least: int
    element_least: int
    element_cost: int


@dataclass(frozen=True)
class Plan:
    """One struct in one version. barred: the numbers of tagged fields that only other versions have."""

    name: str
    flexible: bool
    inline: tuple[Node, ...]
    tagged: tuple[Node, ...]
    absent: tuple[Row, ...]
    barred: tuple[int, ...]
    least: int
    cost: int


def plan(struct: StructRow, version: int) -> Plan:
    flexible = version >= struct.flexible
    nodes = [_node(row, version, flexible, struct.draft) for row in struct.fields if row.exists(version)]
    inline = tuple(node for node in nodes if node.row.tag is None)
    tagged = tuple(sorted((node for node in nodes if node.row.tag is not None), key=lambda n: n.row.tag or 0))
    absent = tuple(row for row in struct.fields if not row.exists(version))
    return Plan(
        name=struct.name,
        flexible=flexible,
        inline=inline,
        tagged=tagged,
        absent=absent,
        barred=tuple(sorted(row.tag for row in absent if row.tag is not None)) if flexible else (),
        least=sum(node.least for node in inline) + flexible,
        cost=48 + 8 * (len(struct.fields) + 1) + sum(_cost(row, version) for row in struct.fields),
    )


def _node(row: Row, version: int, flexible: bool, draft: bool) -> Node:
    null = row.nullable(version)
    compact = flexible and not row.classic
    short = draft and row.array
    inner = plan(row.struct, version) if row.struct else None
    sized = 1 if compact else 2 if row.type == "string" else 4
    one = inner.least if inner else FIXED[row.type][1] if row.type in FIXED else sized
    if row.bare:
        one += 4
    count = 1 if compact else 2 if short else 4
    least = 0 if row.bare else count if row.array else 1 if inner and null else one
    cost = 0 if row.type in ("int32", "int64") else 8 + (inner.cost if inner else _COST.get(row.type, 32))
    return Node(row, null, compact, short, inner, least, one, cost)


def _cost(row: Row, version: int) -> int:
    held = row.exists(version) or ((row.array or row.struct is not None) and row.default is not None)
    if not held:
        return 0
    if row.array:
        return 88
    return plan(row.struct, version).cost if row.struct else _COST.get(row.type, 32)


def runs(struct: StructRow, versions: range) -> list[tuple[int, int, Plan]]:
    """The versions in runs that share a plan: first, last, plan."""
    found: list[tuple[int, int, Plan]] = []
    for version in versions:
        this = plan(struct, version)
        if found and found[-1][2] == this:
            found[-1] = (found[-1][0], version, this)
        else:
            found.append((version, version, this))
    return found
