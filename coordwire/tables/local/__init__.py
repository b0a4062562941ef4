"""Entries of captures into one CSV or Parquet file a table, for `coordwire decode --out`.

capture_tables.py  entries to rows of all tables, and rows to one file, in CSV or Parquet
owned_files.py     the folder: which files in it are coordwire's, and how new ones replace them
"""
