"""The pipeline: captures and segments into tables, with everything accounted for.

job.py            inputs -> units of work -> a job -> manifest and report; the table of files
units.py          one unit of work to rows
capture_rows.py   one reading of a capture to the rows of all tables
engine.py         what runs units: processes of this machine; coordwire.spark has Spark's engines
ledger.py         which units are complete, and which files are the pipeline's
file_sharing.py   what becomes of files that units share of which some go
earlier_captures.py  which units of captures stay whose files are gone in part
settled_units.py  which units of a chain stay as it grows, and what the next ones go on from
pruning.py        which files are gone, whose rows a run removes
"""

from coordwire.tables.pipeline.engine import Engine, LocalEngine
from coordwire.tables.pipeline.job import check, inputs_of, plan, run
from coordwire.tables.report.summary import PipelineSummary
from coordwire.tables.storage.names import REPORT

__all__ = ["REPORT", "Engine", "LocalEngine", "PipelineSummary", "check", "inputs_of", "plan", "run"]
