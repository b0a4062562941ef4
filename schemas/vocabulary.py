"""Every word that a schema may use; each is a `construct` that parses and builds by itself.

Strategy: a message is a `Struct` of named words. What changes with the version (is the field there, may it be
null, how are lengths written) is decided while parsing or building, from two context parameters that
`Message.parse` and `Message.build` set: `version` and `encoding`. So one declaration serves all versions, and
the generator (`schemas/_generate`) reads the very objects that the tests run as oracle.

Rules: a word describes the wire, not how coordwire runs it; parsing is strict, as `decode` is; a field's doc
is written with `*` after it. The words for values are defined in `_values.py`, those around them in
`_words.py`, with the order in which they are nested; those for messages and APIs here. Values are plain: int,
float, bool, str, bytes, uuid.UUID, None, lists, and `Container`s with one entry a field plus `tags` (unknown
tagged fields by number, or None). A field's default is 0, False, the uuid of zeros or empty, unless `Default`
or `Nullable` is around its word.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Mapping
from types import FrameType
from typing import Any, NamedTuple

from construct import Container, Renamed

from schemas._values import (
    Array,
    Boolean,
    BrokerHost,
    BrokerId,
    BrokerPort,
    Bytes,
    Embedded,
    Encoding,
    ErrorCode,
    Fixed,
    Float64,
    GroupId,
    InstanceId,
    Int8,
    Int16,
    Int32,
    Int64,
    LongErrorCode,
    LongString,
    MemberId,
    ProducerId,
    Records,
    Rest,
    RestRecords,
    Sequence,
    ShortBrokerPort,
    String,
    TopicName,
    TransactionalId,
    Uint16,
    Uint32,
    Uuid,
    Varint,
    Varlong,
    refuse,
)
from schemas._words import FOREVER, Between, Default, Named, Nullable, Secret, Since, Struct, Tagged, Until

__all__ = [
    "FOREVER",
    "Api",
    "Array",
    "Between",
    "Boolean",
    "BrokerHost",
    "BrokerId",
    "BrokerPort",
    "Bytes",
    "Data",
    "Default",
    "Embedded",
    "Encoding",
    "ErrorCode",
    "Fixed",
    "Float64",
    "GroupId",
    "InstanceId",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "LongErrorCode",
    "LongString",
    "MemberId",
    "Named",
    "Nullable",
    "ProducerId",
    "Records",
    "Rest",
    "RestRecords",
    "Secret",
    "Sequence",
    "ShortBrokerPort",
    "Since",
    "String",
    "Struct",
    "Tagged",
    "TopicName",
    "TransactionalId",
    "Uint16",
    "Uint32",
    "Until",
    "Uuid",
    "Varint",
    "Varlong",
]


def _is_of_words(module: str) -> bool:
    """Whether a module has words only: this one, and those whose names begin with an underscore."""
    return module == __name__ or module.rpartition(".")[2].startswith("_")


def _declaring_module() -> str:
    """The schema module that is being executed, found as `typing.TypeVar` finds its own."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and _is_of_words(frame.f_globals["__name__"]):
        frame = frame.f_back
    return str(frame.f_globals["__name__"]) if frame else ""


ANSWERED_BY = (
    "any broker",
    "every broker",
    "controller",
    "coordinator",
    "leader",
    "broker of the resource",
    "broker of the replicas",
)
"""Who answers a request. "every broker": each with its own part of the answer. "broker of the resource": the
one that a resource of the types broker and broker logger names, any for other resources. "broker of the
replicas": one that holds them, which the request does not name."""


class LogRole(NamedTuple):
    """A message's place in a log that brokers keep: which log, which type of record, "key" or "value"."""

    log: str
    record_type: int
    role: str


class Message(Struct):
    """A struct of its own: a request, a response, a header, or a value inside other bytes.

    name: as Kafka's; versions: first and last; flexible: the first flexible version, or None.
    api: what it belongs to; direction: "request", "response", "header" or "data".
    log_role: its place in a broker's own log, if it has one.
    short_counts: whether its counts are int16.
    module: the schema module that declares it (others may embed it).
    """

    def __init__(self, *fields: Renamed, name: str, versions: tuple[int, int], flexible: int | None,
                 direction: str, doc: str = "", api: Api | None = None,
                 log_role: LogRole | None = None, short_counts: bool = False) -> None:  # fmt: skip
        super().__init__(*fields, doc=doc)
        self.name = name
        self.versions = range(versions[0], versions[1] + 1)
        self.flexible = flexible
        self.direction = direction
        self.api = api
        self.log_role = log_role
        self.short_counts = short_counts
        self.module = _declaring_module()

    def encoding(self, version: int) -> Encoding:
        if version not in self.versions:
            raise refuse(f"{self.name} has no version {version}", self.name)
        if self.flexible is not None and version >= self.flexible:
            return Encoding.FLEXIBLE
        return Encoding.SHORT_COUNTS if self.short_counts else Encoding.CLASSIC

    def parse(self, data: bytes, *, version: int) -> Container:
        """The value of these bytes, all of them. Raises a construct error, or UnicodeDecodeError."""
        stream = io.BytesIO(data)
        value = self.parse_stream(stream, version=version, encoding=self.encoding(version))
        if stream.read(1):
            raise refuse("trailing bytes", self.name)
        return value

    def build(self, obj: Any, *, version: int) -> bytes:
        """The bytes of this value; fields that it lacks have their defaults. Raises a construct error."""
        stream = io.BytesIO()
        self.build_stream(obj, stream, version=version, encoding=self.encoding(version))
        return stream.getvalue()


