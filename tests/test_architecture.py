"""How the sources are put together: one name for one thing, no C files that call each other in a circle, and
docstrings that name files which exist. (`lint-imports` does the same for circles of imports.)"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "coordwire"
C_SOURCES = sorted((PACKAGE / "_speedups").rglob("*.c"))
HAND_WRITTEN = sorted(
    path for path in PACKAGE.rglob("*.py") if PACKAGE / "messages" not in path.parents
)  # coordwire/messages/ is generated
needs_c_sources = pytest.mark.skipif(not C_SOURCES, reason="the C sources aren't in this tree")


def doubled(named: Iterable[tuple[str, Path]]) -> dict[str, list[str]]:
    """The names that several files have."""
    places: dict[str, list[str]] = defaultdict(list)
    for name, path in named:
        places[name].append(str(path.relative_to(ROOT)))
    return {name: place for name, place in places.items() if len(place) > 1}


def test_no_two_c_sources_have_one_name() -> None:
    """A linker's and a debugger's lists have their names alone; a module is named with its package."""
    assert doubled((path.name, path) for path in C_SOURCES) == {}


NODE_KIND = ("Broker", ROOT / "coordwire" / "dialects" / "zookeeper" / "nodes.py")
"""A kind of node in ZooKeeper's tree, with Kafka's own name for it."""


def test_no_two_public_classes_have_one_name() -> None:
    """Nor has another type, by an assignment, the name of a class."""
    classes: list[tuple[str, Path]] = []
    aliases: set[str] = set()
    for path in HAND_WRITTEN:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes.append((node.name, path))
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                aliases.add(node.targets[0].id)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                aliases.add(node.target.id)
    assert len(classes) > 150
    assert len(aliases) > 150
    assert doubled(one for one in classes if one != NODE_KIND) == {}
    assert aliases.isdisjoint(name for name, _ in classes)


# --- C files ---


def calls(objects: Path) -> dict[str, dict[str, list[str]]]:
    """For each object file the others whose symbols it uses, and which."""
    defined: dict[str, str] = {}
    used: dict[str, list[str]] = {}
    for path in sorted(objects.glob("*.o")):
        result = subprocess.run(["nm", "-P", str(path)], capture_output=True, text=True, check=True)
        symbols = [line.split()[:2] for line in result.stdout.splitlines()]
        used[path.stem] = [name for name, kind in symbols if kind == "U"]
        defined |= {name: path.stem for name, kind in symbols if kind.isupper() and kind != "U"}
    graph: dict[str, dict[str, list[str]]] = {name: {} for name in used}
    for user, names in used.items():
        for name in names:
            if defined.get(name, user) != user:
                graph[user].setdefault(defined[name], []).append(name)
    return graph


def circles(graph: dict[str, dict[str, list[str]]]) -> list[str]:
    """What is left when files that call nothing else that is left are taken away, again and again."""
    remaining = {user: dict(used) for user, used in graph.items()}
    while result := {user for user, used in remaining.items() if not used.keys() & remaining.keys()}:
        remaining = {user: used for user, used in remaining.items() if user not in result}
    return [
        f"{user} -> {other}: {', '.join(names)}"
        for user, used in remaining.items()
        for other, names in used.items()
        if other in remaining
    ]


def test_circles_are_found() -> None:
    graph = {"a": {"b": ["f"]}, "b": {"c": ["g"]}, "c": {"b": ["h"]}, "d": {"a": ["i"]}, "e": {}}
    assert {"b -> c: g", "c -> b: h"} <= set(circles(graph))
    assert circles({"a": {"b": ["f"], "c": ["g"]}, "b": {"c": ["g"]}, "c": {}}) == []


@needs_c_sources
def test_no_c_files_call_each_other_in_a_circle(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None or shutil.which("nm") is None:
        pytest.skip("no C compiler, or no nm")
    if sys.implementation.name != "cpython":
        pytest.skip("the C sources are for CPython")
    headers = sysconfig.get_path("include")
    if not (Path(headers) / "Python.h").exists():
        pytest.skip("no headers of this Python")

    def compiled(source: Path) -> None:
        output = tmp_path / f"{source.stem}.o"
        command = [compiler, "-std=c11", "-O0", "-g0", f"-I{headers}", "-c", str(source), "-o", str(output)]
        subprocess.run(command, check=True)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(compiled, C_SOURCES))
    graph = calls(tmp_path)
    assert "decode" in graph["dispatch"]
    assert circles(graph) == []


@needs_c_sources
def test_every_c_source_is_built() -> None:
    """A file that pyproject.toml doesn't name is in no extension and in no source distribution."""
    project = (ROOT / "pyproject.toml").read_text()
    for path in [*C_SOURCES, *(PACKAGE / "_speedups").rglob("*.h")]:
        assert f'"{path.relative_to(ROOT)}"' in project


# --- files that texts name ---

_FILE = re.compile(r"(?<![\w./*{-])((?:[\w-]+/)*\w+\.(?:py|c|h))\b(?!\.\w)")


def named_files(text: str) -> set[str]:
    return set(_FILE.findall(text))


@cache
def docstrings() -> list[tuple[Path, str]]:
    return [(path, ast.get_docstring(ast.parse(path.read_text())) or "") for path in HAND_WRITTEN]


