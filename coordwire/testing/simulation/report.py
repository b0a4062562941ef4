"""The report of a failed seed: what failed, where it waits, the plan, and excerpts of the groups and the log.

Strategy: a screen is for who has never seen the tool; all lines are in a file. An excerpt begins shortly
before the first fault, leaves out what clients do all the time, commits of partitions that the reason does
not name, and what comes after the test, unless that is what failed; the middle of what is too long is left
out. Rule: no line is cut where its end may be the cause; it goes on below.
"""

from __future__ import annotations

import platform
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from coordwire.testing.simulation.load import LOADS
from coordwire.testing.simulation.runs import RunOutcome, hash_seed_of, is_hash_seed_of, plan_text

if TYPE_CHECKING:
    from coordwire.testing.simulation.decorator import RunOptions

__all__ = ["report_of"]

_LOG_LINES = 60
_SHOWN_LINES = 14
"""So many lines of the log, and of the groups, are shown where a file has all of them."""

_BEFORE, _LAST = 3, 4
"""Lines of an excerpt that are before the first fault, and at its end where its middle is left out."""

_MOST_ROWS = 3
"""Rows of one line."""

_HEAD = "── "
"""Before the name of a group, where its story begins."""

_CLOCK = re.compile(r"(?<!\S)(\d\d):(\d\d):(\d\d\.\d{3})(?!\S)")

_TIME = re.compile(r" *(\d+\.\d{3}) ")
_LOG_HEAD = re.compile(r" *\d+\.\d{3} \S+ +[A-Z]+ +")
_STORY_HEAD = re.compile(r" *\d+\.\d{3} +\d+ +\S ")

_TEST_ENDED = re.compile(r" *[\d.]+ world +TEST ")
_AFTER_IT = {"Stop", "LeftBehind"}
"""What fails after the test."""

_LOGGER = re.compile(r"(?<= )(aiokafka|kafka)\.[\w.]+(?=: )")
_CHATTER = re.compile(r"[\s\d.]+ \S+ +INFO +(?:aiokafka|kafka)\b")
"""What a client logs of its usual work, which the groups show too."""

_STEADY = re.compile(r" *[\d.]+ +\d+ +· (?:lag |.* commits )")
"""What a group does all the time."""

_PLACE = re.compile(r"(?<![\w.-])[\w.-]+-\d+")
_COMMITTED = re.compile(rf"({_PLACE.pattern}) →")

_PACKAGES = "coordwire", "aiokafka", "kafka-python", "faststream", "anyio"
"""Those that a report names, if they are in use: what a seed does depends on their versions."""


def report_of(failed: RunOutcome, shrunk: RunOutcome, options: RunOptions) -> str:
    """What a person needs to understand a failure. Writes the files of a failed seed, where there is a folder
    for them."""
    lines = [f"seed {failed.seed} fails: {failed.kind[-1]}, after {shrunk.seconds:.1f} s of virtual time"]
    lines += [
        "",
        shrunk.reason,
        "",
        *_calls_and_plan(failed, shrunk),
        *_values(shrunk),
        "",
        *_commands(failed, shrunk, options),
    ]
    story = [] if options.story is None or shrunk.timeline is None else [*options.story(shrunk.timeline())]
    groups = [*map(_in_seconds, story)]
    parts = {
        "Records that were processed more than once": [*shrunk.repeated],
        "The groups: seconds of virtual time, packets of the capture, and what happened": groups,
        "The log: seconds of virtual time, processes, and what they logged": [*shrunk.log_lines],
    }
    if options.folder is None:
        lines += [line for title, content in parts.items() for line in _part(title, content[-_LOG_LINES:])]
        return "\n".join(lines)
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / f"seed-{failed.seed}.txt"
    for title, content in parts.items():
        lines += _part(title, _excerpt(content, shrunk, options.width))
    all_lines = [line for part in parts.items() for line in _part(*part)]
    path.write_text("\n".join([*lines, *all_lines]))
    lines += ["", "All of it:", f"    {path}"]
    if shrunk.pcapng is not None:
        path = options.folder / f"seed-{failed.seed}.pcapng"
        path.write_bytes(shrunk.pcapng())
        lines += ["", "All bytes, for Wireshark, coordwire decode and coordwire timeline:", f"    {path}"]
    return "\n".join(lines)


def _part(title: str, content: Sequence[str]) -> list[str]:
    return ["", f"{title}:", *(f"    {line}" for line in content)] if content else []


def _excerpt(content: list[str], shrunk: RunOutcome, width: int) -> list[str]:
    """What a screen has of a part."""
    lines = [line for line in _concerned(content, shrunk.reason) if not _CHATTER.match(line)]
    places = {*_PLACE.findall(" ".join([shrunk.reason, *shrunk.repeated[:1]]))}
    lines = [line for line in lines if not _STEADY.match(line) or places & {*_COMMITTED.findall(line)}]
    ends = next((_time(line) for line in shrunk.log_lines if _TEST_ENDED.match(line)), None)
    if ends is not None and shrunk.kind[-1] not in _AFTER_IT:
        lines = [line for line in lines if _time(line) <= ends]
    rows = [_rows(_LOGGER.sub(r"\1", line), width) for line in lines]
    faults = [fault.at / 1000 for fault in shrunk.plan if fault.kind not in LOADS]
    first_fault = min(faults, default=float("inf"))
    earlier = [number for number, line in enumerate(lines) if _TIME.match(line) and _time(line) < first_fault]
    start = max(earlier[-1] + 1 - _BEFORE, 0) if earlier else 0
    while start and _count(rows[start - 1 :]) <= _SHOWN_LINES:
        start -= 1
    end = stop = len(rows)
    if _count(rows[start:]) > _SHOWN_LINES:
        while _count(rows[stop - 1 :]) <= _LAST:
            stop -= 1
        remaining, end = _SHOWN_LINES - _count(rows[stop:]), start
        while (remaining := remaining - len(rows[end])) >= 0:
            end += 1
    excerpt = ["…"] if start else []
    excerpt += [row for line in rows[start:end] for row in line]
    if end < len(rows):
        excerpt += [f"… {stop - end} more", *(row for line in rows[stop:] for row in line)]
    return excerpt


