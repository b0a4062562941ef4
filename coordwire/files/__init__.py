"""Files that are written whole or not at all, and locks on open files.

    staged.py   files without a name until they are complete
    lock.py     locks that end with their process

Rules: a file that we cannot prove to have written is neither deleted nor overwritten, unless the user asked
for that. A file is synced before it gets its name, and the folder after that, so that a name that survives a
crash of the machine has its whole content.
"""
