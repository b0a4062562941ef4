"""Runs: determinism, what is not deterministic, shrinking, and the decorator without pytest's plugin."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from coordwire import encode_request
from coordwire.errors import Malformed
from coordwire.messages import ApiVersionsRequest
from coordwire.testing.simulation import (
    CHECKERS,
    Checker,
    Database,
    DrawnFaults,
    Nondeterminism,
    PartitionPlace,
    RunOptions,
    SimulatedKafka,
    SimulatedWorld,
    Simulation,
    SimulationFailed,
    kafka_simulation,
    parse_plan,
    report,
)
from coordwire.testing.simulation.report import _versions
from coordwire.testing.simulation.runs import HASH_BLOCK, command_of_seed, plan_text
from coordwire.testing.simulation.summary import RunSummary
from tests.testing.simulation.service import TOPIC, correct_service, run_service

ROOT = Path(__file__).parents[3]
SETTINGS = {"topics": {TOPIC: 4}}


async def the_service(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
    await run_service(kafka, world, correct_service, records=8)


WHOLE = Simulation(test=the_service, faults=DrawnFaults(until=20), settings=SETTINGS)

DIGESTS = """
import sys
from tests.testing.simulation.test_runs import WHOLE
first, last = map(int, sys.argv[1:])
for seed in range(first, last):
    print(seed, WHOLE.run(seed).digest)
