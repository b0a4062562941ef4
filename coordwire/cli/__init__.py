"""The command line: recorded traffic to people and to pipes, and back to bytes.

    __main__.py          picks the command and imports its module alone, so that starting is cheap
    decode.py encode.py explain.py pipeline.py serve.py   a module a command,
    api/ completion/ offsets/ segment/ simulate/ timeline/   or a package where it takes several files

    serve_log.py serve_secrets.py  serve's standard error; its users and certificates
    inputs.py            opens files, decompressed; live.py: captures an interface
    capture_folders.py   the captures in folders
    progress.py          how far a command has come, on a terminal
    coordinator_files.py the logs of coordinators among them
    standard_streams.py  standard input and output as they must be; termination.py: ending by a signal
    decode_formats.py    how decode shows entries: tree.py, line_format.py, annotated_hex.py and
                         column_format.py; decode_tables.py: its tables of --out
    filters.py           selects entries; name_patterns.py: groups, members and clients by name
    selection.py         selects them by packet_ranges.py and by the expressions of filtering/
    survey.py            what a filter looked at; capture_notes.py: what a capture holds instead of Kafka
    dialect_options.py   the options of the older dialects; topic_names.py: the topics of ids
    message_lines.py     a message as lines; recordsets.py: the record sets in it
    deep.py              what is inside opaque bytes

Rules: a command has `configure(parser)` and `run(options) -> status`. Standard output holds results and
nothing else, standard error holds notes. Exit status 0: all was decoded; 1: something was refused, and the
output says what; 2: usage or I/O (a `Failure`, never a traceback). Everything streams; nothing of the input
is left out silently.
"""


class Failure(Exception):
    """What ends a command with status 2; its text goes to standard error."""
