"""Plays situations and records them.

`python -m tests.timeline.record --work FOLDER [--python P] [NAME ...]`
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.timeline.record.situations import SITUATIONS
from tests.timeline.record.stage import Stage


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.timeline.record")
    parser.add_argument("--work", type=Path, required=True, help="where everything goes")
    parser.add_argument("--python", help="a Python with confluent-kafka, kafka-python and aiokafka")
    parser.add_argument("names", nargs="*", help="situations; all of them without")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    stage = Stage(options.work.resolve(), options.python)
    failed = []
    with stage.up():
        for topic, partitions in (("orders", 4), ("payments", 2)):
            stage.operate(f"create {topic} {partitions}")
        for name in options.names or SITUATIONS:
            began = time.monotonic()
            try:
                with stage.recording(name):
                    SITUATIONS[name](stage)
            except Exception as error:  # the others may still be recorded
                failed.append(name)
                sys.stderr.write(f"{name}: {error!r}\n")
            sys.stderr.write(f"{name}: {time.monotonic() - began:.1f} s\n")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
