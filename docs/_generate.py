"""What the site has beyond the pages: the Python API, the commands' help, the protocol, and diagrams.

Rules: everything goes to folders that git ignores; a file is written only if it changed, so that a second
build is quick; the one download, of the script that draws diagrams, is checked against its digest; without
a network the diagrams are shown as text.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import os
import subprocess
import sys
import tarfile
import urllib.request
from pathlib import Path
from types import FunctionType

MODULES = (
    "coordwire",
    "coordwire.events",
    "coordwire.errors",
    "coordwire.enums",
    "coordwire.versions",
    "coordwire.jsonform",
    "coordwire.sasl",
    "coordwire.embedded",
    "coordwire.logs",
    "coordwire.records",
    "coordwire.records.compression",
    "coordwire.records.arrow",
    "coordwire.dialects",
    "coordwire.zookeeper",
    "coordwire.capture",
    "coordwire.segments",
    "coordwire.group_events",
    "coordwire.groups",
    "coordwire.coordinator",
    "coordwire.coordinator.transactions",
    "coordwire.broker",
    "coordwire.simulator",
    "coordwire.notebook",
    "coordwire.spark",
    "coordwire.spark.pipeline",
    "coordwire.spark.audits",
    "coordwire.spark.payloads",
)
"""The public modules; messages have pages of their own in the protocol's reference."""

MERMAID = "https://registry.npmjs.org/mermaid/-/mermaid-12.3.0.tgz"
MERMAID_SHA256 = "be0684e8d20bfc874df12c0f04927a5c482f57f2200eec54cca52a4583fd4040"


def everything(docs: Path) -> None:
    _python(docs / "reference" / "python")
    _commands(docs / "reference" / "help.md")
    _protocol(docs / "_build" / "extra" / "protocol")
    _diagrams(docs / "_build" / "static")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def _python(folder: Path) -> None:
    lines = [
        "# Python",
        "",
        "Every public name, from its docstring. Messages, one class each, are in [the protocol's",
    ]
    lines += ["reference](../protocol.md).", "", "| module | about |", "|---|---|"]
    described: dict[int, str] = {}  # by the object: many are public in two modules
    pages = {}
    for name in reversed(MODULES):  # the narrower modules first
        module = importlib.import_module(name)
        elsewhere = []
        for public in getattr(module, "__all__", ()):
            value = getattr(module, public)
            if isinstance(value, type | FunctionType) and described.setdefault(id(value), name) != name:
                elsewhere.append((public, described[id(value)]))
        pages[name] = _page(name, elsewhere)
    for name in MODULES:
        about = (importlib.import_module(name).__doc__ or "").strip().splitlines()[0]
        lines.append(f"| [`{name}`]({name}.md) | {about} |")
        _write(folder / f"{name}.md", pages[name])
    toctree = ["", "```{toctree}", ":hidden:", "", *MODULES, "```", ""]
    _write(folder / "index.md", "\n".join(lines + toctree))


def _page(name: str, elsewhere: list[tuple[str, str]]) -> str:
    lines = [
        f"# {name}",
        "",
        "```{eval-rst}",
        f".. automodule:: {name}",
        "   :members:",
        "   :imported-members:",
    ]
    lines += ["   :undoc-members:", "   :show-inheritance:"]
    lines += ["   :inherited-members: BaseException,Enum,Message,dict,int,list,object,str,tuple"]
    if elsewhere:
        lines.append(f"   :exclude-members: {', '.join(public for public, _ in elsewhere)}")
    lines += ["```", ""]
    if elsewhere:
        lines += ["Also here, and described where they come from: "]
        lines += [", ".join(f"[`{public}`]({module}.md)" for public, module in elsewhere) + ".", ""]
    return "\n".join(lines)


def _commands(path: Path) -> None:
    from coordwire.cli.__main__ import COMMANDS  # what there is

    lines = ["# The commands' own help", ""]
    for words in ([], *([name] for name in COMMANDS)):
        title = " ".join(["coordwire", *words])
        lines += [f"## {title}", "", "```text", _help(words).rstrip(), "```", ""]
    _write(path, "\n".join(lines))


def _help(words: list[str]) -> str:
    command = [sys.executable, "-m", "coordwire", *words, "--help"]
    environment = {**os.environ, "COLUMNS": "88"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def _protocol(folder: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "coordwire", "api", "--html", str(folder)],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def _diagrams(folder: Path) -> None:
    script = folder / "mermaid.min.js"
    if script.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with urllib.request.urlopen(MERMAID, timeout=60) as answer:
            package = answer.read()
    except OSError as error:
        print(f"diagrams are shown as text: {MERMAID}: {error}")
        script.write_text("")
        return
    digest = hashlib.sha256(package).hexdigest()
    if digest != MERMAID_SHA256:
        raise ValueError(f"{MERMAID} has the digest {digest}, not {MERMAID_SHA256}")
    with tarfile.open(fileobj=io.BytesIO(package)) as files:
        found = files.extractfile("package/dist/mermaid.min.js")
        assert found is not None
        script.write_bytes(found.read())