"""


def hash_of_none() -> bytes:
    command, environment = command_of_seed(0, "-c", "print(hash(None))")
    return subprocess.run(command, env=environment, capture_output=True, check=True).stdout


LAUNCH = """
import subprocess, sys
from coordwire.testing.simulation.runs import command_of_seed
print(hash("orders"), flush=True)
command, environment = command_of_seed(int(sys.argv[2]), "-c", *sys.argv[1:])
sys.exit(subprocess.run(command, env=environment).returncode)
"""
"""Starts a process with the order of hashes of a seed, as the plugin of pytest does."""


def digests(first: int, last: int, *, hash_seed: int) -> tuple[str, list[str]]:
    """The traces of seeds, of a process that another with the given order of hashes has started.

    First the hash of a string in that other process.
    """
    if hash_of_none() != hash_of_none():
        pytest.skip("Python 3.11 in a container that refuses to fix addresses")
    environment = os.environ | {"PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": str(ROOT)}
    command = sys.executable, "-c", LAUNCH, DIGESTS, str(first), str(last)
    completed = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )  # fmt: skip
    assert completed.returncode == 0, completed.stderr
    outer_hash, *lines = completed.stdout.splitlines()
    assert len(lines) == last - first
    return outer_hash, lines


def test_two_processes_have_equal_traces() -> None:
    """The second runs other seeds before, so that everything is elsewhere in memory."""
    first_hash, all_digests = digests(0, 2, hash_seed=11)
    second_hash, last_digests = digests(1, 2, hash_seed=222)
    assert first_hash != second_hash
    assert last_digests == all_digests[1:]


async def ask_again_and_again(bootstrap: str, books: Database) -> None:
    request = encode_request(ApiVersionsRequest(), version=0, correlation_id=7, client_id="till")
    reader, writer = await asyncio.open_connection(*bootstrap.split(",")[0].split(":"))
    try:
        while True:
            writer.write(request)
            await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
            await books.run(lambda rows: rows.update(asked=rows.get("asked", 0) + 1))
    finally:
        writer.close()


async def without_a_client(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
    books = world.database("books", usual=0.5)
    for number in range(3):
        world.start(f"till-{number}", ask_again_and_again, kafka.bootstrap, books)
    async for text in world.load(TOPIC, ("tea", "cake", "milk")):
        kafka.produce(TOPIC, text)
        await world.slow(0.1)
    await world.calm()


ALL_FAULTS = Simulation(test=without_a_client, faults=DrawnFaults(), settings=SETTINGS, checkers=())


@pytest.mark.slow
def test_the_order_of_hashes_decides_nothing_but_in_clients() -> None:
    """What belongs to the world is the same in processes that nothing has prepared."""
    outputs = set()
    for hash_seed in (5, 66, 777):
        environment = os.environ | {"PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": str(ROOT)}
        command = sys.executable, "-c", DIGESTS.replace("WHOLE", "ALL_FAULTS"), "0", "8"
        completed = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True)
        outputs.add(completed.stdout)
    assert len(outputs) == 1
    assert len(outputs.pop().splitlines()) == 8


@pytest.mark.slow
def test_the_address_of_none_decides_nothing() -> None:
    """Python 3.11 hashes None by its address, which differs from process to process."""
    command = sys.executable, "-c", DIGESTS, "0", "2"
    environment = os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": str(ROOT)}
    outputs = {
        subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True).stdout
        for _ in range(2)
    }
    assert len(outputs) == 1


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 1_000, HASH_BLOCK))
def test_a_thousand_seeds_have_equal_traces(first: int) -> None:
    """Processes with different orders of hashes start those that run the seeds."""
    half, last = first + HASH_BLOCK // 2, first + HASH_BLOCK
    _, whole_block = digests(first, last, hash_seed=1_000 + first)
    _, second_half = digests(half, last, hash_seed=2_000 + first)
    _, first_half = digests(first, half, hash_seed=3_000 + first)
    assert first_half + second_half == whole_block


def test_a_seed_that_is_run_twice() -> None:
    outcome = WHOLE.check(1)
    assert outcome.failure is None, outcome.reason
    assert outcome.digest != WHOLE.run(2).digest


def test_what_comes_from_outside_is_found() -> None:
    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        await asyncio.sleep(1)
        world.note(f"a thing at {id(object()) + len(objects)}")
        objects.append(object())

    objects: list[object] = []
    with pytest.raises(Nondeterminism) as raised:
        Simulation(test=test, nodes=1).check(0)
    text = str(raised.value)
    assert "two runs of seed 0 differ from event" in text
    assert text.count("a thing at") == 2


NEEDED = "20s freeze orders-2 for 5s; 41500ms crash orders-1 for 40s"


class Together(Checker):
    """A violation that needs two faults."""

    def each_second(self) -> None:
        crashed = [fault for fault in self.world.driver.inflicted if fault.kind == "crash"]
        frozen = [fault for fault in self.world.driver.inflicted if fault.kind == "freeze"]
        if crashed and frozen:
            self.fail("a crash after a freeze")


def test_a_plan_is_shrunk_to_what_it_needs() -> None:
    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        for number in (1, 2):
            world.start(f"orders-{number}", asyncio.sleep, 1_000)
        await world.calm()

    unneeded = [f"{at}s drop orders-1 broker-{at % 3 + 1}" for at in range(1, 60, 5)]
    plan = parse_plan("; ".join([*unneeded, NEEDED]))
    simulation = Simulation(test=test, faults=plan, checkers=(Together,))
    failed = simulation.run(0)
    assert failed.kind == ("Violation", "Together")
    assert len(failed.plan) > 8
    shrunk = simulation.shrink(failed)
    assert [str(fault) for fault in shrunk.plan] == [
        "20s freeze orders-2 for 300ms",
        "41s crash orders-1 for 300ms",
    ]
    assert shrunk.kind == failed.kind
    happened = [line.split(maxsplit=2)[2] for line in shrunk.log_lines if line.split()[1] == "world"]
    assert happened == [
        "START   orders-1",
        "START   orders-2",
        "FAULT   20s freeze orders-2 for 300ms",
        "FAULT   41s crash orders-1 for 300ms",
    ]
    assert replace(simulation, faults=shrunk.plan).run(0).digest == shrunk.digest


def test_one_that_needs_no_fault_has_an_empty_plan() -> None:
    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        await world.calm()
        raise ValueError("in any case")

    simulation = Simulation(test=test, faults=DrawnFaults())
    shrunk = simulation.shrink(simulation.run(1))
    assert shrunk.plan == ()
    assert "raise ValueError" in shrunk.calls


def test_a_failure_of_another_kind_without_faults_is_told() -> None:
    @kafka_simulation(seeds=1, faults="1s drop test *", nodes=1)
    async def fails(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        await world.calm()
        if world.driver.inflicted:
            raise OSError("reset")
        raise ValueError("in any case")

    with pytest.raises(SimulationFailed, match="Without any fault it fails, too, by ValueError: in any case"):
        fails()


def test_a_report_names_what_was_processed_more_than_once() -> None:
    async def book(world: SimulatedWorld, offset: int) -> None:
        world.processed(TOPIC, 1, 0)
        world.processed(TOPIC, 1, offset)

    @kafka_simulation(seeds=1, faults=None, nodes=1, without=CHECKERS)
    async def books(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        world.start("till-1", book, world, 7)
        await asyncio.sleep(1)
        world.start("till-2", book, world, 8)
        await asyncio.sleep(1)
        raise ValueError

    with pytest.raises(SimulationFailed) as raised:
        books()
    (line,) = re.findall(rf"{TOPIC}-1 .*", str(raised.value))
    assert re.fullmatch(rf"{TOPIC}-1 0: till-1 at 0\.\d+, till-2 at 1\.\d+", line)


def test_stories_have_the_seconds_of_the_log(tmp_path: Path) -> None:
    lines = ["   01:00:05.250   12  · commits orders-0", "at 01:00:05.2501 and x01:00:05.250"]
    options = RunOptions(folder=tmp_path, story=lambda events: lines)
    with pytest.raises(SimulationFailed, match=r"(?m)^ +3605\.250   12  · commits orders-0$") as raised:
        failing(kafka_simulation_options=options)
    assert lines[1] in str(raised.value)


def test_a_line_of_the_log_is_one_and_not_too_long() -> None:
    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        world.note(f"{OSError('one' + chr(10) + '      two')!r}{'!' * 1_000}")
        raise ValueError

    (line,) = (line for line in Simulation(test=test, nodes=1).run(0).log_lines if "OSError" in line)
    assert "OSError('one two')!!!" in line
    assert line.endswith("! …")
    assert len(line) < 300


@kafka_simulation(seeds=2, faults="5s drop test broker-*", nodes=1, topics={TOPIC: 2}, repeat=2)
async def passing(kafka: SimulatedKafka, world: SimulatedWorld, *, text: str = "one") -> None:
    kafka.produce(TOPIC, text)
    await world.calm()
    assert [record.value for record in kafka.records(TOPIC)] == [text.encode()]
    world.processed(TOPIC, 0, 0)
    assert world.marks == {PartitionPlace(TOPIC, 0): {0: "test"}}


@kafka_simulation(seeds=5, faults="1s drop test *; 2s cut test * for 5s", topics={TOPIC: 4})
async def failing(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
    world.note("it begins")
    await world.calm()
    await asyncio.sleep(world.seed)
    assert world.seed < 3


def test_a_decorated_test_is_a_function() -> None:
    passing()
    passing(text="two")


def test_the_report_of_a_failure(tmp_path: Path) -> None:
    options = RunOptions(folder=tmp_path, command="pytest test_it.py", story=lambda events: ["the story"])
    with pytest.raises(SimulationFailed) as raised:
        failing(kafka_simulation_options=options)
    text = str(raised.value)
    assert text.startswith("seed 3 fails: AssertionError, after ")
    for line in (
        "AssertionError: ",
        "    assert world.seed < 3",
        "It fails without any fault, too.",
        "    pytest test_it.py --kafka-seeds 3",
        "    the story",
        f"Python {sys.version.split()[0]}, coordwire ",
    ):
        assert line in text
    assert "coordwire.testing.simulation: it begins" in text
    path = tmp_path / "seed-3.txt"
    assert f"All of it:\n    {path}" in text
    assert path.read_text().startswith(text.partition("\n")[0])
    assert (tmp_path / "seed-3.pcapng").read_bytes()[:4] == bytes.fromhex("0a0d0d0a")


def test_a_report_names_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("git") is None:
        pytest.skip("git isn't installed")
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    assert not _versions(tmp_path)[0].startswith("commit")
    author = "-c user.name=one -c user.email=one@example.com"
    for arguments in ("init -q", f"{author} commit -q --allow-empty -m Begin"):
        subprocess.run(["git", *arguments.split()], cwd=tmp_path, check=True)
    assert re.fullmatch("commit [0-9a-f]{12}", _versions(tmp_path)[0])
    (tmp_path / "test_it.py").touch()
    assert _versions(tmp_path)[0].endswith(" with changes")


def test_a_report_of_what_is_not_deterministic() -> None:
    runs: list[int] = []

    @kafka_simulation(seeds=1, nodes=1)
    async def counts(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        runs.append(len(runs))
        world.note(f"run {len(runs)}")

    with pytest.raises(SimulationFailed) as raised:
        counts()
    assert str(raised.value).startswith(
        "seed 0 fails: Nondeterminism\n\ntwo runs of seed 0 differ from event 1"
    )


def test_the_capture_of_a_failure(tmp_path: Path) -> None:
    """Other programs read it, in virtual time: dpkt, and tshark where it is installed."""

    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        reader, writer = await asyncio.open_connection(*kafka.bootstrap.split(":"))
        writer.write(request)
        await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
        writer.close()
        raise ValueError("in any case")

    request = encode_request(ApiVersionsRequest(), version=0, correlation_id=7, client_id="till")
    outcome = Simulation(test=test, nodes=1).run(0)
    assert outcome.pcapng is not None
    path = tmp_path / "seed-0.pcapng"
    path.write_bytes(outcome.pcapng())
    decode = [sys.executable, "-m", "coordwire", "decode", str(path), "--format", "json"]
    decoded = subprocess.run(decode, capture_output=True, text=True, check=True).stdout
    lines = [json.loads(line) for line in decoded.splitlines()]
    assert [(line["direction"], line["api"]) for line in lines] == [
        ("request", "ApiVersions"), ("response", "ApiVersions")
    ]  # fmt: skip
    assert lines[0]["time"].startswith("2026-01-01T00:00:0")
    if tshark := shutil.which("tshark"):
        command = [tshark, "-r", str(path), "-T", "fields", "-e", "kafka.api_key", "-Y", "kafka"]
        completed = subprocess.run(command, capture_output=True, text=True, check=True)
        assert completed.stdout.split() == ["18", "18"]
    dpkt = pytest.importorskip("dpkt")
    packets = list(dpkt.pcapng.Reader(io.BytesIO(path.read_bytes())))
    payloads = [bytes(dpkt.ethernet.Ethernet(packet).data.data.data) for _, packet in packets]
    assert b"".join(payloads).startswith(request)


def test_other_seeds_and_faults_than_its_own() -> None:
    failing(kafka_simulation_options=RunOptions(seeds=[0, 2], faults="1s drop test *"))


def test_seeds_run_where_their_hashes_are() -> None:
    blocks: list[tuple[list[int], int]] = []

    def run_elsewhere(block: Sequence[int], repeat: int) -> RunSummary:
        blocks.append(([*block], repeat))
        summary = RunSummary(len(block))
        if block[-1] == 2 * HASH_BLOCK:
            summary.failed["a cause"], summary.reports["a cause"] = [*block], "a report"
        return RunSummary.from_json(summary.to_json())

    seeds = [1, 0, HASH_BLOCK, 2 * HASH_BLOCK, 3 * HASH_BLOCK]
    with pytest.raises(SimulationFailed, match="a report"):
        failing(kafka_simulation_options=RunOptions(seeds=seeds, repeat=3, run_elsewhere=run_elsewhere))
    assert blocks == [([1, 0], 2), ([HASH_BLOCK], 1), ([2 * HASH_BLOCK], 0), ([3 * HASH_BLOCK], 0)]
    blocks.clear()
    passing(
        kafka_simulation_options=RunOptions(seeds=range(10), repeat=1, run_elsewhere=run_elsewhere, jobs=3)
    )
    assert sorted(blocks) == [([0, 1, 2, 3], 1), ([4, 5, 6, 7], 0), ([8, 9], 0)]


@kafka_simulation(seeds=6, faults=None, nodes=1, known=("ValueError: seed ? is odd",), repeat=0)
async def failing_in_two_ways(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
    world.sometimes("sold out", world.seed == 4)
    if world.seed % 2:
        raise ValueError(f"seed {world.seed} is odd")
    if world.seed == 2:
        raise OSError("two")
    raise AssertionError(f"seed {world.seed}")


def test_failures_are_grouped_by_their_cause(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SimulationFailed) as raised:
        failing_in_two_ways()
    first, second = str(raised.value).split("\n\n\n")
    assert first.startswith("seed 0 fails: AssertionError, after ")
    assert first.splitlines()[1] == "so do 1 more of 6 seeds: 4"
    assert second.startswith("seed 2 fails: OSError, after ")
    assert "is odd" not in first + second
    known = "known: 'ValueError: seed ? is odd' in seeds 1, 3, 5"
    assert capsys.readouterr().out == f"6 seeds; sometimes 'sold out' in 1 seed; {known}\n"


def test_what_no_seed_has_shown_fails_the_test(capsys: pytest.CaptureFixture[str]) -> None:
    @kafka_simulation(seeds=2, faults="1s stop till; 2s crash till", nodes=1, known=("OSError*",), repeat=0)
    async def sells(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        world.start("till", asyncio.sleep, 5)
        world.sometimes("sold out", False)
        await world.calm()

    with pytest.raises(SimulationFailed) as raised:
        sells()
    assert str(raised.value).split("\n\n\n") == [
        "the known failure 'OSError*' has not occurred in 2 seeds: take it off the list",
        "sometimes 'sold out' held in none of 2 seeds",
    ]
    assert capsys.readouterr().out == "2 seeds; stop twice; crash twice; sometimes 'sold out' in 0 seeds\n"
    sells(kafka_simulation_options=RunOptions(seeds=[1]))  # other seeds than its own need not show it


def test_what_always_and_eventually_holds_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    @kafka_simulation(seeds=4, faults=None, nodes=1, repeat=0)
    async def sells(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        async def till(seed: int) -> None:
            await asyncio.sleep(1)
            world.always("there is tea", seed != 3)

        world.start("till", till, world.seed)
        if world.seed:
            await world.eventually("sold out", lambda: world.now > 5)
        await asyncio.sleep(500)

    with pytest.raises(SimulationFailed) as raised:
        sells()
    text = str(raised.value)
    assert text.startswith("seed 3 fails: always 'there is tea', after 1.0 s of virtual time")
    assert "\nalways 'there is tea': it does not hold in till\n" in text
    assert "world.always(" in text
    expected = "4 seeds; always 'there is tea' in 3 seeds; eventually 'sold out' in 2 seeds\n"
    assert capsys.readouterr().out == expected


def test_what_never_holds_has_its_name() -> None:
    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        await world.eventually("sold out", lambda: False)

    reason = Simulation(test=test, nodes=1).run(0).reason
    assert reason.startswith("until: expected sold out within 60 s")


def test_a_report_has_the_story_of_the_group_that_it_names(tmp_path: Path) -> None:
    story = [
        "2 groups",
        "── books · classic group",
        "  a",
        "── tea-books · classic group",
        *"b" * 20,
        "── till ·",
    ]

    @kafka_simulation(seeds=1, faults=None, nodes=1, repeat=0)
    async def fails(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        raise ValueError("books has not sold any")

    with pytest.raises(SimulationFailed) as raised:
        fails(kafka_simulation_options=RunOptions(folder=tmp_path, story=lambda events: story))
    text = str(raised.value)
    assert "\n    ── books · classic group\n      a\n" in text
    assert "tea-books" not in text
    assert "tea-books" in (tmp_path / "seed-0.txt").read_text()


def test_a_report_fits_a_terminal(tmp_path: Path) -> None:
    """What a client logs of its usual work is in the file alone; no end of a line is."""

    @kafka_simulation(seeds=1, faults=None, nodes=1, repeat=0)
    async def fails(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        logging.getLogger("aiokafka.consumer").info("Discovered a coordinator")
        logging.getLogger("aiokafka.consumer.group_coordinator").warning("Heartbeat failed")
        world.note("a note of 94 characters" + "!" * 70)
        raise ValueError("books has not sold any")

    with pytest.raises(SimulationFailed) as raised:
        fails(kafka_simulation_options=RunOptions(folder=tmp_path, width=76))
    text, whole = str(raised.value), (tmp_path / "seed-0.txt").read_text()
    assert max(map(len, text.partition("The log")[2].partition("All of it")[0].splitlines())) == 80
    assert text.count("!") == 70  # what is long goes on below
    assert "WARNING aiokafka: Heartbeat failed" in text
    assert "Discovered a coordinator" not in text
    assert "Discovered a coordinator" in whole
    assert "!" * 70 in whole


def test_a_plan_says_what_is_not_plain() -> None:
    plan = parse_plan("0ms load orders 10ms 4; 5s crash till; 9s busy * 25 for 10s; 20s stop till 7 for 5s")
    assert plan_text(plan, "  ").splitlines() == [
        "  0ms load orders 10ms 4  # world.load: 4 at once, every 10ms or so",
        "  5s crash till",
        "  9s busy * 25 for 10s    # databases, world.slow: 25 times slower",
        "  20s stop till 7 for 5s  # SIGTERM after 7 more awaits",
    ]
    assert parse_plan(plan_text(plan)) == plan


def test_a_report_says_whose_order_of_hashes_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    @kafka_simulation(seeds=[250], faults=None, nodes=1, repeat=0)
    async def fails(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        raise ValueError("books has not sold any")

    for is_own in (True, False):
        monkeypatch.setattr(report, "is_hash_seed_of", lambda seed, is_own=is_own: is_own)
        with pytest.raises(SimulationFailed) as raised:
            fails()
        assert ("may pass, or fail otherwise" in str(raised.value)) is not is_own
        assert ("PYTHONHASHSEED=3." in str(raised.value)) is not is_own


def test_the_cooldown_after_a_test() -> None:
    seconds: list[float] = []

    @kafka_simulation(seeds=1, faults=None, nodes=1, cooldown=5, repeat=0)
    async def sells(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        async def till() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                seconds.append(world.now)

        world.start("till", till)

    sells()
    assert 5 <= seconds[0] < 5.1


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match=r"ways out .*did you mean threads\?"):
        kafka_simulation(allow=("thread",))  # type: ignore[arg-type]
    for wrong, reason in (
        ({"seeds": 0}, "at least one seed, got 0"),
        ({"seeds": []}, "at least one seed"),
        ({"seeds": [-1]}, "seeds of at least 0, got -1"),
        ({"seeds": ["x"]}, "seeds of at least 0, got 'x'"),
        ({"nodes": 0}, "nodes to be a whole number of at least 1, got 0"),
        ({"repeat": -1}, "repeat to be a whole number of at least 0, got -1"),
        ({"limit": 0}, "a limit of more than 0 s"),
        ({"cooldown": -1}, "a cooldown of at least 0 s, and less than the limit, got -1"),
        ({"known": "FallingOffset"}, "known failures as patterns, got the text 'FallingOffset'"),
        ({"until": 1}, "at least 5 s"),
        ({"most": 0}, "at least 1 fault"),
        ({"faults": ("fire",)}, "kinds of faults"),
        ({"faults": "proceses"}, "got 'proceses'; did you mean processes"),
        ({"seed": 5}, "got 'seed'; did you mean seeds"),
        ({"topic": {"t": 1}}, "got 'topic'; did you mean topics"),
        ({"faults": 5}, "faults as text, kinds, a plan or None, got 5"),
        ({"faults": "1s burn x"}, "expected one of crash"),
        ({"checkers": Together}, "checkers to be subclasses of Checker"),
        ({"without": ("FallingOffset",)}, "without to be subclasses of Checker"),
        ({"without": (Together,)}, "checkers that are built in, got Together"),
    ):
        with pytest.raises((ValueError, TypeError, Malformed), match=reason):
            kafka_simulation(**wrong)
    with pytest.raises(TypeError, match="coroutine function"):
        kafka_simulation()(lambda kafka, world: None)

    async def without_world(kafka: SimulatedKafka) -> None:
        """Lacks a parameter."""

    with pytest.raises(TypeError, match="parameter world"):
        kafka_simulation()(without_world)
