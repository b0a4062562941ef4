"""The pytest plugin's part in simulated worlds: options, and processes with a seed's order of hashes.

Strategy: a test that `kafka_simulation` has decorated gets its options by a fixture. Python's order of hashes
is fixed when a process begins, so that a block of seeds runs in a pytest of its own, which runs that one test
and leaves its report in a file. Rules: with PYTHONHASHSEED as a seed needs it everything runs in this
process, where a debugger works.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from coordwire.testing.simulation import RunOptions
    from coordwire.testing.simulation.summary import RunSummary

_UNFIT = re.compile(r"[^\w.-]+")
_INDENT, _LEAST_WIDTH = 4, 76
"""Columns of the terminal that a story has: all but these, and no fewer than those."""


def add_options(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--kafka-seeds",
        metavar="SEEDS",
        help="seeds of simulated tests instead of their own: 17, 0-999, or several with commas between",
    )
    group.addoption(
        "--kafka-faults",
        metavar="PLAN",
        help="faults of simulated tests instead of their own: any, a kind, or a plan such as"
        " '10s crash orders-1 for 5s; 20s cut orders-* broker-1 for 8s'",
    )
    group.addoption(
        "--kafka-repeat",
        metavar="N",
        type=int,
        help="how many seeds of a simulated test run twice, to find what is not deterministic",
    )
    group.addoption(
        "--kafka-jobs",
        metavar="N",
        type=int,
        default=1,
        help="how many processes run the seeds of a simulated test at once (default: 1)",
    )
    group.addoption(
        "--kafka-report", metavar="FILE", help="where a pytest that the plugin has started leaves its summary"
    )


def read_seeds(text: str) -> list[int]:
    """The seeds that a text means. Raises `pytest.UsageError`."""
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,18})(?:-(\d{1,18}))?\s*", part)
        if match is None:
            raise pytest.UsageError(f"--kafka-seeds: expected 17 or 0-999, got {part!r}")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first > 10_000_000:
            raise pytest.UsageError(
                f"--kafka-seeds: expected at most 10,000,001 seeds in order, got {part!r}"
            )
        seeds.extend(range(first, last + 1))
    return seeds


def check_options(config: pytest.Config) -> None:
    """Raises `pytest.UsageError` for options that mean nothing."""
    seeds, faults, repeat, captures = (
        config.getoption(f"--kafka-{name}") for name in ("seeds", "faults", "repeat", "captures")
    )
    if seeds is not None:
        read_seeds(seeds)
    if faults is not None:
        from coordwire.errors import CoordwireError
        from coordwire.testing.simulation.runs import read_faults

        try:
            read_faults(faults)
        except (CoordwireError, ValueError) as error:
            raise pytest.UsageError(f"--kafka-faults: {getattr(error, 'reason', error)}") from None
    if repeat is not None and repeat < 0:
        raise pytest.UsageError(f"--kafka-repeat: expected 0 or more seeds, got {repeat}")
    if config.getoption("--kafka-jobs") < 1:
        raise pytest.UsageError(
            f"--kafka-jobs: expected 1 or more processes, got {config.getoption('--kafka-jobs')}"
        )
    if captures is not None and Path(captures).exists() and not Path(captures).is_dir():
        raise pytest.UsageError(f"--kafka-captures: expected a folder, got the file {captures}")


@pytest.fixture
def kafka_simulation_options(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> RunOptions:
    """How a simulated test runs; for `coordwire.testing.simulation`."""
    from coordwire.testing.simulation import RunOptions
    from coordwire.timeline.story import story_lines

    config, item = request.config, request.node
    if getattr(item.obj, "is_hypothesis_test", False):
        pytest.fail(
            "@given above @kafka_simulation would run all seeds for each example: write it below, so that "
            "each seed draws values of its own",
            pytrace=False,
        )
    seeds = config.getoption("--kafka-seeds")
    captures = config.getoption("--kafka-captures")
    name = _UNFIT.sub("-", item.name)[:60]
    report = config.getoption("--kafka-report")
    width = max(config.get_terminal_writer().fullwidth - _INDENT, _LEAST_WIDTH)
    if captures is None:
        folder = tmp_path_factory.mktemp(name)
    else:
        folder = Path(captures) if report is not None else Path(captures) / name

    def run_elsewhere(block: Sequence[int], repeat: int) -> RunSummary:
        return _run_pytest(config, item, folder, block, repeat)

    def deliver(summary: RunSummary) -> None:
        Path(report).write_text(summary.to_json())

    return RunOptions(
        seeds=None if seeds is None else read_seeds(seeds),
        faults=config.getoption("--kafka-faults"),
        repeat=config.getoption("--kafka-repeat"),
        folder=folder,
        command=f"pytest {shlex.quote(item.nodeid)}",
        run_elsewhere=run_elsewhere if report is None else None,
        jobs=config.getoption("--kafka-jobs"),
        is_debugged=config.getoption("usepdb"),
        deliver=None if report is None else deliver,
        story=partial(story_lines, width=width),
        width=width,
    )


def _run_pytest(
    config: pytest.Config, item: Any, captures: Path, block: Sequence[int], repeat: int
) -> RunSummary:
    """Run seeds of a test in a pytest of their own."""
    from coordwire.testing.simulation.runs import command_of_seed
    from coordwire.testing.simulation.summary import RunSummary

    with tempfile.TemporaryDirectory(prefix="coordwire-") as folder:
        report = Path(folder) / "report.json"
        arguments = [
            "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={config.rootpath}",
            *(("-c", str(config.inipath)) if config.inipath is not None else ()),
            *(word for plugin in config.getoption("plugins") or () for word in ("-p", plugin)),
            f"--kafka-seeds={','.join(_ranges(block))}", f"--kafka-repeat={repeat}",
            f"--kafka-report={report}", f"--kafka-captures={captures}",
            "--basetemp", str(Path(folder) / "tmp"),
        ]  # fmt: skip
        faults = config.getoption("--kafka-faults")
        if faults is not None:
            arguments.append(f"--kafka-faults={faults}")
        if config.pluginmanager.hasplugin("xdist"):
            arguments += ["-n", "0"]
        arguments.append(f"{item.path}{item.nodeid.partition('.py')[2]}")
        command, environment = command_of_seed(block[0], *arguments)
        environment["COLUMNS"] = str(config.get_terminal_writer().fullwidth)
        for name in [name for name in environment if name.startswith(("PYTEST_XDIST", "PYTEST_CURRENT"))]:
            del environment[name]
        completed = subprocess.run(
            command, cwd=config.invocation_params.dir, env=environment, text=True, errors="replace",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        if completed.returncode or not report.exists():
            name = f"the process of seeds {block[0]} to {block[-1]}"
            text = f"{name} has failed:\n{completed.stdout}"
            return RunSummary(len(block), {name: [block[0]]}, {name: text})
        return RunSummary.from_json(report.read_text())


def _ranges(seeds: Iterable[int]) -> list[str]:
    ranges: list[list[int]] = []
    for seed in seeds:
        if ranges and ranges[-1][1] == seed - 1:
            ranges[-1][1] = seed
        else:
            ranges.append([seed, seed])
    return [f"{first}-{last}" for first, last in ranges]
