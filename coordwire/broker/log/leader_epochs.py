"""Which leader epochs a log has, each with the offset of its first record (KIP-101).

Rule: epochs and their offsets rise; an epoch that wrote nothing before the next one began is not kept.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordwire.segments import EpochEntry

_NO_EPOCH = -1


class LeaderEpochs:
    """The epochs of one log, the oldest first."""

    def __init__(self, entries: Iterable[EpochEntry] = ()) -> None:
        self._entries: list[EpochEntry] = []
        for entry in entries:
            self.assign(entry.epoch, entry.start_offset)

    @property
    def entries(self) -> list[EpochEntry]:
        return list(self._entries)

    @property
    def latest(self) -> int:
        """The newest epoch that wrote; -1 for none."""
        return self._entries[-1].epoch if self._entries else -1

    def assign(self, epoch: int, start_offset: int) -> bool:
        """An epoch writes from this offset on; True if that was not known."""
        if epoch < 0 or epoch <= self.latest:
            return False
        while self._entries and self._entries[-1].start_offset >= start_offset:
            self._entries.pop()
        self._entries.append(EpochEntry(epoch, start_offset))
        return True

    def at(self, offset: int) -> int:
        """The epoch that wrote an offset; -1 if that is not known."""
        epoch_before = -1
        for entry in self._entries:
            if entry.start_offset > offset:
                break
            epoch_before = entry.epoch
        return epoch_before

    def end_of(self, epoch: int, end_offset: int) -> tuple[int, int]:
        """The largest epoch up to the one that is asked for, and where it ends; (-1, -1) if there is none.

        end_offset: of the log, where the newest epoch ends.
        """
        if epoch == _NO_EPOCH:
            return -1, -1
        if epoch == self.latest:
            return epoch, end_offset
        last_epoch, end = -1, -1
        for entry in self._entries:
            if entry.epoch > epoch:
                if last_epoch < 0:  # older than all: it wrote nothing that is known, up to where these begin
                    return epoch, entry.start_offset
                return last_epoch, entry.start_offset
            last_epoch = entry.epoch
            end = end_offset
        return (-1, -1) if epoch > self.latest else (last_epoch, end)

    def truncate_start(self, offset: int) -> None:
        """The log begins here now: of older epochs only the one that reaches it is kept."""
        while len(self._entries) > 1 and self._entries[1].start_offset <= offset:
            del self._entries[0]
        if self._entries and self._entries[0].start_offset < offset:
            self._entries[0] = EpochEntry(self._entries[0].epoch, offset)

    def truncate_end(self, offset: int) -> None:
        """The log ends here now."""
        while len(self._entries) > 1 and self._entries[-1].start_offset >= offset:
            self._entries.pop()

    def encoded(self) -> bytes:
        """The `leader-epoch-checkpoint` file."""
        lines = [f"{epoch} {start}" for epoch, start in self._entries]
        return "\n".join(["0", str(len(lines)), *lines, ""]).encode()
