"""However a connection with secrets was damaged, and whichever side of it was captured, no output shows four
bytes of a secret in a row unless it is asked for: neither JSON, tree, line, hex and columns nor tables,
timelines, notebooks, `repr` and errors."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fuzz._run import main
from tests.damaged_conversations import conversation, leaked


@given(st.integers(0, (1 << 48) - 1))
def fuzz(seed: int) -> None:
    assert leaked(conversation(seed)) is None


if __name__ == "__main__":
    main(fuzz)
