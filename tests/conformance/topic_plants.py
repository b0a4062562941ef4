"""Bugs planted into a broker's topics and configs, as in `broker_plants`."""

from __future__ import annotations

from tests.conformance.broker_plants import Plants

PLANTS: Plants = {}
