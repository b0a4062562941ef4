"""Whose doing a new epoch is, in a group whose coordinator assigns.

Strategy: an answer shows a new epoch. The rebalance under way explains its first rise, what is owed the next
ones; what seemed to have raised the epoch together with others may have raised it once more; else a session
may have ended, or the coordinator did it by itself. Rules: what raised it is counted, so that an epoch which
rose by several is for as many of them.
"""

from __future__ import annotations

from coordwire.timeline.consumer_data import has_pattern
from coordwire.timeline.from_wire.modern_rebalances import (
    ASSIGNMENT_INTERVAL_NS,
    JOINS,
    KEEPS_EPOCH,
    NEAR_NS,
    is_earlier,
)
from coordwire.timeline.from_wire.modern_silence import ModernSilence
from coordwire.timeline.members import Member
from coordwire.timeline.places import Seen
from coordwire.timeline.rebalance import Why
from coordwire.timeline.rebalance_cause import of_epoch

__all__ = ["ModernEpochs"]

FIRST_EPOCH = 1
"""A new group's, until a member's subscription raises it."""


class ModernEpochs(ModernSilence):
    """What raises the epoch."""

    def in_epoch(self, member: Member, epoch: int, place: Seen, asked: Seen) -> None:
        """A member's answer has an epoch, which may be a new one of the group."""
        known = member.generation is not None or self.rebalance is not None
        member.generation = epoch
        before = self.generation
        if before is not None and epoch <= before:
            return
        rebalance = self.rebalance
        if self._is_paid(epoch - (before or 0)):
            self._merged = None
        if before is None or not known or (rebalance is not None and rebalance.joined_ns is None):
            if before is not None or epoch > FIRST_EPOCH:
                self._pay(epoch - (before or 0))
        elif self._owed:
            first = 0 if has_pattern(member.topics) else self._owed_to(member.member_id, asked)
            if self._merged in self._owed[: first + epoch - before]:
                self._merged = None
            (why, when), left = self._owed[first], self._owed[first + epoch - before :]
            if rebalance is None or rebalance.why.member_id != why.member_id:
                self.close("superseded", when)
                self._owed = []
                self.disturbed(why, when, again=True)
            self._owed = left
        elif rebalance is None or rebalance.why.cause not in JOINS or self.progress.has_owners:
            self._unexplained(member, before, epoch, place, asked)  # else nothing was assigned until now
        unseen = epoch - (before or 0) - self._raises
        self._surplus = max(unseen, 0) if before is not None else 0
        self._raises = max(-unseen, 0)
        del self._unshown[: epoch - (before or 0)]
        self.generation, self._departures, self._raised_ns = epoch, 0, place.time_ns or 0
        rebalance = self.rebalance
        if rebalance is not None and rebalance.joined_ns is None and not is_earlier(place, rebalance.began):
            rebalance.joined_ns = place.time_ns or 0

    def _owed_to(self, member_id: str, asked: Seen) -> int:
        """Whose turn it is of those that raise the epoch: the member's own, if this answers its joining."""
        own = (n for n, (why, when) in enumerate(self._owed) if why.member_id == member_id and when == asked)
        return next(own, 0)

    def _is_paid(self, risen: int) -> bool:
        """Whether what raised the epoch together with others is in a rise for certain: it is by several, or
        of a rebalance that began afterwards."""
        merged, rebalance = self._merged, self.rebalance
        if merged is None or (risen > 1 and risen >= self._raises):
            return True
        if risen > 1:
            return False
        later = (merged[1].time_ns or 0) < (0 if rebalance is None else rebalance.began.time_ns or 0)
        return rebalance is not None and rebalance.joined_ns is None and later

    def _pay(self, risen: int) -> None:
        """The epoch rose, for the first time since the rebalance under way began: what came after its target
        was seen will raise it once more."""
        mine = None if self.rebalance is None else self.rebalance.why.member_id
        given_ns = self._given_ns
        if self.generation is None or given_ns is None:
            departed = self.generation is not None and risen <= self._departures  # which explain it
            self._owed = [one for one in self._owed if departed and self._has_pattern(one[0].member_id)]
            return
        later = [(why, when) for why, when in self._owed if (when.time_ns or 0) > given_ns]
        self._owed = [one for one in later if one[0].member_id != mine][risen - 1 :]

    def _unexplained(self, member: Member, before: int, epoch: int, place: Seen, asked: Seen) -> None:
        """The epoch rose, and nothing was seen that raises it: a session may have ended."""
        suspect = self._doubtful() or self._sessions.first()
        silent = suspect is not None and (
            suspect.member_id in self._doubted or self.timeout.explains(self.quiet(suspect, asked))
        )
        sign = f"the group's epoch rose to {epoch}"
        merged, self._merged = self._merged, None
        if merged is not None and merged[0].cause in KEEPS_EPOCH and merged[0].member_id != member.member_id:
            merged = None
        if suspect is not None and silent:
            merged = None
        stubborn = self._stubborn(asked)
        if stubborn is not None and not silent:
            self._removed_stubborn(stubborn, asked)
            return
        early_ns = (place.time_ns or 0) - ASSIGNMENT_INTERVAL_NS - self.timeout.interval_ns - NEAR_NS
        if merged is not None and (merged[1].time_ns or 0) >= early_ns:
            self._had_its_own(*merged)
        elif suspect is None or not silent:
            unshown = next((one for one in self._unshown if (one[1].time_ns or 0) >= early_ns), None)
            if unshown is None:
                self.disturbed(of_epoch(before, epoch), asked)
            else:
                self._had_its_own(*unshown)
        elif self.timeout.is_known or not self.progress.is_exclusive(suspect.member_id):
            self.died(suspect, place, sign, shown=asked)
            for _ in range(before + 1, epoch):  # a move lets several sessions end at once
                suspect = self._doubtful()
                if suspect is not None:
                    self.died(suspect, place, sign, shown=asked)
        else:  # the next owner of its partitions will show
            self.disturbed(Why("unknown", inferred=True, detail=sign), asked)
            self._risen = before, epoch

    def _had_its_own(self, why: Why, place: Seen) -> None:
        """What seemed to have raised the epoch with another cause raised it once more."""
        self.close("superseded", place)
        self.disturbed(why, place, again=True)
