"""`coordwire completion`: what a shell needs to complete the command line, generated from its parsers.

Strategy: the commands' parsers are walked into `Words`, and each shell's script is written from these. Rules:
a script is static, so that completing starts no Python; it names every command, option, choice and API, and
offers files where a value may be one. The exception is the value of --group: the script asks `coordwire
completion groups` for those of the captures on the command line, which answers for small ones only. Written
here, since no library of argparse's completion covers bash, zsh and fish, and each of them starts Python at
every key or is one more thing to install.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress

from coordwire.cli import Failure
from coordwire.cli.completion.scripts import SHELLS
from coordwire.cli.completion.words import words_of

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
    from coordwire.cli.__main__ import whole_parser

    sys.stdout.write(SHELLS[options.shell](words_of(whole_parser())))
    return 0


def _groups(words: list[str]) -> Iterator[str]:
    """The groups that the small captures among the words name."""
    from coordwire.capture.entries import FrameEntry
    from coordwire.capture.reader import Capture
    from coordwire.cli.filters import entry_groups
    from coordwire.cli.inputs import opened
    from coordwire.errors import CoordwireError

    found: set[str] = set()
    for word in words:
        with suppress(OSError, ValueError, CoordwireError, Failure):
            if not os.path.isfile(word) or os.path.getsize(word) > CHEAP:
                continue
            with opened(word) as stream:
                for entry in Capture(stream, word).entries():
                    if not isinstance(entry, FrameEntry):
                        continue
                    for group in entry_groups(entry):
                        if isinstance(group, str) and group not in found and _PLAIN.fullmatch(group):
                            found.add(group)
                            yield group
                    if len(found) >= MOST_GROUPS:
                        return
