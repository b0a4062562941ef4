"""Conversations of the designs from their documents: what happens in a small cluster, line by line.

    python -m tests.designs.drafts.conversations [NAME...]     keep those, or all, as files; read what changed

Strategy: four modules have a function for each, a run of a cluster that gives its lines: every message with
its fields and its time, every line of a log, and then the nodes in ZooKeeper and what the coordinators
know. The folder `tests/data/drafts/conversations` has the lines as they were read beside the documents.
Rules: a run has one subject, which its docstring names by the document's words; times are ms.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.designs.drafts import (
    draft_1_conversations,
    draft_2_conversations,
    draft_3_conversations,
    zookeeper_conversations,
)

__all__ = ["CONVERSATIONS", "FOLDER", "conversation"]

FOLDER = Path(__file__).parent.parent.parent / "data" / "drafts" / "conversations"

CONVERSATIONS: dict[str, Callable[[], Iterator[str]]] = {
    name.replace("_", "-"): function
    for module in (
        draft_1_conversations,
        draft_2_conversations,
        draft_3_conversations,
        zookeeper_conversations,
    )
    for name, function in vars(module).items()
    if name.startswith(("draft_", "zookeeper_"))
}


def conversation(name: str) -> list[str]:
    """The lines of one."""
    return list(CONVERSATIONS[name]())


def main() -> None:
    for name in sys.argv[1:] or CONVERSATIONS:
        (FOLDER / f"{name}.txt").write_text("\n".join(conversation(name)) + "\n")


if __name__ == "__main__":
    main()