def endings(files: Iterable[Path]) -> set[str]:
    """The files' names, with each number of the folders before them."""
    return {
        "/".join(path.parts[start:])
        for path in (path.relative_to(ROOT) for path in files)
        for start in range(len(path.parts))
    }


def missing(names: Iterable[str], known: Collection[str]) -> list[str]:
    """The names, perhaps with folders before them, that none of the files has. known: their `endings`."""
    return sorted(name for name in names if name not in known)


def sources(folder: Path) -> list[Path]:
    return [path for suffix in ("py", "c", "h") for path in folder.rglob(f"*.{suffix}")]


def test_modules_name_files_that_exist() -> None:
    everywhere = endings(
        path for name in ("coordwire", "schemas", "tests", "fuzz") for path in sources(ROOT / name)
    )
    wrong = {
        str(path.relative_to(ROOT)): result
        for path, text in docstrings()
        if (result := missing(named_files(text), everywhere))
    }
    assert wrong == {}


def test_packages_name_their_own_files() -> None:
    """A package's docstring that lists files lists those of the package, and no module is left out."""
    wrong = {}
    listing = 0
    for path, text in docstrings():
        names = named_files(text)
        if path.name != "__init__.py" or len(names) < 2:
            continue
        listing += 1
        own = sources(path.parent)
        modules = {each.name for each in path.parent.glob("*.py")} | {
            each.name for each in own if each.suffix == ".c"
        }
        unnamed = modules - {name.rpartition("/")[2] for name in names} - {"__init__.py", "__main__.py"}
        if results := [*missing(names, endings(own)), *(f"lacks {name}" for name in sorted(unnamed))]:
            wrong[str(path.relative_to(ROOT))] = results
    assert listing > 10
    assert wrong == {}


def test_the_architecture_page_names_files_that_exist() -> None:
    text = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
    names = {name for name in named_files(text) if "NAME" not in name}
    assert len(names) > 5
    everywhere = endings(
        path for name in ("coordwire", "schemas", "tests", "fuzz") for path in sources(ROOT / name)
    )
    assert missing(names, everywhere) == []


def imports(importer: str, imported: str) -> bool:
    """Whether a package or module of the package imports another."""
    path = PACKAGE / importer
    name = imported.removesuffix(".py")
    texts = [each.read_text() for each in (path.rglob("*.py") if path.is_dir() else [path])]
    return any(re.search(rf"^ *(?:from|import) coordwire\.{name}\b", text, re.MULTILINE) for text in texts)


def test_the_architecture_pages_diagram_follows_the_imports() -> None:
    """Of two boxes with an arrow one imports the other."""
    text = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
    flow = text.split("```mermaid")[1].split("```")[0]
    arrows = re.findall(r"^ *([\w.]+)(?:\[[^]]*\])? --(?: [\w ]+ --)?> ([\w.]+)$", flow, re.MULTILINE)
    assert len(arrows) == flow.count("-->")
    content = [(one, other) for one, other in arrows if one not in ("pcap", "sockets", "files")]
    assert len(content) > 9
    assert [arrow for arrow in content if not (imports(*arrow) or imports(*reversed(arrow)))] == []


def rooms(layer: str) -> set[str]:
    """The packages and modules of a layer in the contract of imports."""
    return {name.strip().removeprefix("coordwire.") for name in re.split(r"[:|]", layer)}


def test_every_room_has_a_layer_and_the_package_imports_its_core_alone() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = [one["layers"] for one in settings["contracts"] if one["type"] == "layers"]
    there = {
        path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert set().union(*map(rooms, layers)) == there - {"__init__"}
    (lowest_tool,) = [number for number, layer in enumerate(layers) if "capture" in rooms(layer)]
    core = set().union(*map(rooms, layers[lowest_tool + 1 :]))
    text = (PACKAGE / "__init__.py").read_text()
    imported = re.findall(r"^ *from coordwire\.(\w+)", text, re.MULTILINE)
    assert set(imported) <= core


_DOTTED = re.compile(r"(?<![\w./\"])coordwire(?:\.\w+)+")


def is_there(name: str) -> bool:
    """Whether a dotted name leads to a module, or to a word of a module's source."""
    folder = PACKAGE
    for step, following in zip(name.split(".")[1:], [*name.split(".")[2:], ""], strict=True):
        if (folder / step).is_dir():
            folder /= step
            continue
        module = folder / f"{step}.py"
        if not module.exists():
            module, following = folder / "__init__.py", step
        return re.search(rf"\b{following}\b", module.read_text()) is not None
    return True


def test_dotted_names_lead_somewhere() -> None:
    assert is_there("coordwire.records.strict.StrictReader")
    assert is_there("coordwire.find_message")
    assert not is_there("coordwire.records.judge")
    assert not is_there("coordwire.records.strict.Judge")
    pages = [
        page for page in ROOT.glob("docs/**/*.md") if "python" not in page.parts and page.name != "help.md"
    ]
    texts = [*docstrings(), *((path, path.read_text()) for path in [*pages, ROOT / "README.md"])]
    wrong = {
        str(path.relative_to(ROOT)): results
        for path, text in texts
        if (results := [name for name in _DOTTED.findall(text) if not is_there(name)])
    }
    assert wrong == {}
