"""The names of `coordwire.dialects`, for those who import them from here."""

from coordwire.dialects import *  # noqa: F403
from coordwire.dialects import __all__ as __all__
