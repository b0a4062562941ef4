"""`coordwire conformance codec`: its verdicts, and codecs that die, hang, babble or take too much memory.

Strategy: the codec is the Python example, whole or with a fault planted in it: each fault is seen by a case.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordwire.conformance.codec.verdicts import reading, together, vectors, writing
from coordwire.conformance.results import CaseVerdict
from tests.cli.conftest import Result, Run, run

__all__ = ["run"]

CONFORMANCE = Path(__file__).parents[2] / "conformance"
DATA = CONFORMANCE / "data"
ADAPTOR = CONFORMANCE / "adaptors" / "python" / "codec.py"
HEARTBEAT = "hostile/heartbeat-request/v4"
VICTIM = f"{HEARTBEAT}/groupId/length-greatest"
VALID = "messages/heartbeat-request/v4/sample"

CodecRun = Callable[..., Result]

LOOP = "for line in sys.stdin:\n"
FAULTS = {
    "dies": "    if CASE in line: sys.exit('no more' + chr(27))\n",
    "killed": "    if CASE in line: import os; os.kill(os.getpid(), 9)\n",
    "hangs": "    if CASE in line: import time; time.sleep(60)\n",
    "babbles": "    if CASE in line: print('what?', flush=True); continue\n",
    "list": "    if CASE in line: print('[]', flush=True); continue\n",
    "closes": "    if CASE in line: import os, time; os.close(1); time.sleep(60)\n",
    "allocates": "    if CASE in line: bytearray(600 << 20)\n",
}


@pytest.fixture
def codec(run: Run, tmp_path: Path) -> CodecRun:
    """Run the example with lines put into its loop: `codec("dies", VICTIM)`."""

    def codec(fault: str = "", case: str = VICTIM, *options: object) -> Result:
        hex_text = next(vectors(DATA, [case]))["hex"]
        text = ADAPTOR.read_text().replace(LOOP, LOOP + FAULTS.get(fault, ""))
        path = tmp_path / "codec.py"
        path.write_text(f"CASE = {json.dumps(json.dumps({'hex': hex_text})[1:-1])}\n{text}".replace(
            "from __future__ import annotations\n", ""))  # fmt: skip
        return run("conformance", "codec", "--vectors", DATA, *options, "--", sys.executable, path)

    return codec


def test_the_example_is_as_kafka(codec: CodecRun) -> None:
    result = codec("", VICTIM, "--only", "*/heartbeat-*", "--only", "messages/fetch-response")
    assert (result.status, result.err) == (0, "")
    lines = result.text.splitlines()
    assert lines[0].startswith("coordwire ")
    assert lines[-1] == "passed"
    assert [line.split()[4] for line in lines[2:4]] == ["0", "0"]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("dies", "the codec ended, status 1"),
        ("killed", "the codec ended, signal SIGKILL"),
        ("hangs", "no answer within 5 s"),
        ("babbles", "a line that is not JSON"),
        ("list", "a line that is not a JSON object"),
        ("closes", "no answer within 5 s"),
        ("allocates", "allocates "),
    ],
)
def test_a_codec_with_a_fault_fails_that_vector_alone(
    codec: CodecRun, tmp_path: Path, fault: str, reason: str
) -> None:
    if fault == "allocates" and not sys.platform.startswith("linux"):
        pytest.skip("only Linux reports how much memory another process has had")
    report, xml = tmp_path / "out.json", tmp_path / "out.xml"
    options: list[object] = ["--only", f"{HEARTBEAT}/groupId", "--json", report, "--junit", xml]
    silent = reason.startswith("no answer")  # the others get the time that a machine under load needs
    result = codec(fault, VICTIM, *options, "--timeout", "5" if silent else "60")
    assert result.status == 1
    cases = json.loads(report.read_text())["cases"]
    failed = {case["address"]: case["reason"] for case in cases if case["verdict"] == "fail"}
    assert list(failed) == [VICTIM]
    assert failed[VICTIM].startswith(reason)
    assert len(cases) > 5
    assert f"  {VICTIM}: {reason}" in result.text
    assert ("the codec was started 2 times" in result.text) == (fault != "allocates")
    assert ("no more\\x1b" in xml.read_text()) == (fault == "dies")


def test_memory_has_a_limit(codec: CodecRun) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux limits another process's memory")
    result = codec("allocates", VICTIM, "--only", VICTIM, "--memory", "500MB")
    assert "the codec ended, status 1" in result.text


def test_known_failures_do_not_go_stale(codec: CodecRun, tmp_path: Path) -> None:
    known = tmp_path / "known.txt"
    options: list[object] = ["--only", f"{HEARTBEAT}/groupId", "--known", known]
    assert "there is no such file" in codec("dies", VICTIM, *options).err
    assert codec("dies", VICTIM, *options, "--fix").status == 0
    assert known.read_text() == f"{VICTIM}\n"
    assert codec("dies", VICTIM, *options).text.splitlines()[-1] == "passed, 1 known failure"
    result = codec("", VICTIM, *options)
    assert result.status == 1
    assert f"  {VICTIM}: the verdict is strict pass" in result.text
    assert codec("", VICTIM, *options, "--fix").status == 0
    assert known.read_text() == ""


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["/nowhere/codec"], "/nowhere/codec: No such file or directory"),
        ([sys.executable, "-c", "raise SystemExit('not\x1b today')"], "the codec ended, status 1"),
        ([sys.executable, "-c", "print('hello')"], "a line that is not JSON"),
        ([sys.executable, "-c", "import os; os.close(0); print('hello')"], "a line that is not JSON"),
    ],
)
def test_what_cannot_be_started_ends_the_run(run: Run, command: list[str], reason: str) -> None:
    result = run("conformance", "codec", "--vectors", DATA, "--only", VICTIM, "--", *command)
    assert (result.status, result.out) == (2, b"")
    assert reason in result.err
    assert "\x1b" not in result.err


def test_usage(run: Run, tmp_path: Path) -> None:
    usages: list[tuple[list[object], str]] = [
        (["--fix"], "--fix needs --known"),
        (["--only", "nothing"], "no vector has the address nothing"),
        (["--vectors", tmp_path], "messages.jsonl: there is no such file"),
        (["--memory", "much"], "expected a size such as 4GB, got 'much'"),
    ]
    for options, reason in usages:
        result = run("conformance", "codec", "--vectors", DATA, *options, "--", "true")
        assert result.status == 2
        assert reason in result.err
    (tmp_path / "messages.jsonl").write_text("[]\n")
    result = run("conformance", "codec", "--vectors", tmp_path, "--", "true")
    assert "a line that is not a vector" in result.err


def hostile(verdict: str, **fields: Any) -> dict[str, Any]:
    return {"id": "hostile/x", "hex": "00", "verdict": verdict, "kafka": "reads", "reason": "bad", **fields}


REFUSED = {"kafka": "refuses"}


@pytest.mark.parametrize(
    ("vector", "answer", "verdict"),
    [
        (hostile("valid"), {"hex": "00"}, CaseVerdict.PASS),
        (hostile("valid", json={"a": 1}), {"hex": "00", "json": {"a": 1}}, CaseVerdict.STRICT_PASS),
        (hostile("valid", json={"a": 1}), {"hex": "00", "json": {"a": True}}, CaseVerdict.FAIL),
        (hostile("valid", json={"a": 1}), {"hex": "00", "json": {"a": 1, "b": 0}}, CaseVerdict.FAIL),
        (hostile("valid", json={"records": ""}), {"json": {"records": "AA=="}}, CaseVerdict.PASS),
        (hostile("valid"), {"hex": "01"}, CaseVerdict.FAIL),
        (hostile("valid"), {"refused": "no"}, CaseVerdict.FAIL),
        (hostile("valid"), {}, CaseVerdict.PARTIAL),
        (hostile("valid"), {"lacks": "it"}, CaseVerdict.SKIPPED),
        (hostile("invalid", **REFUSED), {"refused": "no"}, CaseVerdict.STRICT_PASS),
        (hostile("invalid", **REFUSED), {"hex": "00"}, CaseVerdict.FAIL),
        (hostile("acceptable", **REFUSED), {"refused": "no"}, CaseVerdict.STRICT_PASS),
        (hostile("acceptable", **REFUSED), {"hex": "00"}, CaseVerdict.PASS),
        (hostile("acceptable"), {"refused": "no"}, CaseVerdict.PASS),
        (hostile("acceptable"), {"hex": "01"}, CaseVerdict.PASS),
        (hostile("acceptable", json={"a": [1]}), {"json": {"a": [1]}}, CaseVerdict.STRICT_PASS),
        (hostile("acceptable", json={"a": [1]}), {"json": {"a": [2]}}, CaseVerdict.FAIL),
    ],
)
def test_verdicts_on_what_was_read(
    vector: dict[str, Any], answer: dict[str, Any], verdict: CaseVerdict
) -> None:
    assert reading(vector, answer)[0] is verdict


def test_verdicts_on_what_was_written() -> None:
    vector = hostile("valid")
    assert writing(vector, {"hex": "00"})[0] is CaseVerdict.STRICT_PASS
    assert writing(vector, {"hex": "01"})[0] is CaseVerdict.FAIL
    assert writing(vector, {"refused": "no"})[0] is CaseVerdict.FAIL
    passed, lacks, failed = ((one, "") for one in (CaseVerdict.PASS, CaseVerdict.SKIPPED, CaseVerdict.FAIL))
    assert together(passed, lacks) == passed
    assert together(lacks, failed) == failed
    assert together(passed, failed) == failed