class Unreleased:
    """Whether versions that no release of Kafka has exist; set before schemas are imported."""

    are_included = False


UNRELEASED = Unreleased()


class Api:
    """An API: an api key with its request and response.

    versions: first and last that this package knows; flexible: the first flexible one.
    coordinator: which coordinator answers it ("group", "transaction", "share"), None where none does: that of
    the group, transactional id or share partition in the request. partitions: the path of the partitions
    whose leaders, or share coordinators, answer it. answered_by: who else does, one of `ANSWERED_BY`. A
    request that names several of these may be split among the brokers. modifies: whether it changes something
    in the cluster, members of a group and records included; or a field with the value with which it does.
    doc: what it is for; changes: what a version brought, with its KIP.
    listeners: which of Kafka's listeners accept it ("broker", "controller", and "zkBroker" where only the
    brokers of a ZooKeeper cluster did). deprecated: the first and the last version that Kafka deprecated.
    unstable: the version whose layout may still change. unreleased: the first version that no release of
    Kafka has; it and later ones are declared, and exist only where `UNRELEASED.are_included`.
    errors: the codes that a response is known to carry, as Kafka names them; none where that is unknown.
    A mapping also states the condition in which each error comes, "" where that is unknown.
    request_headers, response_headers: the header before a message, as {first version: header version}.
    Where they are not given, flexible versions have the first flexible header, and others the one before it.
    """

    def __init__(self, key: int, name: str, *, versions: tuple[int, int], flexible: int | None,
                 coordinator: str | None = None, partitions: str | None = None,
                 answered_by: str | None = None, modifies: bool | tuple[str, bool] = False,
                 listeners: tuple[str, ...] = ("broker",),
                 deprecated: tuple[int, int] | None = None, unstable: int | None = None,
                 unreleased: int | None = None, doc: str = "",
                 changes: dict[int, str] | None = None, errors: tuple[str, ...] | Mapping[str, str] = (),
                 request_headers: dict[int, int] | None = None,
                 response_headers: dict[int, int] | None = None) -> None:  # fmt: skip
        self.key = key
        self.name = name
        self.versions = versions
        self.flexible = flexible
        self.coordinator = coordinator
        self.partitions = partitions
        self.answered_by = (
            "coordinator" if coordinator else "leader" if partitions else answered_by or "any broker"
        )
        self.modifies = modifies
        self.listeners = listeners
        self.deprecated = deprecated
        self.unstable = unstable
        self.doc = doc
        self.changes = changes or {}
        self.errors = tuple(errors)
        self.error_conditions = dict(errors) if isinstance(errors, Mapping) else {}
        self.request_headers = request_headers or self._headers(1, 2)
        self.response_headers = response_headers or self._headers(0, 1)
        self.unreleased = unreleased
        if unreleased is not None and not UNRELEASED.are_included:
            self._leave_out(unreleased)

    def _leave_out(self, unreleased: int) -> None:
        """Leave out the versions from this one on."""
        first = self.versions[0]
        self.versions = first, unreleased - 1
        if self.flexible is not None and self.flexible >= unreleased:
            self.flexible = None
        for of_versions in (self.changes, self.request_headers, self.response_headers):
            for version in [version for version in of_versions if version >= unreleased]:
                del of_versions[version]

    def _headers(self, fixed: int, flexible: int) -> dict[int, int]:
        """The header versions that follow from the flexible versions alone."""
        first, last = self.versions
        if self.flexible is None or self.flexible > last:
            return {first: fixed}
        return {first: flexible} if self.flexible <= first else {first: fixed, self.flexible: flexible}

    def request(self, *fields: Renamed, doc: str = "") -> Message:
        return self._message(fields, "Request", doc)

    def response(self, *fields: Renamed, doc: str = "") -> Message:
        return self._message(fields, "Response", doc)

    def _message(self, fields: Iterable[Renamed], kind: str, doc: str) -> Message:
        return Message(*fields, name=self.name + kind, versions=self.versions, flexible=self.flexible,
                       direction=kind.lower(), doc=doc, api=self)  # fmt: skip


LOGS = {
    "consumer_offsets": "__consumer_offsets",
    "transaction_state": "__transaction_state",
    "share_group_state": "__share_group_state",
    "metadata": "__cluster_metadata",
}
"""The logs that brokers write for themselves, with their topics."""


def Data(name: str, *, versions: tuple[int, int], flexible: int | None = None, direction: str = "data",
         doc: str = "", log: str | None = None, record_type: int = 0, role: str = "value",
         encoding: Encoding = Encoding.CLASSIC) -> Callable[..., Message]:  # fmt: skip
    """A message without an api key: `Data("EndTxnMarker", versions=(0, 0))("coordinator_epoch" / Int32)`.

    log: one of `LOGS`, for what is in one; record_type: its type there; role: "key" or "value".
    encoding: of the versions that aren't flexible.
    """

    def declare(*fields: Renamed) -> Message:
        place = None if log is None else LogRole(log, record_type, role)
        return Message(*fields, name=name, versions=versions, flexible=flexible, direction=direction,
                       doc=doc, log_role=place,
                       short_counts=encoding is Encoding.SHORT_COUNTS)  # fmt: skip

    return declare
