"""Claims are built from evidence of their own member and group, and of no later time."""

from __future__ import annotations

import ast
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import coordwire.timeline.from_wire
from coordwire.timeline.evidence import Evidence, MemberClaim, MemberName, Seen, Silence
from coordwire.timeline.from_wire.member_death import KnownTimeouts, SessionTimeout

SECOND = 1_000_000_000
NAMES = st.builds(MemberName, st.sampled_from("gh"), st.sampled_from("ab"))
PLACES = st.builds(
    Seen,
    st.none() | st.integers(0, 9),
    st.sampled_from(["one.pcap", "two.pcap"]),
    st.integers(0, 9),
    st.none() | st.integers(1, 9),
)
EVIDENCE = st.builds(Evidence, NAMES, PLACES)


@given(st.builds(MemberClaim, NAMES, PLACES), st.lists(EVIDENCE, max_size=4))
def test_a_claim_gives_nothing_of_others_and_nothing_later(claim: MemberClaim, every: list[Evidence]) -> None:
    own = [one for one in every if one.of == claim.of and (one.place.time_ns or 0) <= (claim.at.time_ns or 0)]
    assert claim.latest(*every) == max(own, key=lambda one: one.place.time_ns or 0, default=None)
    for one in every:
        packet = claim.packet(one)
        assert claim.time_ns(one) == (one.place.time_ns if one in own else None)
        assert packet in (None, one.place.packet)
        if packet is not None:
            assert one in own
            assert one.place.source == claim.at.source
            assert claim.at.packet is None or packet <= claim.at.packet


@given(st.builds(MemberClaim, NAMES, PLACES), st.none() | st.integers(0, 20))
def test_a_silence_is_over_when_it_is_claimed(claim: MemberClaim, since_ns: int | None) -> None:
    silence = claim.silence(since_ns)
    assert (silence.of, silence.until_ns) == (claim.of, claim.at.time_ns or 0)
    assert 0 <= silence.length_ns <= silence.until_ns


def test_no_session_length_is_learned_from_another_group() -> None:
    timeout = SessionTimeout("g", "consumer", KnownTimeouts())
    before = timeout.most_ns, timeout.is_known, timeout.survived_ns
    timeout.ended(Silence(MemberName("h", "a"), 0, 3 * SECOND))
    timeout.survived(Silence(MemberName("h", "a"), 0, 99 * SECOND))
    assert (timeout.most_ns, timeout.is_known, timeout.survived_ns) == before
    timeout.survived(Silence(MemberName("g", "a"), 0, 2 * SECOND))
    timeout.ended(Silence(MemberName("g", "a"), 0, 3 * SECOND))
    assert (timeout.most_ns, timeout.is_known, timeout.survived_ns) == (3 * SECOND, True, 2 * SECOND)


def test_claims_are_built_nowhere_else() -> None:
    """Endings are built where their claim is, silences by claims, and the causes that name a member that is
    out by what takes it out."""
    builders: dict[str, set[str]] = {"MemberEnding": set(), "Silence": set()}
    departures = set()
    folder = Path(coordwire.timeline.from_wire.__file__).parent
    for path in (*folder.glob("*.py"), *folder.parent.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                builders.get(node.func.id, set()).add(path.name)
                cause = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else ""
                if node.func.id == "Trigger" and cause in ("member_removed", "member_fenced", "member_left"):
                    departures.add((path.name, cause))
    assert builders == {"MemberEnding": {"connection_ends.py"}, "Silence": {"evidence.py"}}
    assert departures <= {("classic_state.py", "member_left"), ("rebalance_cause.py", "member_left")}
