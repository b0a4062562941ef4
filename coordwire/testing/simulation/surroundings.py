"""The surroundings of an event loop that a simulated world replaces: clocks, randomness, and the ways out.

Strategy: each function is replaced by one that asks for the world that runs in this thread, and does what it
always did where there is none. Modules that have taken a function by its name (`from time import time`) get
the replacement too. Methods of `datetime` are replaced in the class itself, whose name may be anywhere.
Rules: other threads see nothing of it. Everything is as before when `installed` ends. What would leave the
world raises `LeftTheWorld`, which names the line, and is kept: a run fails even where a client swallows it.
"""

from __future__ import annotations

import _thread
import ctypes
import gc
import os
import platform
import queue
import random
import socket
import subprocess
import sys
import sysconfig
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta, tzinfo
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any, Literal, Protocol, cast

from coordwire.errors import CoordwireError
from coordwire.testing.simulation.packages import counting_anew, package_replacements

try:
    import _posixsubprocess
except ImportError:  # Windows
    _posixsubprocess = None  # type: ignore[assignment]

__all__ = [
    "EPOCH",
    "EXITS",
    "EnteredWorld",
    "Exit",
    "LeftTheWorld",
    "current",
    "entered",
    "installed",
    "is_outside",
    "line_outside",
    "unheard",
]

Exit = Literal["threads", "sockets", "subprocesses", "fsync"]
"""A way out of the world, by the name that allows it."""

EXITS: tuple[Exit, ...] = ("threads", "sockets", "subprocesses", "fsync")

EPOCH = 1_767_225_600
"""The time of each world's beginning, in seconds since 1970: 2026-01-01, 00:00 UTC."""

_BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
_HERE = str(Path(__file__).parent)
_LIBRARY = str(Path(sysconfig.get_path("stdlib")))


class LeftTheWorld(CoordwireError):
    """Something was done that a simulated world does not have, such as a real socket."""


class EnteredWorld(Protocol):
    """A world, as far as what is replaced needs it."""

    allow: frozenset[str]

    @property
    def thread(self) -> int:
        """The identifier of the thread that it runs in."""

    def monotonic(self) -> float:
        """Seconds since the world's beginning."""

    def wall(self) -> float:
        """Seconds since its beginning by the clock of the machine that asks."""

    def random_bytes(self, size: int) -> bytes: ...

    def pass_time(self, seconds: float) -> None:
        """The machine that asks does nothing else for so long."""

    def refused(self, refusal: LeftTheWorld) -> None:
        """Something was refused."""

    def start_thread(self, thread: threading.Thread, start: Callable[[threading.Thread], None]) -> None:
        """Start a thread for which the world waits."""

    def wait_in_thread(
        self, condition: threading.Condition, wait: Callable[..., bool], timeout: float | None
    ) -> bool:
        """Let a thread of the world, or another one, wait."""


_world: EnteredWorld | None = None
_thread_of_world = 0


def current() -> EnteredWorld | None:
    """The world that runs in this thread."""
    if _world is None or _thread.get_ident() != _thread_of_world:
        return None
    return _world


def is_outside(name: str) -> bool:
    """Whether a file of code is neither one of Python's library nor of this package."""
    is_library = name.startswith(_LIBRARY) and "site-packages" not in name
    return not (is_library or name.startswith((_HERE, "<")))


def line_outside(frame: FrameType | None = None) -> str:
    """The innermost line of such code that runs, or from a frame on: "file.py:12"."""
    frame = sys._getframe(1) if frame is None else frame
    while frame is not None:
        if is_outside(frame.f_code.co_filename):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return "an unknown line"


def refuse(world: EnteredWorld, way: str, deed: str) -> LeftTheWorld:
    """The refusal of something, which the world has been given."""
    hint = f"; allow it by allow=({way!r},)" if way in EXITS else ""
    refusal = LeftTheWorld(f"{line_outside()} {deed}, which would leave the simulated world{hint}")
    world.refused(refusal)
    return refusal


# --- clocks ---


def _seconds(original: Callable[[], float], *, is_wall: bool) -> Callable[[], float]:
    def clock() -> float:
        world = current()
        if world is None:
            return original()
        return EPOCH + world.wall() if is_wall else world.monotonic()

    return clock


def _nanoseconds(original: Callable[[], int], *, is_wall: bool) -> Callable[[], int]:
    def clock() -> int:
        world = current()
        if world is None:
            return original()
        return (
            EPOCH * 1_000_000_000 + round(world.wall() * 1e9) if is_wall else round(world.monotonic() * 1e9)
        )

    return clock


