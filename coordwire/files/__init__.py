"""Files that are written whole or not at all.

    staged.py   files without a name until they are complete

Rules: a file that we cannot prove to have written is neither deleted nor overwritten. A file is synced before
it gets its name, and the folder after that, so that a name that survives a crash has its whole content.
"""
