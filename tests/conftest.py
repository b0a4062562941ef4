"""Hypothesis profiles, chosen by the environment's HYPOTHESIS_PROFILE: `ci`, the default, draws the same
values each time, so that a red run is the change's own; `quick` draws fewer, for every other Python that CI
tests; `thorough` draws new ones, and more.

A test that fails for want of an extra's package is skipped, with the package as its reason."""

from __future__ import annotations

import os
from collections.abc import Generator
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("ci", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("ci"), max_examples=10)
settings.register_profile("thorough", settings.get_profile("ci"), derandomize=False, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

PACKAGES = ("cramjam", "deflate", "lz4", "pyarrow", "rich", "zstandard")
MISSING = [package for package in PACKAGES if find_spec(package) is None]


def skip_for_want(report: pytest.CollectReport | pytest.TestReport, path: str) -> None:
    """Turn a failure that names a package that isn't installed into a skip."""
    if not report.failed:
        return
    text = str(report.longrepr)
    for package in MISSING:
        if f"No module named '{package}" in text or f"needs the package {package}" in text:
            report.outcome = "skipped"
            report.longrepr = (path, 0, f"Skipped: {package} isn't installed")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    skip_for_want(report, str(collector.path))
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    skip_for_want(report, str(item.path))
    return report
