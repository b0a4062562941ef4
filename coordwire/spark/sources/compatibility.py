"""What differs between PySpark 4.0, 4.1, 4.2 and 4.3 for the data sources.

Rules: features are looked for, not versions; nothing else in coordwire asks which PySpark it runs in. What an
older PySpark lacks has an unused placeholder of the newest one's name.
"""

from __future__ import annotations

__all__ = [
    "BOUNDED_STREAMS", "PUSHES_FILTERS", "EqualTo", "Filter", "GreaterThan", "GreaterThanOrEqual", "LessThan",
    "LessThanOrEqual", "ReadAllAvailable", "ReadMaxFiles", "SupportsTriggerAvailableNow", "arrow_schema_of",
    "filters_are_pushed",
]  # fmt: skip

import sys
from inspect import signature
from typing import TYPE_CHECKING, Any

import pyspark.sql.datasource
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.datasource import (
        EqualTo,
        Filter,
        GreaterThan,
        GreaterThanOrEqual,
        LessThan,
        LessThanOrEqual,
    )
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadMaxFiles,
        SupportsTriggerAvailableNow,
    )

    BOUNDED_STREAMS: bool
else:
    try:  # PySpark 4.2
        from pyspark.sql.streaming.datasource import (
            ReadAllAvailable,
            ReadMaxFiles,
            SupportsTriggerAvailableNow,
        )

        BOUNDED_STREAMS = True
    except ImportError:
        BOUNDED_STREAMS = False

        class ReadAllAvailable: ...

        class ReadMaxFiles: ...

        class SupportsTriggerAvailableNow: ...

    try:  # PySpark 4.1
        from pyspark.sql.datasource import (
            EqualTo,
            Filter,
            GreaterThan,
            GreaterThanOrEqual,
            LessThan,
            LessThanOrEqual,
        )
    except ImportError:

        class Filter: ...

        class EqualTo: ...

        class GreaterThan: ...

        class GreaterThanOrEqual: ...

        class LessThan: ...

        class LessThanOrEqual: ...


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
