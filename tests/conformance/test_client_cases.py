"""`coordwire conformance client`: Apache Kafka's client passes every case, and every case finds a bug.

Rules: a client's process that hangs or dies fails its case alone; of clients other than Apache Kafka's it is
tested that they are judged, and not how.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from coordwire.conformance.client import stage
from coordwire.conformance.client.run import judged, selected
from coordwire.conformance.process import AskedProcess
from coordwire.conformance.results import CaseResult, CaseVerdict
from tests.cli.conftest import Run, run
from tests.conformance.client_plants import PLANTS, bug
from tests.conformance.small_client import SmallClient
from tests.conformance.small_links import FIND, Habits
from tests.conformance.test_adaptors import built
from tests.interop.conftest import give_up
from tests.interop.maven import CURRENT, Unavailable, jars

__all__ = ["run"]

CASES = {case.address: case for case in selected(())}
SAMPLE = ("offsets/fetch", "versions/refused", "groups/consumer/epochs", "transactions/order")


def test_addresses_are_unique_and_cases_say_what_they_are_about() -> None:
    every = selected(())
    assert len(every) == len(CASES) > 120
    for case in every:
        assert re.fullmatch(r"[a-z]+(/[a-z]+)+/[1-9][0-9]*", case.address)
        assert re.match(r"KIP-\d+$|https://kafka\.apache\.org/", case.document)
        assert case.broker
        assert case.answer
        assert case.rule.endswith(".")


def test_the_pages_say_how_many_there_are() -> None:
    docs = Path(__file__).parents[2] / "docs"
    assert f"each of {len(CASES)} cases" in (docs / "how-to" / "conformance.md").read_text()
    assert f"a client by {len(CASES)} cases" in (docs / "reference" / "command-line.md").read_text()


def java() -> list[object]:
    try:
        classes = f"{jars(CURRENT)}/*"
        folder = built("client-java", ["javac", "-nowarn", "-cp", classes, "Client.java"])
    except Unavailable as error:
        give_up(error)
    return ["java", "-Xmx256m", "-cp", f"{folder}:{classes}", "Client"]


def passes(run: Run, report: Path, command: list[object], *only: str) -> set[str]:
    """The addresses that a client passes; no other is judged."""
    options = [word for address in only for word in ("--only", address)]
    result = run("conformance", "client", "--json", report, *options, "--", *command)
    cases = json.loads(report.read_text())["cases"]
    assert {case["address"]: case["reason"] for case in cases if case["verdict"] != "pass"} == {}
    assert (result.status, result.err) == (0, "")
    return {case["address"] for case in cases}


@pytest.mark.maven
def test_apache_kafkas_client(run: Run, tmp_path: Path) -> None:
    assert len(passes(run, tmp_path / "out.json", java(), *SAMPLE)) > 10


@pytest.mark.maven
@pytest.mark.long
def test_apache_kafkas_client_passes_every_case(run: Run, tmp_path: Path) -> None:
    assert passes(run, tmp_path / "out.json", java()) == CASES.keys()


# --- processes ---

HANGING = """
import sys, time
for number, line in enumerate(sys.stdin):
    if number == 0:
        print('{"name": "hangs"}', flush=True)
    elif number == 1:
        time.sleep(600)
"""
ECHO = """
import sys, time
for line in sys.stdin:
    time.sleep('"slow"' in line)
    print(line, end="", flush=True)
"""
LACKING = """
import sys
for line in sys.stdin:
    print('{"name": "lacks"}' if '"name"' in line else '{"lacks": "everything"}', flush=True)
