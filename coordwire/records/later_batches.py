"""What a search knows of the sound batches ahead, so that it looks at each of them once."""

from __future__ import annotations

__all__ = ["LaterBatches"]

from bisect import bisect_left


class LaterBatches:
    """What is known of sound batches ahead.

    vouched, followed: those that something vouches for, and that are followed by one or by nothing. scanned:
    up to where it is known.
    """

    def __init__(self) -> None:
        self.scanned = 0
        self.vouched, self.followed = _Highest(), _Highest()

    def shows_later(self, pos: int, own: int, after: int | None) -> bool:
        """Whether, from `pos` on, one above offset `own` is vouched for, or one above `after` is followed."""
        if self.vouched.above(pos, own):
            return True
        return after is not None and self.followed.above(pos, after)


class _Highest:
    """The highest offset from any place on: places that rise, with offsets that fall."""

    def __init__(self) -> None:
        self._places: list[int] = []
        self._offsets: list[int] = []

    def add(self, place: int, offset: int) -> None:
        """Take in what is after all others."""
        while self._offsets and self._offsets[-1] <= offset:
            self._offsets.pop()
            self._places.pop()
        self._offsets.append(offset)
        self._places.append(place)

    def above(self, place: int, offset: int) -> bool:
        """Whether one from `place` on has a higher offset."""
        at = bisect_left(self._places, place)
        return at < len(self._places) and self._offsets[at] > offset
