"""Captures and log segments as rows of tables: without Spark, and what Spark's workers run.

    columns.py     every table's columns, with types and docs
    options.py     the options of readers
    functions.py   columns of bytes to columns of values, in any engine with Arrow
    log_records.py records of the coordinators' logs as columns, for one of these functions
    arrays.py      what such functions are given, and the arrays that they make
    views.py       queries that count once what captures and logs both have
    audits.py      queries of Spark and DuckDB: offsets, replicas, producers, each record once
    engine_sql.py  queries that both run, from one text
    local.py       entries of captures into one CSV or Parquet file a table, for `coordwire decode --out`
    stores.py      object stores, by the URIs that name them
    readers/       files to Arrow batches
    storage/       the pipeline's output folder: its files, manifest, lock and attempts
    formats/       the tables' own logs: Delta and Iceberg
    report/        the HTML report
    pipeline/      captures and segments into tables, by an engine: processes of this machine, or Spark

Rules: nothing here imports pyspark; pyarrow is imported where rows are made. A worker keeps nothing between
tasks but what the keys of logs mean; every byte of a file is in a row or in quarantine.
"""
