"""The command: see the package."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.broker import kills
from tests.broker.kills import Wrong, run
from tests.broker.served import NotServed


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.broker.kills", description=(kills.__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("count", type=int, nargs="?", default=50, help="how often the broker is killed (50)")
    parser.add_argument("--seed", type=int, default=1, help="of the times at which it is killed (1)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as work:
        try:
            asyncio.run(run(Path(work) / "data", options.count, options.seed))
        except (Wrong, NotServed) as error:
            print(f"wrong: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
