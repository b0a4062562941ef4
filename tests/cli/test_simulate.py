"""`coordwire simulate`: the story, its figures, the capture, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordwire.designs import DESIGN_NAMES
from coordwire.designs.simulator.runs import DESIGNS

from .conftest import Run

PLAN = "12s crash consumer-2 for 9s; 30s cut consumer-1 * for 10s; 31s crash broker-7"


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
        "30.000 s  ! cut consumer-1 * for 10s", "31.000 s  ! crash broker-7  (no such node here)",
        "⟳ rebalance 1 begins", "✓ rebalance 2 has ended after", "  orders-0",
        "deaths of consumers", "2 partitions moved, 2 owners",
        "two owners ", "no owner, after the first assignment ", "messages ", "a membership change costs ",
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
