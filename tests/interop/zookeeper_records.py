"""Apache ZooKeeper's records and our messages: which is which, and the values of one as the other's."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

from coordwire.codec import Message
from coordwire.codec.walk import fields_of
from coordwire.messages import find_message

REQUESTS = {
    "AddWatchRequest": "AddWatch", "AuthPacket": "Auth", "CheckVersionRequest": "Check",
    "CheckWatchesRequest": "CheckWatches", "CreateRequest": "Create", "CreateTTLRequest": "CreateTtl",
    "DeleteRequest": "Delete", "ExistsRequest": "Exists", "GetACLRequest": "GetAcl",
    "GetAllChildrenNumberRequest": "GetAllChildrenNumber", "GetChildren2Request": "GetChildren2",
    "GetChildrenRequest": "GetChildren", "GetDataRequest": "GetData", "GetEphemeralsRequest": "GetEphemerals",
    "GetSASLRequest": "Sasl", "ReconfigRequest": "Reconfig", "RemoveWatchesRequest": "RemoveWatches",
    "SetACLRequest": "SetAcl", "SetDataRequest": "SetData", "SetWatches": "SetWatches",
    "SetWatches2": "SetWatches2", "SyncRequest": "Sync",
}  # fmt: skip
RESPONSES = {
    "Create2Response": "Create2", "CreateResponse": "Create", "ErrorResponse": "AddWatch",
    "ExistsResponse": "Exists", "GetACLResponse": "GetAcl",
    "GetAllChildrenNumberResponse": "GetAllChildrenNumber", "GetChildren2Response": "GetChildren2",
    "GetChildrenResponse": "GetChildren", "GetDataResponse": "GetData",
    "GetEphemeralsResponse": "GetEphemerals", "SetACLResponse": "SetAcl", "SetDataResponse": "SetData",
    "SetSASLResponse": "Sasl", "SyncResponse": "Sync", "WhoAmIResponse": "WhoAmI",
}  # fmt: skip
ALONE = {
    "CheckVersionRequest": "CheckOperation", "ConnectRequest": "CreateSessionRequest",
    "ConnectResponse": "CreateSessionResponse", "Create2Response": "Create2Result",
    "CreateRequest": "CreateOperation", "CreateResponse": "CreateResult",
    "CreateTTLRequest": "CreateTtlOperation", "DeleteRequest": "DeleteOperation",
    "ErrorResponse": "ErrorResult", "GetChildrenResponse": "GetChildrenResult",
    "GetDataRequest": "ReadOperation", "GetDataResponse": "GetDataResult", "MultiHeader": "OperationHeader",
    "SetDataRequest": "SetDataOperation", "SetDataResponse": "SetDataResult",
}  # fmt: skip
"""By a record's class, the message that has it: after a header, or by itself, where one has."""

RENAMED = {
    ("AuthPacket", "type"): "auth_type", ("CheckWatchesRequest", "type"): "watcher_type",
    ("RemoveWatchesRequest", "type"): "watcher_type", ("AddWatchResponse", "err"): "result",
}  # fmt: skip
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def message_of(classes: list[str], fields: list[Mapping[str, Any]]) -> tuple[Message, int] | None:
    """The message that these records are, one after the other, and its version; None where we have none."""
    if len(classes) == 1:
        name = ALONE.get(classes[0])
        if name is None:
            return None
        cls = find_message(f"ZooKeeper{name}")
        version = int("readOnly" in fields[0]) if name.startswith("CreateSession") else 0
        return _filled(cls, classes[0], fields[0], {}), version
    header = {_snake("", name): value for name, value in fields[0].items()}
    if classes[1] == "WatcherEvent":
        return _filled(find_message("ZooKeeperWatcherEvent"), "WatcherEvent", fields[1], header), 0
    if classes[0] == "RequestHeader":
        cls = find_message(f"ZooKeeper{REQUESTS[classes[1]]}Request")
        return _filled(cls, classes[1], fields[1], header), 0
    cls = find_message(f"ZooKeeper{RESPONSES[classes[1]]}Response")
    record = "AddWatchResponse" if classes[1] == "ErrorResponse" else classes[1]
    return _filled(cls, record, fields[1], header), 1


def _snake(cls: str, name: str) -> str:
    if (cls, name) in RENAMED:
        return RENAMED[cls, name]
    return "error_code" if name == "err" else _WORD.sub("_", name).lower()


def _filled(cls: Any, record: str, values: Mapping[str, Any], header: Mapping[str, Any]) -> Any:
    """A message with a record's values. Raises `AssertionError` for a value that it has no field for."""
    values = dict(header) | {_snake(record, name): value for name, value in values.items()}
    if cls.__name__ == "ZooKeeperAcl":
        values = {"perms": values["perms"], **(values["id"])}
    fields = {field.name: field for field in fields_of(cls)}
    assert values.keys() <= fields.keys(), (cls, values.keys() - fields.keys())
    return cls(**{name: _value(fields[name], value) for name, value in values.items()})


def _value(field: Any, value: Any) -> Any:
    if value is None:
        return None
    if field.array:
        return [_filled(field.struct, "", item, {}) if field.struct else item for item in value]
    if field.struct is not None:
        return _filled(field.struct, "", value, {})
    return base64.b64decode(value) if field.type == "bytes" else value
