"""The lines that read the vectors in other languages: they fail where nothing is read, or the wrong bytes.

Strategy: three vectors, and the examples as they are or with a decoder put into them. A missing toolchain
skips the test.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.conftest import give_up
from tests.interop.maven import CURRENT, Unavailable, jars

EXAMPLES = Path(__file__).parents[2] / "conformance" / "examples"
VECTORS = {"invalid": "ff", "valid": "00", "acceptable": "01"}
DECODERS = {
    "go": ("return nil, false, nil", ["return body, true, nil", 'return nil, true, os.ErrInvalid']),
    "java": ("return null;", ["return body;", "throw new IllegalStateException();"]),
    "javascript": ("=> undefined", ["=> body", "=> { throw new Error() }"]),
    "python": ("return None", ["return body", "raise ValueError"]),
}  # fmt: skip
"""By language: what stands in the example, and two decoders, one that reads all and one nothing."""

JAVA = pytest.param("java", marks=pytest.mark.maven)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    lines = [
        {"id": f"hostile/{verdict}", "api_key": 1, "direction": "request", "version": 0, "hex": data}
        | {"verdict": verdict}
        for verdict, data in VECTORS.items()
    ]
    (tmp_path / "hostile.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return tmp_path


def started(language: str, folder: Path) -> list[str]:
    """How an example is run. Raises `Unavailable`."""
    if language == "python":
        return [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "--tb=line",
            "-p",
            "no:cacheprovider",
            "test_hostile.py",
        ]
    if language == "go":
        (folder / "go.mod").write_text("module example.com/conformance\n\ngo 1.21\n")
    if language == "java":
        return [_found("java"), "-cp", f"{jars(CURRENT)}/*", "Hostile.java"]
    return [_found("go"), "test"] if language == "go" else [_found("node"), "--test", "hostile.test.mjs"]


def _found(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise Unavailable(f"{program} is not installed")
    return path


@pytest.mark.parametrize("language", ["go", JAVA, "javascript", "python"])
def test_an_example_fails_where_the_decoder_is_wrong(language: str, project: Path) -> None:
    shutil.copytree(EXAMPLES / language, project, dirs_exist_ok=True)
    (example,) = (project / path.name for path in (EXAMPLES / language).iterdir())
    as_it_is = example.read_text()
    old, (reads, refuses) = DECODERS[language]
    said = {}
    try:
        command = started(language, project)
    except Unavailable as error:
        give_up(error)
    for decoder in (old, reads, refuses):
        assert as_it_is.count(old) == 1
        example.write_text(as_it_is.replace(old, decoder))
        run = subprocess.run(
            command, cwd=project, capture_output=True, text=True, check=False, timeout=300,
            env={**os.environ, "CONFORMANCE": str(project)},
        )  # fmt: skip
        assert run.returncode, decoder
        said[decoder] = set(re.findall(r"hostile/(\w+)", run.stdout + run.stderr))
        assert ("put your decoder into" in run.stdout + run.stderr) == (decoder is old)
    assert said == {old: set(), reads: {"invalid"}, refuses: {"valid"}}
