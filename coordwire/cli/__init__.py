"""The command line: recorded traffic to people and to pipes, and back to bytes.

Strategy: `__main__` picks the command and imports its module alone, so that starting is cheap; one module a
command (`decode`, `timeline`, `offsets`, …), each with `configure(parser)` and `run(options) -> status`.
What they share: `inputs` opens files, `filters` selects entries, `tree` and `hexdump` are formats (JSON lines
are `coordwire.capture`'s).

Rules: standard output holds results and nothing else, standard error holds notes. Exit status 0: all was
decoded; 1: something was refused, and the output says what; 2: usage or I/O (a `Failure`, never a traceback).
Everything streams; nothing of the input is left out silently.
"""


class Failure(Exception):
    """What ends a command with status 2; its text goes to standard error."""
