"""The archive: files of vectors with a manifest, made anew by Kafka's classes or taken from what is kept.

Strategy: `FAMILIES` has, for each file, what makes its vectors; `data` keeps each file compressed, with the
manifest, and `pages` are copied as they are. Rules: checksums are those of the uncompressed files; nothing in
the archive says when or where it was made, so that two builds are equal; a folder that is not empty is not
written to.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import tarfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from conformance import batches, histories, hostile, logs, messages
from conformance.flaws import FLAWS
from conformance.hostile import ALLOWANCE
from conformance.judge import judged
from tests.interop.maven import CURRENT

HERE = Path(__file__).parent
DATA = HERE / "data"
NAME = "coordwire-conformance"
VERSION = "1.2"
"""Of the archive. The first number changes when an id or a field changes its meaning or goes; the second when
vectors or fields are added, or a newer release judges."""

Vector = dict[str, Any]
Files = dict[str, bytes]

FAMILIES: dict[str, Callable[[list[Vector]], Iterator[Vector]]] = {
    "hostile": lambda before: judged(hostile.inputs(before)),
    "hostile-large": lambda before: judged(hostile.large()),
    "messages": lambda before: messages.judged(messages.inputs()),
    "histories": lambda before: histories.judged(histories.kept(before)),
    "batches": batches.written,
    "hostile-batches": batches.hostile,
}
"""By file, without its ending: what makes its vectors from those that are kept."""


def lines(vectors: Iterable[Vector]) -> bytes:
    """A file of vectors."""
    return b"".join(
        json.dumps(one, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" for one in vectors
    )


def kept(family: str) -> bytes:
    """A kept file; empty if there is none yet."""
    path = DATA / f"{family}.jsonl.xz"
    return lzma.decompress(path.read_bytes()) if path.exists() else b""


def built() -> Files:
    """The vectors' files, as Kafka's classes judge today. Raises `Unavailable` without them."""
    made = {f"{family}.jsonl": lines(make(_vectors(family))) for family, make in FAMILIES.items()}
    return made | recorded()


def _vectors(family: str) -> list[Vector]:
    return [json.loads(line) for line in kept(family).splitlines()]


def with_histories(kind: str, path: Path) -> Files:
    """The kept files, but the histories of this kind are those of a file of steps, judged today."""
    before = [one for one in _vectors("histories") if not one["id"].startswith(f"histories/{kind}/")]
    fresh = list(histories.judged(histories.recorded(kind, path)))
    return unpacked() | {"histories.jsonl": lines(sorted(before + fresh, key=_kind))}


def _kind(vector: Vector) -> int:
    return histories.KINDS.index(vector["id"].split("/")[1])


def recorded() -> Files:
    """The files of vectors that are kept elsewhere."""
    return {
        "log-records.jsonl": lines(logs.records()),
        "segments.jsonl": lines(logs.segments()),
    }


def unpacked() -> Files:
    """The vectors' files that are kept."""
    return {f"{family}.jsonl": kept(family) for family in FAMILIES} | recorded()


def manifest(files: Files) -> dict[str, Any]:
    """What an archive with these files of vectors says of itself."""
    return {
        "name": NAME,
        "version": VERSION,
        "release": CURRENT,
        "licence": "Apache-2.0",
        "allocation_rule": {"fixed": ALLOWANCE[0], "for_each_byte": ALLOWANCE[1]},
        "files": {name: _facts(data) for name, data in files.items()},
    }


def _facts(data: bytes) -> dict[str, Any]:
    vectors = [json.loads(line) for line in data.splitlines()]
    return {
        "sha256": hashlib.sha256(data).hexdigest(),
        "bytes": len(data),
        "vectors": len(vectors),
        "judged_by": dict(sorted(Counter(one["release"] for one in vectors).items())),
        "verdicts": dict(sorted(Counter(one["verdict"] for one in vectors if "verdict" in one).items())),
    }


def pages() -> Files:
    """What goes with the vectors: README, licence, schemas, examples, the kinds of flaws."""
    flaws = {kind: flaw._asdict() for kind, flaw in FLAWS.items()}
    found = {
        str(path.relative_to(HERE)): path.read_bytes()
        for folder in ("adaptors", "examples", "schemas")
        for path in sorted((HERE / folder).rglob("*"))
        if path.is_file()
    }
    return found | {
        "README.md": (HERE / "README.md").read_bytes(),
        "LICENSE": (HERE.parent / "LICENSE").read_bytes(),
        "flaws.json": json.dumps(flaws, indent=1).encode() + b"\n",
    }


def write(files: Files, folder: Path) -> Path:
    """The archive in a folder and as one file beside it, whose path is returned. Raises `OSError`, also where
    the folder is not empty or the file is there already."""
    folder = folder.resolve()
    packed = folder.with_name(f"{NAME}-{VERSION}.tar.xz")
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty")
    everything = files | pages() | {"manifest.json": _text(manifest(files))}
    with packed.open("xb") as file:
        file.write(lzma.compress(_tar(everything)))
    for name, data in everything.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return packed


def _text(value: object) -> bytes:
    return json.dumps(value, indent=1).encode() + b"\n"


def _tar(files: Files) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(files):
            member = tarfile.TarInfo(f"{NAME}-{VERSION}/{name}")
            member.size = len(files[name])
            tar.addfile(member, io.BytesIO(files[name]))
    return out.getvalue()


def keep(files: Files) -> None:
    """Put the vectors where they are kept, with their manifest."""
    DATA.mkdir(exist_ok=True)
    for family in FAMILIES:
        name, data = f"{family}.jsonl", files[f"{family}.jsonl"]
        (DATA / f"{name}.xz").write_bytes(lzma.compress(data, preset=9))
    (DATA / "manifest.json").write_bytes(_text(manifest(files)))
