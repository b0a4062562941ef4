"""`python -m schemas` writes `coordwire/messages/`; `--check` compares instead and fails on any difference;
`--unreleased` puts in the versions that are declared, and are in no release of Kafka.

Rules: needs `construct` only; writes only what changed; a file in the folder without a schema is removed (and
reported by `--check`).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

try:
    from schemas._generate.emit import module_text
    from schemas._generate.indexes import (
        error_conditions_text,
        index_text,
        keys_text,
        record_types_text,
        secret_paths_text,
    )
    from schemas._generate.walk import modules
    from schemas.vocabulary import UNRELEASED
except ModuleNotFoundError as error:
    if error.name != "construct":
        raise
    print("python -m schemas needs construct: pip install -e '.[test]'", file=sys.stderr)
    sys.exit(2)

TARGET = Path(__file__).resolve().parent.parent / "coordwire" / "messages"


def texts() -> dict[str, str]:
    """All generated files by name."""
    rows = modules()
    files = {f"{module.name}.py": module_text(module) for module in rows}
    files["__init__.py"] = index_text(rows)
    files["error_conditions.py"] = error_conditions_text(rows)
    files["keys.py"] = keys_text(rows)
    files["record_types.py"] = record_types_text(rows)
    files["secret_paths.py"] = secret_paths_text(rows)
    return files


def differences(files: dict[str, str], folder: Path) -> dict[str, str]:
    """The differences of a folder: file name -> "missing", "stale" or "extra"."""
    changes = {}
    for name, text in files.items():
        path = folder / name
        if not path.exists():
            changes[name] = "missing"
        elif path.read_bytes() != text.encode():
            changes[name] = "stale"
    for path in folder.glob("*") if folder.exists() else ():
        if path.name not in files and path.name != "__pycache__":
            changes[path.name] = "extra"
    return changes


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m schemas", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if anything differs")
    parser.add_argument(
        "--unreleased", action="store_true", help="with versions that no release of Kafka has"
    )
    options = parser.parse_args(arguments)
    UNRELEASED.are_included = options.unreleased
    files = texts()
    changes = differences(files, TARGET)
    if options.check:
        for name, state in sorted(changes.items()):
            print(f"coordwire/messages/{name}: {state}; run python -m schemas", file=sys.stderr)
        return 1 if changes else 0
    TARGET.mkdir(parents=True, exist_ok=True)
    for name, state in changes.items():
        if state == "extra":
            (TARGET / name).unlink()
        else:
            (TARGET / name).write_bytes(files[name].encode())
    print(f"{len(files)} files, {len(changes)} changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
