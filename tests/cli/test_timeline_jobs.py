"""`timeline --jobs`: the output and the status of one process, and no process left after any end."""

from __future__ import annotations

import json
import lzma
import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from coordwire.capture.formats.pcap import as_pcap
from tests.bench.group_traffic import traffic
from tests.capture.test_walks import damaged
from tests.timeline.logs import commit, plain

from .conftest import CAPTURES, Run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

DATA = CAPTURES.parent
COMMAND = [sys.executable, "-m", "coordwire", "timeline"]
GROUP = CAPTURES / "kpy__tansu__group-range.pcap"

SAME = """
import json, os, sys, tempfile
from coordwire.cli import timeline
from coordwire.cli.__main__ import main
from coordwire.cli.timeline import inputs, jobs

timeline.STRIPE, inputs.PART = 1, 40
forks, fork = [0], jobs.Children.fork
def counted(*arguments, **names):
    forks[0] += 1
    return fork(*arguments, **names)
jobs.Children.fork = counted
own = os.dup(1), os.dup(2)

def run(words):
    files = tempfile.TemporaryFile(), tempfile.TemporaryFile()
    for number, file in zip((1, 2), files):
        os.dup2(file.fileno(), number)
    status = main(["timeline", *words])
    sys.stdout.flush()
    for number, file in zip((1, 2), own):
        os.dup2(file, number)
    for file in files:
        file.seek(0)
    return [status, *(file.read().decode() for file in files)]

for words, count in json.load(sys.stdin):
    expected = run(words)
    forks[0] = 0
    several = run([*words, "--jobs", str(count)])
    if several != expected:
        print(words, count, *(text[-400:] for text in map(str, (*expected, *several))), sep="\\n")
        sys.exit(1)
    print(json.dumps([*expected, forks[0]]))
"""

FORMS = [
    ("--format", "json"),
    ("--format", "json", "--summary"),
    ("--format", "json", "--errors"),
    ("--format", "json", "--rebalances", "--strict"),
    ("--format", "json", "--group", "nobody's"),
    ("--format", "json", "--until", "2020-01-01"),
    ("--format", "story"),
    ("--format", "story", "--events"),
    ("--format", "story", "--commits"),
    ("--format", "story", "--summary"),
    ("--format", "story", "--rebalance", "1"),
]


def compared(cases: Sequence[tuple[list[str], int]]) -> list[tuple[int, str, str, int]]:
    """Of each case, which one process and several have written: the status, both outputs, and how many
    processes there were."""
    process = subprocess.run(
        [sys.executable, "-c", SAME], input=json.dumps(cases), capture_output=True, text=True,
        env=os.environ | {"COLUMNS": "100"},
    )  # fmt: skip
    assert process.returncode == 0, process.stdout[-3000:] + process.stderr[-3000:]
    return [json.loads(line) for line in process.stdout.splitlines()]


def unpacked(path: Path, folder: Path) -> str:
    """A recording as a file that isn't compressed."""
    file = folder / path.stem
    file.write_bytes(lzma.decompress(path.read_bytes()))
    return str(file)


@pytest.fixture
def inputs(tmp_path: Path) -> list[list[str]]:
    """Many groups, damaged, several recordings together, without groups, not a capture, not there."""
    groups = as_pcap(islice(traffic("joins"), 600))
    many, broken, noise = tmp_path / "many.pcap", tmp_path / "broken.pcap", tmp_path / "noise"
    many.write_bytes(groups)
    broken.write_bytes(damaged(groups, Random(2)))
    noise.write_bytes(bytes(range(200)))
    recorded = unpacked(DATA / "groups" / "java__kafka-4.3.0__groups.pcap.xz", tmp_path)
    return [
        [str(many)],
        [str(broken), str(tmp_path / "nothing")],
        [recorded, str(GROUP), str(many)],
        [str(CAPTURES / "kpy__rdmock__apiversions-fallback.pcap")],
        [str(noise), recorded],
        [str(broken)],
    ]