def _now_at(original: Callable[..., Any], in_world: Callable[..., Any]) -> Callable[..., Any]:
    """`original` for a time that is given, or outside; `in_world` is given the world's time."""

    def convert(seconds: float | None = None, /) -> Any:
        world = current()
        if world is None:
            return original() if seconds is None else original(seconds)
        return in_world(EPOCH + world.wall() if seconds is None else seconds)

    return convert


def _numbered(original: Callable[[int], Any], wall: Callable[[], Any], passed: Callable[[], Any]) -> Any:
    """`time.clock_gettime`: one clock has the date, the others how much time has passed."""

    def clock(number: int, /) -> Any:
        if current() is None:
            return original(number)
        return wall() if number == time.CLOCK_REALTIME else passed()

    return clock


def _strftime(original: Callable[..., str]) -> Callable[..., str]:
    def strftime(form: str, moment: Any = None, /) -> str:
        world = current()
        if moment is None and world is not None:
            moment = time.gmtime()
        return original(form) if moment is None else original(form, moment)

    return strftime


def _sleep(original: Callable[[float], None]) -> Callable[[float], None]:
    def sleep(seconds: float, /) -> None:
        world = current()
        if world is None:
            original(seconds)
        else:
            world.pass_time(seconds)

    return sleep


def _moment(world: EnteredWorld) -> datetime:
    return _BEGINNING + timedelta(microseconds=round(world.wall() * 1e6))


def _as(cls: type[datetime], moment: datetime) -> datetime:
    """A moment as one of a subclass."""
    if cls is datetime:
        return moment
    return cls.combine(moment.date(), moment.timetz())


def _methods() -> list[tuple[type, str, Any]]:
    """The methods of dates that ask a clock, with their replacements."""
    now, utcnow = datetime.__dict__["now"], datetime.__dict__["utcnow"]
    today = date.__dict__["today"]

    def now_in_world(cls: type[datetime], tz: tzinfo | None = None) -> datetime:
        world = current()
        if world is None:
            return cast("datetime", now.__get__(None, cls)(tz))
        moment = _moment(world)
        return _as(cls, moment.replace(tzinfo=None) if tz is None else moment.astimezone(tz))

    def utcnow_in_world(cls: type[datetime]) -> datetime:
        world = current()
        if world is None:
            return cast("datetime", utcnow.__get__(None, cls)())
        return _as(cls, _moment(world).replace(tzinfo=None))

    def today_in_world(cls: type[date]) -> date:
        world = current()
        if world is None:
            return cast("date", today.__get__(None, cls)())
        moment = _moment(world).replace(tzinfo=None)
        if issubclass(cls, datetime):
            return _as(cls, moment)
        return cls(moment.year, moment.month, moment.day)

    return [
        (datetime, "now", classmethod(now_in_world)),
        (datetime, "utcnow", classmethod(utcnow_in_world)),
        (date, "today", classmethod(today_in_world)),
    ]


# --- randomness ---


def _random_bytes(original: Callable[..., bytes]) -> Callable[..., bytes]:
    def random_bytes(size: int, *flags: int) -> bytes:
        world = current()
        return original(size, *flags) if world is None else world.random_bytes(size)

    return random_bytes


def _seed(original: Callable[..., None]) -> Callable[..., None]:
    def seed(self: random.Random, a: Any = None, version: int = 2) -> None:
        world = current()
        if a is None and world is not None:
            a = int.from_bytes(world.random_bytes(32))
        original(self, a, version)

    return seed


def _module_seed(original: Callable[..., None]) -> Callable[..., None]:
    def seed(a: Any = None, version: int = 2) -> None:
        world = current()
        original(int.from_bytes(world.random_bytes(32)) if a is None and world is not None else a, version)

    return seed


def _time_uuid(original: Any) -> Callable[[], tuple[bytes, int | None]]:
    def generate() -> tuple[bytes, int | None]:
        world = current()
        if world is None:
            return cast("tuple[bytes, int | None]", original())
        return world.random_bytes(16), None

    return generate


# --- ways out ---


def _guarded(original: Callable[..., Any], way: Exit, deed: str) -> Callable[..., Any]:
    def guarded(*args: Any, **kwargs: Any) -> Any:
        world = current()
        if world is not None and way not in world.allow:
            raise refuse(world, way, deed)
        return original(*args, **kwargs)

    return guarded


def _thread_start(original: Callable[[threading.Thread], None]) -> Callable[[threading.Thread], None]:
    def start(self: threading.Thread) -> None:
        world = current()
        if world is None:
            original(self)
        elif "threads" in world.allow:
            world.start_thread(self, original)
        else:
            raise refuse(world, "threads", "starts a thread")

    return start


