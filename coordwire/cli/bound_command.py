"""A command that ends with the process that started it, however that ends: what `coordwire mcp` runs.

    python -m coordwire.cli.bound_command WORD …

Strategy: standard input has a line with a number, so many bytes that are the command's own standard input,
and then nothing until the starter closes it, which the system does for one that was killed; a thread waits
for that. Rules: the command leads a process group of its own, which ends as a whole, with all of its workers.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from threading import Thread


def main() -> int:
    """Run the command of the process's arguments; its exit status."""
    from coordwire.cli.__main__ import main as run

    length = int(sys.stdin.buffer.readline())
    sys.stdin = io.TextIOWrapper(io.BytesIO(sys.stdin.buffer.read(length)))
    Thread(target=_end_with_input, name="starter's end", daemon=True).start()
    return run(sys.argv[1:])


def _end_with_input() -> None:
    os.read(0, 1)
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
