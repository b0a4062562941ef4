"""Which entries the user asks for.

    filters.py       --api, --group, --member, --client-id, --errors, --packets, --filter
    times.py         --since and --until
    names.py         groups, members and clients by name, beginning or glob; topics by their ids
    expressions.py   the text of a filter expression to its syntax tree
    conditions.py    a syntax tree to a condition that an entry meets or not
    fields.py        the fields of an entry that expressions and columns name, and their values
    survey.py        the values that a filter looked at, for where nothing matched

Rules: an error in an expression is reported before the first frame is read, and points at the character
(`FilterError`). A value that is redacted in the output has no value here, so that a filter cannot reveal it.
To decide on a frame takes time in proportion to the frame and the expression.
"""
