"""The pipeline's output folder, on a disk or in a store.

names.py           the names of its files and folders
folders.py         a folder that is written into: local, or in a store; the folder of one pipeline
manifest_file.py   the manifest and the notes of complete units, as they are read
run_lock.py        one run at a time
checkpoints.py     what is known at the end of a chain's files, for the next run
unit_attempt.py    one attempt at a unit of work: its files, published together or removed
parquet_files.py   rows to the Parquet files of an attempt
"""
