"""`coordwire simulate`: the story, its figures, the capture, and what is refused."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from coordwire.cli.simulate.sent_lines import MOST_MESSAGES
from coordwire.cli.simulate.several_seeds import run_figures
from coordwire.designs import DESIGN_NAMES, KAFKA_DESIGNS
from coordwire.designs.simulator import runs
from coordwire.designs.simulator.runs import DESIGNS, DesignRun
from coordwire.testing.fault_plans import parse_faults

from .conftest import Run

PLAN = "12s crash consumer-2 for 9s; 30s cut consumer-1 * for 10s"


def test_the_designs_are_those_of_the_simulator() -> None:
    assert list(DESIGNS) == list(DESIGN_NAMES)


@pytest.mark.parametrize("design", DESIGN_NAMES)
def test_the_story_and_the_figures(run: Run, design: str) -> None:
    result = run("simulate", design, "--faults", PLAN, "--duration", "50s", "--seed", "4")
    assert (result.status, result.err) == (0, "")
    text = result.text
    assert text.startswith(f"── {design} 3 consumers, 6 partitions, seed 4, 50.0 s ──")
    for line in (
        "12.000 s  ! crash consumer-2 for 9s", "21.000 s  + consumer-2 starts again",
        "30.000 s  ! cut consumer-1 * for 10s",
        "⟳ rebalance 1 begins", "✓ rebalance 2 has ended after", "  orders-0",
        "deaths of consumers", "2 partitions moved, 2 owners",
        "shared " if design == "share" else "two owners ",
        "no owner, after the first assignment ", "messages ", "a membership change costs ",
    ):  # fmt: skip
        assert line in text
    assert "\x1b" not in text
    times = [float(line.split()[0].replace(",", "")) for line in text.splitlines() if " s  " in line[:20]]
    assert times == sorted(times)


def test_another_seed_is_another_run(run: Run) -> None:
    first, second = (run("simulate", "draft-3", "--seed", seed, "--faults", "random") for seed in "12")
    assert first.out.partition(b"\n")[2] != second.out.partition(b"\n")[2]


def test_on_a_terminal_it_has_colours(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich", reason="rich isn't installed")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    assert "\x1b[" in run("simulate", "consumer", "--duration", "20s").text


def test_many_members_are_counted(run: Run) -> None:
    text = run("simulate", "consumer", "--members", "30", "--partitions", "60", "--duration", "30s").text
    assert "30 consumers start" in text
    assert "consumer-7 starts" not in text
    assert "30 owners" in text


@pytest.mark.parametrize("design", ["zookeeper", "draft-1", "draft-2", "draft-3", "classic", "consumer"])
def test_the_capture_decodes_and_is_a_timeline(run: Run, tmp_path: Path, design: str) -> None:
    file = tmp_path / "run.pcap"
    words = (
        "simulate",
        design,
        "--pcap",
        str(file),
        "--duration",
        "16s",
        "--faults",
        "10s crash consumer-2 for 2s",
    )
    result = run(*words)
    assert result.status == 0
    assert result.err == ""
    before = file.read_bytes()
    assert run(*words).out == result.out
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["run.pcap"]

    dialect = ("--dialect", design) if design.startswith("draft") else ()
    decoded = run("decode", str(file), "--format", "json", *dialect)
    assert decoded.status == 0
    assert len(decoded.forms) > 20
    story = run("timeline", str(file), "--format", "story", *dialect)
    assert story.status == 0
    assert story.text.splitlines()[1].startswith("── group ")
    assert "4 members" in story.text  # the one that starts again is a new one


FLOW_PLAN = (
    "7s cut consumer-1 * for 4s; 10s drop * consumer-1; 12s freeze coordinator-1 for 9s; 13s crash consumer-2"
)


@pytest.mark.parametrize("design", DESIGN_NAMES)
def test_the_flow_is_what_a_capture_has_and_what_was_lost(run: Run, tmp_path: Path, design: str) -> None:
    """A capture has requests when they arrive, and answers when they leave; ZooKeeper's counts of changes in
    answers to pings, which are made beside the simulation, are those of the time that each shows."""
    file = tmp_path / "run.pcap"
    words = ("simulate", design, "--duration", "24s", "--faults", FLOW_PLAN, "--format", "json")
    result = run(*words, "--pcap", str(file), "--flow")
    assert (result.status, result.err) == (0, "")
    *messages, figures = map(json.loads, result.text.splitlines())
    assert figures == json.loads(run(*words).text)
    hosts = {"zookeeper": 1, "coordinator-1": 2, "coordinator-2": 3}
    if design in KAFKA_DESIGNS:
        hosts = {"coordinator-1": 1, "coordinator-2": 2}
    hosts |= {f"consumer-{number}": len(hosts) + number for number in (1, 2, 3)}

    def is_seen(message: dict[str, Any]) -> bool:
        return message["arrived"] is not None or hosts[message["to"]] > hosts[message["from"]]

    def text(body: dict[str, Any]) -> str:
        return json.dumps({name: value for name, value in body.items() if "zxid" not in name.lower()})

    sent = Counter(
        (f"10.0.0.{hosts[message['from']]}", f"10.0.0.{hosts[message['to']]}", text(message["body"]),
         message["api"], message["direction"])
        for message in messages if is_seen(message)
    )  # fmt: skip
    dialect = ("--dialect", design.replace("-overview", "").replace("-loaded", ""))
    decoded = run("decode", str(file), "--format", "json", *(dialect if design.startswith("draft") else ()))
    captured = Counter(
        (*(end.partition(":")[0] for end in form["flow"].split(" > ")), text(form["body"]),
         form["api"], form["direction"])
        for form in decoded.forms
    )  # fmt: skip
    assert len(captured) > 40
    assert sent == captured
    assert all(0 <= message["sent"] <= (message["arrived"] or 24_000) <= 24_000 for message in messages)
    times = [message["sent"] for message in messages]
    assert times == sorted(times)
    took = [message["arrived"] - message["sent"] for message in messages if message["arrived"] is not None]
    assert sum(time <= 5 for time in took) > 0.9 * len(took)
    assert len(took) < len(messages)  # what waits for the end of the cut is lost with the connection


@pytest.mark.parametrize("design", DESIGN_NAMES)
def test_the_flow_stands_between_the_lines_of_the_story(run: Run, design: str) -> None:
    words = ("simulate", design, "--duration", "24s", "--faults", "12s crash consumer-2")
    without = run(*words).text.splitlines()
    lines = run(*words, "--flow", "11s-22s").text.splitlines()
    flow = [line for line in lines if " → " in line]
    assert [line.strip() for line in lines if " → " not in line] == [line.strip() for line in without]
    times = [float(line.split()[0]) for line in flow]
    assert times == sorted(times)
    assert 11 - 0.005 <= times[0] < times[-1] <= 22
    rejoin = {
        "zookeeper": "Create ", "draft-1": "Start ", "draft-2-overview": "RegisterConsumer ",
        "draft-2": "StartFetcher ", "classic": "Heartbeat v4", "consumer": "ConsumerGroupHeartbeat v",
        "share": "ShareGroupHeartbeat v", "streams": "StreamsGroupHeartbeat v",
    }  # fmt: skip
    assert any(f"  {rejoin.get(design, 'Ping ')}" in line for line in flow)


@pytest.mark.parametrize("design", ["zookeeper", "draft-2", "draft-3", "consumer"])
def test_a_part_of_the_flow_has_what_is_on_its_way(run: Run, design: str) -> None:
    """At both ends: what was sent before and arrives within, and no answer to what arrives after it."""
    words = ["simulate", design, "--duration", "24s", "--format", "json"]
    words += ["--faults", "12s slow consumer-1 * 2s for 9s; 14s crash consumer-2 for 5s", "--flow"]
    whole = [json.loads(line) for line in run(*words).text.splitlines()][:-1]
    (late, *_) = (form for form in whole if (form["arrived"] or 0) - form["sent"] > 1_000)
    halves = len(whole) // 2
    for begin, end in (
        (late["sent"] + 10, late["arrived"] - 10), (late["sent"], late["sent"]),
        (late["arrived"], late["arrived"]), (whole[halves]["sent"], whole[halves]["arrived"]),
        (12_000, 15_000),
    ):  # fmt: skip
        part = [json.loads(line) for line in run(*words, f"{begin}ms-{end}ms").text.splitlines()][:-1]
        assert part == [
            form for form in whole if form["sent"] <= end and max(form["sent"], form["arrived"] or 0) >= begin
        ]
        assert part


def test_the_flow_marks_what_is_late_or_lost(run: Run) -> None:
    words = ("simulate", "draft-2", "--duration", "20s", "--flow", "11s-16s")
    slow = run(*words, "--faults", "11s slow consumer-1 * 700ms for 4s").text.splitlines()
    late = [line for line in slow if "arrives after 70" in line]
    assert late
    assert all("consumer-1" in line for line in late)
    assert not [line for line in run(*words).text.splitlines() if "arrive" in line]
    cut = run(*words, "--faults", "11s cut consumer-1 * for 9s").text.splitlines()
    assert [line for line in cut if "coordinator-1 → consumer-1" in line and "✗ has not arrived" in line]


@pytest.mark.parametrize("design", ["zookeeper", "draft-1", "consumer"])
def test_records_are_counted(run: Run, design: str) -> None:
    words = (design, "--duration", "45s", "--faults", "16s crash consumer-2 for 6s")
    deliveries = figures(run, *words, "--records")["deliveries"]
    assert deliveries["stored"] > 1_000  # each of six partitions has one each 100 ms, but for the last 10 s
    assert deliveries["twice"] > 0
    assert (deliveries["never"], deliveries["disordered"]) == (0, 0)
    [line] = [
        line
        for line in run("simulate", *words, "--records").text.splitlines()
        if line.startswith("   records")
    ]
    assert line.endswith(f" {deliveries['stored']:,}; {deliveries['twice']:,} delivered twice, 0 never")
    assert "deliveries" not in figures(run, *words)


def test_a_long_flow_is_counted(run: Run) -> None:
    words = ("simulate", "draft-1", "--duration", "80s", "--members", "4", "--flow")
    lines = run(*words).text.splitlines()
    assert sum(" → " in line for line in lines) == MOST_MESSAGES
    [text] = [line for line in lines if "more messages" in line]
    left_out = int(text.split("and ")[1].split()[0].replace(",", ""))
    forms = run(*words, "--format", "json").text.splitlines()
    assert len(forms) - 1 == MOST_MESSAGES + left_out


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["draft-2", "--members", "0"], "--members: expected 1 to 10000, got 0"),
        (["draft-2", "--partitions", "-1"], "--partitions: expected 1 to 100000, got -1"),
        (["draft-2", "--duration", "soon"], "--duration: expected a time such as 60s"),
        (["draft-2", "--duration", "25h"], "to 24h, got '25h'"),
        (["draft-2", "--faults", "no-such-file"], "No such file"),
        (["draft-2", "--faults", "10s explode"], "line 1: expected TIME KIND TARGET"),
        (["draft-2", "--faults", "10s freeze consumer-1"], "expected 'for' and a duration"),
        (["draft-2", "--faults", "10s kill consumer-1"], "expected crash, freeze, cut, drop, slow, leave, "),
        (["draft-2", "--faults", "10s topic * orders"], "expected TIME topic * orders PARTITIONS"),
        (["draft-2", "--faults", "10s topic * orders 100001"], "orders PARTITIONS, at most 100000"),
        (["draft-2", "--faults", f"10s topic * orders {'9' * 99}"], "orders PARTITIONS, at most 100000"),
        (["draft-2", "--faults", "10s topic * a/b 4"], "10000 ms: Topic name is invalid: 'a/b' contains"),
        (["draft-2", "--faults", "10s topic * .. 4"], "10000 ms: Topic name is invalid: '..' is not allowed"),
        (
            ["draft-2", "--faults", "10s crash broker-7"],
            "expected consumer-1 to -3, coordinator-1 to -2, zook",
        ),
        (
            ["classic", "--faults", "10s crash zookeeper"],
            "coordinator-1 to -2, or a pattern, got 'zookeeper'",
        ),
        (["draft-2", "--faults", "10s cut consumer-1 broker-* for 5s"], "or a pattern, got 'broker-*'"),
        (["draft-2", "--faults", "60s crash consumer-1"], "expected a time before the end, 60s"),
        (["draft-2", "--brokers", "0"], "--brokers: expected 1 to 100, got 0"),
        (["draft-2", "--seeds", "0"], "--seeds: expected 1 to 10000, got 0"),
        (["draft-2", "--seeds", "2", "--pcap", "x.pcap"], "--pcap keeps one run, and --seeds makes several"),
        (["draft-2", "--seeds", "2", "--flow"], "--flow shows one run, and --seeds makes several"),
        (["draft-2", "--seeds", "2", "--records"], "--records shows one run, and --seeds makes several"),
        (["share", "--records"], "--records: members of a share group fetch in a way that is not simulated"),
        (["draft-2", "--flow", "5s"], "--flow: expected two times such as 20s-25s, got '5s'"),
        (["draft-2", "--flow", "5s-4s"], "--flow: expected two times such as 20s-25s, got '5s-4s'"),
        (["draft-2", "--flow", "61s-62s"], "--flow: expected a time before the end, got '61s-62s'"),
        (["draft-2", "--groups", "4"], "--groups: expected 1 to 3, got 4"),
        (["draft-2", "--session-timeout", "1s"], "--session-timeout: expected a time above 1s, to 24h, got"),
        (
            ["draft-2", "--latency", "5ms-1ms"],
            "--latency: expected a time, or two such as 1ms-5ms, to 1m, got",
        ),
        (["draft-2", "--pcap", "no-such-folder/x.pcap"], "no-such-folder/x.pcap: No such file"),
        (["draft-4"], "'draft-4' is unknown; did you mean draft-3?"),
    ],
)
def test_what_is_wrong_is_reported(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("simulate", *words)
    assert (result.status, result.out) == (2, b"")
    assert reason in result.err
    assert list(tmp_path.iterdir()) == []


def test_a_number_of_partitions_has_a_bound_in_files_too(run: Run, tmp_path: Path) -> None:
    plan = tmp_path / "plan"
    plan.write_text(f"10s topic * orders {'9' * 5_000}\n")  # more digits than Python makes a number of
    result = run("simulate", "draft-2", "--faults", str(plan))
    assert (result.status, result.out) == (2, b"")
    assert "at most 100000" in result.err


def test_a_plan_is_text_or_a_file(run: Run, tmp_path: Path) -> None:
    plan = tmp_path / "my plan"
    plan.write_text("# one fault a line\n10s crash consumer-1 for 5s\n20s leave consumer-2\n")
    words = ("simulate", "classic", "--duration", "30s", "--faults")
    assert run(*words, str(plan)).out == run(*words, "10s crash consumer-1 for 5s; 20s leave consumer-2").out
    long = ";".join(f"1{number:04}ms leave consumer-2" for number in range(300))  # no file has such a name
    assert run(*words, long).status == 0
    plan.write_bytes(b"\xff\xfe")
    result = run(*words, str(plan))
    assert (result.status, "it is not UTF-8" in result.err) == (2, True)


@pytest.mark.parametrize("design", ["draft-3", "consumer"])
def test_a_short_run_has_no_price_of_a_change(run: Run, design: str) -> None:
    """Where most of the time has changes there is nothing quiet to compare with."""
    unknown = "unknown: the group was not quiet for long enough"
    for duration in ("5s", "12s"):
        last = run("simulate", design, "--duration", duration).text.splitlines()
        assert last[-1].endswith(f"{unknown} (3 changes)")
        assert "quiet" not in last[-2]
    assert unknown not in run("simulate", design, "--duration", "18s").text
    faults = "7s crash consumer-1 for 6s"
    assert unknown in run("simulate", design, "--duration", "18s", "--faults", faults).text


def figures(run: Run, *words: str) -> dict[str, Any]:
    result = run("simulate", *words, "--format", "json")
    assert (result.status, result.err) == (0, "")
    form = json.loads(result.text)
    assert isinstance(form, dict)
    return form


@pytest.mark.parametrize("design", DESIGN_NAMES)
def test_options_reach_the_simulation(run: Run, design: str) -> None:
    """A longer session is detected later; a slow network begins later; each group has all partitions."""
    plan = ("--faults", "12s crash consumer-2", "--duration", "40s")
    usual, longer = (
        figures(run, design, *plan, "--session-timeout", time)["deaths"][0] for time in ("6s", "12s")
    )
    assert usual["silent"] == longer["silent"] == 12_000
    if design not in ("draft-2", "draft-2-overview"):  # their coordinators see the connection end
        assert longer["detected"] - usual["detected"] > 3_000
    first = figures(run, design, "--latency", "1ms", "--duration", "20s")
    slow = figures(run, design, "--latency", "200ms-300ms", "--duration", "20s")
    assert slow["assigned_at"] - first["assigned_at"] > 300
    several = run("simulate", design, "--groups", "2", "--brokers", "3", "--duration", "20s").text
    assert "2 owners" in several or "3 owners" in several
    assert (first["design"], first["members"], first["duration_ms"]) == (design, 3, 20_000)


@pytest.mark.parametrize("fault", ["cut consumer-2 *", "freeze consumer-2"])
def test_a_death_counts_from_the_silence(run: Run, fault: str) -> None:
    """A consumer that crashes after it was cut off has been silent since then."""
    plan = f"14s {fault} for 9s; 18s crash consumer-2"
    deaths = figures(run, "draft-3", "--faults", plan, "--duration", "40s")["deaths"]
    for death in deaths:
        assert (death["time"], death["silent"]) == (18_000, 14_000)
        assert 4_000 < death["detected"] - death["silent"] < 7_000
    assert len(deaths) == fault.startswith("cut")  # a frozen consumer reads nothing, so loses nothing


def test_a_rebalance_counts_from_what_it_mends(run: Run) -> None:
    form = figures(run, "draft-1", "--faults", "15s crash consumer-2", "--duration", "40s")
    first, last = form["rebalances"][0], form["rebalances"][-1]
    assert first["since"] == 1_500  # when consumer-1 starts
    assert last["since"] == 15_000 < last["began"] < last["ended"]
    text = run("simulate", "draft-3", "--duration", "20s").text
    assert "ended after 0 ms" not in text


def test_a_story_of_many_gaps_fits(run: Run) -> None:
    words = ("simulate", "consumer", "--members", "60", "--partitions", "300", "--duration", "60s")
    text = run(*words, "--faults", "20s crash consumer-*").text
    lines = text.splitlines()
    assert len(lines) < 150
    assert max(map(len, lines)) <= 100
    assert "… and " in text


# --- several seeds ---


def test_several_seeds_are_those_runs(run: Run) -> None:
    words = ("draft-3", "--faults", "random", "--duration", "60s")
    together = figures(run, *words, "--seed", "4", "--seeds", "3")
    assert [known["seed"] for known in together["runs"]] == [4, 5, 6]
    assert together["design"] == "draft-3"
    detected = []
    for known in together["runs"]:
        alone = figures(run, *words, "--seed", str(known["seed"]))
        assert known["assigned_ms"] == [alone["assigned_at"]]
        for name in ("orphaned_ms", "duplicated_ms", "messages"):
            assert known[name] == [alone[name]]
        for name, end in (("detected_ms", "detected"), ("taken_over_ms", "taken_over")):
            assert known[name] == [
                death[end] - death["silent"] for death in alone["deaths"] if death[end] is not None
            ]
        detected += known["detected_ms"]
    assert detected
    quantiles = together["quantiles"]
    messages = sorted(known["messages"][0] for known in together["runs"])
    assert list(quantiles["messages"].values()) == [messages[1], messages[2], messages[2], messages[2]]
    assert quantiles["detected_ms"]["most"] == max(detected)


def test_several_seeds_have_a_line_each_and_quantiles(run: Run) -> None:
    plan = ("--faults", "12s crash consumer-2", "--duration", "30s")
    lines = run("simulate", "draft-2", "--seeds", "2", *plan).text.splitlines()
    assert lines[0].startswith("── draft-2 3 consumers, 6 partitions, seeds 1 to 2, 30.0 s ──")
    assert lines[1].split() == [
        "seed", "assigned", "detected", "taken", "over", "no", "owner", "two", "owners", "messages",
    ]  # fmt: skip
    assert [line.split()[:1] for line in lines[2:]] == [["1"], ["2"], [], ["p50"], ["p95"], ["p99"], ["most"]]
    assert max(map(len, lines)) <= 80
    assert len({len(line) for line in lines[1:] if line}) == 1
    quiet = run("simulate", "draft-2", "--seeds", "1", "--duration", "30s").text.splitlines()
    assert quiet[2].split()[3:5] == ["-", "-"]


@pytest.mark.parametrize("at", [30_000, 65_000])
def test_a_broken_run_gives_its_seed(run: Run, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """A consumer that forgets a partition, and another that reads two of its neighbour's."""

    def forget(known: DesignRun) -> None:
        ownership = known.world.ownership
        ownership.release("consumer-1", ("group", "orders", 0))
        for number in (1, 2):
            ownership.take("consumer-3", ("group", "orders", number))

    def prepare(known: DesignRun) -> None:
        if known.world.seed == 2:
            known.world.clock.at(at, forget, known)

    simulate = runs.simulate
    monkeypatch.setattr(
        runs, "simulate", lambda *args, **more: simulate(*args, **more | {"prepare": prepare})
    )
    words = ("simulate", "classic", "--seeds", "3", "--duration", "66s")
    result = run(*words)
    assert result.status == 0
    text = "--seed 2 ends with 1 partition with no owner and 2 partitions with two owners or more"
    assert text in result.text.splitlines()[-1]
    assert sum(line.endswith(" ✗") for line in result.text.splitlines()) == 1
    form = json.loads(run(*words, "--format", "json").text)
    assert [bool(known["broken"]) for known in form["runs"]] == [False, True, False]
    late = run(*words, "--faults", "36100ms drop * *")
    assert "✗" not in late.text  # 30 s are not over at the end


