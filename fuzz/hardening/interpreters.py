"""Interpreters of one process import coordwire, decode and encode, and end in any order:
`python -m fuzz.hardening.interpreters [--steps N] [--seed N]`.

Strategy: at each step an interpreter is made, works again or ends, by chance; then the main one works. Some
share the main one's lock and run the extension, whose freelists and spare columns belong to the process; the
others are isolated (CPython 3.12 on) and fall back to Python. Each keeps half of what it made, so that others
fill what it freed. Rules: each has its own implementation, gets back equal values, and its collector knows
messages of its own classes alone.
"""

from __future__ import annotations

import argparse
import sys
from random import Random
from typing import Any, NoReturn

WORK = """
import sys
sys.path[:] = {path!r}
import gc
import coordwire
from coordwire.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from coordwire.records import Record, backend, batches, encode_batch
assert coordwire.implementation in {implementations!r}, coordwire.implementation
classes = [MetadataResponse, MetadataResponseTopic, MetadataResponsePartition, Record]
message = MetadataResponse(topics=[
    MetadataResponseTopic(name="t%d" % n, partitions=[MetadataResponsePartition(isr_nodes=[7] * n)])
    for n in range(50)
])
wire = message.encode(version=12)
messages = [MetadataResponse.decode(wire, version=12) for _ in range(100)]
del messages[::2]
assert all(other == message for other in messages)
assert coordwire.from_json(
    MetadataResponse, coordwire.to_json(message, version=12), version=12).encode(version=12) == wire
data = encode_batch([Record(-1, 1000 + n, b"k", b"v" * n, (("h", b"%d" % n),)) for n in range(50)])
records = list(next(batches(data)))
assert [len(record.value) for record in records] == list(range(50))
del records[::2]
tables = []
for _ in range(5 if backend.columns is not None else 0):
    columns = backend.columns(127, 1 << 20, False, True)
    columns.run(data, 0, None, 0)
    tables.append(columns.take())
assert all([memory and bytes(memory) for memory in table[2]] == [
    memory and bytes(memory) for memory in tables[0][2]] for table in tables)
del tables[::2]
assert not [
    type(each) for each in gc.get_objects()
    if str(type(each).__module__).startswith("coordwire.messages.metadata") and type(each) not in classes
]
"""


class Interpreters:
    """CPython's own module for interpreters, which has another name and other arguments before 3.13."""

    def __init__(self) -> None:
        self._new = sys.version_info >= (3, 13)
        self._module: Any = __import__("_interpreters" if self._new else "_xxsubinterpreters")

    def create(self, shared: bool) -> Any:
        """Another one. shared: with the main one's lock and allocator."""
        if self._new:
            return self._module.create("legacy" if shared else "isolated")
        return self._module.create(isolated=not shared)

    def run(self, interpreter: Any, source: str) -> None:
        """Run a program there. Raises what it raises, or `RuntimeError` with its text."""
        if self._new:
            error = self._module.exec(interpreter, source)
            if error is not None:
                raise RuntimeError(error.formatted)
        else:
            self._module.run_string(interpreter, source)

    def destroy(self, interpreter: Any) -> None:
        self._module.destroy(interpreter)


def fuzz(steps: int, seed: int) -> None:
    """So many steps; the program, and so the case, follows from the seed."""
    random = Random(seed)
    interpreters = Interpreters()
    here = work(None)
    exec(
        here, {}
    )  # first, as CPython 3.12 and 3.13.0 crash where an isolated one is the first to import datetime
    running: list[tuple[Any, bool]] = []
    for _ in range(steps):
        step = random.random()
        if running and step < 0.4:
            interpreters.destroy(running.pop(random.randrange(len(running)))[0])
        elif running and step < 0.7:
            interpreter, shared = random.choice(running)
            interpreters.run(interpreter, work(shared))
        else:
            shared = random.random() < 0.7
            running.append((interpreters.create(shared), shared))
            interpreters.run(running[-1][0], work(shared))
        exec(here, {})
    random.shuffle(running)
    for interpreter, _ in running:
        interpreters.destroy(interpreter)
    exec(here, {})


def work(shared: bool | None) -> str:
    """The program, with what may run in such an interpreter; None: in the main one."""
    import coordwire

    isolated = shared is False and sys.version_info >= (3, 12)
    expected = "python" if isolated else coordwire.implementation
    return WORK.format(path=sys.path, implementations=(expected,))


def main() -> NoReturn:
    parser = argparse.ArgumentParser(prog="python -m fuzz.hardening.interpreters", description=__doc__)
    parser.add_argument("--steps", type=int, default=200, help="how many (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of what happens (%(default)s)")
    options = parser.parse_args()
    fuzz(options.steps, options.seed)
    print(f"{options.steps} steps: nothing found")
    raise SystemExit


if __name__ == "__main__":
    main()
