"""`coordwire COMMAND …`: picks the command, and reports in one line whatever goes wrong.

Rules: only the module of the command that runs is imported, since importing all takes longer than most
commands run.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn, Protocol

from coordwire import __version__
from coordwire.capture.printable import shown
from coordwire.cli import FURTHER, Failure, progress, terminal

COMMANDS = {
    "decode": "show recorded traffic, frame by frame",
    "encode": "turn the JSON lines of decode back into bytes",
    "explain": "explain every byte of a frame",
    "timeline": "show what happened to groups: members, rebalances, commits, lag",
    "segment": "show, verify, recover and index a broker's log segments",
    "offsets": "read the logs of coordinators: commits, groups, transactions",
    "pipeline": "turn captures and segments into tables, with Spark or without",
    "serve": "run a Kafka broker for tests, in memory or in a folder",
    "tap": "show, save and break what passes between clients and a cluster",
    "replay": "send a capture's requests again to a cluster, and compare the answers",
    "call": "send a request to a cluster and show its answer",
    "watch": "show what happens to the groups of a live cluster",
    "simulate": "run a group under one of ten designs, in virtual time, with faults",
    "rehearse": "rehearse a classic group's upgrade to the consumer protocol",
    "conformance": "judge a codec, a broker or a client in any language",
    "api": "show APIs, their versions and their fields",
    "mcp": "let an agent ask about recorded traffic",
    "completion": "print a script that completes command lines in bash, zsh or fish",
}
EXAMPLES = {
    "": "timeline incident.pcap",
    "decode": "decode --format line --errors incident.pcap",
    "encode": "encode --to frames incident.jsonl",
    "explain": "explain 0000000e0012000000000007000474696c6c",
    "timeline": "timeline --group payments captures/",
    "segment": "segment verify /var/kafka/orders-0",
    "segment dump": "segment dump --from-offset 1000 /var/kafka/orders-0",
    "segment verify": "segment verify /var/kafka/orders-0",
    "segment recover": "segment recover --out recovered /var/kafka/orders-0",
    "segment index": "segment index --check /var/kafka/orders-0",
    "offsets": "offsets --lag --group payments /var/kafka",
    "pipeline": "pipeline --engine local captures/ --out tables",
    "serve": "serve --topic orders:3 --port 9092",
    "tap": "tap --to localhost:9092 --save traffic.pcapng",
    "replay": "replay traffic.pcapng --to localhost:9092 --yes",
    "call": "call localhost:9092 Metadata topics.name=orders",
    "watch": "watch localhost:9092 --group payments",
    "simulate": "simulate consumer --members 3 --faults '15s crash consumer-1'",
    "rehearse": "rehearse --group payments /var/kafka",
    "conformance": "conformance codec --vectors vectors/ -- ./my-codec",
    "conformance broker": "conformance broker --only groups localhost:9092",
    "conformance client": "conformance client --only groups -- ./my-client",
    "conformance codec": "conformance codec --vectors vectors/ -- ./my-codec",
    "conformance matrix": "conformance matrix --html matrix.html ours.json theirs.json",
    "api": "api Fetch 17",
    "mcp": "mcp captures/",
    "completion": "completion bash",
}
"""A command line of each command, with which its help opens."""

WHOLE_HELP, BEYOND_A_SCREEN = "--help-all", (FURTHER, "other protocols")
"""The option that shows more help than a screen, and the groups of options that are in that alone."""

INTERRUPTED = 130
_SPARE_BYTES = 4 << 20
"""Memory that is freed when there is not enough, so that this can be reported. Nothing is written to it."""
_BACK = re.compile(r"-[0-9]")
OF_OTHER_SYSTEMS = ("fcntl",)
"""Modules of Python that Windows lacks: without them no tables are written, whose folders are locked."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; its exit status."""
    spare = bytearray(_SPARE_BYTES)
    arguments = _with_times(sys.argv[1:] if argv is None else argv)
    terminal.prepare()
    progress.begin()
    before, sys.unraisablehook = sys.unraisablehook, _unraisable
    try:
        try:
            status = _run(arguments)
        finally:
            progress.end()
        sys.stdout.flush()
        if argv is None:  # the process ends, and Python need not look for cycles in what is left
            gc.freeze()
    except Failure as failure:
        text = "\n".join(map(shown, f"{failure}".split("\n")))
        print(terminal.folded_text(f"coordwire: {text}", sys.stderr), file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        if error.name not in OF_OTHER_SYSTEMS:
            raise
        print(f"coordwire: this needs Python's module {error.name}, which this system lacks", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has seen enough
        _drop_output()
        return 0
    except MemoryError as error:
        spare.clear()
        error.__traceback__ = error.__context__ = None  # and so what its frames hold
        print("coordwire: not enough memory", file=sys.stderr)
        _drop_output()
        return 2
    except OSError as error:
        print(f"coordwire: {error.strerror or error}", file=sys.stderr)
        _drop_output()
        return 2
    finally:
        sys.unraisablehook = before
    return status


def _with_times(arguments: Sequence[str]) -> list[str]:
    """The arguments, with `--since -10min` as `--since=-10min`: argparse takes -10min for an option."""
    words: list[str] = []
    for word in arguments:
        if words and words[-1] in ("--since", "--until") and _BACK.match(word):
            words[-1] += f"={word}"
        else:
            words.append(word)
    return words


class _HelpFormatter(argparse.HelpFormatter):
    """argparse's, without the import of `shutil`: a parser makes one for each argument that is added."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"width": max(terminal.columns() - 2, 11)} | options)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors have three lines: the usage; what is wrong, with the nearest known name; where
    help is. Arguments are repeated without what moves a terminal's cursor."""

    is_whole = False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"formatter_class": _HelpFormatter} | options)
        self.set_defaults(parser=self)  # the innermost of those that read a command line

    def error(self, message: str) -> NoReturn:
        lines = [self._usage(), f"{self.prog}: error: {shown(message)}", f"{self.prog} --help says more"]
        self.exit(2, terminal.folded_text("\n".join(lines), sys.stderr) + "\n")

    def format_help(self) -> str:
        """The help, with the short usage and an example first: one screen. What few need is in that of
        `--help-all`."""
        words = self.prog.partition(" ")[2]
        usage = f"{self._usage().removeprefix('usage: ')}\nexample: coordwire {EXAMPLES[words]}"
        self.usage = usage.replace("%", "%%")
        make_epilog = self.get_default("make_epilog")
        if make_epilog is None:
            return super().format_help()
        if self.is_whole:
            self.epilog = make_epilog()  # what only the help needs to import
        else:
            self.epilog = f"{self.prog} {WHOLE_HELP} has more options, and the fields of expressions."
            self._action_groups = [
                group for group in self._action_groups if group.title not in BEYOND_A_SCREEN
            ]
        return super().format_help()

    def _usage(self) -> str:
        """The usage in one line: the options that must be given, and the arguments."""
        formatter = argparse.HelpFormatter(self.prog, width=1000)
        needed = [action for action in self._actions if action.required or not action.option_strings]
        formatter.add_usage(None, needed, [], "usage: ")
        usage = formatter.format_help().strip()
        return usage.replace(self.prog, f"{self.prog} [options]", 1)

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Refuse a value that is not among an action's choices."""
        if action.choices is not None and value not in action.choices:
            from coordwire.codec.names import suggestion

            names = [str(choice) for choice in action.choices]
            hint = suggestion(str(value), names)
            text = f"{value!r} is unknown{hint}" if hint else f"expected {_either(names)}, got {value!r}"
            raise argparse.ArgumentError(action, text)

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """End for arguments that no action takes."""
        word = unknown[0]
        if not word.startswith("-"):
            self.error(f"unexpected argument {word!r}")
        from coordwire.codec.names import suggestion

        name = word.partition("=")[0]
        flags = [flag for action in self._actions for flag in action.option_strings]
        self.error(f"unknown option {name}{suggestion(name, flags)}")


