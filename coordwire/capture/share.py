"""One share of a capture's frames: which of several readers of the same capture gives out a frame.

Strategy: every reader goes through the whole capture, since only that shows which requests and responses
belong together, where frames begin after a loss and what a frame's number is; but it decodes the frames of
its own share alone, which is most of the work. Frames go to the shares in stripes of about `STRIPE` bytes,
one share after the other, in the order of their numbers, so that all shares cost the same, whatever the
connections. Rules: each frame is in exactly one share, with the number that it has in the whole capture;
unreadable ranges are in the first share, or in the one whose turn it is (`in_order`), so that the entries of
all shares, turn by turn, are those of one reader in their order.
"""

from __future__ import annotations

__all__ = ["Share", "shared"]

from collections.abc import Callable, Iterable, Iterator

from coordwire.capture.entries import Entry, FrameEntry

STRIPE = 256 << 10
"""Bytes of frames that go to one share before the next has its turn."""

FRAME = 256
"""What a frame counts on top of its bytes: about as much work as so many bytes of a long one."""


class Share:
    """One share of several, and how far the frames have been dealt out.

    index: from 0. is_next: whether the next frame is in it. stories: whether the reader of the first share
    makes the stories of groups too, for which it reads all frames: its share is then empty, if there are
    others. in_order: where unreadable ranges are. share_answer: called with the answers to requests of the
    APIs `shared_keys` that are in other shares; None where they aren't needed.
    """

    __slots__ = (
        "_remaining", "_turn", "_turns", "in_order", "index", "is_next", "share_answer", "shared_keys"
    )  # fmt: skip

    def __init__(self, index: int, count: int, *, stories: bool = False, in_order: bool = False) -> None:
        if not 0 <= index < count:
            raise ValueError(f"expected a share from 0 to {count - 1}, got {index}")
        self.index = index
        self._turns = tuple(range(1 if stories and count > 1 else 0, count))
        self._turn = 0
        self._remaining = STRIPE
        self.is_next = self._turns[0] == index
        self.in_order = in_order
        self.share_answer: Callable[[FrameEntry], object] | None = None
        self.shared_keys: frozenset[int] = frozenset()

    @property
    def turn(self) -> int:
        """The share that the next frame is in."""
        return self._turns[self._turn]

    @property
    def has_ranges(self) -> bool:
        """Whether an unreadable range that comes now is in this share."""
        return self.is_next if self.in_order else self.index == 0

    def takes(self, size: int) -> bool:
        """Whether the next frame, which has so many bytes, is in this share, as `is_next` said."""
        is_in_share = self.is_next
        self._remaining -= FRAME + size
        if self._remaining <= 0:
            turns = -self._remaining // STRIPE + 1
            self._remaining += turns * STRIPE
            self._turn = (self._turn + turns) % len(self._turns)
            self.is_next = self._turns[self._turn] == self.index
        return is_in_share


def shared(entries: Iterable[Entry], share: Share) -> Iterator[Entry]:
    """Of all entries those of this share."""
    for entry in entries:
        if isinstance(entry, FrameEntry):
            if share.takes(entry.size):
                yield entry
            elif share.share_answer is not None and entry.api_key in share.shared_keys:
                share.share_answer(entry)
        elif share.has_ranges:
            yield entry
