"""The words of a command line, as its parsers know them: commands, options, choices."""

from __future__ import annotations

__all__ = ["Option", "Words", "words_of"]

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from coordwire.messages.keys import FACTS

API_METAVARS = ("NAME|KEY", "API")
_FILES = re.compile(r"FILE|DIR|IN|PATH|-$")


@dataclass(frozen=True, slots=True)
class Option:
    """An option. flags: its names; takes: whether a value follows; choices: the values, if they are known;
    files: whether the value may be a file's name; groups: whether it is a group's id."""

    flags: tuple[str, ...]
    help: str
    takes: bool = False
    choices: tuple[str, ...] = ()
    files: bool = False
    groups: bool = False


@dataclass(slots=True)
class Words:
    """What may follow a command's name. name: the command, with those above it; choices, files: of its
    arguments that are no options; commands: below it."""

    name: tuple[str, ...]
    help: str = ""
    options: list[Option] = field(default_factory=list)
    choices: tuple[str, ...] = ()
    files: bool = False
    commands: list[Words] = field(default_factory=list)

    def every(self) -> Iterator[Words]:
        """This and all that is below it."""
        yield self
        for command in self.commands:
            yield from command.every()


def words_of(parser: argparse.ArgumentParser, name: tuple[str, ...] = (), help: str = "") -> Words:
    """The words of a parser and of those below it."""
    words = Words(name or (parser.prog,), help)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {one.dest: one.help or "" for one in action._choices_actions}
            words.commands = [
                words_of(command, (*words.name, key), helps.get(key, ""))
                for key, command in action.choices.items()
            ]
        elif action.option_strings:
            takes = action.nargs != 0
            words.options.append(
                Option(
                    tuple(action.option_strings),
                    action.help or "",
                    takes,
                    _choices(action),
                    takes and _files(action),
                    takes and "--group" in action.option_strings,
                )
            )
        else:
            words.choices += _choices(action)
            words.files = words.files or _files(action)
    return words


def _choices(action: argparse.Action) -> tuple[str, ...]:
    """An action's choices; the names of APIs where it takes one."""
    if action.metavar in API_METAVARS:
        return tuple(sorted(facts.name for facts in FACTS.values()))
    return tuple(map(str, action.choices or ()))


def _files(action: argparse.Action) -> bool:
    """Whether a value may be a file's name, by its word in the help."""
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    return not action.choices and _FILES.search(metavar) is not None
