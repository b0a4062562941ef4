"""Results as a summary for people, as JSON that can be read again, and as the XML of JUnit that CI servers
read.

Rules: what an implementation said is escaped, so that it moves no cursor and breaks no XML; a summary names
at most `MOST_NAMED` cases of a kind, the files name all. In XML a known failure is a skipped case, and a
stale line of the list is a case that fails.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, TypeVar
from xml.sax.saxutils import escape, quoteattr

from coordwire.capture.printable import shown
from coordwire.conformance.results import KINDS, CaseResult, CaseVerdict, Results
from coordwire.errors import counted

MOST_NAMED = 20
COLUMNS = {"strict pass": 13, "pass": 8, "partial": 9, "fail": 8, "skipped": 9}

V = TypeVar("V")


def summary(results: Results) -> Iterator[str]:
    """Lines of at most 80 columns, but for addresses and reasons, which stay whole."""
    yield shown(results.subject)
    yield f"{'':18}{''.join(f'{name:>{width}}' for name, width in COLUMNS.items())}"
    for name, counts in results.counts().items():
        columns = (f"{counts[CaseVerdict(verdict)]:>{width},}" for verdict, width in COLUMNS.items())
        yield f"{name:18}{''.join(columns)}"
    yield from map(shown, results.notes)
    yield from _named("failed", map(_line, results.unexpected))
    recommended = (
        result for result in results.cases if result.verdict is CaseVerdict.FAIL and result.recommended
    )
    yield from _named("not as recommended", map(_line, recommended))
    yield from _named("in the list of known failures by mistake", map(": ".join, results.stale))
    known = len(results.known.addresses & {result.address for result in results.failures})
    ending = f", {counted(known, 'known failure')}" if known else ""
    yield f"{'passed' if results.passed else 'failed'}{ending}"


def _line(result: CaseResult) -> str:
    return f"{result.address}: {result.reason}"


def _named(title: str, lines: Iterable[str]) -> Iterator[str]:
    texts = list(lines)
    if texts:
        yield f"{title}: {len(texts):,}"
        yield from (f"  {shown(text)}" for text in texts[:MOST_NAMED])
        if len(texts) > MOST_NAMED:
            yield f"  … and {len(texts) - MOST_NAMED:,} more"


def as_json(results: Results) -> str:
    """One JSON object: who was judged and when, counts, and every case."""
    cases = [
        {
            "address": result.address,
            "verdict": str(result.verdict),
            "known": result.address in results.known.addresses,
            "level": "recommended" if result.recommended else "required",
            "reason": result.reason,
            "seconds": round(result.seconds, 6),
        }
        for result in results.cases
    ]
    document = {
        "kind": results.kind,
        "subject": results.subject,
        "date": results.date.isoformat(timespec="seconds"),
        "suite": results.suite,
        "passed": results.passed,
        "counts": results.counts(),
        "notes": results.notes,
        "stale": dict(results.stale),
        "cases": cases,
    }
    return json.dumps(document, indent=1) + "\n"


def from_json(data: bytes) -> Results:
    """The results that `as_json` wrote, but for seconds. Raises `ValueError` for all else."""
    try:
        return _results(json.loads(data))
    except (KeyError, OverflowError, RecursionError, TypeError, ValueError):
        raise ValueError("not the results of a run, as --json writes them") from None


def _results(form: Any) -> Results:
    kind = _field(form, "kind", str)
    if kind not in KINDS:
        raise ValueError(kind)
    date = datetime.fromisoformat(_field(form, "date", str)).astimezone(UTC)
    results = Results(kind, _field(form, "subject", str), date=date, suite=_field(form, "suite", str))
    results.notes.extend(map(str, _field(form, "notes", list)))
    for case in _field(form, "cases", list):
        address, level = _field(case, "address", str), _field(case, "level", str)
        verdict = CaseVerdict(_field(case, "verdict", str))
        reason = _field(case, "reason", str)
        results.cases.append(CaseResult(address, verdict, reason, recommended=level == "recommended"))
        if _field(case, "known", bool):
            results.known.addresses.add(address)
    return results


def _field(form: Any, name: str, kind: type[V]) -> V:
    value = form[name]
    if not isinstance(value, kind):
        raise TypeError(name)
    return value


def as_junit(results: Results) -> str:
    """A test suite with a test for each case."""
    failures = len(results.unexpected) + len(results.stale)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuite name={_attribute(results.subject)} tests="{len(results.cases) + len(results.stale)}"'
        f' failures="{failures}">',
        *(_junit_case(result, result.address in results.known.addresses) for result in results.cases),
        *(_junit_failure(f"known failures/{address}", reason) for address, reason in results.stale),
        "</testsuite>",
    ]
    return "\n".join(lines) + "\n"


def _junit_case(result: CaseResult, is_known: bool) -> str:
    reason = result.reason
    if result.has_failed and not is_known:
        return _junit_failure(result.address, reason, result.seconds, result.output)
    if result.verdict in (CaseVerdict.FAIL, CaseVerdict.SKIPPED):
        kind = "known failure: " if is_known else "recommended: " if result.recommended else ""
        message = _attribute(kind + reason)
        return f"{_junit_opening(result.address, result.seconds)}<skipped message={message}/></testcase>"
    return f"{_junit_opening(result.address, result.seconds)}</testcase>"


def _junit_failure(address: str, reason: str, seconds: float = 0.0, output: str = "") -> str:
    stderr = f"<system-err>{escape(_printable(output))}</system-err>" if output else ""
    return f"{_junit_opening(address, seconds)}<failure message={_attribute(reason)}/>{stderr}</testcase>"


def _junit_opening(address: str, seconds: float) -> str:
    folder, _, name = address.rpartition("/")
    dotted = folder.replace(".", "-").replace("/", ".")
    return f'<testcase classname={_attribute(dotted)} name={_attribute(name)} time="{seconds:.3f}">'


def _attribute(text: str) -> str:
    return quoteattr(shown(text))


def _printable(text: str) -> str:
    return "\n".join(map(shown, text.split("\n")))
