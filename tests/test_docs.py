"""Every Python and console example of README and docs runs, every link between them leads to a file, and
README's two opening blocks are those that CI runs."""

from __future__ import annotations

import argparse
import html
import os
import re
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

import coordwire
from coordwire.capture import client_search, connections, conversation, pending_requests
from coordwire.capture.formats import compressed, pcap, pcapng
from coordwire.capture.tcp import reassembly
from coordwire.cli import encode, message_lines
from coordwire.cli.__main__ import whole_parser
from coordwire.limits import DEFAULT
from coordwire.records import arrow
from coordwire.tables.options import Options
from coordwire.tables.readers.sources import SOURCES
from coordwire.timeline.from_wire import group_table
from coordwire.timeline.members import MOST_MEMBERS
from coordwire.timeline.story import collected
from coordwire.timeline.story.wording import CAUSES

ROOT = Path(__file__).parent.parent
PACKAGE = Path(coordwire.__file__).parent
GENERATED = [
    ROOT / "docs" / "development" / "seeds.md",
    *(ROOT / "docs" / "reference" / name for name in ("python", "protocol", "help.md")),
]
"""What is made with the site: docs/_generate.py."""
PAGES = [
    page
    for page in [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "SECURITY.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    ]
    if not any(page.is_relative_to(made) for made in GENERATED)
]
GUIDES = [page for page in PAGES if page.parent.name in ("tutorials", "how-to")]
FENCES = re.compile(r"^```(python|console)(?: (?!test_)\w+\.py)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)"
"""A command of a `console` block, perhaps of several lines, and what it prints."""
EXAMPLES = {page: FENCES.findall(page.read_text()) for page in PAGES}
"""The kind and the text of each example, by page. tests/broker/test_testing_docs.py runs files of tests."""
SPARK = re.findall(
    r"^```py\n(.*?)^```$", (ROOT / "docs" / "tutorials" / "tables.md").read_text(), re.MULTILINE | re.DOTALL
)
SHELL = re.findall(r"^```sh\n(.*?)^```$", PAGES[0].read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", [page for page in PAGES if EXAMPLES[page]], ids=lambda page: page.name)
def test_examples(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page's examples, one after the other, in a folder of their own in which `conformance` and `tests`
    are the project's."""
    for name in ("conformance", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for number, (kind, text) in enumerate(EXAMPLES[page], 1):
        if re.search(r"^(?:async )?def test_\w+\(kafka", text, re.MULTILINE):
            assert_passes(tmp_path / f"test_{number}.py", text)
        elif kind == "python":
            exec(compile(text, f"{page.name}, example {number}", "exec"), names)
        else:
            for command, output in re.findall(COMMAND, text, re.MULTILINE):
                assert_prints(command, output)


@pytest.mark.spark
def test_the_example_in_spark() -> None:
    (text,) = SPARK
    result = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True)
    assert "JoinGroup|   16|" in result.stdout, result.stdout + result.stderr


@pytest.mark.long
def test_the_opening_examples_are_typed(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    pytest.importorskip("pyspark")
    pytest.importorskip("aiokafka")
    texts = [text for kind, text in EXAMPLES[PAGES[0]] if kind == "python"] + SPARK
    for number, text in enumerate(texts):
        (tmp_path / f"example_{number}.py").write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", *sorted(map(str, tmp_path.iterdir()))]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_the_picture_is_what_the_first_block_prints() -> None:
    """Word by word: `docs/_generate.py` draws it, whatever the size of its letters."""
    picture = (ROOT / "docs" / "static" / "story.svg").read_text("utf-8")
    drawn = html.unescape("".join(re.findall(r"<text [^>]*clip-path[^>]*>([^<]*)</text>", picture)))
    command = SHELL[0].splitlines()[-1].split()[1:]
    printed = subprocess.run(
        [sys.executable, "-m", "coordwire", *command], cwd=ROOT, env={**os.environ, "COLUMNS": "80"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    names = f"{Path(command[-1]).parent}/"
    assert re.sub(r"\s", "", drawn) == re.sub(r"\s", "", printed.stdout.replace(names, ""))


def assert_passes(path: Path, text: str) -> None:
    """pytest runs it, with the fixtures that come with the package."""
    path.write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", path.name]
    result = subprocess.run(
        command, cwd=path.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert result.returncode == 0, result.stdout


def pattern(line: str) -> str:
    """What a line of an example stands for."""
    return re.escape(line[:-2]) + ".*\n" if line.endswith("…\n") else re.escape(line)


def assert_prints(command: str, output: str) -> None:
    """It prints this, but for what a line of … stands for, or a … at the end of a line."""
    surroundings = {
        **os.environ,
        "COLUMNS": "80",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "LC_ALL": "C.UTF-8",
    }
    result = subprocess.run(
        ["sh", "-c", command], env=surroundings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    printed = result.stdout.decode().rstrip() + "\n"
    parts = [
        "".join(map(pattern, part.splitlines(keepends=True)))
        for part in re.split(r"^ *…\n", output.rstrip() + "\n", flags=re.MULTILINE)
    ]
    assert re.fullmatch("(?:.*\n)*?".join(parts), printed), f"$ {command}\n{printed}"


DIAGRAMS = re.compile(r"^```mermaid\n(\w+)(?:-v2)?(?: TB| LR)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ARROWS = {
    "stateDiagram": re.compile(r" +(?:\w+|\[\*\]) --> (?:\w+|\[\*\])(?:: [^:;\n]+(?:: [^:;\n]+)?)?"),
    "flowchart": re.compile(
        r"  [\w.]+(?:\[[^];]+\])? (?:-->|---|--? [\w .-]+ --?>|-\. \w+ \.->) [\w.]+(?:[\[{][^;]+[\]}])?"
    ),
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_diagrams_are_what_mermaid_reads(page: Path) -> None:
    """A line an arrow: `;` would end a statement."""
    text = page.read_text()
    result = DIAGRAMS.findall(text)
    assert len(result) == text.count("```mermaid")
    for kind, lines in result:
        assert [line for line in lines.splitlines() if not ARROWS[kind].fullmatch(line)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_console_blocks_fit_80_columns(page: Path) -> None:
    texts = [text for kind, text in EXAMPLES[page] if kind == "console"]
    assert [line for text in texts for line in text.splitlines() if len(line) > 80] == []


def test_the_pages_have_examples() -> None:
    kinds = [kind for examples in EXAMPLES.values() for kind, _ in examples]
    assert kinds.count("python") >= 15
    assert kinds.count("console") >= 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        path = (page.parent / target).resolve()
        assert path.is_file() or any(path.is_relative_to(made) for made in GENERATED), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_tests_and_targets_exist(page: Path) -> None:
    for path, name in re.findall(r"`((?:tests|fuzz|\.ci)/[\w/]+\.py)(?:::(\w+))?`", page.read_text()):
        source = (ROOT / path).read_text()
        assert not name or f"def {name}(" in source, f"{path} has no {name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_extras_exist(page: Path) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = re.findall(r"(?:coordwire|['\" ]\.)\[([\w,-]+)\]", page.read_text())
    assert {extra for one in named for extra in one.split(",")} <= set(extras)


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_a_guide_says_what_to_install(page: Path) -> None:
    assert "pip install" in page.read_text() or "`CONTRIBUTING.md`" in page.read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_commands_exist(page: Path) -> None:
    """Each `python -m` of this project has its module."""
    named = r"python3? -m ((?:tests|schemas|fuzz|coordwire)(?:\.[a-z_0-9]+)*)(?![.\w])"
    for module in re.findall(named, page.read_text()):
        path = (PACKAGE.parent if module.startswith("coordwire") else ROOT) / module.replace(".", "/")
        assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file(), module


def test_the_opening_blocks_start_from_nothing() -> None:
    first, second = SHELL[:2]
    for block in (first, second):
        assert block.startswith("python3 -m venv .venv\n")
    assert "coordwire timeline" in first
    assert "pytest" in second


def test_the_layers_are_those_that_are_checked() -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
    (sentence,) = re.findall(r"^Imports run downwards only .*?: (.*?)\. ", page, re.MULTILINE)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = [one["layers"] for one in settings["contracts"] if one["type"] == "layers"]
    assert sentence.replace("`", "").split(" > ") == [layer.replace("coordwire.", "") for layer in layers]


def test_the_floors_have_every_module_and_package() -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
    cells = re.findall(r"^\| (`[^|]*) \|", page, re.MULTILINE)
    named = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    stems = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert stems - {"__init__", "__main__", "__pycache__"} <= named


def test_every_marker_is_explained_to_contributors() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    markers = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["markers"]
    assert {line.partition(":")[0] for line in markers} == set(re.findall(r"-m (\w+)`", page)) - {"schemas"}


def size(number: int) -> str:
    """A number of bytes as the page of limits has it."""
    return f"{number >> 20} MB" if number >= 1 << 20 else f"{number >> 10} KB"


def test_the_limits_are_those_of_the_code() -> None:
    page = (ROOT / "docs" / "reference" / "limits.md").read_text()
    rows = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|", page, re.MULTILINE))
    most = DEFAULT.decompressed
    stated = {
        "elements in one decode": f"{DEFAULT.elements:,}",
        "decoded memory of one frame": f"{size(DEFAULT.memory)} + {DEFAULT.memory_factor} × the "
        "frame's bytes",
        "a frame": size(DEFAULT.frame),
        "decompressed from one batch": size(most),
        "the content of a compressed capture or segment": f"{size(most)} + {compressed.MOST_RATIO} × its "
        "compressed bytes",
        "a dictionary or window of xz or zstd": size(compressed.MOST_MEMORY),
        "keys and values in a table of `coordwire.records.arrow.iter_batches`": (
            f"`max_bytes`: 4 MB; at most {size(arrow.LARGEST)}"
        ),
        "requests that wait for their answers, decoded": size(pending_requests.BUDGET),
        "requests that wait, of one connection": f"{conversation.LATEST:,}",
        "bytes of a connection that may be Kafka's": size(client_search.WINDOW),
        "of all such connections": size(client_search.UNDECIDED),
        "frames that are not whole yet": f"{size(connections.OPEN_FRAMES)}, or one frame's budget",
        "answers whose request may come late": f"{size(connections.EARLY_BYTES)}, {connections.EARLY_FRAMES} "
        f"answers and {connections.EARLY_NS // 10**9} s a connection; {size(connections.EARLY)} in all",
        "TCP segments after a hole": f"{size(reassembly.WINDOW)} and {reassembly.SEGMENTS:,} segments a "
        f"flow, {size(reassembly.HELD)} in all",
        "connections in TCP reassembly": f"{reassembly.FLOWS:,}",
        "a packet of pcap": f"the snap length of the file's header, from {size(pcap.USUAL)} to "
        f"{size(pcap.GREATEST)}",
        "a block of pcapng": size(pcapng.GREATEST),
        "groups of a timeline, and of its story; members of a group": f"{group_table.MOST_GROUPS:,} each",
        "`timeline --format story`": f"{collected.MOST_EVENTS:,} events",
    }
    assert group_table.MOST_GROUPS == MOST_MEMBERS
    assert {row: rows.get(row) for row in stated} == stated
    assert f"at most {message_lines.MOST_LINES:,} lines a message" in page
    assert f"lines over {size(encode.LONGEST_LINE)}" in page


def test_every_cause_is_explained() -> None:
    page = (ROOT / "docs" / "how-to" / "cause-of-a-rebalance.md").read_text()
    explained = set(re.findall(r"^\| `([^`]*[a-z][^`]*)` \|", page, re.MULTILINE))
    said = {text.removeprefix("{} ").replace("{}", "…") for text in CAUSES.values()}
    assert explained == said


def test_the_page_of_columns_is_what_the_code_says() -> None:
    names = runpy.run_path(str(ROOT / "docs" / "_columns.py"))
    assert names["PAGE"].read_text() == names["page"](), "python docs/_columns.py writes it"


def test_the_site_has_the_help_of_every_command_and_verb() -> None:
    def leaves(parser: argparse.ArgumentParser, words: list[str]) -> Iterator[list[str]]:
        yield words
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for name, inner in action.choices.items():
                    yield from leaves(inner, [*words, name])

    names = runpy.run_path(str(ROOT / "docs" / "_generate.py"))
    assert list(names["command_words"]()) == list(leaves(whole_parser(), []))


def test_the_site_has_every_public_constant() -> None:
    """What autodoc leaves out, since another module has its text or none has."""
    names = runpy.run_path(str(ROOT / "docs" / "_generate.py"))
    result = {name: text for name, _, text in names["_values"]("coordwire.logs")}
    assert result == {"TOPICS": "The topic that holds each log.", "Log": ""}
    shown = {name: shown for name, shown, _ in names["_values"]("coordwire.dialects.zookeeper")}
    assert shown["TopicCount"] == "`StaticTopics`, `WildcardTopics`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_schemas_name_columns_of_their_source(page: Path) -> None:
    """In examples that need more than a test has: files of a store, a cluster."""
    schemas = re.findall(r'format\("(kafka-[\w-]+)"\)\s*\.schema\(([^)]*)\)', page.read_text())
    for source, schema in schemas:
        named = re.findall(r"([a-z_]+) [a-z]", schema)
        assert named
        assert set(named) <= {column.name for column in SOURCES[source].columns}


def test_the_page_of_columns_has_every_option() -> None:
    page = (ROOT / "docs" / "reference" / "columns.md").read_text()
    rows = re.findall(r"^(\w+(?:, \w+)*)  ", page.split("## Options")[1], re.MULTILINE)
    named = [name for row in rows for name in row.split(", ")]
    known = {field.name.replace("_", "") for field in fields(Options)} - {"paths"}
    assert sorted(map(str.lower, named)) == sorted(known)
