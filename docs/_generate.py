"""What the site has beyond the pages: the Python API, the commands' help, the protocol, tables, and diagrams.

Rules: everything goes to folders that git ignores; a file is written only if it changed, so that a second
build is quick; the one download, of the script that draws diagrams, is checked against its digest; without
a network the diagrams are shown as text. MADE has the pages that a quick build leaves out.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import io
import itertools
import os
import subprocess
import sys
import tarfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FunctionType, ModuleType, UnionType
from typing import Any, Literal, get_args, get_origin

from rich.console import Console
from rich.text import Text

import _protocol
from coordwire import notebook
from coordwire.capture import Capture
from coordwire.versions import ApiKey

MODULES = (
    "coordwire",
    "coordwire.connection.events",
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
    "coordwire.records.kafka_07",
    "coordwire.dialects",
    "coordwire.dialects.zookeeper",
    "coordwire.capture",
    "coordwire.segments",
    "coordwire.timeline.events",
    "coordwire.timeline",
    "coordwire.coordinator",
    "coordwire.coordinator.transactions",
    "coordwire.client",
    "coordwire.broker",
    "coordwire.broker.harness",
    "coordwire.designs.simulator",
    "coordwire.testing.strategies",
    "coordwire.notebook",
    "coordwire.spark",
    "coordwire.spark.session",
    "coordwire.spark.replicas",
    "coordwire.spark.audits",
    "coordwire.spark.functions",
    "coordwire.tables.audits",
    "coordwire.tables.pipeline",
)
"""The public modules; messages have pages of their own in the protocol's reference."""

MERMAID = "https://registry.npmjs.org/mermaid/-/mermaid-12.3.0.tgz"
MERMAID_SHA256 = "be0684e8d20bfc874df12c0f04927a5c482f57f2200eec54cca52a4583fd4040"


MADE = ("reference/python", "reference/help.md", "reference/protocol", "development/seeds.md")
"""The pages that are made from code and data, below docs/."""


def everything(docs: Path) -> None:
    _seeds(docs / "development" / "seeds.md")
    _python(docs / "reference" / "python")
    _commands(docs / "reference" / "help.md")
    for name, text in _protocol.pages():
        _write(docs / "reference" / "protocol" / f"{name}.md", text)
    _home(docs)
    _diagrams(docs / "_build" / "static")


def little(docs: Path) -> None:
    """What the pages need to be shown, without running examples: for one who writes a page."""
    frame = docs / "_build" / "home" / "frame.html"
    if not frame.exists():
        _write(frame, "")
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
    if values := list(_values(name)):
        lines += ["Types and constants that have names:", "", "| name | is | about |", "|---|---|---|"]
        lines += [f"| `{public}` | {shown} | {about} |" for public, shown, about in values]
        lines.append("")
    return "\n".join(lines)


def _values(name: str) -> Iterator[tuple[str, str, str]]:
    """Public names that autodoc leaves out, as their text is in another module or they have none."""
    module = importlib.import_module(name)
    own = _descriptions(module)
    for public in getattr(module, "__all__", ()):
        value = getattr(module, public)
        if not isinstance(value, type | FunctionType) and public not in own:
            found = (made.get(public) for made in map(_descriptions, _homes(public, value)))
            yield public, _shown(value), next((text for text in found if text), "")


def _homes(public: str, value: object) -> Iterator[ModuleType]:
    """The modules in which a name is this value."""
    for name, module in sorted(sys.modules.items()):
        if name.startswith("coordwire.") and vars(module).get(public) is value:
            yield module


def _descriptions(module: ModuleType) -> dict[str, str]:
    """The texts below a module's own constants, by name, as one line each."""
    body = ast.parse(Path(str(module.__file__)).read_text("utf-8")).body if module.__file__ else []
    found = {}
    for before, after in itertools.pairwise(body):
        targets = before.targets if isinstance(before, ast.Assign) else [getattr(before, "target", None)]
        text = after.value if isinstance(after, ast.Expr) else None
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            found |= dict.fromkeys(names, " ".join(text.value.split()))
    return found


def _shown(value: Any) -> str:
    """A constant as it is written, a type by the names of what it allows."""
    if isinstance(value, UnionType):
        return ", ".join(f"`{one.__name__}`" for one in get_args(value))
    if get_origin(value) is Literal:
        return ", ".join(f"`{one!r}`" for one in get_args(value))
    if isinstance(value, dict):
        return ", ".join(f"`{key!r}: {one!r}`" for key, one in value.items())
    return f"`{value!r}`".replace("|", "\\|")


def _seeds(path: Path) -> None:
    sys.path.insert(0, str(STORIES.parent.parent.parent))
    from tests.designs import seeds

    _write(path, seeds.page(*seeds.read()))


def _commands(path: Path) -> None:
    lines = ["# The commands' own help", ""]
    for words in command_words():
        title = " ".join(["coordwire", *words])
        lines += [f"## {title}", "", "```text", _help(words).rstrip(), "```", ""]
    _write(path, "\n".join(lines))


def command_words() -> Iterator[list[str]]:
    """The words of every command that has a help of its own."""
    from coordwire.cli import conformance, segment  # what there is
    from coordwire.cli.__main__ import COMMANDS

    verbs = {"segment": segment.VERBS, "conformance": conformance.VERBS}
    yield []
    for name in COMMANDS:
        yield [name]
        yield from ([name, verb] for verb in verbs.get(name, ()))


def _help(words: list[str]) -> str:
    return _run(*words, "--help-all" if words == ["decode"] else "--help", COLUMNS="80")


def _run(*words: str, **variables: str) -> str:
    """What a command of this package prints."""
    command = [sys.executable, "-m", "coordwire", *words]
    environment = {**os.environ, **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


STORIES = Path(__file__).parent.parent / "tests" / "data" / "stories"
TERMINAL = ["timeline"]


def _story() -> str:
    """What README's first block prints, as a picture."""
    printed = _run(*TERMINAL, str(STORIES / "classic-causes.pcap.xz"), FORCE_COLOR="1", COLUMNS="80")
    console = Console(record=True, width=80, file=io.StringIO())
    console.print(Text.from_ansi(printed.replace(f"{STORIES}/", "")))
    return console.export_svg(title="coordwire timeline", unique_id="story")


def _home(docs: Path) -> None:
    """What the first page shows: a story in a terminal, a report, and a frame in a notebook."""
    build = docs / "_build"
    _write(docs / "static" / "story.svg", _story())
    with (STORIES.parent / "captures" / "confluent__rdmock__group-range.pcap").open("rb") as stream:
        entries = Capture(stream, "group-range").entries()
        join = next(entry for entry in entries if getattr(entry, "api_key", None) == ApiKey.JOIN_GROUP)
        _write(build / "home" / "frame.html", notebook.html(join) + "\n")
    report = build / "static" / "report.html"
    if not report.exists():
        with TemporaryDirectory() as folder:
            files = [str(STORIES / f"{name}.pcap.xz") for name in ("classic-freezes", "consumer-causes")]
            _run("pipeline", *files, "--out", f"{folder}/tables", "--engine", "local")
            _write(report, Path(folder, "tables", "report.html").read_text("utf-8"))


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
