"""`coordwire conformance`: an implementation of Kafka's protocol, in any language, judged by cases.

Strategy: a subcommand for each kind of implementation, in a module of its own; run_options.py has what they
share: which cases, the list of known failures, reports. One more puts saved results together. Exit status 0:
every failure is in the list; 1: one is not, or the list has what doesn't fail; 2: usage, or what is judged
can't be reached.
"""

from __future__ import annotations

import argparse

from coordwire.cli.conformance import broker, client, codec, matrix

VERBS = {
    "broker": "judge a broker by cases, which remove what they make",
    "client": "judge a client, a process that reports on tasks, by what it sends",
    "codec": "judge a reader and writer of messages, a process that answers lines",
    "matrix": "show saved results of several implementations beside each other",
}
_KINDS = {"broker": broker, "client": client, "codec": codec, "matrix": matrix}


def configure(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="KIND", required=True)
    for name, summary in VERBS.items():
        command = verbs.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        _KINDS[name].configure(command)


def run(options: argparse.Namespace) -> int:
    status: int = _KINDS[options.verb].run(options)
    return status