def _count(rows: list[list[str]]) -> int:
    return sum(map(len, rows))


def _time(line: str) -> float:
    """When it was; 0 for a line without a time."""
    match = _TIME.match(line)
    return float(match[1]) if match is not None else 0.0


def _rows(line: str, width: int) -> list[str]:
    """A line in rows; what goes on is below its words."""
    match = _LOG_HEAD.match(line) or _STORY_HEAD.match(line)
    indent = len(line) - len(line.lstrip()) + 2 if match is None else match.end()
    rows = textwrap.wrap(line, width, subsequent_indent=" " * min(indent, width // 2)) or [line]
    if len(rows) > _MOST_ROWS:
        rows[_MOST_ROWS - 1 :] = [f"{rows[_MOST_ROWS - 1][: width - 2]} …"]
    return rows


def _concerned(lines: list[str], reason: str) -> list[str]:
    """The stories of the groups that a reason names; all lines, if there are none."""
    stories, is_named = [], False
    for line in lines:
        if line.startswith(_HEAD):
            name = line.removeprefix(_HEAD).partition(" ")[0]
            is_named = re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", reason) is not None
        if is_named:
            stories.append(line)
    return stories or lines


def _in_seconds(line: str) -> str:
    """A line of a story with the seconds that log and faults have, in place of the time of day."""
    return _CLOCK.sub(lambda clock: f"{_seconds_of(*clock.groups()):12.3f}", line)


def _seconds_of(hours: str, minutes: str, seconds: str) -> float:
    return int(hours) * 3_600 + int(minutes) * 60 + float(seconds)


def _calls_and_plan(failed: RunOutcome, shrunk: RunOutcome) -> list[str]:
    lines = [*shrunk.calls.rstrip().splitlines(), ""] if shrunk.calls else []
    if shrunk.unawaited:
        lines += [f"Never awaited: {'; '.join(shrunk.unawaited)}", ""]
    count = len(shrunk.plan)
    if not failed.plan:
        return [*lines, "No fault happened."]
    if not count:
        return [*lines, "It fails without any fault, too."]
    faults_text = "this fault" if count == 1 else f"these {count} faults"
    if failed.plan and shrunk.unfaulted:
        lines += [f"Without any fault it fails, too, by {shrunk.unfaulted}", ""]
    alone = f" alone, of {len(failed.plan)}" if count < len(failed.plan) else ""
    return [*lines, f"With {faults_text}{alone}:", "", plan_text(shrunk.plan, "    ").rstrip()]


def _values(shrunk: RunOutcome) -> list[str]:
    """The arguments that were drawn."""
    if not shrunk.values:
        return []
    lines = [
        line if line == own else f"{line} (the seed draws {own.partition(' = ')[2]})"
        for line, own in zip(shrunk.values, shrunk.own_values or shrunk.values, strict=True)
    ]
    return ["", "With these values:", "", *(f"    {line}" for line in lines)]


def _commands(failed: RunOutcome, shrunk: RunOutcome, options: RunOptions) -> list[str]:
    """How the seed runs again, and with what it gives the same bytes."""
    lines = []
    if options.command:
        lines += ["To run it again:", f"    {options.command} --kafka-seeds {failed.seed}"]
        if shrunk.plan:
            text = "; ".join(map(str, shrunk.plan))
            lines.append("and with the faults above alone:")
            lines.append(f"    {options.command} --kafka-seeds {failed.seed} --kafka-faults '{text}'")
        lines.append("")
    packages = (*_PACKAGES, "hypothesis") if shrunk.values else _PACKAGES
    lines.append(f"This was {', '.join(_versions(options.code, packages))}.")
    if not is_hash_seed_of(failed.seed):
        prefix = "" if sys.version_info >= (3, 12) else "setarch -R with "
        lines.append(
            "Its order of hashes was this process's own: run again, a test in which sets of texts are gone "
            "through may pass, or fail otherwise. "
            f"It has its own under pytest, or {prefix}PYTHONHASHSEED={hash_seed_of(failed.seed)}."
        )
    return lines


def _versions(code: Path | None, packages: Iterable[str] = _PACKAGES) -> list[str]:
    """What a seed's bytes depend on: the commit of the code, if git knows it, Python, and packages."""
    versions = [f"Python {platform.python_version()}"]
    for name in packages:
        if name.replace("kafka-python", "kafka") in sys.modules:
            with suppress(PackageNotFoundError):
                versions.append(f"{name} {version(name)}")
    commit, status = _git(code, "rev-parse", "--short=12", "HEAD"), _git(code, "status", "--porcelain")
    if commit:
        versions.insert(0, f"commit {commit.strip()}{' with changes' if status else ''}")
    return versions


def _git(folder: Path | None, *arguments: str) -> str:
    """What git says, or nothing."""
    command = ["git", "-C", str(folder or "."), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
