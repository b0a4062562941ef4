"""The scripts that complete a command line in bash, zsh and fish.

Strategy: all of them find the command by the words that are there, then offer what `Words` has for it: values
after an option that takes one, options after a dash, else commands, choices or files. Rules: texts are quoted
for their shell; nothing of a script depends on what is installed with the shell.
"""

from __future__ import annotations

__all__ = ["SHELLS"]

import re
from collections.abc import Callable, Iterable

from coordwire.cli.completion.words import Option, Words

FILES = "@files"
"""Represents files among the words that are offered."""

GROUPS = "@groups"
"""Represents the groups in the captures on the command line."""


def _values(choices: Iterable[str], files: bool, groups: bool = False) -> str:
    return " ".join([*choices, *([FILES] if files else []), *([GROUPS] if groups else [])])


def _cases(words: Words) -> tuple[str, str, str]:
    """The branches of `case`: the commands below each command; a command's words; values after an option."""
    below, plain, values = [], [], []
    for one in words.every():
        key = " ".join(one.name)
        options = " ".join(flag for option in one.options for flag in option.flags)
        arguments = _values([command.name[-1] for command in one.commands] or one.choices, one.files)
        if one.commands:
            names = "|".join(f"'{key} {command.name[-1]}'" for command in one.commands)
            below.append(f"            {names}) found=$try ;;")
        plain.append(f"        '{key}') options='{options}' arguments='{arguments}' ;;")
        for option in one.options:
            if option.takes:
                keys = "|".join(f"'{key} {flag}'" for flag in option.flags)
                said = _values(option.choices, option.files, option.groups)
                values.append(f"        {keys}) takes=1 arguments='{said}' ;;")
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
    for one in words.every():
        for command in one.commands:
            lines.append(f"            case {_quoted(' '.join(command.name))}")
            lines.append(f"                set found {_quoted(' '.join(command.name))}")
    lines += ["        end", "    end", '    test "$found" = "$argv[1]"', "end"]
    lines += [
        "function __coordwire_groups",
        "    set -l words (commandline -opc)",
        "    $words[1] completion groups -- $words[2..-1] 2>/dev/null",
        "end",
    ]
    for one in words.every():
        start = f"complete -c coordwire -n {_quoted('__coordwire_at ' + _quoted(' '.join(one.name)))}"
        if not one.files:
            lines.append(f"{start} -f")
        for command in one.commands:
            lines.append(f"{start} -a {command.name[-1]} -d {_quoted(_brief(command.help))}")
        if one.choices:
            lines.append(f"{start} -a {_quoted(' '.join(one.choices))}")
        lines += [f"{start}{_fish_option(option)}" for option in one.options]
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
