"""Where a document's design breaks its own claim: the shortest histories that show it, kept as data.

Each file has the claim, what breaks it, the steps, and who owns the partitions at the end ("-": nobody, "+":
two consumers). A test that fails here means that a machine no longer does what its document says.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.designs.drafts.worlds import World

HISTORIES = sorted((Path(__file__).parent.parent.parent / "data" / "drafts").glob("*.json"))
DOCS = Path(__file__).parent.parent.parent.parent / "docs" / "history" / "drafts.md"


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
def test_the_claim_breaks(path: Path) -> None:
    history = json.loads(path.read_text())
    world = World(history["draft"], broker=history.get("broker"))
    for word, *arguments in history["steps"]:
        if word == "topic":
            name = arguments[1] if len(arguments) > 1 else "t"
            world.topic(name, {number: [1] for number in range(arguments[0])})
        elif word == "join":
            world.join(arguments[0], **(arguments[1] if len(arguments) > 1 else {}))
        else:
            getattr(world, word)(*arguments)
    assert world.owned() == history["owned"]


def test_the_docs_name_every_one() -> None:
    text = DOCS.read_text()
    assert len(HISTORIES) == 15
    assert [path.stem for path in HISTORIES if path.stem not in text] == []