def _condition_wait(original: Callable[..., bool]) -> Callable[..., bool]:
    def wait(self: threading.Condition, timeout: float | None = None) -> bool:
        world = _world  # also that of another thread
        return original(self, timeout) if world is None else world.wait_in_thread(self, original, timeout)

    return wait


def _constant(original: Callable[[], Any], value: Any) -> Callable[[], Any]:
    def give() -> Any:
        return original() if current() is None else value

    return give


def _named(original: Callable[[str], str]) -> Callable[..., str]:
    def name_of(name: str = "") -> str:
        return original(name) if current() is None else name or "simulated"

    return name_of


def _functions() -> list[tuple[Any, str, Any]]:
    """The functions that are replaced: where they are, their names, their replacements."""
    changes: list[tuple[Any, str, Any]] = []
    clocks: dict[str, Any] = {}
    for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time"):
        if hasattr(time, name):
            is_wall = name == "time"
            clocks[name] = _seconds(getattr(time, name), is_wall=is_wall)
            clocks[f"{name}_ns"] = _nanoseconds(getattr(time, f"{name}_ns"), is_wall=is_wall)
    for name in ("clock_gettime", "clock_gettime_ns"):
        if hasattr(time, name):
            unit = name[len("clock_gettime") :]
            clocks[name] = _numbered(getattr(time, name), clocks[f"time{unit}"], clocks[f"monotonic{unit}"])
    changes += [(time, name, clock) for name, clock in clocks.items()]
    gmtime, localtime, ctime = time.gmtime, time.localtime, time.ctime
    changes += [
        (time, "gmtime", _now_at(gmtime, gmtime)),
        (time, "localtime", _now_at(localtime, gmtime)),
        (time, "ctime", _now_at(ctime, lambda seconds: time.asctime(gmtime(seconds)))),
        (time, "strftime", _strftime(time.strftime)),
        (time, "sleep", _sleep(time.sleep)),
        (os, "urandom", _random_bytes(os.urandom)),
        (random.Random, "seed", _seed(random.Random.seed)),
        (random, "seed", _module_seed(random.seed)),
        (os, "getpid", _constant(os.getpid, 1)),
        (socket, "gethostname", _constant(socket.gethostname, "simulated")),
        (socket, "getfqdn", _named(socket.getfqdn)),
        (platform, "node", _constant(platform.node, "simulated")),
        (uuid, "getnode", _constant(uuid.getnode, 0x0200_0000_0001)),
        (threading.Thread, "start", _thread_start(threading.Thread.start)),
        (threading.Condition, "wait", _condition_wait(threading.Condition.wait)),
        (queue, "SimpleQueue", queue._PySimpleQueue),  # type: ignore[attr-defined]
        (socket.socket, "__init__", _guarded(socket.socket.__init__, "sockets", "opens a real socket")),
        (subprocess.Popen, "__init__",
         _guarded(subprocess.Popen.__init__, "subprocesses", "starts a process")),
        (os, "fsync", _guarded(os.fsync, "fsync", "waits for a real disk")),
    ]  # fmt: skip
    for module, names, way, deed in (
        (
            os,
            ("fork", "forkpty", "system", "posix_spawn", "posix_spawnp", "execv", "execve"),
            "subprocesses",
            "starts a process",
        ),
        (_posixsubprocess, ("fork_exec",), "subprocesses", "starts a process"),
        (os, ("fdatasync", "sync"), "fsync", "waits for a real disk"),
        (
            socket,
            ("getaddrinfo", "gethostbyname", "gethostbyname_ex", "gethostbyaddr", "getnameinfo"),
            "sockets",
            "asks a real name server",
        ),
        (_thread, ("start_new_thread",), "threads", "starts a thread"),
    ):
        for name in names:
            original = getattr(module, name, None)
            if original is not None:
                changes.append((module, name, _guarded(original, cast("Exit", way), deed)))
    if hasattr(os, "getrandom"):
        changes.append((os, "getrandom", _random_bytes(os.getrandom)))
    if getattr(uuid, "_generate_time_safe", None) is not None:
        generate = uuid._generate_time_safe  # type: ignore[attr-defined]
        changes.append((uuid, "_generate_time_safe", _time_uuid(generate)))
    return changes


# --- in their places ---

_is_installed = False


def _set_in_class(cls: type, name: str, value: Any) -> None:
    """Set an attribute of a class that is written in C."""
    if sys.implementation.name != "cpython":
        return
    (names,) = (place for place in gc.get_referents(cls.__dict__) if isinstance(place, dict))
    names[name] = value
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(cls))


