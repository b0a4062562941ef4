"""Hypothesis profiles, chosen by the environment's HYPOTHESIS_PROFILE: `ci`, the default, draws the same
values each time that the same tests are chosen (it also draws constants of the modules that are loaded), so
that a red run is the change's own; `quick` draws fewer, for every other Python that CI tests; `thorough`
draws new ones, and more.

What the surroundings say about colours and widths is taken away, and the terminal is a usual one, so that the
tests pass where a forge or a shell wants all output in colour; a test that is about colours sets them itself.

A test that fails for want of an extra's package is skipped, with the package as its reason. `-m quick` runs
what takes less than a minute altogether, and collects nothing else; what takes minutes is left out unless its
marker is asked for."""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

for name in ("FORCE_COLOR", "NO_COLOR", "PY_COLORS", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS", "LINES"):
    os.environ.pop(name, None)
os.environ.pop("AWS_PROFILE", None)  # the local S3's clients would look for it
os.environ.pop("PYTEST_ADDOPTS", None)  # pytest has read its own; a run within a run has others
os.environ["TERM"] = "xterm-256color"

settings.register_profile("ci", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("ci"), max_examples=10)
settings.register_profile("thorough", settings.get_profile("ci"), derandomize=False, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

PACKAGES = ("aiokafka", "cramjam", "deflate", "lz4", "pyarrow", "rich", "zstandard")
MISSING = [package for package in PACKAGES if find_spec(package) is None]

HERE = Path(__file__).parent
QUICK_FOLDERS = ("codec", "connection", "enums")
MINUTES = ("long", "suites")
SLOW_FILES = ("architecture", "docs", "fuzz_targets", "growth", "package", "text")


def is_quick(path: Path) -> bool:
    """Whether the tests of a file are: those of the codec, and those beside this file but for a few."""
    inside = path.relative_to(HERE)
    if len(inside.parts) > 1:
        return inside.parts[0] in QUICK_FOLDERS
    return path.stem.removeprefix("test_") not in SLOW_FILES


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if (
        config.getoption("markexpr") != "quick"
        or collection_path == HERE
        or HERE not in collection_path.parents
    ):
        return None
    if collection_path.is_dir():
        return None if collection_path.relative_to(HERE).parts[0] in QUICK_FOLDERS else True
    return None if is_quick(collection_path) else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [marker for marker in MINUTES if marker not in config.getoption("markexpr")]
    for item in items:
        for marker in left_out:
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=f"takes minutes: -m {marker}"))
        if HERE in item.path.parents and is_quick(item.path) and item.name != "test_its_code_is_typed":
            item.add_marker("quick")


def want(text: str) -> str | None:
    """What isn't installed, if a text says that it is needed."""
    for package in MISSING:
        if re.search(rf"No module named '{package}|needs? (the package )?{package}: pip install", text):
            return f"{package} isn't installed"
    return None


def skip_for_want(report: pytest.CollectReport | pytest.TestReport, path: str) -> None:
    """Turn a failure that names a package that isn't installed into a skip."""
    if not report.failed:
        return
    text = "\n".join([str(report.longrepr), *(captured for _, captured in report.sections)])
    if reason := want(text):
        report.outcome = "skipped"
        report.longrepr = (path, 0, f"Skipped: {reason}")


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
