"""A timeline tells of random groups what their coordinator tells of itself."""

from __future__ import annotations

import pytest

from coordwire.timeline import timeline
from coordwire.timeline.events import MemberLeft, RebalanceEnded
from tests.coordinator.stories.excuses import EXCUSES
from tests.coordinator.stories.faults import EVENT_FAULTS, RULE_FAULTS, found_by_event, found_by_rule
from tests.coordinator.stories.scripts import KINDS, NEWER_KINDS, Story, play

HISTORIES = 40
"""`python -m tests.coordinator.stories SEED COUNT [KIND]` takes any number, and prints what differs."""

OF_NEWER_KINDS = range(20, 26)
"""Seeds of histories of share groups and streams groups."""


SHOWED = {
    169: "the last member that is in leaves a dead one, which is awaited no longer",
    212: "no member of a generation asks for its assignment",
    293: "the leader's answer names the heir of a static member, which isn't answered yet",
    392: "a join that was accepted is refused once its member is replaced",
    437: "a static member takes the place of one that never asked for its assignment",
    600: "generations whose leaders are dead, so that nothing lists their members",
    589: "a generation that forms unseen between two that are seen",
    657: "a static member comes back after its session ended, with nobody asking meanwhile",
    764: "a generation has the number of one that a move lost",
    207: "all members of a classic group die before it converts",
    271: "a leader dies with its assignments on their way",
    174: "a session that ends after its member left for now",
    374: "a commit, which begins no session anew in KIP-848",
    222: "a member leaves after the target was computed: the epoch rises once more",
    330: "two subscriptions change within the coordinator's assignment interval",
    38: "members leave while a pattern is resolved",
    59: "an epoch rises by two for two members",
    707: "a static member is replaced while another waits for partitions",
    998: "a default session timeout that nothing shows",
    1067: "a static member is back with another subscription",
    1107: "a static member is back with the classic protocol and ends the group's conversion",
    1110: "a member with a pattern is answered with another one's epoch",
    351: "partitions by ids in KIP-848, by names in the classic protocol",
    475: "a group converts after its last target",
    698: "a move that no frame shows: the epoch stays, so that nobody's session ended",
    817: "a static member is replaced by one that dies before it is answered",
    1010: "a session that ends just before a move, as the next epoch shows",
    1090: "a static member that left for now comes back, when the others are steady without it",
    1262: "a write that failed, which is no move",
    1412: "a member that joined again, and that the next generation doesn't have",
    1419: "a generation that nothing lists, and a static member that is back",
    1449: "a member gave up partitions, and asks again after a move",
    1487: "the last member of KIP-848 dies: sessions begin anew in the classic group",
    1607: "the same, and a rebalance begins anew, too",
    1659: "a move while members reconcile: the coordinator goes on with it",
    1673: "the leader joins again after the heir's time to ask for its assignment is over",
    1853: "a member leaves whose session is over",
    1876: "a removal that a move takes back: the next generation has the member",
    5004: "a generation with a member that is dead, at the end",
    5146: "a static member inherits a pattern",
    5168: "a heartbeat that isn't answered, since its client is dead",
    5212: "JoinGroup and SyncGroup in a steady group don't begin a session anew",
    13427: "a static member is in the generation that holds, after a move lost what was under way",
    14039: "the last member of KIP-848 dies unseen between two conversions: the epoch stays",
    14387: "heartbeats of KIP-848 meet a move of a classic group",
    20123: "a group that was empty when a static member is back",
    20224: "a move takes subscriptions back, too",
    20667: "a generation has the number of one from before a conversion",
    30022: "a member doesn't give up its partitions in time, and is out",
    50119: "a member that joins after a generation isn't awaited in it",
    5404: "a member joins again and another leaves in one millisecond",
    5422: "partitions that wait for their next owner, at the end",
    5531: "a static member is back after a move: the epoch stays, so that it was still in",
    5623: "JoinGroup is refused by a conversion, and its member is in",
    5658: "a pattern, with which joining doesn't raise the epoch at once",
    5669: "a member that only the leader's answer lists",
    5733: "a move loses a generation: the one before it holds",
    6101: "a member that only the leader's answer lists, and is out",
    6336: "SyncGroup after its member's session is over",
    6445: "a cause from before a generation that a move repeats",
    6561: "a static member's heir forms the generation itself",
    6664: "a generation formed unseen, as a static member's session ended",
    96822: "a static member that was refused its name until the session of the one before was over",
    94072: "a static leader seems to be out, and its heir is in the generation that holds",
    92425: "a static member is fenced whose heir waits for its answer",
    90724: "a move loses a generation: the one before it has a static member's heir, and none who came after",
    6757: "timers go on without those who were out when a generation was formed",
    6790: "an epoch rises by two for two of three",
    277: "a generation that waits for another member isn't formed when the first has joined",
    1203: "a session that ended before its group converts",
    7011: "a static member leaves for now before the partitions that another gave up are given",
    7169: "a session that ran from a little before its last answer was seen",
    7219: "a JoinGroup waits when its group converts: its member has a session again",
    7236: "the only member's session ended long before a request meets a move",
    7291: "a session ended just before two others raised the epoch, too",
    7699: "a static member with the classic protocol takes the place of the last one with KIP-848",
    7703: "an answer with a leader: the consumer group was empty, and is a classic one",
    7743: "a static member is back with a pattern, which raises the epoch later",
    7822: "a session that ended as the epoch rose by several",
    7857: "assignments that could not be written",
    7911: "a JoinGroup without a member id waits when its group converts",
    7997: "the last member dies with its JoinGroup unanswered, after another didn't join",
    8018: "members left, and the next epoch shows that a silent one is in",
    8051: "a member that left is in again after a move",
    8905: "a member is refused that was out before the generation formed",
    8951: "all partitions are a member's that left for now",
    8953: "SyncGroup in a group whose assignments are there begins no session anew",
    9054: "a member that didn't give up its partitions is out, as another joins in its name",
    9076: "a static member that is never answered forms a generation",
    11143: "a JoinGroup with another subscription waits when its group converts",
    11206: "a member is answered with the epoch of a target from before",
    11527: "a timer that outlives an upgrade and a downgrade",
    11633: "a generation that formed unseen once a member was out",
    11744: "a static member's heir is in the generation that holds: its predecessor was in",
    11914: "a silent member that a move was thought to keep, and that is out",
    12298: "a static member left for now, and is replaced before the others report",
    8078: "partitions of a topic that nobody subscribes to any more, at the end",
    62131: "an emptied group, none of whose generations was written before a move",
    60175: "a static member is back after its session ended, in a rebalance that awaited it alone",
    60273: "a generation has the number of one that was not written before a move, with members it was given",
    60703: "a share is completed after the group seemed steady",
    60944: "a generation has the number of one that was not written, and new members",
    61258: "a static member that left for now has what others wait for",
    62207: "a member gives up partitions, and its answer gives it others",
    62390: "two subscriptions change, one of them twice, and a rise is for the later ones",
    62478: "a session ended before a move, as the epoch of one that joins shows",
    62816: "a static member's heir is never answered, and goes",
    62828: "a session ended before a member joined: that began the rebalance",
    62937: "a move takes back what members said to own",
    62951: "a classic member of a consumer group doesn't join again in time",
    63035: "a classic member's leaving of a consumer group could not be written",
    63158: "three raise the epoch, and a rise by two is for the later ones",
    63214: "a member leaves, and the next epoch shows that a silent one is in",
    63379: "a static member is back with another subscription, and one more subscription changes",
    63475: "a classic group converts with its generation: its members, thought to be out, are in",
    63615: "a static member that had a pattern is back with the classic protocol",
    63847: "the same, and another joined before",
    64195: "the leader leaves, whose answer lists a static member that wasn't answered",
    64215: "a static member is back as another changes its subscription",
    64693: "a member leaves for which the JoinGroup of a dead one waited",
    65061: "a LeaveGroup lets a generation form, whose leader is dead",
    65633: "the leader's answer lists a static member's heir, which is never answered",
    70530: "a member is dead before the answer that it must give up partitions",
    74304: "a generation has the number of one that was not written, and its last member forms it at once",
    73627: "two static members are back, the second with another subscription",
    72387: "a converted group's partitions, which nobody was given before",
    72619: "an empty classic group becomes a new consumer group",
    72201: "a move that no frame shows shifts the session that a rebalance is said to begin with",
    72174: "a member is dead before the answer that gives it its share",
    71067: "the same as 61258, with an heir that has a pattern",
    71237: "a static member didn't join, and is out with those that did",
    71279: "an upgrade that failed ends a join phase, whose timer goes on",
    70581: "a LeaveGroup lets a generation form that nothing lists",
}
"""Histories that a timeline was wrong about, and what they have."""