class _WholeHelp(argparse.Action):
    """Prints the help with all that `--help` leaves out."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> NoReturn:
        assert isinstance(parser, _Parser)
        parser.is_whole = True
        parser.print_help()
        parser.exit()


def _either(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


class CommandModule(Protocol):
    """The module of a command."""

    def configure(self, parser: argparse.ArgumentParser, /) -> None:
        """Add the command's arguments to its parser."""

    def run(self, options: argparse.Namespace, /) -> int:
        """Run the command; its exit status."""


def command_module(name: str) -> CommandModule:
    """Import a command's module. Each import is written out, so that readers and type checkers follow it."""
    match name:
        case "decode":
            from coordwire.cli import decode

            return decode
        case "encode":
            from coordwire.cli import encode

            return encode
        case "explain":
            from coordwire.cli import explain

            return explain
        case "timeline":
            from coordwire.cli import timeline

            return timeline
        case "segment":
            from coordwire.cli import segment

            return segment
        case "offsets":
            from coordwire.cli import offsets

            return offsets
        case "pipeline":
            from coordwire.cli import pipeline

            return pipeline
        case "serve":
            from coordwire.cli import serve

            return serve
        case "tap":
            from coordwire.cli import tap

            return tap
        case "replay":
            from coordwire.cli import replay

            return replay
        case "call":
            from coordwire.cli import call

            return call
        case "watch":
            from coordwire.cli import watch

            return watch
        case "simulate":
            from coordwire.cli import simulate

            return simulate
        case "rehearse":
            from coordwire.cli import rehearse

            return rehearse
        case "conformance":
            from coordwire.cli import conformance

            return conformance
        case "api":
            from coordwire.cli import api

            return api
        case "mcp":
            from coordwire.cli import mcp

            return mcp
        case "completion":
            from coordwire.cli import completion

            return completion
    raise KeyError(name)