def test_processes_have_the_output_of_one(inputs: list[list[str]]) -> None:
    cases = [
        ([*FORMS[0], *inputs[0]], 3),
        ([*FORMS[0], *inputs[1]], 2),
        ([*FORMS[6], *inputs[2]], 2),
        ([*FORMS[0], *inputs[3]], 2),
        ([*FORMS[4], *inputs[4]], 2),
    ]
    results = compared(cases)
    assert [forks for *_, forks in results] == [count for _, count in cases]
    assert [bool(out) for _, out, *_ in results] == [True, True, True, False, False]
    assert "no group in" in results[3][2]
    assert "0 of" in results[4][2]


@pytest.mark.slow
def test_all_forms_of_all_inputs(inputs: list[list[str]]) -> None:
    cases = [([*words, *files], 3) for words in FORMS for files in inputs]
    results = compared(cases)
    assert {status for status, *_ in results} == {0, 1, 2}
    assert "couldn't be read" in "".join(err for _, _, err, _ in results)


@pytest.mark.slow
def test_recordings() -> None:
    paths = sorted(path for path in DATA.rglob("*.pcap*") if path.stat().st_size < 1 << 20)
    rng = Random(8)
    cases = [([*rng.choice(FORMS), str(path)], rng.choice((2, 3))) for path in paths]
    assert len(compared(cases)) > 50


@pytest.mark.slow
def test_logs_beside_captures(tmp_path: Path) -> None:
    segment = tmp_path / "__consumer_offsets-3.log"
    segment.write_bytes(plain(0, commit("g", 1)) + plain(1, commit("g", 2)))
    words = ["--format", "json", str(segment)]
    results = compared([([*words, str(GROUP)], 2), (words, 2)])
    assert [forks for *_, forks in results] == [2, 0]
    assert all(out for _, out, *_ in results)


def test_what_has_one_process(run: Run, tmp_path: Path) -> None:
    single = run("timeline", "--format", "json", GROUP)
    assert run("timeline", "--format", "json", "--jobs", "3", "-", stdin=GROUP.read_bytes()).status == 0
    assert run("timeline", "--format", "json", "--jobs", "3", GROUP) == single  # it is short
    assert (
        "expected a number of processes from 1 to 1,000, got '0'" in run("timeline", "--jobs", "0", GROUP).err
    )
    (dialect,) = compared([(["--format", "json", "--dialect", "draft-1", str(GROUP)], 2)])
    assert dialect[-1] == 0


ENDS = """
import os, signal, sys
from coordwire.cli import timeline
from coordwire.cli.__main__ import main
from coordwire.cli.timeline import inputs
from coordwire.timeline.from_wire.shares import ShareOfGroups

timeline.STRIPE, inputs.PART = 1, 40
feed_share = ShareOfGroups.feed_share
def feed(self, entries):
    if self.entries > 200 and self._dealt._index == 1:
        {action}
    feed_share(self, entries)
ShareOfGroups.feed_share = feed
sys.exit(main(["timeline", "--format", "json", "--jobs", "2", {path!r}]))
"""


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "the process that read it ended with status -9"),
        pytest.param(
            "raise OSError(28, 'No space left on device')", "No space left on device", marks=pytest.mark.slow
        ),
        pytest.param(
            "entries = [*entries, *entries]",
            "the capture changed while it was read by several processes",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_processes_end_together(inputs: list[list[str]], action: str, expected: str) -> None:
    script = ENDS.format(action=action, path=inputs[0][0])
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert process.returncode == 2
    assert expected in process.stderr
    assert "Traceback" not in process.stderr
    single = subprocess.run([*COMMAND, "--format", "json", inputs[0][0]], capture_output=True, text=True)
    assert single.stdout.startswith(process.stdout)
    assert len(process.stdout) < len(single.stdout)
