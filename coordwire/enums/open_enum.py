"""`OpenEnum`: numbers of which newer Kafkas may know more.

Rules: any int has a member; one without a name is made for each use and not cached, so that untrusted bytes
don't take memory. It equals its int, and any other of the same int.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Self


class OpenEnum(IntEnum):
    """Numbers with names. `ValueError` only for what is not an int."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, int):
            return None
        member = int.__new__(cls, value)
        member._value_ = int(value)
        member._name_ = f"UNKNOWN_{value}"
        return member

    def __reduce_ex__(self, protocol: object) -> tuple[type[Self], tuple[int]]:
        """Pickle and copy by number. CPython before 3.11.4 does it by name, which an unknown number lacks."""
        return type(self), (self._value_,)

    @property
    def known(self) -> bool:
        """Whether this package has a name for the number."""
        return self._value_ in type(self)._value2member_map_
