"""The command line, for tests that hold what it prints against a real broker's logs."""

from tests.cli.conftest import run

__all__ = ["run"]
