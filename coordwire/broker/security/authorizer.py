"""Kafka's ACLs, decided as its StandardAuthorizer decides (KIP-11, KIP-290).

Strategy: the ACLs of one pattern are a set, in which the few ACLs that could match are looked up by value. A
resource's patterns are its own name, "*", and the prefixes among the sorted names of prefixed patterns. The
cost of a decision does not grow with the number of ACLs. Rules: DENY outweighs ALLOW; a resource without an
ACL is closed, or open where `open_by_default`; super users may do everything.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from uuid import UUID

from coordwire.enums import AclOperation, AclPermissionType, AclResourceType, PatternType

_WILDCARD = "*"
_EVERYBODY = "User:*"

_DENY, _ALLOW = AclPermissionType.DENY.value, AclPermissionType.ALLOW.value
_LITERAL, _PREFIXED = PatternType.LITERAL.value, PatternType.PREFIXED.value
_ANY, _MATCH = PatternType.ANY.value, PatternType.MATCH.value
_ALL = AclOperation.ALL.value

_IMPLIED_BY = {
    AclOperation.DESCRIBE.value: (
        AclOperation.READ.value,
        AclOperation.WRITE.value,
        AclOperation.DELETE.value,
        AclOperation.ALTER.value,
    ),
    AclOperation.DESCRIBE_CONFIGS.value: (AclOperation.ALTER_CONFIGS.value,),
}
"""By operation, the others whose ALLOW includes it."""


class Acl(NamedTuple):
    """One ACL, with Kafka's numbers. principal: as "User:ann"; host: an address, or "*"."""

    resource_type: int
    pattern_type: int
    name: str
    principal: str
    host: str
    operation: int
    permission: int


class AclFilter(NamedTuple):
    """Which ACLs are meant: None or ANY (1) is anything; a pattern type of MATCH (2) is each pattern that a
    resource of that name is subject to."""

    resource_type: int
    pattern_type: int
    name: str | None
    principal: str | None
    host: str | None
    operation: int
    permission: int

    def matches(self, acl: Acl) -> bool:
        """Whether an ACL is meant; its pattern is (`Authorizer.find` looks it up)."""
        return (
            self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (_ANY, acl.operation)
            and self.permission in (_ANY, acl.permission)
        )


_Pattern = tuple[int, int, str]
"""The first three parts of an ACL."""

_Entry = tuple[str, str, int, int]
"""The other parts of an ACL."""


