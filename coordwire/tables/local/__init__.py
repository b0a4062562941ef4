"""Entries of captures into one CSV or Parquet file a table, for `coordwire decode --out`.

capture_tables.py  entries to rows of all tables
csv_table.py, parquet_table.py   rows to one file
owned_files.py     the folder: which files in it are coordwire's, and how new ones replace them
"""
