"""Share sessions: the partitions that a member of a share group fetches, so that a request names what
changed.

Strategy: Kafka's `ShareSessionCache` and `ShareSessionContext`. A session belongs to a member and to the
connection that began it: when that ends, so does the session, and its records are released. A group is empty
when the connection of its last session has ended. Rules: the number of sessions is bounded; there is no room
without one that ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from uuid import UUID

from coordwire.messages.share_fetch import PartitionData

FINAL_EPOCH = -1
_HIGHEST = 0x7FFFFFFF

SessionKey = tuple[str, str]
"""A group and a member."""

_Place = tuple[UUID, int]


class ShareSession:
    """A member's session. epoch: that of the next request; owner: the connection."""

    def __init__(self, key: SessionKey, owner: object) -> None:
        self.key = key
        self.owner = owner
        self.epoch = 1
        self._places: dict[_Place, bool] = {}
        """The partitions, and whether the next answer has to have them."""

    def places(self) -> list[_Place]:
        return list(self._places)

    def begin(self, places: Iterable[_Place]) -> None:
        self._places = dict.fromkeys(places, False)

    def update(self, added: Iterable[_Place], forgotten: Iterable[_Place]) -> None:
        """Apply the changes of a request."""
        for place in added:
            self._places.setdefault(place, True)
        for place in forgotten:
            self._places.pop(place, None)

    def advance(self) -> None:
        """Note a request of this session."""
        self.epoch = 1 if self.epoch == _HIGHEST else self.epoch + 1

    def must_answer(self, place: _Place, data: PartitionData) -> bool:
        """Whether an answer has to have this partition; it is sent now."""
        is_due = self._places.get(place)
        if is_due is None:
            return True
        answers = bool(data.records) or is_due or bool(data.error_code)
        self._places[place] = bool(data.error_code)
        if data.records:
            self._places[place] = self._places.pop(place)
        return answers


class ShareSessions:
    """The sessions of one node. most: as many are kept."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._owned: dict[object, dict[SessionKey, None]] = {}
        self._latest: dict[object, str] = {}
        """By connection, the group of the session that it began last."""
        self._counts: Counter[str] = Counter()
        """By group, how many sessions there are."""

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, key: SessionKey) -> ShareSession | None:
        return self._sessions.get(key)

    def create(self, key: SessionKey, owner: object) -> ShareSession | None:
        """A new session; None if there is no room."""
        if len(self._sessions) >= self._most:
            return None
        session = self._sessions[key] = ShareSession(key, owner)
        self._owned.setdefault(owner, {})[key] = None
        self._latest[owner] = key[0]
        self._counts[key[0]] += 1
        return session

    def remove(self, key: SessionKey) -> ShareSession | None:
        session = self._sessions.pop(key, None)
        if session is not None:
            own = self._owned[session.owner]
            del own[key]
            if not own:
                del self._owned[session.owner]
            self._counts[key[0]] -= 1
            if not self._counts[key[0]]:
                del self._counts[key[0]]
        return session

    def of_owner(self, owner: object) -> list[SessionKey]:
        """The sessions that a connection began."""
        return list(self._owned.get(owner, ()))

    def latest_group(self, owner: object) -> str | None:
        """The group of the last session of a connection that ended, which is forgotten."""
        return self._latest.pop(owner, None)

    def has_members(self, group_id: str) -> bool:
        return group_id in self._counts