"""


def test_a_client_that_hangs_fails_its_case_and_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "SECONDS", 0.2)
    monkeypatch.setattr(stage, "GRACE", 0.2)

    async def play() -> tuple[list[str], int]:
        async with AskedProcess([sys.executable, "-c", HANGING], kind="client", timeout=20) as client:
            cases = [CASES["produce/acks/1"], CASES["produce/fatal/1"]]
            return [result.reason async for result in judged([client], cases)], client.starts

    reasons, starts = asyncio.run(play())
    assert reasons == ["no answer within 0.4 s"] * 2
    assert starts == 2


def test_a_task_that_is_given_up_does_not_answer_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:

    async def play() -> object:
        async with AskedProcess([sys.executable, "-c", ECHO], kind="client", timeout=20) as client:
            task = asyncio.ensure_future(client.ask({"do": "slow"}))
            await asyncio.sleep(0.2)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            return await client.ask({"do": "next"})

    assert asyncio.run(play()) == {"do": "next"}


def test_what_a_client_lacks_is_skipped(run: Run, tmp_path: Path) -> None:
    report = tmp_path / "out.json"
    only = ("--only", "groups/consumer/join", "--json", report)
    result = run("conformance", "client", *only, "--", sys.executable, "-c", LACKING)
    assert result.status == 0
    cases = json.loads(report.read_text())["cases"]
    assert {(case["verdict"], case["reason"]) for case in cases} == {(CaseVerdict.SKIPPED, "everything")}


def test_usage(run: Run) -> None:
    result = run("conformance", "client", "--list", "--only", "groups/classic/join/1")
    assert result.status == 0
    assert result.text.splitlines()[0] == "groups/classic/join/1  (required, KIP-394)"
    for words, reason in [
        ([], "expected what starts the client"),
        (["--only", "nothing", "--", "true"], "no case has the address nothing"),
        (["--", "false"], "the client doesn't start: the client ended, status 1"),
        (["--", "/there/is/none"], "/there/is/none"),
    ]:
        result = run("conformance", "client", *words)
        assert (result.status, result.out) == (2, b"")
        assert reason in result.err


# --- planted bugs ---


@pytest.mark.parametrize("only", [SAMPLE, pytest.param((), marks=pytest.mark.slow)], ids=["sample", "all"])
def test_a_small_client_passes(only: tuple[str, ...]) -> None:
    async def play() -> list[CaseResult]:
        clients = [SmallClient() for _ in range(8)]
        return [result async for result in judged(clients, selected(only))]

    results = asyncio.run(play())
    assert len(results) > 10
    reasons = {result.address: result.reason for result in results if result.verdict is not CaseVerdict.PASS}
    assert reasons == {}


def test_every_case_has_a_planted_bug() -> None:
    assert PLANTS.keys() == CASES.keys()


@pytest.mark.slow
def test_each_case_finds_its_planted_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "PATIENCE", 3.5)
    monkeypatch.setattr(stage, "SECONDS", 4.5)

    async def play() -> list[CaseResult]:
        turns = asyncio.Semaphore(8)

        async def found(address: str) -> CaseResult:
            async with turns:
                (only,) = [one async for one in judged([SmallClient(PLANTS[address])], [CASES[address]])]
                return only

        return await asyncio.gather(*map(found, PLANTS))

    results = asyncio.run(play())
    assert [result.address for result in results if result.verdict is not CaseVerdict.FAIL] == []


# --- lawful ways ---


class ClassicClient(SmallClient):
    """One that is in a classic group, whatever it is asked for."""

    async def ask(self, request: dict[str, Any], *, timeout: float | None = None) -> dict[str, Any]:
        settings = {**request["settings"], **stage.PROTOCOLS["classic"]}
        return await super().ask({**request, "settings": settings}, timeout=timeout)


def finds(api: str, error: str) -> SmallClient:
    """A client that looks for the coordinator, and asks the same again."""
    return SmallClient(Habits(errors={(api, error): FIND}))


@pytest.mark.parametrize(
    ("client", "address", "verdict"),
    [
        (ClassicClient(), "versions/none/2", CaseVerdict.PASS),
        (ClassicClient(), "versions/older/13", CaseVerdict.SKIPPED),
        (finds("SyncGroup", "NOT_COORDINATOR"), "groups/classic/recovery/7", CaseVerdict.PASS),
        (
            finds("SyncGroup", "COORDINATOR_NOT_AVAILABLE"),
            "groups/classic/recovery/8",
            CaseVerdict.PASS,
        ),
        (SmallClient(bug("tries its id")), "groups/classic/recovery/16", CaseVerdict.PASS),
    ],
)
def test_another_lawful_way_passes(client: SmallClient, address: str, verdict: CaseVerdict) -> None:
    async def play() -> list[CaseResult]:
        return [result async for result in judged([client], [CASES[address]])]

    (result,) = asyncio.run(play())
    assert result.verdict is verdict, result.reason


@pytest.mark.parametrize("number", [4, 5])
def test_a_commit_that_is_reported_at_once_fails_no_run(number: int) -> None:
    address = f"offsets/commit/{number}"

    async def play() -> list[CaseResult]:
        return [result async for result in judged([SmallClient(PLANTS[address])], [CASES[address]])]

    (result,) = asyncio.run(play())
    assert (result.verdict, result.has_failed) == (CaseVerdict.FAIL, False)
