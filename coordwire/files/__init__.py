"""Files that are written whole or not at all, and locks on open files.

    staged.py   files without a name until they are complete
    lock.py     locks that end with their process

Rules: a file that we cannot prove to have written is neither deleted nor overwritten, unless the user asked
for that. A file is synced before it gets its name, and the folder after that, so that a name that survives a
crash of the machine has its whole content.

Two rooms write files by themselves, each for a reason:

    broker/log/     Kafka's files in Kafka's way (NAME.tmp, renamed over NAME), in a folder that its
                    meta.properties and its lock prove to be a broker's. Nothing is synced: what was written
                    outlives a killed process, not a crash of the machine, and a start checks every log
    tables/         folders that are opened by descriptor and without following links, and stores without
                    links; `tables.local` and `manifest_file` prove by size and checksum what was written
"""
