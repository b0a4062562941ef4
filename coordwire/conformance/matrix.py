"""Results of several implementations as one page: a matrix of cases by implementations.

Strategy: a part for each kind of implementation, with a table of the runs, the matrix, and each run's
failures with their reasons. The matrix has a row for each folder of addresses with counts, and below it one
for each case. Of very many cases, as the codecs' are, folders are wider, and only cases that somebody doesn't
pass have a row.

Rules: results come from files: all texts are escaped. The page fetches nothing and needs no script. Lists are
bounded, and notes say what was left out. A case's rule is the suite's own, by its address.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from coordwire import __version__
from coordwire.conformance.results import KINDS, CaseResult, CaseVerdict, Results
from coordwire.timeline.story.markup import document, escaped, table

MOST_CASES = 2_000
"""Rows of cases in a matrix."""

MOST_FAILURES = 500
"""Rows of failures, for each run."""

MOST_CHARACTERS = 300
"""Of a reason in a tooltip."""

MARKS = {
    CaseVerdict.STRICT_PASS: ("✓", "good", "as Apache Kafka"),
    CaseVerdict.PASS: ("+", "good", "within the rule"),
    CaseVerdict.PARTIAL: ("~", "fair", "within the rule, as far as can be seen"),
    CaseVerdict.FAIL: ("✗", "bad", "against the rule"),
    CaseVerdict.SKIPPED: ("–", "none", "the implementation lacks it"),
}
OPTIONAL = ("!", "fair", "not as recommended")
FAILED = (CaseVerdict.PARTIAL, CaseVerdict.FAIL)

Cases = dict[str, CaseResult]
"""A run's, by their addresses."""


def matrix_page(runs: Sequence[Results]) -> str:
    """The page. runs: one for each column, in their order."""
    parts = []
    for kind in KINDS:
        columns = [run for run in runs if run.kind == kind]
        if columns:
            parts += [f"<h2>{kind[0].upper()}{kind[1:]}s</h2>", *_part(kind, columns)]
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    subtitle = f"made by coordwire {__version__}, {now}; every answer is judged by Apache Kafka's"
    return document("Conformance to Kafka's protocol", subtitle, "".join(parts))


def _part(kind: str, runs: Sequence[Results]) -> Iterator[str]:
    yield _runs(runs)
    for number, run in enumerate(runs, 1):
        yield from (_note(f"{number}: {note}") for note in run.notes)
    yield _key()
    yield from _matrix(kind, runs)
    for number, run in enumerate(runs, 1):
        yield from _failures(number, run)


def _runs(runs: Sequence[Results]) -> str:
    head = ["", "implementation", "judged", "by", *CaseVerdict, "known"]
    rows = []
    for number, run in enumerate(runs, 1):
        counts = [sum(case.verdict is verdict for case in run.cases) for verdict in CaseVerdict]
        known = sum(case.address in run.known.addresses for case in run.failures)
        judged = f"{run.date:%Y-%m-%d %H:%M} UTC"
        numbers = [f"{count:,}" for count in (*counts, known)]
        rows.append([str(number), run.subject, judged, run.suite, *numbers])
    return table(head, rows, numbers=range(4, len(head)), long=(1,))


def _note(text: str) -> str:
    return f'<p class="note">{escaped(text)}</p>'


def _key() -> str:
    marks = [(mark, style, f"{verdict}: {text}") for verdict, (mark, style, text) in MARKS.items()]
    marks.append(OPTIONAL)
    keys = (f'<span class="key"><b class="{style}">{mark}</b> {text}</span>' for mark, style, text in marks)
    return f'<p class="legend">{"".join(keys)}</p>'


# --- the matrix ---


def _matrix(kind: str, runs: Sequence[Results]) -> Iterator[str]:
    columns: list[Cases] = [{case.address: case for case in run.cases} for run in runs]
    addresses = list(dict.fromkeys(address for cases in columns for address in cases))
    is_whole = len(addresses) <= MOST_CASES
    row_addresses = (
        addresses if is_whole else [address for address in addresses if _is_missed(address, columns)]
    )
    with_row = set(row_addresses[:MOST_CASES])
    folders: dict[str, list[str]] = {}
    for address in addresses:
        folders.setdefault(_folder(address, is_whole=is_whole), []).append(address)
    rules = _rules(kind)
    names = "".join(f'<th title="{escaped(run.subject)}">{number}</th>' for number, run in enumerate(runs, 1))
    yield f'<div class="scroll matrix"><table><thead><tr><th>case</th>{names}</tr></thead><tbody>'
    for folder, members in folders.items():
        counts = "".join(_count(cases, members) for cases in columns)
        yield f'<tr class="folder"><th>{escaped(folder)}</th>{counts}</tr>'
        for address in members:
            if address in with_row:
                marks = "".join(_mark(cases.get(address)) for cases in columns)
                name = escaped(address[len(folder) :].lstrip("/"))
                yield f"<tr><td><b>{name}</b> {escaped(rules.get(address, ''))}</td>{marks}</tr>"
    yield "</tbody></table></div>"
    if not is_whole:
        yield _note("Cases have a row where an implementation fails or shows only a part.")
    if len(row_addresses) > len(with_row):
        yield _note(f"{len(row_addresses) - len(with_row):,} more such cases have none.")


def _folder(address: str, *, is_whole: bool) -> str:
    return address.rpartition("/")[0] if is_whole else "/".join(address.split("/", 2)[:2])


def _rules(kind: str) -> dict[str, str]:
    if kind == "broker":
        from coordwire.conformance.broker.run import selected as of_brokers

        return {case.address: case.rule for case in of_brokers(())}
    if kind == "client":
        from coordwire.conformance.client.run import selected as of_clients

        return {case.address: case.rule for case in of_clients(())}
    return {}


def _is_missed(address: str, columns: Sequence[Cases]) -> bool:
    return any(address in cases and cases[address].verdict in FAILED for cases in columns)


def _count(cases: Cases, addresses: Sequence[str]) -> str:
    """A cell that says how many cases of those that the implementation has are passed."""
    judged = [cases[address] for address in addresses if address in cases]
    judged = [case for case in judged if case.verdict is not CaseVerdict.SKIPPED]
    if not judged:
        return '<td class="none">–</td>'
    passed = sum(case.verdict is not CaseVerdict.FAIL for case in judged)
    style = "bad" if any(case.has_failed for case in judged) else "good"
    return f'<td class="{style}">{passed:,}/{len(judged):,}</td>'


def _mark(case: CaseResult | None) -> str:
    if case is None:
        return "<td></td>"
    is_optional = case.recommended and case.verdict is CaseVerdict.FAIL
    mark, style, _ = OPTIONAL if is_optional else MARKS[case.verdict]
    title = f' title="{escaped(case.reason[:MOST_CHARACTERS])}"' if case.reason else ""
    return f'<td class="{style}"{title}>{mark}</td>'


# --- reasons ---


def _failures(number: int, run: Results) -> Iterator[str]:
    failed = [case for case in run.cases if case.verdict is CaseVerdict.FAIL]
    if not failed:
        return
    yield f"<h3>{number}: {escaped(run.subject)}</h3>"
    rows = [[case.address, _level(case, run), case.reason] for case in failed[:MOST_FAILURES]]
    yield table(["failed", "", "reason"], rows, long=(0, 2))
    if len(failed) > len(rows):
        yield _note(f"and {len(failed) - len(rows):,} more")


def _level(case: CaseResult, run: Results) -> str:
    if case.recommended:
        return "recommended"
    return "known" if case.address in run.known.addresses else ""