@pytest.mark.parametrize(
    "plan", ["20s crash consumer-*", "20s leave consumer-*", "20s crash coordinator-*; 20s crash consumer-1"]
)
def test_a_run_in_which_nobody_can_act_is_not_broken(plan: str) -> None:
    simulated = runs.simulate("classic", duration_ms=80_000, plan=parse_faults(plan))
    assert not simulated.run.world.ownership.is_whole
    assert run_figures(simulated, 1, 6_000).broken == ""


def test_several_readers_of_a_share_group_are_no_fault(run: Run) -> None:
    """Six members have two readers for each of three partitions, as a group's assignor divides them."""
    words = ("simulate", "share", "--members", "6", "--partitions", "3", "--duration", "50s")
    text = run(*words).text
    assert "✗" not in text
    assert "orders-0" in text
    [shared] = [line for line in text.splitlines() if line.startswith("   shared")]
    assert float(shared.split()[1]) > 100
    simulated = runs.simulate("share", members=6, partitions=3, duration_ms=50_000)
    readers = [len(simulated.run.world.ownership.readers(("group", "orders", part))) for part in range(3)]
    assert readers == [2, 2, 2]
    assert run_figures(simulated, 1, 6_000).broken == ""


def test_a_run_whose_nodes_have_all_restarted_in_order_is_judged() -> None:
    """A node that was closed acts again once it has started again."""

    def prepare(known: DesignRun) -> None:
        known.world.clock.at(65_000, known.world.ownership.release_all, "consumer-1")

    plan = "20s leave *-*; 20500ms crash *-* for 5s"
    simulated = runs.simulate("classic", duration_ms=70_000, plan=parse_faults(plan), prepare=prepare)
    assert run_figures(simulated, 1, 6_000).broken == "2 partitions with no owner"
