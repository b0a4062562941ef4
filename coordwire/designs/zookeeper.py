"""The names of `coordwire.dialects.zookeeper`, for those who import them from here."""

from coordwire.dialects.zookeeper import *  # noqa: F403
from coordwire.dialects.zookeeper import __all__ as __all__
