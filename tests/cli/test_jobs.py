"""`decode --jobs`: the output and the status of one process, and nothing left after any end."""

from __future__ import annotations

import errno
import gzip
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from uuid import UUID

import pytest

from coordwire.capture.formats.pcap import as_pcap
from coordwire.frames import encode_request, encode_response
from coordwire.messages import (
    FetchRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    MetadataRequest,
    MetadataResponse,
)
from coordwire.messages.fetch import FetchTopic
from coordwire.messages.metadata import MetadataResponseTopic
from tests.capture.test_walks import damaged

from .conftest import CAPTURES, Run

COMMAND = [sys.executable, "-m", "coordwire", "decode"]
GROUP = CAPTURES / "kpy__tansu__group-range.pcap"
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

SCRIPT = """
import os, signal, sys, time
from coordwire.cli.decode.jobs import read_all

class Lines:
    state = ()
    def read(self, index):
        time.sleep(0.01 * (index % 3))
        if index == {killed}:
            os.kill(os.getpid(), signal.SIGKILL)
        if index == {failing}:
            raise OSError(28, "No space left on device")
        print(index, self.state)
        print("note", index, file=sys.stderr)
        if index % 4 < 2:  # else the next input may have been begun with what it needs
            self.state += (index,)
        return index * index

try:
    for result in read_all(Lines(), [f"input-{{index}}" for index in range(9)], 3):
        print("result", result)
except Exception as error:
    print(type(error).__name__, error)
"""