SHOWED_OF_NEWER_KINDS = {
    ("share", 9): "a first member is steady without partitions, whose state is not initialized yet",
    ("share", 107): "a session ended in the millisecond before its epoch shows",
    ("share", 361): "a silent member is in, as the epoch stays after an unseen move",
    ("streams", 4): "a first target waits for more members",
    ("streams", 22): "a first target has no tasks, as the internal topics are missing",
    ("streams", 3): "a member gives up standby tasks before it takes them as active ones",
    ("streams", 71): "a new target waits in a group that was empty",
    ("streams", 106): "an epoch rises by two, once for a member that didn't give up its tasks in time",
    ("streams", 159): "a session ended while a member gave up tasks, whose epoch shows it later",
    ("streams", 190): "a member waits for standby tasks that no answer names",
    ("streams", 311): "standby tasks that a member gave up become its active ones",
}
"""The same of share groups and streams groups."""


@pytest.mark.parametrize(("kind", "seed"), SHOWED_OF_NEWER_KINDS)
def test_what_a_history_of_a_newer_kind_showed(kind: str, seed: int) -> None:
    story = play(seed, kind)
    problems = list(story.compare(timeline(story.world.entries)).differences())
    assert problems == [], SHOWED_OF_NEWER_KINDS[kind, seed]


