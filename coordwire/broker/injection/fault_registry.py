"""`Faults`: the rules of a broker, and a handle for each, from any thread.

    fault = broker.faults.add(FaultRule("Heartbeat", group="g", nth=3, error="REBALANCE_IN_PROGRESS"))
    fault.wait()                         until it has fired; `await fault.wait()` in a coroutine
    assert fault.hits == 1

Strategy: a list of handles, guarded by a lock; a broker asks for the rules that take a request only while
any is active. Rules: all rules that match a request apply, in the order in which they were added. A rule that
has fired as often as it may is not active any more. `check` reports rules that never fired.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import random
import threading
from collections.abc import Callable
from contextlib import suppress

from coordwire.broker.injection.fault_rule import FaultRule, Incoming, parse_fault
from coordwire.broker.injection.lawful_rules import drawn_rules
from coordwire.broker.injection.waits import Settled, Waits

_KEPT = 1_000
_TIMEOUT = 10.0


class FaultNotReached(AssertionError):
    """A rule never fired, or its predicate failed: the test has not tested what it meant to."""


class FaultHandle:
    """A rule at work. hits: how many requests it has taken; matches: how many met its conditions; requests:
    those that it took, up to 1,000; failure: what its predicate raised.

    >>> from coordwire.broker import Broker
    >>> Broker().faults.add("Fetch topic=orders disconnect")
    <fault Fetch topic=orders disconnect: it had 0, of 0 requests that matched>
    """

    def __init__(self, faults: Faults, rule: FaultRule) -> None:
        self.rule = rule
        self.hits = 0
        self.matches = 0
        self.requests: list[Incoming] = []
        self.failure: Exception | None = None
        self._faults = faults
        self._random = random.Random(rule.seed)
        self._waiting: list[tuple[int, concurrent.futures.Future[int]]] = []
        self._holds: list[Callable[[], None]] = []

    @property
    def is_spent(self) -> bool:
        """Whether it has taken as many requests as it should."""
        return self.rule.times is not None and self.hits >= self.rule.times

    @property
    def held(self) -> int:
        """How many requests wait for `release`."""
        return len(self._holds)

    def wait(self, hits: int = 1, *, timeout: float = _TIMEOUT) -> Settled[int]:
        """Until it has fired so often: blocks, or is awaited in a coroutine. Raises `TimeoutError`."""
        reached: concurrent.futures.Future[int] = concurrent.futures.Future()
        with self._faults.lock:
            if self.hits >= hits:
                reached.set_result(self.hits)
            else:
                self._waiting.append((hits, reached))
        condition = f"{hits} hit{'s' * (hits != 1)} of the fault {self.rule}"
        return self._faults.waits.settle(reached, timeout, condition, self._so_far)

    def _so_far(self) -> str:
        return f"it had {self.hits}, of {self.matches} requests that matched"

    def release(self) -> None:
        """Let the requests go on that wait now."""
        with self._faults.lock:
            waiting, self._holds = self._holds, []
        for resume in waiting:
            self._faults.run_soon(resume)

    def remove(self) -> None:
        """Take no more requests, and let go those that wait."""
        self._faults.removed(self)
        self.release()

    # --- for the broker ---

    def take(self, request: Incoming) -> bool:
        """Whether it takes a request."""
        rule = self.rule
        try:
            if not rule.is_for(request):
                return False
        except Exception as error:  # a user's predicate
            self.failure = self.failure or error
            return False
        self.matches += 1
        if self.matches < rule.nth or self.is_spent:
            return False
        if rule.probability < 1 and self._random.random() >= rule.probability:
            return False
        self.hits += 1
        if len(self.requests) < _KEPT:
            self.requests.append(request)
        for hits, reached in self._waiting:
            if self.hits >= hits and reached.set_running_or_notify_cancel():
                reached.set_result(self.hits)
        self._waiting = [waiter for waiter in self._waiting if self.hits < waiter[0]]
        return True

    def hold(self, resume: Callable[[], None]) -> None:
        """Hold a request, until `resume` is called."""
        with self._faults.lock:
            self._holds.append(resume)

    def let_go(self, resume: Callable[[], None]) -> None:
        """Drop a held request, since its client has left."""
        with self._faults.lock, suppress(ValueError):
            self._holds.remove(resume)

    def __repr__(self) -> str:
        return f"<fault {self.rule}: {self._so_far()}>"


class Faults:
    """The rules of one broker. all: every rule that was added and not removed before it fired; waits: what
    is waited for with this broker.

    >>> from coordwire.broker import Broker
    >>> broker = Broker()
    >>> handle = broker.faults.add("JoinGroup group=orders error=NOT_COORDINATOR times=2")
    >>> broker.faults
    <Faults: 1 of 1 active>
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.waits = Waits()
        self.all: list[FaultHandle] = []
        self.active: list[FaultHandle] = []
        self._loop: asyncio.AbstractEventLoop | None = None

    def __repr__(self) -> str:
        return f"<Faults: {len(self.active)} of {len(self.all)} active>"

    def add(self, rule: FaultRule | str) -> FaultHandle:
        """Add a rule, which may be a text. Raises `FaultyRule`."""
        handle = FaultHandle(self, parse_fault(rule) if isinstance(rule, str) else rule)
        with self.lock:
            self.all.append(handle)
            self.active = [*self.active, handle]
        return handle

    def draw(self, seed: int) -> list[FaultHandle]:
        """Add rules that a seed draws, of errors and ended connections that every client has to live with.

        Each takes about a fifth of its requests, as long as the broker runs, and need not fire. A seed has
        the same rules each time; which requests they take depends on the order in which these come.

        >>> from coordwire.broker import Broker
        >>> faults = Broker().faults
        >>> drawn = faults.draw(17)
        >>> faults
        <Faults: 11 of 11 active>
        """
        return [self.add(rule) for rule in drawn_rules(seed)]

    def clear(self) -> None:
        """Remove all rules, and let go what they hold."""
        with self.lock:
            handles, self.all, self.active = self.all, [], []
        for handle in handles:
            handle.release()

    def check(self) -> None:
        """Raise `FaultNotReached` if a rule never fired that is not optional, or its predicate failed."""
        problems = []
        with self.lock:
            for handle in self.all:
                if handle.failure is not None:
                    problems.append(f"the predicate of {handle.rule} raised {handle.failure!r}")
                elif not handle.hits and not handle.rule.optional:
                    problems.append(f"never fired: {handle.rule} ({handle.matches} requests matched)")
        if problems:
            raise FaultNotReached("\n".join(problems))

    # --- for the broker ---

    def bind(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Set the broker's loop; None when it has ended."""
        self._loop = loop

    def run_soon(self, action: Callable[[], None]) -> None:
        """Run something in the broker's loop."""
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # it has been closed meanwhile
                loop.call_soon_threadsafe(action)

    def matching(self, request: Incoming) -> list[FaultHandle]:
        """The rules that take a request."""
        with self.lock:
            handles = [handle for handle in self.active if handle.take(request)]
            if any(handle.is_spent for handle in handles):
                self.active = [handle for handle in self.active if not handle.is_spent]
            return handles

    def removed(self, handle: FaultHandle) -> None:
        """Deactivate a rule; one that has not fired is not missed by `check`."""
        with self.lock:
            self.active = [element for element in self.active if element is not handle]
            if not handle.hits:
                self.all = [element for element in self.all if element is not handle]
