"""Hypothesis profiles, chosen by the environment's HYPOTHESIS_PROFILE: `ci`, the default, draws the same
values each time, so that a red run is the change's own; `quick` draws fewer, for every other Python that CI
tests; `thorough` draws new ones, and more."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("ci", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("ci"), max_examples=10)
settings.register_profile("thorough", settings.get_profile("ci"), derandomize=False, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
