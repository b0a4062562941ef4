"""The nodes of a cluster, as clients see them."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ClusterNode"]


@dataclass(slots=True)
class ClusterNode:
    """A broker's id, the address that clients are given, and its rack. port: 0 until it listens."""

    id: int
    host: str = "127.0.0.1"
    port: int = 0
    rack: str | None = None
