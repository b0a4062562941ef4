"""`coordwire completion`: a script by which a shell completes the command line, generated from its parsers.

Strategy: the commands' parsers are walked into `Words`, and the script of each shell is written from these.
Rules: a script is static, so that completion starts no Python; it names every command, option, choice and
API, and offers files where a value may be one. The exception is the value of --group: the script asks
`coordwire completion groups` for the groups of the captures on the command line, and only small captures are
read for it. Texts are quoted for their shell; a script needs nothing that is installed with the shell.

Why no library: argcomplete starts Python at every key press. shtab (1.13) writes static scripts for the same
shells and passes the tests here but one: in bash it does not complete the value of `--format=st`, where bash
splits words at "=". It would also make a command that works in every installation need an extra.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from coordwire.cli import Failure
from coordwire.cli.call import VERB_NAMES
from coordwire.codec.walk import fields_of
from coordwire.messages import find_message
from coordwire.messages.keys import FACTS

GROUPS = "groups"
CHEAP = 8 << 20
"""Bytes of a capture that is read to complete a group's id."""

MOST_GROUPS = 1000
_PLAIN = re.compile(r"[A-Za-z0-9._@%+:-]+")
"""Group ids that no shell takes for anything else; others are not offered."""

INSTALL = {
    "bash": "coordwire completion bash > ~/.local/share/bash-completion/completions/coordwire",
    "zsh": "coordwire completion zsh > DIR/_coordwire, where DIR is in $fpath",
    "fish": "coordwire completion fish > ~/.config/fish/completions/coordwire.fish",
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "\n".join(["install:", *INSTALL.values()])
    parser.add_argument(
        "shell",
        metavar="SHELL",
        choices=[*SHELLS, GROUPS],
        help=f"the shell that the script is for: {', '.join(SHELLS)}; {GROUPS}: print group ids",
    )
    parser.add_argument(
        "words", nargs="*", metavar="WORD", help=f"of {GROUPS}: a command line, after --, with small captures"
    )


def run(options: argparse.Namespace) -> int:
    if options.shell == GROUPS:
        sys.stdout.writelines(f"{group}\n" for group in sorted(set(_groups(options.words))))
        return 0
    if options.words:
        raise Failure(f"completion: only {GROUPS} takes words")
    sys.stdout.write(SHELLS[options.shell](words_of(options.whole_parser())))
    return 0


def _groups(words: list[str]) -> Iterator[str]:
    """The groups that the small captures among the words name."""
    from coordwire.capture.entries import FrameEntry
    from coordwire.capture.reader import Capture
    from coordwire.cli.inputs import opened
    from coordwire.cli.selection.names import entry_groups
    from coordwire.errors import CoordwireError

    groups: set[str] = set()
    for word in words:
        with suppress(OSError, ValueError, CoordwireError, Failure):
            if not os.path.isfile(word) or os.path.getsize(word) > CHEAP:
                continue
            with opened(word) as stream:
                for entry in Capture(stream, word).entries():
                    if not isinstance(entry, FrameEntry):
                        continue
                    for group in entry_groups(entry):
                        if isinstance(group, str) and group not in groups and _PLAIN.fullmatch(group):
                            groups.add(group)
                            yield group
                    if len(groups) >= MOST_GROUPS:
                        return


# --- the words of a command line, as its parsers know them ---

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
    """The words that may follow a command's name. name: the command, with those above it; choices, files: of
    its arguments that are not options; commands: below it."""

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
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            words.commands = [
                words_of(command, (*words.name, key), helps.get(key, ""))
                for key, command in action.choices.items()
            ]
        elif action.help == argparse.SUPPRESS:
            continue  # an option that is refused
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
        verbs = VERB_NAMES if action.dest == "api" and not action.option_strings else ()
        return (*verbs, *sorted(facts.name for facts in FACTS.values()))
    if action.metavar == "FIELD=VALUE":
        fields = {field.name for key in FACTS for field in fields_of(find_message(key, "request"))}
        return tuple(f"{name}=" for name in sorted(fields))
    return tuple(map(str, action.choices or ()))


def _files(action: argparse.Action) -> bool:
    """Whether a value may be a file's name, by its word in the help."""
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    return not action.choices and _FILES.search(metavar) is not None


# --- the scripts ---
FILES_MARK = "@files"
"""Represents files among the words that are offered."""

GROUPS_MARK = "@groups"
"""Represents the groups in the captures on the command line."""


def _values(choices: Iterable[str], files: bool, groups: bool = False) -> str:
    return " ".join([*choices, *([FILES_MARK] if files else []), *([GROUPS_MARK] if groups else [])])


def _cases(words: Words) -> tuple[str, str, str]:
    """The branches of `case`: the commands below each command; a command's words; values after an option."""
    below, plain, values = [], [], []
    for command_words in words.every():
        key = " ".join(command_words.name)
        options = " ".join(flag for option in command_words.options for flag in option.flags)
        arguments = _values(
            [command.name[-1] for command in command_words.commands] or command_words.choices,
            command_words.files,
        )
        if command_words.commands:
            names = "|".join(f"'{key} {command.name[-1]}'" for command in command_words.commands)
            below.append(f"            {names}) found=$try ;;")
        plain.append(f"        '{key}') options='{options}' arguments='{arguments}' ;;")
        for option in command_words.options:
            if option.takes:
                keys = "|".join(f"'{key} {flag}'" for flag in option.flags)
                offers = _values(option.choices, option.files, option.groups)
                values.append(f"        {keys}) takes=1 arguments='{offers}' ;;")
    return "\n".join(below), "\n".join(plain), "\n".join(values)


_FIND = """\
    local found=coordwire try word takes= options= arguments=
    local -i at
    for ((at = {first}; at < {current}; at++)); do
        word=${{{array}[at]}}
        try="$found $word"
        case $try in
{below}
        esac
    done
    case $found in
{plain}
    esac
    case "$found {before}" in
{values}
    esac
"""

_BASH = """\
# bash completion of coordwire; written by: coordwire completion bash
_coordwire() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}}
    if [[ $current == '=' ]]; then
        current=
    elif [[ $before == '=' ]]; then
        before=${{COMP_WORDS[COMP_CWORD - 2]}}
    fi
{find}
    COMPREPLY=()
    if [[ -z $takes && $current == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$current"))
        return
    fi
    if [[ " $arguments " == *" @files "* ]]; then
        compopt -o filenames 2> /dev/null
        local file
        while IFS= read -r file; do
            COMPREPLY+=("$file")
        done < <(compgen -f -- "$current")
        arguments=${{arguments//@files/}}
    fi
    if [[ " $arguments " == *" @groups "* ]]; then
        local group
        while IFS= read -r group; do
            [[ $group == "$current"* ]] && COMPREPLY+=("$group")
        done < <("${{COMP_WORDS[0]}}" completion groups -- "${{COMP_WORDS[@]:1}}" 2> /dev/null)
        arguments=${{arguments//@groups/}}
    fi
    COMPREPLY+=($(compgen -W "$arguments" -- "$current"))
}}
complete -F _coordwire coordwire
"""

_ZSH = """\
#compdef coordwire
# zsh completion of coordwire; written by: coordwire completion zsh
_coordwire() {{
{find}
    if [[ -z $takes && $words[CURRENT] == -* ]]; then
        compadd -- ${{=options}}
        return
    fi
    if [[ " $arguments " == *" @files "* ]]; then
        _files
        arguments=${{arguments//@files/}}
    fi
    if [[ " $arguments " == *" @groups "* ]]; then
        compadd -- ${{(f)"$(${{words[1]}} completion groups -- ${{words[2,-1]}} 2> /dev/null)"}}
        arguments=${{arguments//@groups/}}
    fi
    compadd -- ${{=arguments}}
}}
if [[ $funcstack[1] == _coordwire ]]; then
    _coordwire "$@"
else
    compdef _coordwire coordwire
fi
"""


def _bash(words: Words) -> str:
    below, plain, values = _cases(words)
    find = _FIND.format(
        first=1, current="COMP_CWORD", array="COMP_WORDS", before="$before", below=below, plain=plain,
        values=values,
    )  # fmt: skip
    return _BASH.format(find=find)


def _zsh(words: Words) -> str:
    below, plain, values = _cases(words)
    find = _FIND.format(
        first=2, current="CURRENT", array="words", before="${words[CURRENT - 1]}", below=below, plain=plain,
        values=values,
    )  # fmt: skip
    return _ZSH.format(find=find)


def _fish(words: Words) -> str:
    lines = [
        "# fish completion of coordwire; written by: coordwire completion fish",
        "function __coordwire_at",
        "    set -l found coordwire",
        "    for word in (commandline -opc)[2..-1]",
        '        switch "$found $word"',
    ]
    for command_words in words.every():
        for command in command_words.commands:
            lines.append(f"            case {_quoted(' '.join(command.name))}")
            lines.append(f"                set found {_quoted(' '.join(command.name))}")
    lines += ["        end", "    end", '    test "$found" = "$argv[1]"', "end"]
    lines += [
        "function __coordwire_groups",
        "    set -l words (commandline -opc)",
        "    $words[1] completion groups -- $words[2..-1] 2>/dev/null",
        "end",
    ]
    for command_words in words.every():
        start = (
            f"complete -c coordwire -n {_quoted('__coordwire_at ' + _quoted(' '.join(command_words.name)))}"
        )
        if not command_words.files:
            lines.append(f"{start} -f")
        for command in command_words.commands:
            lines.append(f"{start} -a {command.name[-1]} -d {_quoted(_brief(command.help))}")
        if command_words.choices:
            lines.append(f"{start} -a {_quoted(' '.join(command_words.choices))}")
        lines += [f"{start}{_fish_option(option)}" for option in command_words.options]
    return "\n".join(lines) + "\n"


def _fish_option(option: Option) -> str:
    flags = "".join(
        f" -l {flag[2:]}" if flag.startswith("--") else f" -s {flag[1:]}" for flag in option.flags
    )
    value = ""
    if option.takes:
        value = " -r" if option.files else " -x"
    if option.groups:
        value += " -a '(__coordwire_groups)'"
    if option.choices:
        value += f" -a {_quoted(' '.join(option.choices))}"
    return f"{flags}{value} -d {_quoted(_brief(option.help))}"


def _brief(text: str) -> str:
    """A help text's first clause, without argparse's placeholders."""
    return re.split(r"[;:(]", text.replace("%%", "%"))[0].strip()


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SHELLS: dict[str, Callable[[Words], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
