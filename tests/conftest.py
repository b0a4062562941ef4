"""Which tests run, with which Hypothesis profile, and in which surroundings.

Strategy: `pytest` runs what takes some minutes altogether. A test with a marker of LANES (pyproject.toml has
their meaning) is left out, unless `-m` names the marker, `--with` adds it, or the test's own file is an
argument; the summary counts what was left out. `-m quick` runs what takes less than a minute, and collects
nothing else; nor does `-m` with LANES alone collect files that have none of them. With `--sample N/KEY` one
in N of the tests that are usually left out runs, chosen by KEY, and none that runs by default: what CI runs
for a change. Files that take long come first, so that no process is left with one of them at the end.
Rules: a test that needs the fixture `spark` has its marker, a test of a file with "growth" in its name has
`growth`. Of a parametrized test that is `slow`, and of every test of growth, the first case runs in any
case; so does what is marked `smoke`.

Hypothesis profiles, chosen by the environment's HYPOTHESIS_PROFILE: `ci`, the default, draws the same values
each time that the same tests are chosen (it also draws constants of the modules that are loaded), so that a
red run is the change's own; `quick` draws fewer, for every other Python that CI tests; `thorough` draws new
ones, and more.

The environment's settings for colours and widths are removed, and the terminal is a usual one, so that the
tests pass where a forge or a shell wants all output in colour; a test that is about colours sets them
itself. A test that fails for want of an extra's package is skipped, with the package as its reason.
"""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Generator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

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

PACKAGES = ("aiokafka", "cramjam", "deflate", "duckdb", "lz4", "polars", "pyarrow", "rich", "zstandard")
MISSING = [package for package in PACKAGES if find_spec(package) is None]

HERE = Path(__file__).parent
QUICK_FOLDERS = ("codec", "connection", "enums")
SLOW_FILES = ("architecture", "docs", "fuzz_targets", "growth", "notebooks", "package", "proof", "text")
LANES = ("clients", "growth", "long", "maven", "peers", "pysparks", "slow", "spark", "suites", "tables")
LONG_FILES = (
    "test_docs.py",
    "conformance/test_hostile.py",
    "conformance/test_values.py",
    "cli/test_watch_faults.py",
    "conformance/test_wrong_values.py",
    "spark/test_sources.py",
    "capture/test_growth.py",
    "test_architecture.py",
    "records/test_arrow_errors.py",
    "conformance/test_drafts.py",
    "tables/test_object_ranges.py",
    "cli/test_damaged_secrets.py",
    "tables/test_lost_captures.py",
    "tables/test_local_engine.py",
    "coordinator/test_histories.py",
    "records/test_compression.py",
    "records/test_arrow_shapes.py",
    "patterns/test_cost.py",
    "coordinator/test_request_growth.py",
)
"""Of the tests that run by default, those whose file takes longest, the longest first."""

COUNTS: pytest.StashKey[dict[str, int]] = pytest.StashKey()
"""How many tests were left out, by marker."""

