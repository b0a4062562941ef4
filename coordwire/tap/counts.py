"""The traffic of a tap: frames in, frames out, frames changed and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class TapCounts:
    """Frames, by direction and by what became of them.

    requests_in, responses_in: that came; requests_out, responses_out: that were sent on, or that the tap
    answered with. changed: those whose bytes differ, by the reason: "addresses", "versions", "fault",
    "script". answered: requests that the tap answered itself, by reason; dropped: frames that were not sent
    on, by reason. unread: frames that had to be read and could not, which passed as they were; unmatched:
    responses that no request waited for. connections: that clients made; refused: of these, that ended since
    something was wrong with them.
    """

    connections: int = 0
    refused: int = 0
    requests_in: int = 0
    requests_out: int = 0
    responses_in: int = 0
    responses_out: int = 0
    unread: int = 0
    unmatched: int = 0
    changed: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        parts = [
            f"{self.connections:,} connections",
            f"{self.requests_in:,} requests in, {self.requests_out:,} out",
            f"{self.responses_in:,} responses in, {self.responses_out:,} out",
            _sum_text("changed", self.changed),
        ]
        parts += [
            _sum_text(name, reasons)
            for name, reasons in (("answered here", self.answered), ("dropped", self.dropped))
            if reasons
        ]
        parts += [
            f"{count:,} {name}"
            for name, count in (
                ("not readable", self.unread),
                ("without a request", self.unmatched),
                ("connections refused", self.refused),
            )
            if count
        ]
        return "; ".join(parts)


def _sum_text(name: str, reasons: Counter[str]) -> str:
    total = sum(reasons.values())
    parts = ", ".join(f"{count:,} {reason}" for reason, count in sorted(reasons.items()))
    return f"{total:,} {name}" + (f" ({parts})" if parts else "")