@pytest.mark.parametrize("seed", SHOWED)
def test_what_a_history_showed(seed: int) -> None:
    story = play(seed)
    assert list(story.compare(timeline(story.world.entries)).differences()) == [], SHOWED[seed]


def test_excuses_are_counted() -> None:
    """Of a history with failovers something is excused, and most is compared."""
    story = play(352)
    compared = story.compare(timeline(story.world.entries))
    assert list(compared.differences()) == []
    assert 0 < compared.excused.total() < 10
    assert set(compared.excused) <= set(EXCUSES)


@pytest.mark.parametrize("kind", KINDS)
def test_a_timeline_is_its_coordinator_s_own_story(kind: str) -> None:
    happened = 0
    for seed in range(KINDS.index(kind), HISTORIES, len(KINDS)):
        story = play(seed)
        compared = story.compare(timeline(story.world.entries))
        assert list(compared.differences()) == [], seed
        happened += sum(isinstance(event, MemberLeft | RebalanceEnded) for event in story.world.events)
    assert happened > HISTORIES


@pytest.mark.parametrize("kind", NEWER_KINDS)
def test_a_timeline_is_the_story_of_a_newer_kind(kind: str) -> None:
    ended: list[RebalanceEnded] = []
    for seed in OF_NEWER_KINDS:
        story = play(seed, kind)
        compared = story.compare(timeline(story.world.entries))
        assert list(compared.differences()) == [], seed
        ended += [event for event in story.world.events if isinstance(event, RebalanceEnded)]
    assert {event.kind for event in ended} == {kind}
    assert len(ended) > 5 * len(OF_NEWER_KINDS)
    assert any(event.assignments for event in ended)


def test_a_difference_is_found() -> None:
    story = play(0)
    reported = [event for event in timeline(story.world.entries) if not isinstance(event, MemberLeft)]
    assert {difference.problem for difference in story.compare(reported).differences()} >= {
        "left left",
        "in at the end falsely",
    }


@pytest.fixture(scope="module")
def ordinary() -> list[Story]:
    """Two histories in which most may happen."""
    return [play(5001), play(5009)]


@pytest.mark.parametrize("fault", EVENT_FAULTS)
def test_a_changed_event_is_found(fault: str, ordinary: list[Story]) -> None:
    assert "found" in [found_by_event(fault, story) for story in ordinary]


BROKEN = {
    "causes of JoinGroups are forgotten": 277,
    "causes of first heartbeats are forgotten": 7822,
    "a classic member that is unknown stays": 11633,
    "members that a generation doesn't list stay": 5001,
    "sessions of KIP-848 never end": 71002,
    "a move leaves sessions as they run": 5733,
    "timers are not replayed": 657,
    "a group that converts keeps who is out": 1203,
    "a member that leaves isn't taken out": 7822,
    "a session that ends begins nothing": 7822,
    "partitions without an owner don't count": 7011,
    "members needn't report what they took up": 7011,
}
"""Faults of the inference, and a history that shows each."""

BROKEN_FOR_STREAMS = {
    "a streams group's target that is due doesn't count": 4,
    "standby tasks don't count": 10,
    "standby tasks that are given up need no owner": 10,
}
"""Faults of what holds for streams groups alone."""


@pytest.mark.parametrize("fault", RULE_FAULTS)
def test_a_broken_rule_is_found(fault: str) -> None:
    story = play(BROKEN[fault]) if fault in BROKEN else play(BROKEN_FOR_STREAMS[fault], "streams")
    assert found_by_rule(fault, story)
