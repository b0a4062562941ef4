"""The nodes of a cluster, as clients see them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["ClusterNode", "LogDirState"]


class LogDirState(Enum):
    """The state of a node's log directory. FULL: the next append fails, and takes it offline."""

    ONLINE = "online"
    FULL = "full"
    OFFLINE = "offline"


@dataclass(slots=True)
class ClusterNode:
    """A broker's id, the address that clients are given, and its rack. port: 0 until it listens."""

    id: int
    host: str = "127.0.0.1"
    port: int = 0
    rack: str | None = None
    log_dir: LogDirState = LogDirState.ONLINE
