"""`python -m tests.broker.suites NAME…`: suites that others wrote, against `coordwire.broker` on loopback.

Strategy: each suite is fetched from a package registry once (Maven Central, the Go proxy), kept in the user's
cache, and pointed at a broker that is started for it; a line a check. Exit status 1 if a check fails, 2 if a
suite can't be had here.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from tests.broker.suites import (
    aiokafka_tests,
    apache_tools,
    client_matrix,
    kafka_directory,
    kafka_python,
    kgo,
    share_consumers,
    transaction_histories,
    verifiable,
    word_count,
)
from tests.broker.suites.checks import Checks
from tests.broker.suites.system_tests import suite as system_tests
from tests.interop.maven import Unavailable

SUITES: dict[str, Callable[[Checks, tuple[str, ...]], None]] = {
    "aiokafka": aiokafka_tests.run,
    "apache-tools": apache_tools.run,
    "clients": client_matrix.run,
    "kafka-directory": kafka_directory.run,
    "kafka-python": kafka_python.run,
    "kgo": kgo.run,
    "share-consumers": share_consumers.run,
    "system-tests": system_tests.run,
    "transactions": transaction_histories.run,
    "verifiable": verifiable.run,
    "word-count": word_count.run,
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.broker.suites", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("suites", nargs="+", choices=[*SUITES, "all"], metavar="NAME", help=", ".join(SUITES))
    parser.add_argument(
        "--only", action="append", default=[], metavar="CHECK", help="these checks of the suite"
    )
    options = parser.parse_args(arguments)
    status = 0
    for name in SUITES if "all" in options.suites else options.suites:
        checks = Checks(name)
        try:
            SUITES[name](checks, tuple(options.only))
        except Unavailable as reason:
            print(f"{name}: skipped: {reason}", file=sys.stderr)
            status = max(status, 2)
            continue
        print(f"{name}: {len(checks.passed)} passed, {len(checks.failures)} failed")
        status = 1 if checks.failures else status
    return status


if __name__ == "__main__":
    sys.exit(main())