def _functions_with_defaults(values: list[Any]) -> list[FunctionType]:
    """All functions that have one of these as a parameter's default."""
    is_frozen = hasattr(gc, "freeze") and gc.get_freeze_count() > 0
    if is_frozen:
        gc.unfreeze()  # or else the collector knows nothing of what refers to them
    tuples = [holder for holder in gc.get_referrers(*values) if type(holder) is tuple]
    functions = [
        function
        for function in (gc.get_referrers(*tuples) if tuples else ())
        if type(function) is FunctionType and any(function.__defaults__ is holder for holder in tuples)
    ]
    if is_frozen:
        gc.freeze()
    return functions


class _Replacements:
    """Every place of what is replaced. modules: how many were loaded when the places were looked for.

    attributes: places, names, what was there, what comes there; names: the same in modules that have taken it
    by its name; defaults: of functions that have it as a parameter's default.
    """

    def __init__(self) -> None:
        self.modules = len(sys.modules)
        self.attributes = [
            (place, name, vars(place)[name], replacement)
            for place, name, replacement in (*_functions(), *package_replacements(current))
        ]
        known = {
            id(original): (original, replacement)
            for place, _, original, replacement in self.attributes
            if not isinstance(place, type)
        }
        self.names: list[tuple[dict[str, Any], str, Any, Any]] = []
        for module_name, module in list(sys.modules.items()):
            names = getattr(module, "__dict__", None)
            if module_name.startswith("coordwire.testing.simulation") or not isinstance(names, dict):
                continue
            for name, value in list(names.items()):
                if id(value) in known and known[id(value)][0] is value:
                    self.names.append((names, name, value, known[id(value)][1]))
        self.defaults: list[tuple[FunctionType, tuple[Any, ...], tuple[Any, ...]]] = []
        for function in _functions_with_defaults([original for original, _ in known.values()]):
            before = function.__defaults__ or ()
            after = tuple(known[id(value)][1] if id(value) in known else value for value in before)
            self.defaults.append((function, before, after))
        self.methods = [(cls, name, cls.__dict__[name], method) for cls, name, method in _methods()]

    def put(self) -> None:
        for place, name, _, replacement in self.attributes:
            setattr(place, name, replacement)
        for names, name, _, replacement in self.names:
            names[name] = replacement
        for function, _, after in self.defaults:
            function.__defaults__ = after
        for cls, name, _, method in self.methods:
            _set_in_class(cls, name, method)

    def take_back(self) -> None:
        for cls, name, original, _ in self.methods:
            _set_in_class(cls, name, original)
        for function, before, _ in self.defaults:
            function.__defaults__ = before
        for names, name, original, _ in self.names:
            names[name] = original
        for place, name, original, _ in self.attributes:
            setattr(place, name, original)


_replacements: _Replacements | None = None


@contextmanager
def unheard() -> Iterator[None]:
    """What is left of a world ends: Python closes coroutines, also those that did not begin, and what they do
    in a `finally` comes to nothing. None of it is reported."""
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.unraisablehook = hook


@contextmanager
def _garbage_of_worlds() -> Iterator[None]:
    """Garbage is collected where a world asks for it, and nowhere else, of what was made since: what is older
    is neither looked at again and again, nor finalized in a world."""
    is_collecting, can_freeze = gc.isenabled(), hasattr(gc, "freeze") and not gc.get_freeze_count()
    gc.disable()
    if can_freeze:
        gc.freeze()
    else:
        gc.collect()
    try:
        yield
    finally:
        with unheard():
            gc.collect()
        if can_freeze:
            gc.unfreeze()
        if is_collecting:
            gc.enable()


@contextmanager
def installed() -> Iterator[None]:
    """Everything is in its place: worlds may run."""
    global _replacements, _is_installed
    if _is_installed:
        yield
        return
    if _replacements is None or _replacements.modules != len(sys.modules):
        _replacements = _Replacements()
    replacements = _replacements
    _is_installed = True
    try:
        with _garbage_of_worlds():
            replacements.put()
            yield
    finally:
        replacements.take_back()
        _is_installed = False


@contextmanager
def entered(world: EnteredWorld, seed: int) -> Iterator[None]:
    """The world runs in this thread; the module `random` draws from its seed."""
    global _world, _thread_of_world
    if _world is not None:
        raise RuntimeError("a simulated world runs already")
    state = random.getstate()
    random.seed(f"world/{seed}")
    _world, _thread_of_world = world, world.thread
    try:
        with counting_anew():
            yield
    finally:
        _world = None
        random.setstate(state)