def script(killed: int = -1, failing: int = -1) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", SCRIPT.format(killed=killed, failing=failing)]
    return subprocess.run(words, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("--format", "line"),
        ("--format", "json"),
        ("--format", "csv", "--fields", "time,api,topic", "--filter", "topic == 'orders'"),
        ("--format", "tree", "--group", "nobody's"),
    ],
)
def test_the_output_is_that_of_one_process(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    """For inputs that widen columns, deviate, aren't captures, or aren't there."""
    (tmp_path / "noise").write_bytes(bytes(range(200)))
    small = [path for path in sorted(CAPTURES.glob("*.pcap")) if path.stat().st_size < 20_000]
    files = [str(path) for path in (small[0], GROUP, tmp_path / "noise", *small[1:6], tmp_path / "nothing")]
    single = run("decode", *words, *files)
    several = subprocess.run([*COMMAND, *words, "--jobs", "3", *files], capture_output=True)
    assert (several.returncode, several.stdout) == (single.status, single.out)
    assert several.stderr.decode() == single.err
    assert single.out or "0 of" in single.err


def test_what_an_input_leaves_reaches_the_next() -> None:
    """Though that was begun before."""
    state: tuple[int, ...] = ()
    expected = []
    for index in range(9):
        expected += [f"{index} {state}", f"result {index * index}"]
        if index % 4 < 2:
            state += (index,)
    process = script()
    assert process.stdout.splitlines() == expected
    assert process.stderr.splitlines() == [f"note {index}" for index in range(9)]


def test_a_process_that_was_killed_is_reported() -> None:
    process = script(killed=4)
    assert process.stdout.splitlines()[-1] == "Failure input-4: the process that read it ended with status -9"
    assert "result 9" in process.stdout


def test_an_error_of_a_process_is_raised() -> None:
    process = script(failing=2)
    assert process.stdout.splitlines()[-2:] == ["result 1", "OSError [Errno 28] No space left on device"]
    assert process.stderr == "note 0\nnote 1\n"


def test_a_closed_pipe_leaves_nothing(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "--jobs", "2", "--format", "json", *[str(GROUP)] * 2],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | {"TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    with process.stderr:
        assert process.stderr.read() == b""
    assert process.wait() == 0
    assert not [*tmp_path.iterdir()]


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_nothing(tmp_path: Path, number: signal.Signals, status: int) -> None:
    pipe, folder = tmp_path / "pipe", tmp_path / "folder"
    os.mkfifo(pipe)
    folder.mkdir()
    process = subprocess.Popen(
        [*COMMAND, "--jobs", "2", "--format", "json", str(GROUP), str(pipe)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | {"TMPDIR": str(folder)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    with pipe.open("wb"):  # once a process reads it
        process.send_signal(number)
        _, err = process.communicate()
    assert (process.returncode, err) == (status, b"")
    assert not [*folder.iterdir()]
    with pytest.raises(OSError, match="No such device") as failure:
        os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    assert failure.value.errno == errno.ENXIO  # no process reads it any more


# --- one capture ---

SAME = """
import importlib, json, os, sys, tempfile
from coordwire.capture import share
from coordwire.cli.__main__ import main
from coordwire.cli.decode import _Reading

turns, add_counts = [0], _Reading.add_counts
def counted(self, counts):
    turns[0] += 1
    add_counts(self, counts)
_Reading.add_counts = counted
own = os.dup(1), os.dup(2)

def run(words):
    files = tempfile.TemporaryFile(), tempfile.TemporaryFile()
    for number, file in zip((1, 2), files):
        os.dup2(file.fileno(), number)
    status = main(words)
    sys.stdout.flush()
    for number, file in zip((1, 2), own):
        os.dup2(file, number)
    for file in files:
        file.seek(0)
    return [status, *(file.read().decode() for file in files)]

cases = json.load(sys.stdin)
for name, value in cases["settings"].items():
    module, _, name = name.rpartition(".")
    setattr(importlib.import_module(module), name, value)
for words, jobs, stripe in cases["cases"]:
    share.STRIPE = stripe
    expected = run(["decode", *words])
    turns[0] = 0
    several = run(["decode", *words, "--jobs", str(jobs)])
    if several != expected:
        print(words, jobs, stripe, *(text[-400:] for text in map(str, (*expected, *several))), sep="\\n")
        sys.exit(1)
    print(json.dumps([*expected, turns[0]]))
"""

Case = tuple[list[str], int, int]


def same(cases: Sequence[Case], **settings: int) -> list[tuple[int, str, str, int]]:
    """Decode by one process and by several. Of each case: the status, both outputs, how many turns there
    were. settings: numbers of modules, by their names with __ for dots."""
    script = {
        "settings": {f"coordwire.{name.replace('__', '.')}": value for name, value in settings.items()},
        "cases": cases,
    }
    process = subprocess.run(
        [sys.executable, "-c", SAME], input=json.dumps(script), capture_output=True, text=True,
        env=os.environ | {"COLUMNS": "100"},
    )  # fmt: skip
    assert process.returncode == 0, process.stdout[-3000:] + process.stderr[-3000:]
    return [json.loads(line) for line in process.stdout.splitlines()]


FORMS = [
    ("--format", "json"),
    ("--format", "tree", "--strict"),
    ("--format", "line"),
    ("--format", "csv", "--filter", "apiVersion > 3"),
    ("--format", "hex", "--api", "JoinGroup,Fetch"),
    ("--format", "line", "--group", "nobody's"),
    ("--format", "json", "--deep", "--errors"),
    ("--format", "tree", "--deep", "--show-secrets", "--filter", "correlationId > 2"),
    ("--format", "tsv", "--packets", "20-40"),
    ("--format", "tree", "--port", "9092", "--client-id", "rdkafka"),
]


def test_shares_of_a_capture_have_the_output_of_one_process() -> None:
    results = same([([*words, str(GROUP)], 2 + index % 2, 3_000) for index, words in enumerate(FORMS)])
    assert all(turns > 10 for *_, turns in results)
    assert sum(bool(out) for _, out, *_ in results) == len(FORMS) - 2
    assert sum("0 of" in err for _, _, err, _ in results) == 2


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*.pcap")), ids=lambda path: path.stem)
def test_shares_of_any_capture(tmp_path: Path, path: Path) -> None:
    """Whole, damaged, compressed; and what a kind of input lacks."""
    data, rng = path.read_bytes(), random.Random(path.name)
    names = [str(path)]
    for number in range(2):
        names.append(str(tmp_path / f"{number}.pcap"))
        Path(names[-1]).write_bytes(damaged(data, rng))
    names.append(str(tmp_path / "compressed"))
    Path(names[-1]).write_bytes(gzip.compress(data)[:-20])
    cases: list[Case] = []
    for name in names:
        for words in rng.sample(FORMS, 4):
            cases.append(([*words, name], rng.choice((2, 3, 5)), rng.choice((300, 2_000, 20_000))))
    assert sum(turns for *_, turns in same(cases)) > 20


def written(path: Path, rows: Iterable[tuple[int, int, bool, bytes]]) -> str:
    path.write_bytes(as_pcap(rows))
    return str(path)


def named_topics(frames: int) -> Iterator[tuple[int, int, bool, bytes]]:
    """Fetches by topics' ids, of which other connections' Metadata answers have the names, which change."""
    for number in range(frames):
        topic_id = UUID(int=1 + number % 5)
        asked = FetchRequest(topics=[FetchTopic(topic_id=topic_id, partitions=[])])
        yield number, 0, False, encode_request(asked, version=13, correlation_id=number)
        if number % 7 == 3:
            topics = [
                MetadataResponseTopic(
                    topic_id=topic_id, name=f"topic-{number // 40}-{number % 5}", partitions=[]
                )
            ]
            request = encode_request(MetadataRequest(), version=12, correlation_id=number)
            yield number, 1 + number % 3, False, request
            answer = encode_response(MetadataResponse(topics=topics), version=12, correlation_id=number)
            yield number, 1 + number % 3, True, answer


def test_names_of_topics_are_those_of_their_time(tmp_path: Path) -> None:
    """Whoever's share their names are in."""
    path = written(tmp_path / "named.pcap", named_topics(200))
    forms = [
        ["--format", "line"],
        ["--format", "csv", "--fields", "packet,topic"],
        ["--format", "json", "--filter", "topic == 'topic-2-3'"],
    ]
    cases: list[Case] = [
        ([*words, path], jobs, stripe) for words in forms for jobs, stripe in ((2, 900), (3, 4_000))
    ]
    for (words, *_), (_, out, _, turns) in zip(cases, same(cases), strict=True):
        assert turns > 10
        assert '"topicId"' in out if "json" in words else "topic-4-1" in out


@pytest.mark.slow
def test_requests_of_a_tree_wait_across_turns(tmp_path: Path) -> None:
    """Whether their answers come, late or never, and however many wait."""
    heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m" * 90)

    def rows() -> Iterator[tuple[int, int, bool, bytes]]:
        for number in range(240):
            yield number, number % 3, False, encode_request(heartbeat, version=4, correlation_id=number)
            late = number - (30 if number % 60 > 40 else 3)
            if late >= 0 and late % 5:
                answer = encode_response(HeartbeatResponse(), version=4, correlation_id=late)
                yield number, late % 3, True, answer

    path = written(tmp_path / "late.pcap", rows())
    cases: list[Case] = [
        (["--format", "tree", *words, path], jobs, 2_000)
        for words in ([], ["--filter", "correlationId != 9"], ["--deep"])
        for jobs in (2, 3)
    ]
    for _, out, _, turns in same(cases, cli__decode__tree__WAITING=12):
        assert "no response shown" in out
        assert "shown before" in out
        assert turns > 20


@pytest.mark.slow
def test_much_output_waits_within_bounds() -> None:
    cases: list[Case] = [
        (["--format", "tree", str(GROUP)], 3, 3_000),
        (["--format", "json", str(GROUP)], 2, 3_000),
    ]
    for bounds in ({"cli__decode__jobs__MOST_DEFERRED": 500}, {"cli__decode__jobs__MOST_WAITING": 3}):
        assert all(turns > 10 for *_, turns in same(cases, **bounds))


def test_values_that_were_met_are_counted_in_their_order(tmp_path: Path) -> None:
    """Those that are kept, and the first of those that are as frequent, where nothing matches."""

    def rows() -> Iterator[tuple[int, int, bool, bytes]]:
        for number in range(150):
            asked = HeartbeatRequest(group_id=f"group-{number * 7 % 31}", member_id="m")
            yield number, 0, False, encode_request(asked, version=4, correlation_id=number)

    path = written(tmp_path / "groups.pcap", rows())
    cases: list[Case] = [(["--group", "no", "--api", "18", path], jobs, 1_500) for jobs in (2, 3)]
    for status, out, err, turns in same(cases, cli__selection__survey__MOST_KEPT=20):
        assert (status, out) == (0, "")
        assert "0 of 150 frames matched; groups seen: " in err
        assert "more than 8 more" in err
        assert turns > 10


SHARES = """
import os, signal, sys
from coordwire.cli import Failure
from coordwire.cli.decode.jobs import read_shares
from coordwire.cli.selection.names import TopicNames

class Numbers:
    def write(self, entry, digits):
        print(entry)
    def finish(self):
        print("end")

class Shares:
    counts = 0
    def read_share(self, turns):
        index = turns.share.index
        turns.begin(Numbers(), TopicNames(), learns=False)
        def entries():
            for number in range(20 + 80 * (index == {longer})):
                if number == 9 and index == {killed}:
                    os.kill(os.getpid(), signal.SIGKILL)
                if number == 9 and index == {failing}:
                    raise OSError(28, "No space left on device")
                if turns.share.takes(100_000):
                    self.counts += 1
                    yield number
        try:
            for (entry,) in turns.batches([entry] for entry in entries()):
                turns.write(entry, 6)
        except Failure as failure:
            return str(failure)
        return index
    def take(self):
        counts, self.counts = self.counts, 0
        return counts
    def add_counts(self, counts):
        self.counts += counts

reading = Shares()
try:
    print(read_shares(reading, "input", 3), reading.counts)
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize(
    ("trouble", "expected"),
    [
        ({}, "[0, 1, 2] 20"),
        ({"killed": 1}, "Failure input: the process that read it ended with status -9"),
        ({"failing": 2}, "OSError [Errno 28] No space left on device"),
        ({"longer": 0}, "Failure input: the capture changed while it was read by several processes"),
        ({"longer": 1}, "Failure input: the capture changed while it was read by several processes"),
    ],
)
def test_the_processes_of_shares_end_together(trouble: dict[str, int], expected: str) -> None:
    numbers = {"killed": -1, "failing": -1, "longer": -1} | trouble
    process = subprocess.run([sys.executable, "-c", SHARES.format(**numbers)], capture_output=True, text=True)
    *lines, last = process.stdout.splitlines()
    assert expected in last or expected.removeprefix("Failure ") in last
    assert process.stderr == ""
    if not trouble:
        assert lines == [*map(str, range(20)), "end"]
    elif "longer" not in trouble:
        assert lines == [*map(str, range(len(lines)))]


def test_standard_input_has_one_process() -> None:
    single = subprocess.run([*COMMAND, str(GROUP)], capture_output=True)
    with GROUP.open("rb") as file:
        piped = subprocess.run([*COMMAND, "--jobs", "3", "-"], stdin=file, capture_output=True)
    assert (piped.returncode, piped.stdout, piped.stderr) == (single.returncode, single.stdout, b"")


def test_wrong_uses_are_refused(run: Run, tmp_path: Path) -> None:
    assert (
        "expected a number of processes from 1 to 1,000, got '0'" in run("decode", "--jobs", "0", GROUP).err
    )
    refused = run("decode", "--jobs", "2", "--out", tmp_path / "tables", GROUP, GROUP)
    assert refused.status == 2
    assert "coordwire pipeline --engine local --workers N" in refused.err