SAMPLED: pytest.StashKey[tuple[int, int]] = pytest.StashKey()
"""How many tests were sampled, and of how many."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--with",
        action="append",
        default=[],
        choices=[*LANES, "all"],
        metavar="MARKER",
        help=f"also run the tests of a marker that are left out: {', '.join(LANES)}, all",
    )
    parser.addoption(
        "--sample",
        metavar="N/KEY",
        type=sample,
        help="of the tests that -m names and that are left out by default, run one in N; KEY, hexadecimal "
        "digits as of a commit's hash, chooses which",
    )


def sample(text: str) -> tuple[int, int]:
    """N, and which of the N parts a key chooses."""
    if not re.fullmatch(r"[1-9][0-9]*/[0-9a-f]+", text):
        raise ValueError(f"expected N/KEY, got {text}")
    parts, _, key = text.partition("/")
    return int(parts), int(key, 16) % int(parts)


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config.option, "loadscopereorder"):  # of pytest-xdist, which would begin with the most tests
        config.option.loadscopereorder = False


@cache
def is_quick(path: Path) -> bool:
    """Whether the tests of a file are: those of the codec, and those beside this file but for a few."""
    if HERE not in path.parents:
        return False
    content = path.relative_to(HERE)
    if len(content.parts) > 1:
        return content.parts[0] in QUICK_FOLDERS
    return path.stem.removeprefix("test_") not in SLOW_FILES


def may_have(path: Path, markers: set[str]) -> bool:
    """Whether a file may have tests with one of these markers: by its name, its marks and its fixtures."""
    words = {"growth"} if "growth" in path.stem else set()
    return not markers.isdisjoint(words.union(re.findall(r"\w+", path.read_text())))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if collection_path == HERE or HERE not in collection_path.parents:
        return None
    wanted = re.sub(r"\bnot +\w+", "", config.getoption("markexpr"))
    named = set(re.findall(r"\w+", wanted)) - {"and", "or", "not"}
    if named and named.issubset(LANES) and collection_path.match("test_*.py"):
        return None if may_have(collection_path, named) else True
    if named != {"quick"}:
        return None
    if collection_path.is_dir():
        return None if collection_path.relative_to(HERE).parts[0] in QUICK_FOLDERS else True
    return None if is_quick(collection_path) else True


def lane(item: pytest.Item, families: set[tuple[Path, str]]) -> str | None:
    """The marker for which a test is left out. families: the tests of which a case was there already."""
    names = {mark.name for mark in item.iter_markers()}
    lanes = sorted(names.intersection(LANES))
    if not lanes or "smoke" in names:
        return None
    family = item.path, getattr(item, "originalname", item.name)
    has_first = lanes == ["growth"] or (lanes == ["slow"] and hasattr(item, "callspec"))
    if has_first and family not in families:
        families.add(family)
        return None
    return lanes[0]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without the garbage collector, which would walk all modules and tests again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def deselect(config: pytest.Config, items: list[pytest.Item], ids: set[int]) -> None:
    """Take out the items with these ids."""
    if ids:
        config.hook.pytest_deselected(items=[item for item in items if id(item) in ids])
        items[:] = [item for item in items if id(item) not in ids]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
        if "growth" in item.path.stem:
            item.add_marker("growth")
        if is_quick(item.path) and item.name != "test_its_code_is_typed":
            item.add_marker("quick")
    named = set(config.getoption("with"))
    if "all" in named:
        named.update(LANES)
    files = {Path(argument.partition("::")[0]).resolve() for argument in config.args}
    expression = config.getoption("markexpr")
    named.update(marker for marker in LANES if re.search(rf"\b{marker}\b", expression))
    families: set[tuple[Path, str]] = set()
    left_out: dict[str, list[pytest.Item]] = {}
    for item in items:
        marker = lane(item, families)
        is_named = item.path in files or not named.isdisjoint(mark.name for mark in item.iter_markers())
        if marker and not is_named:
            left_out.setdefault(marker, []).append(item)
    config.stash[COUNTS] = {marker: len(tests) for marker, tests in left_out.items()}
    deselected = {id(item) for tests in left_out.values() for item in tests}
    deselect(config, items, deselected)
    yield  # the expression of -m is applied
    if config.getoption("sample"):
        deselect(config, items, unsampled(config, items))
    ranks = {HERE / name: rank for rank, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: ranks.get(item.path, len(ranks)))


def unsampled(config: pytest.Config, items: list[pytest.Item]) -> set[int]:
    """The ids of the items that are not in the sample."""
    parts, part = config.getoption("sample")
    families: set[tuple[Path, str]] = set()
    candidates = [item for item in items if lane(item, families)]
    kept = candidates[part::parts]
    config.stash[SAMPLED] = len(kept), len(candidates)
    return {id(item) for item in items} - {id(item) for item in kept}


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):  # of pytest-xdist: each worker has collected all
        session.config.workeroutput["left_out"] = session.config.stash.get(COUNTS, {})
        session.config.workeroutput["sampled"] = session.config.stash.get(SAMPLED, None)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    output = getattr(node, "workeroutput", {})
    node.config.stash[COUNTS] = output.get("left_out", {})
    if sampled := output.get("sampled"):
        node.config.stash[SAMPLED] = sampled


def pytest_report_header() -> str:
    return f"left out unless named (-m NAME, or --with NAME beside the others): {', '.join(LANES)}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if counts := terminalreporter.config.stash.get(COUNTS, {}):
        listed = ", ".join(f"{marker} {count}" for marker, count in sorted(counts.items()))
        terminalreporter.write_line(f"left out, each run by -m NAME or --with NAME: {listed}")
    if sampled := terminalreporter.config.stash.get(SAMPLED, None):
        count, candidates = sampled
        terminalreporter.write_line(
            f"a sample: {count:,} of {candidates:,}; without --sample all of them run"
        )


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
