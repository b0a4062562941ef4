"""Changes of C are written rightly: each means what its name says, and none is made unless it is chosen."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path
from shutil import which

import pytest

from tests.c_mutants.__main__ import EQUIVALENT, judged
from tests.c_mutants.build import HEADER, SOURCES, sources
from tests.c_mutants.places import Source, drawn
from tests.proof import ROOT

TEXT = """static const int table[] = {1, 2};
static int larger(int a, int b)
{
    int sum = a + b - 1; /* 5 */
    if (a < b && sum > 2)
        sum = 7;
    return sum == 7 || a >= b ? sum : table[0];
}
"""
MAIN = """#include <stdio.h>
int main(int count, char **words)
{
    (void)words;
    coordwire_mutant = count - 2;
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 4; b++)
            printf("%d ", larger(a, b));
    return 0;
}
"""


def test_a_source_keeps_its_text() -> None:
    paths = sorted((ROOT / SOURCES).rglob("*.[ch]"))
    assert paths
    for path in paths:
        text = path.read_text()
        source = Source(path.name, text)
        assert "".join(source.tokens) == text
        assert source.changed({}) == text
        for change, _ in source.edits():
            assert text.splitlines()[change.line - 1].strip() == change.text


def test_what_is_changed() -> None:
    found = [(change.line, change.what) for change, _ in Source("a.c", TEXT).edits()]
    assert (4, "+ to -") in found
    assert (4, "- to +") in found
    assert (5, "if never") in found
    assert (5, "&& to ||") in found
    assert (6, "left out") in found
    assert (7, "|| to &&") in found
    assert not [line for line, _ in found if line < 4]


def test_each_reason_names_a_change() -> None:
    names = {change.name for source in sources() for change, _ in source.edits()}
    reasons = tomllib.loads(EQUIVALENT.read_text("utf-8"))
    assert set(reasons) <= names
    assert all(reasons.values())


def test_what_survives_needs_a_reason() -> None:
    changes = {number: change for number, (change, _) in enumerate(drawn(sources(), 4, seed=1))}
    verdicts = dict(zip(changes, ("killed", "crash", "survived", "unreached"), strict=True))
    open_ones, stale = judged(verdicts, changes)
    assert len(open_ones) == len(
        {changes[2].name, changes[3].name} - set(tomllib.loads(EQUIVALENT.read_text()))
    )
    assert stale == []


@pytest.mark.skipif(which("gcc") is None, reason="no gcc")
def test_each_change_is_one_of_behaviour(tmp_path: Path) -> None:
    """With all of them in it a program does what it did; with nearly each of them chosen, something else."""
    source = Source("a.c", TEXT)
    edits = {number: edit for number, (_, edit) in enumerate(drawn([source], 100, seed=5))}
    room = f"int coordwire_mutant;\nunsigned char coordwire_mutants_reached[{len(edits)}];\n"
    outputs = []
    for chosen in ({}, edits):
        path, built = tmp_path / "a.c", tmp_path / "a.out"
        path.write_text(HEADER + room + source.changed(chosen) + MAIN)
        subprocess.run(["gcc", "-w", "-std=gnu11", str(path), "-o", str(built)], check=True)
        words = ["x"] * (len(edits) + 1)
        outputs.append([subprocess.check_output([built, *words[:count]]) for count in range(len(words))])
    (plain, *_), (unchanged, *changed) = outputs
    assert unchanged == plain
    assert len(edits) > 10
    assert sum(output != plain for output in changed) > 0.7 * len(changed)
