"""kazoo at a ZooKeeper server, and what it was told: `tests.interop.zookeeper_kazoo PORT SEED COUNT`.

The lines are those of `java/zookeeper/Traffic.java`. Needs kazoo (2.10).
"""

from __future__ import annotations

import base64
import json
import random
import socket
import sys
import time
from typing import Any

PATHS = ["/k", "/k/a", "/k/b", "/k/a/x", "/k/é", "/k/" + "n" * 200]


def text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def data_and_stat(result: Any) -> list[Any]:
    return [text(result[0]), list(result[1])]


def acl_and_stat(result: Any) -> list[Any]:
    acl, stat = result
    return [[[entry.perms, entry.id.scheme, entry.id.id] for entry in acl], list(stat)]


KINDS = {
    "CREATED": "NodeCreated", "DELETED": "NodeDeleted", "CHANGED": "NodeDataChanged",
    "CHILD": "NodeChildrenChanged",
}  # fmt: skip


def _random_operation(told: Any, draw: random.Random, client: Any, watch: Any) -> None:
    path, data = draw.choice(PATHS), draw.randbytes(draw.randrange(30))
    version, watcher = draw.randrange(-1, 3), draw.choice((None, None, watch))
    match draw.randrange(7):
        case 0 | 1:
            options = {"ephemeral": draw.choice((True, False)), "sequence": draw.choice((True, False))}
            told("create", path, lambda: client.create(path, data, **options))
        case 2:
            told("delete", path, lambda: client.delete(path, version), lambda _: None)
        case 3:
            told("exists", path, lambda: client.exists(path, watcher) or (), list)
        case 4:
            told("getData", path, lambda: client.get(path, watcher), data_and_stat)
        case 5:
            told("setData", path, lambda: client.set(path, data, version), list)
        case _:
            told(
                "getChildren2",
                path,
                lambda: client.get_children(path, watcher, True),
                lambda result: [result[0], list(result[1])],
            )


def run(port: int, seed: int, count: int) -> None:
    from kazoo.client import KazooClient
    from kazoo.exceptions import KazooException

    def told(op: str, path: str | None, call: Any, form: Any = lambda value: value) -> None:
        error, result = 0, None
        try:
            result = form(call())
        except KazooException as refusal:
            error = refusal.code
        print(json.dumps({"op": op, "path": path, "error": error, "result": result}), flush=True)

    events: list[dict[str, Any]] = []

    def watch(event: Any) -> None:
        names = {
            "CREATED": "NodeCreated",
            "DELETED": "NodeDeleted",
            "CHANGED": "NodeDataChanged",
            "CHILD": "NodeChildrenChanged",
        }
        events.append({"event": names[event.type], "path": event.path})

    draw = random.Random(seed)
    one = KazooClient(f"127.0.0.1:{port}", timeout=4, auth_data=[("digest", "user:pass-word")])
    two = KazooClient(f"127.0.0.1:{port}", timeout=4)
    for client in (one, two):
        client.start()
        print(json.dumps({"op": "connect", "session": client._session_id}), flush=True)
    from kazoo.security import CREATOR_ALL_ACL

    told("create", "/k", lambda: one.create("/k", b""))
    for _ in range(count):
        _random_operation(told, draw, draw.choice((one, two)), watch)
    told("create", "/mine", lambda: one.create("/mine", b"m", acl=CREATOR_ALL_ACL))
    told("getACL", "/mine", lambda: one.get_acls("/mine"), acl_and_stat)
    told("getData", "/mine", lambda: two.get("/mine"), data_and_stat)
    told("sync", "/k", lambda: two.sync("/k"), lambda _: None)
    transaction = two.transaction()
    transaction.create("/k/t", b"1")
    transaction.check("/k/t", 0)
    transaction.set_data("/k/t", b"2")
    transaction.delete("/k/t")
    print(
        json.dumps({"op": "multi", "path": "/k", "error": 0, "result": len(transaction.commit())}), flush=True
    )
    time.sleep(2)  # pings
    for event in events:
        print(json.dumps(event))
    for client in (one, two):
        client.stop()
        print(json.dumps({"op": "close"}), flush=True)
    with socket.create_connection(("127.0.0.1", port)) as word:
        word.sendall(b"ruok")
        print(json.dumps({"op": "ruok", "bytes": len(word.recv(100))}))


if __name__ == "__main__":
    run(*map(int, sys.argv[1:4]))
