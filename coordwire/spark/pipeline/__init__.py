"""The pipeline: captures and segments into tables, with everything accounted for.

job.py            inputs -> units of work -> a job -> manifest and report
engine.py         who runs units: spark_tasks.py, the tasks of a Spark job; local_tasks.py and local_rows.py,
                  processes of this machine; connect_tasks.py: Spark Connect's session;
                  summary.py: what became of the inputs
tables.py         the tables in the folder, read; stored_tables.py: those in a store, without Hadoop;
                  catalog_views.py: made known to Spark's catalog
units.py          one unit of work to rows
output.py         rows to Parquet, in folders by date and topic
attempts.py       one attempt at a unit: its files, published whole or thrown away
pruning.py        rows of files that are gone, removed; gone.py: which files are
manifest.py       what is complete, and which files are ours; notes.py reads and writes its parts
output_folder.py  the folder that is written into; places.py: names in it; locks.py: one run at a time
report.py         the HTML report: report_groups.py, report_errors.py and report_style.py, plots.py,
                  escaping.py are its parts
"""

from coordwire.spark.pipeline.catalog_views import register
from coordwire.spark.pipeline.engine import Engine
from coordwire.spark.pipeline.job import REPORT, check, inputs_of, plan, run
from coordwire.spark.pipeline.local_tasks import LocalEngine
from coordwire.spark.pipeline.pruning import prune
from coordwire.spark.pipeline.spark_tasks import SparkEngine
from coordwire.spark.pipeline.summary import PipelineSummary
from coordwire.spark.pipeline.tables import table, tables_named

__all__ = [
    "REPORT", "Engine", "LocalEngine", "PipelineSummary", "SparkEngine", "check", "inputs_of", "plan",
    "prune", "register", "run", "table", "tables_named",
]  # fmt: skip
