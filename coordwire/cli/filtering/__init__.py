"""The expressions of `coordwire decode --filter`, and the fields that they and `--fields` name.

    language.py     the text of an expression to its syntax tree, with the place of each part
    entry_fields.py which fields an entry has, and their values
    patterns.py     the regular expressions in it
    conditions.py   a syntax tree to a condition that an entry meets or not

Rules: whatever is wrong with an expression is found before the first frame is read, and points at the
character (`FilterError`). What is redacted in the output has no value here, so that a filter can't find it
out. Deciding on a frame takes time in proportion to the frame and the expression.
"""
