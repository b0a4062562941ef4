"""Tests of what reads recorded traffic."""
