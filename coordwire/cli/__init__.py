"""The command line: recorded traffic to people and to pipes, and back to bytes.

    __main__.py          picks the command and imports its module alone, so that starting is cheap
    decode.py encode.py explain.py pipeline.py   a module a command,
    api/ offsets/ segment/ timeline/             or a package where it takes several files

    inputs.py            opens files and shows progress
    standard_streams.py  standard input and output as they must be; termination.py: ending by a signal
    filters.py           selects entries; dialect_options.py: the options of the older dialects
    selection.py         selects them by packet_ranges.py and by the expressions of filtering/
    tree.py              entries as a tree; line_format.py: as lines; annotated_hex.py: as annotated hex
    column_format.py     chosen fields of entries as columns; topic_names.py: the topics behind ids
    message_lines.py     a message as lines; recordsets.py: the record sets in it
    deep.py              what is inside opaque bytes

Rules: a command has `configure(parser)` and `run(options) -> status`. Standard output holds results and
nothing else, standard error holds notes. Exit status 0: all was decoded; 1: something was refused, and the
output says what; 2: usage or I/O (a `Failure`, never a traceback). Everything streams; nothing of the input
is left out silently.
"""


class Failure(Exception):
    """What ends a command with status 2; its text goes to standard error."""