class Authorizer:
    """The ACLs of a cluster. super_users: principals, as "User:admin"."""

    def __init__(self, super_users: Iterable[str] = (), *, open_by_default: bool = False) -> None:
        self._super_users = frozenset(super_users)
        self._open = open_by_default
        self._entries: dict[_Pattern, dict[_Entry, UUID]] = {}
        self._by_id: dict[UUID, Acl] = {}
        self._prefixes: dict[int, list[str]] = {}

    # --- decisions ---

    def allows(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> bool:
        """Whether a client may do this to a resource."""
        if principal in self._super_users:
            return True
        principals = [(element, place) for element in (principal, _EVERYBODY) for place in (host, _WILDCARD)]
        denying = (operation, _ALL)
        allowing = (*denying, *_IMPLIED_BY.get(operation, ()))
        allowed, subject = False, False
        for pattern in self._patterns(resource_type, name):
            entries = self._entries[pattern]
            subject = True
            for element, place in principals:
                if any((element, place, number, _DENY) in entries for number in denying):
                    return False
                allowed = allowed or any((element, place, number, _ALLOW) in entries for number in allowing)
        return allowed or (self._open and not subject)

    def allows_some(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        """Whether there may be a resource of a type to which a client may do this."""
        if self.allows(principal, host, operation, resource_type, "hardcode"):  # Kafka's own probe
            return True
        principals = [(element, place) for element in (principal, _EVERYBODY) for place in (host, _WILDCARD)]
        keys = [(*element, number) for element in principals for number in (operation, _ALL)]
        denied: set[tuple[int, str]] = set()
        allowed: list[tuple[int, str]] = []
        for (kind, pattern_type, name), entries in self._entries.items():
            if kind == resource_type:
                if any((*key, _DENY) in entries for key in keys):
                    denied.add((pattern_type, name))
                elif any((*key, _ALLOW) in entries for key in keys):
                    allowed.append((pattern_type, name))
        if (_LITERAL, _WILDCARD) in denied:
            return False
        prefixes = sorted(name for pattern_type, name in denied if pattern_type == _PREFIXED)
        return any(
            (pattern_type, name) == (_LITERAL, _WILDCARD) or next(_prefixes_of(name, prefixes), None) is None
            for pattern_type, name in allowed
        )

    def _patterns(self, resource_type: int, name: str) -> Iterator[_Pattern]:
        """The patterns with ACLs that a resource is subject to."""
        for literal in dict.fromkeys((name, _WILDCARD)):
            if (resource_type, _LITERAL, literal) in self._entries:
                yield resource_type, _LITERAL, literal
        for prefix in _prefixes_of(name, self._prefixes.get(resource_type, ())):
            yield resource_type, _PREFIXED, prefix

    # --- the ACLs ---

    def id_of(self, acl: Acl) -> UUID | None:
        """The id of an ACL; None if it is not there."""
        return self._entries.get(acl[:3], {}).get(acl[3:])

    def add(self, acl: Acl, acl_id: UUID) -> None:
        """Add an ACL with an id of its own; nothing changes if it is there."""
        if self.id_of(acl) is not None:
            return
        pattern = acl[:3]
        if pattern not in self._entries:
            self._entries[pattern] = {}
            if acl.pattern_type == _PREFIXED:
                insort(self._prefixes.setdefault(acl.resource_type, []), acl.name)
        self._entries[pattern][acl[3:]] = acl_id
        self._by_id[acl_id] = acl

    def remove(self, acl_id: UUID) -> None:
        """Remove an ACL, if it is there."""
        acl = self._by_id.pop(acl_id, None)
        if acl is None:
            return
        pattern = acl[:3]
        entries = self._entries[pattern]
        del entries[acl[3:]]
        if not entries:
            del self._entries[pattern]
            if acl.pattern_type == _PREFIXED:
                names = self._prefixes[acl.resource_type]
                del names[bisect_left(names, acl.name)]

    def find(self, acl_filter: AclFilter) -> Iterator[Acl]:
        """The ACLs that a filter matches, pattern by pattern."""
        for pattern in self._patterns_of(acl_filter):
            for entry in self._entries[pattern]:
                acl = Acl._make((*pattern, *entry))
                if acl_filter.matches(acl):
                    yield acl

    def _patterns_of(self, acl_filter: AclFilter) -> Iterator[_Pattern]:
        kinds = acl_filter.pattern_type
        if acl_filter.name is None:
            for pattern in self._entries:
                if acl_filter.resource_type in (_ANY, pattern[0]) and kinds in (_ANY, _MATCH, pattern[1]):
                    yield pattern
            return
        types = (
            [kind.value for kind in AclResourceType if kind.value > _ANY]
            if acl_filter.resource_type == _ANY
            else [acl_filter.resource_type]
        )
        for resource_type in types:
            if kinds == _MATCH:
                yield from self._patterns(resource_type, acl_filter.name)
                continue
            for pattern_type in (_LITERAL, _PREFIXED) if kinds == _ANY else (kinds,):
                if (resource_type, pattern_type, acl_filter.name) in self._entries:
                    yield resource_type, pattern_type, acl_filter.name


def _prefixes_of(name: str, prefixes: list[str] | tuple[str, ...]) -> Iterator[str]:
    """Those of the sorted prefixes that a name begins with, the longest first."""
    bound = name
    while bound:
        index = bisect_right(prefixes, bound) - 1
        if index < 0:
            return
        nearest = prefixes[index]
        if name.startswith(nearest):
            yield nearest
            bound = nearest[:-1]
        else:  # a shorter prefix of the name sorts before `nearest` only within what both have
            pairs = enumerate(zip(bound, nearest, strict=False))
            differing = (index for index, (pair, other) in pairs if pair != other)
            bound = bound[: next(differing, len(bound))]
