"""What a simulated world replaces in packages of others, where they go past asyncio and Python's library.

    aiokafka            builders of batches in C ask the system's clock: the same in Python ask `time`
                        producers without a client id count over the whole process: each world counts anew
                        nodes come from a set, of which one is drawn: the same nodes in their own order
    anyio               runs functions in threads of its own: the loop's executor runs them
    aiohappyeyeballs    connects real sockets, for aiohttp's client: the world's network connects

Rules: a package is not imported for it. Outside of a world all does what it always did.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from contextvars import copy_context
from importlib import import_module
from typing import Any

__all__ = ["DialedSocket", "counting_anew", "package_replacements"]

_Replacement = tuple[Any, str, Any]
"""Where something is, its name, what comes there."""

_PYTHON_VARIANTS = {
    "aiokafka.record.default_records": ("DefaultRecordBatchBuilder", "_DefaultRecordBatchBuilderPy"),
    "aiokafka.record.legacy_records": ("LegacyRecordBatchBuilder", "_LegacyRecordBatchBuilderPy"),
}
"""Classes in C, with the same in Python, by their module."""

_COUNTERS = (("aiokafka.producer.producer", "AIOKafkaProducer", "_PRODUCER_CLIENT_ID_SEQUENCE"),)
"""Numbers that classes count from 0."""


def package_replacements(current: Callable[[], object]) -> list[_Replacement]:
    """What is replaced, of packages that are loaded. current: the world that runs, or None."""
    return [*_python_variants(), *_ordered_nodes(), *_anyio(current), *_aiohappyeyeballs(current)]


def _python_variants() -> Iterator[_Replacement]:
    for name, (used, variant) in _PYTHON_VARIANTS.items():
        module = sys.modules.get(name)
        if module is not None and hasattr(module, used) and hasattr(module, variant):
            yield module, used, getattr(module, variant)


def _ordered_nodes() -> Iterator[_Replacement]:
    module = sys.modules.get("aiokafka.cluster")
    if module is None:
        return
    original = vars(module.ClusterMetadata)["brokers"]

    def brokers(self: Any) -> Set[Any]:
        nodes = sorted(original(self), key=lambda node: str(node.nodeId))
        return dict.fromkeys(nodes).keys()

    yield module.ClusterMetadata, "brokers", brokers


@contextmanager
def counting_anew() -> Iterator[None]:
    """Counters begin at 0, and have afterwards what they had."""
    before = []
    for module, cls, name in _COUNTERS:
        holder = getattr(sys.modules.get(module), cls, None)
        if hasattr(holder, name):
            before.append((holder, name, getattr(holder, name)))
            setattr(holder, name, 0)
    try:
        yield
    finally:
        for holder, name, value in before:
            setattr(holder, name, value)


def _anyio(current: Callable[[], object]) -> Iterator[_Replacement]:
    if "anyio" not in sys.modules:
        return
    module = import_module("anyio._backends._asyncio")  # which anyio loads when it is first used
    backend = module.AsyncIOBackend
    original = vars(backend)["run_sync_in_worker_thread"]

    async def run_sync(
        cls: Any,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        abandon_on_cancel: bool = False,
        limiter: Any = None,
    ) -> Any:
        if current() is None:
            return await original.__get__(None, cls)(func, args, abandon_on_cancel, limiter)
        await cls.checkpoint()
        async with limiter or cls.current_default_thread_limiter():
            with module.CancelScope(shield=not abandon_on_cancel):
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(None, copy_context().run, func, *args)

    yield backend, "run_sync_in_worker_thread", classmethod(run_sync)


class DialedSocket:
    """An address for `loop.create_connection(sock=…)`, which connects to it."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port

    def __repr__(self) -> str:
        return f"<DialedSocket to {self.host}:{self.port}>"

    def close(self) -> None:
        """There is nothing to close before the connection."""


def _aiohappyeyeballs(current: Callable[[], object]) -> Iterator[_Replacement]:
    module = sys.modules.get("aiohappyeyeballs")
    if module is None:
        return
    original = module.start_connection

    async def start_connection(addr_infos: Any, **options: Any) -> Any:
        if current() is None:
            return await original(addr_infos, **options)
        return DialedSocket(*addr_infos[0][4][:2])

    yield module, "start_connection", start_connection
