"""The command that breaks each demand: what it calls found, and where it goes on after a stop."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.designs.mutant_runs import FOUND, Outcome
from tests.designs.seeds import ROOT

RETRIES = "designs/drafts/test_draft_1.py::test_a_consumer_fails_after_its_own_number_of_retries"


def python(code: str) -> list[str]:
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return result.stdout.splitlines()


def outcomes(*changes: tuple[str, str, str], test: str, before: str = "") -> list[str]:
    """What a test does with changes of a code: (code, old text, new text). before: what is run first."""
    return python(f"""
from tests.designs import mutant_runs
from tests.designs.mutated_code import Mutant
from tests.designs.seeds import Demand
{before}
chosen = [Mutant(Demand("", ""), code, {test!r}, old, new) for code, old, new in {changes!r}]
results = dict(mutant_runs.run(chosen))
for mutant in chosen:
    print(results[mutant])
""")


def test_a_mutant_is_found_by_a_failure_or_by_time_in_either_process() -> None:
    machine = "designs.drafts.pinging_coordinator:PingingCoordinator"
    results = outcomes(
        (f"{machine}._ping", "self.send_to(consumer, self.ping_request(consumer))", "pass"),
        (
            f"{machine}._ping",
            "consumer.pinged = True",
            "consumer.pinged = True\n            while True: pass",
        ),
        (machine, "    def _ping(", "    def _pong("),
        ("designs.drafts.draft_3_consumer:NewConsumer.subscribe", "def subscribe(", "def unsubscribed("),
        ("designs.drafts.draft_3_consumer:NewConsumer._retry", "self._leave_connection()", "pass"),
        test=RETRIES,
    )
    assert results == ["failed", "late", "failed", "passed", "passed"]


def test_a_test_that_fails_without_a_mutant_finds_none() -> None:
    change = "designs.drafts.pinging_coordinator:PingingCoordinator._ping", "consumer.pinged = True", "pass"
    fails = "mutant_runs._passes = lambda items: False"
    assert outcomes(change, test=RETRIES, before=fails) == ["unfit"]
    assert Outcome.UNFIT not in FOUND


def test_a_run_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from tests.designs import mutants
mutants.LEDGER = Path({str(tmp_path)!r}) / "ledger"
sys.argv = ["mutants", "we can resolve the consumer split", "--jobs", "1"]
mutants.main()
"""
    assert python(code)[0] == "1 mutants, 1 of them different; 0 in the ledger as found; 1 to run"
    ledger = tmp_path / "ledger"
    whole = ledger.read_text()
    assert python(code)[0].endswith("1 in the ledger as found; 0 to run")
    ledger.write_text(whole[: len(whole) // 2])
    assert python(code)[0].endswith("0 in the ledger as found; 1 to run")
    ledger.write_text(whole.replace('"key": "', '"key": "another'))
    assert python(code)[0].endswith("0 in the ledger as found; 1 to run")
