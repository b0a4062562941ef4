"""`coordwire completion`: what a shell needs to complete the command line, generated from its parsers.

Strategy: the commands' parsers are walked into `Words`, and each shell's script is written from these. Rules:
a script is static, so that completing starts no Python; it names every command, option and choice, and offers
files where a value may be one. Written here, since no library of argparse's completion covers bash, zsh and
fish, and each of them starts Python at every key or is one more thing to install.
"""

from __future__ import annotations

import argparse
import sys

from coordwire.cli.completion.scripts import SHELLS
from coordwire.cli.completion.words import words_of

INSTALL = {
    "bash": "coordwire completion bash > ~/.local/share/bash-completion/completions/coordwire",
    "zsh": "coordwire completion zsh > DIR/_coordwire, where DIR is in $fpath",
    "fish": "coordwire completion fish > ~/.config/fish/completions/coordwire.fish",
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "install:\n" + "\n".join(f"  {line}" for line in INSTALL.values())
    parser.add_argument("shell", choices=list(SHELLS), help="the shell that the script is for")


def run(options: argparse.Namespace) -> int:
    from coordwire.cli.__main__ import whole_parser

    sys.stdout.write(SHELLS[options.shell](words_of(whole_parser())))
    return 0
