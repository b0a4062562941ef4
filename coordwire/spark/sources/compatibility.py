"""What differs between PySpark 4.0, 4.1, 4.2 and 4.3 for the data sources.

Rules: features are looked for, not versions; nothing else in coordwire asks which PySpark it runs in.
"""

from __future__ import annotations

__all__ = [
    "BOUNDED_STREAMS", "PUSHES_FILTERS", "SupportsTriggerAvailableNow", "arrow_schema_of",
    "filters_are_pushed", "limits",
]  # fmt: skip

import sys
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any

import pyspark.sql.datasource
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

try:
    limits: Any = import_module("pyspark.sql.streaming.datasource")
except ImportError:
    limits = None
"""The module of how much a micro-batch may read, of PySpark 4.2 and later."""

BOUNDED_STREAMS = hasattr(limits, "SupportsTriggerAvailableNow")

if not TYPE_CHECKING:
    SupportsTriggerAvailableNow = limits.SupportsTriggerAvailableNow if BOUNDED_STREAMS else object

PUSHES_FILTERS = hasattr(pyspark.sql.datasource, "Filter")
"""From PySpark 4.1."""

_PUSHING = "pyspark.sql.worker.data_source_pushdown_filters"
"""The worker's module where filters are pushed; Spark refuses a reader that takes any elsewhere."""


def filters_are_pushed() -> bool:
    """Whether Spark asks this process what a reader can filter by."""
    return PUSHES_FILTERS and _PUSHING in sys.modules


def arrow_schema_of(schema: StructType) -> pyarrow.Schema:
    """The Arrow schema in which Spark expects the rows of a reader; times are in UTC."""
    from pyspark.sql.pandas.types import to_arrow_schema

    make: Any = to_arrow_schema
    # PySpark 4.2 asks for the time zone; before, UTC is the default.
    return make(schema, timezone="UTC") if "timezone" in signature(make).parameters else make(schema)
