"""Why a log refuses records, in Kafka's error codes."""

from __future__ import annotations

from coordwire.enums import ErrorCode

__all__ = ["RefusedRecords"]


class RefusedRecords(Exception):
    """Records that are not appended. records: index and reason of each one that is wrong."""

    def __init__(
        self, code: ErrorCode, message: str | None = None, records: tuple[tuple[int, str], ...] = ()
    ) -> None:
        super().__init__(message or code.name)
        self.code = int(code)
        self.message = message
        self.records = records