def _run(arguments: Sequence[str]) -> int:
    if sys.stdout is None:
        raise Failure("standard output is closed")
    name = next((word for word in arguments if not word.startswith("-")), None)
    gc.disable()  # what is imported stays
    try:
        module = command_module(name) if name in COMMANDS else None
        names = COMMANDS if module is None or name != arguments[0] else (name,)  # else help may list them
        parser = _parser({} if module is None else {name: module}, names)
    finally:
        gc.enable()
    if not arguments:
        parser.print_help(sys.stderr)
        return 2
    try:
        options, unknown = parser.parse_known_args(arguments)
        if unknown and "later_words" in options and not any(word.startswith("-") for word in unknown):
            getattr(options, options.later_words).extend(unknown)  # argparse takes none after an option
        elif unknown:
            options.parser.refuse(unknown)
        assert module is not None
        return module.run(options)
    except SystemExit as error:  # argparse has written why, or a signal ends the command
        return error.code if isinstance(error.code, int) else 2


def whole_parser() -> argparse.ArgumentParser:
    """The parser with the arguments of every command."""
    return _parser({name: command_module(name) for name in COMMANDS})


def _parser(
    modules: Mapping[str | None, CommandModule], names: Iterable[str] = COMMANDS
) -> argparse.ArgumentParser:
    """The parser of the command line, with the arguments of the commands whose modules these are. names: of
    the commands that it knows."""
    parser = _Parser(
        prog="coordwire", description="Read and speak Apache Kafka's wire protocol. COMMAND --help says more."
    )
    parser.add_argument("--version", action="version", version=f"coordwire {__version__}")
    parser.set_defaults(whole_parser=whole_parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, prog=parser.prog)
    for name in names:
        summary = COMMANDS[name]
        command = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        if name in modules:
            modules[name].configure(command)
        if command.get_default("make_epilog") is not None:
            command.add_argument(
                WHOLE_HELP, action=_WholeHelp, nargs=0, help="show this help with all options and the fields"
            )
            command.formatter_class = argparse.RawDescriptionHelpFormatter  # now: without a width it is slow
    return parser


def _unraisable(ignored: sys.UnraisableHookArgs) -> None:
    """Suppress reports of lacking memory, which the error that ends the command reports."""
    if ignored.exc_type is not MemoryError:
        sys.__unraisablehook__(ignored)


def _drop_output() -> None:
    """Discard all further output, also what Python flushes at its end."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except (OSError, ValueError):  # a standard output that is not a file
        pass


if __name__ == "__main__":
    sys.exit(main())
