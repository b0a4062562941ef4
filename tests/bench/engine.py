"""Which engine of coordwire a benchmark measures, and what it may be compared with.

Rules: a benchmark's first line names the engine and where it is; native code is compared with any library,
coordwire's Python code with libraries in Python only. A tree in which the extension isn't built measures
nothing unless `COORDWIRE_IMPL=python` asks for it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from coordwire._speedups import native

NATIVE = ("kio", "aiokafka (Cython)", "google-crc32c")
"""Libraries whose work is done by native code."""

_NOT_BUILT = (
    "the extension isn't built in this tree, and Python's code would be measured as coordwire's: build it "
    "with pip install -e . (in place), or measure the Python code by COORDWIRE_IMPL=python"
)


def check_engine(peers: Sequence[str]) -> None:
    """Print the engine's line. Ends the program where the engine isn't what it was asked to be, or where
    coordwire's Python code would be compared with a library's native code.

    peers: the libraries that are compared.
    """
    if native is not None:
        print(f"engine: native code, {native.__file__}\n", flush=True)
        return
    print("engine: Python, without the extension\n", flush=True)
    if os.environ.get("COORDWIRE_IMPL") != "python":
        raise SystemExit(_NOT_BUILT)
    if unlike := [peer for peer in peers if peer in NATIVE]:
        raise SystemExit(f"coordwire's Python code is not compared with native code: {', '.join(unlike)}")
