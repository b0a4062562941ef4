"""The notebooks of the docs give the outputs that they keep. `python -m tests.test_notebooks` keeps new ones.

Strategy: a notebook's cells of code run here one after the other, without a kernel, in the notebook's folder.
What they print and the value of a last expression are compared with what is kept, word by word: how a library
draws its tables may change. Rules: cells with the tag `spark` run where Spark does (tests/spark).
"""

from __future__ import annotations

import ast
import io
import json
import os
import re
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))


def load(path: Path) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return notebook


def is_for_spark(cell: dict[str, Any]) -> bool:
    return "spark" in cell["metadata"].get("tags", ())


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def run_cell(source: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """A cell's outputs, as Jupyter keeps them: what it prints, and the value of a last expression."""
    tree, printed, value = ast.parse(source), io.StringIO(), None
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    with redirect_stdout(printed):
        exec(compile(tree, f"cell {count}", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"cell {count}", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if text := printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": lines(text)})
    if value is not None:
        data = {"text/plain": lines(repr(value))}
        outputs.append(
            {"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"}
        )
    return outputs


def words(outputs: list[dict[str, Any]]) -> list[str]:
    """What is shown, without what tables are drawn with."""
    texts = [output.get("text") or output["data"]["text/plain"] for output in outputs]
    return re.findall(r"[\w.,:/@{}\[\]()'-]+", "".join(map("".join, texts)))


def run(path: Path, *, with_spark: bool = False) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Each cell of code with its new outputs."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = [cell for cell in load(path)["cells"] if cell["cell_type"] == "code"]
    with chdir(path.parent):
        return [
            (cell, run_cell("".join(cell["source"]), names, count))
            for count, cell in enumerate(cells, 1)
            if with_spark or not is_for_spark(cell)
        ]


def assert_kept(path: Path, *, with_spark: bool = False) -> None:
    results = run(path, with_spark=with_spark)
    assert len(results) > 3
    for cell, outputs in results:
        assert words(outputs) == words(cell["outputs"]), "".join(cell["source"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_the_outputs_are_as_kept(path: Path) -> None:
    for package in ("duckdb", "polars", "numpy", "pyarrow"):
        pytest.importorskip(package, reason=f"{package} isn't installed: pip install 'coordwire[test]'")
    assert_kept(path)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_has_what_jupyter_needs(path: Path) -> None:
    notebook = load(path)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert str(ROOT) not in path.read_text("utf-8")
    home = os.path.expanduser("~")
    assert home == os.sep or home + os.sep not in path.read_text("utf-8")


def main() -> None:
    for path in NOTEBOOKS:
        notebook = load(path)
        code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        for count, (cell, (_, outputs)) in enumerate(zip(code, run(path, with_spark=True), strict=True), 1):
            cell["outputs"], cell["execution_count"] = outputs, count
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
