"""Suites that others wrote, run against `coordwire.broker`: see `python -m tests.broker.suites --help`."""
