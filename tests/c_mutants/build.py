"""The extension with all changes in it, of which a number at run time makes one.

Strategy: `MUTANT(n)` is true where the n-th change is to be made, and notes that it was reached. Rule: where
the compiler refuses a line, all of its changes are left out, and the source is compiled again.
"""

from __future__ import annotations

import re
import subprocess
import sysconfig
import tomllib
from pathlib import Path

from fuzz.hardening._builds import ROOT, copy_package
from tests.c_mutants.places import Change, Edit, Source

SOURCES = "coordwire/_speedups"
HEADER = """extern int coordwire_mutant;
extern unsigned char coordwire_mutants_reached[];
#define MUTANT(n) (coordwire_mutants_reached[n] = 1, coordwire_mutant == (n))
"""
GLOBALS = "int coordwire_mutant = -1;\nunsigned char coordwire_mutants_reached[%d];\n"


def sources() -> list[Source]:
    folder = ROOT / SOURCES
    paths = sorted(folder.rglob("*.[ch]"))
    return [Source(path.relative_to(folder).as_posix(), path.read_text()) for path in paths]


def build(
    folder: Path, changes: list[tuple[Change, Edit]], compiler: str, flags: list[str]
) -> dict[int, Change]:
    """The package in a folder, with an extension that has the changes; those that it has, by number."""
    copy_package(folder)
    chosen = dict(enumerate(changes))
    texts = {source.name: source for source in sources()}
    for name in texts:
        _write(folder, texts[name], chosen)
    (folder / "mutants.h").write_text(HEADER)
    (folder / "mutants.c").write_text(GLOBALS % len(changes))
    (extension,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["ext-modules"]
    include = [f"-I{sysconfig.get_path('include')}", "-include", str(folder / "mutants.h")]
    command = [compiler, "-std=gnu11", "-w", "-fPIC", *flags]
    objects = []
    for number, name in enumerate([*extension["sources"], "mutants.c"]):
        target = folder / f"object{number}.o"
        objects.append(str(target))
        given = [*include, "-c", str(folder / name), "-o", str(target)]
        while (run := subprocess.run([*command, *given], capture_output=True, text=True)).returncode:
            _leave_out(folder, run.stderr, texts, chosen)
    shared = folder / Path(*extension["name"].split(".")).with_suffix(sysconfig.get_config_var("EXT_SUFFIX"))
    subprocess.run([*command, "-shared", *objects, "-o", str(shared)], check=True)
    return {number: change for number, (change, _) in chosen.items()}


def _write(folder: Path, source: Source, chosen: dict[int, tuple[Change, Edit]]) -> None:
    own = {number: edit for number, (change, edit) in chosen.items() if change.file == source.name}
    (folder / SOURCES / source.name).write_text(source.changed(own))


def _leave_out(
    folder: Path, errors: str, texts: dict[str, Source], chosen: dict[int, tuple[Change, Edit]]
) -> None:
    """Take out the changes of the lines that were refused."""
    refused = {(Path(path).resolve(), int(line)) for path, line in re.findall(r"(/\S+?):(\d+):\d+", errors)}
    root = (folder / SOURCES).resolve()
    for lines_around in (0, 4):  # a call of several lines is refused at its first
        gone = [
            number
            for number, (change, _) in chosen.items()
            if any(
                path == root / change.file and abs(line - change.line) <= lines_around
                for path, line in refused
            )
        ]
        if gone:
            break
    else:
        raise RuntimeError(errors)
    files = {chosen.pop(number)[0].file for number in gone}
    for name in files:
        _write(folder, texts[name], chosen)
