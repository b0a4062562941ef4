"""The designs of the documents, by whole conversations that were read beside the documents.

A line that differs is a step that is done otherwise, at another time, by another process, or with another
value: `python -m tests.designs.drafts.conversations` keeps the lines that are right.
"""

from __future__ import annotations

import pytest

from tests.designs.drafts.conversations import CONVERSATIONS, FOLDER, conversation


def names(prefix: str) -> list[str]:
    return [name for name in CONVERSATIONS if name.startswith(prefix)]


def same(name: str) -> None:
    assert conversation(name) == (FOLDER / f"{name}.txt").read_text().splitlines()


@pytest.mark.parametrize("name", names("draft-1-"))
def test_the_first_draft(name: str) -> None:
    same(name)


@pytest.mark.parametrize("name", names("draft-2-"))
def test_the_detailed_design(name: str) -> None:
    same(name)


@pytest.mark.parametrize("name", names("draft-3-"))
def test_the_new_consumer(name: str) -> None:
    same(name)


@pytest.mark.parametrize("name", names("zookeeper-"))
def test_the_consumer_of_zookeeper(name: str) -> None:
    same(name)


def test_every_conversation_is_kept() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.txt")) == sorted(CONVERSATIONS)
    assert all((FOLDER / f"{name}.txt").read_text().count("\n") > 5 for name in CONVERSATIONS)
