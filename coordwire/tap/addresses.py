"""Which local address is given out for which broker, and the places of addresses in responses.

Strategy: a field that is an address says so in its schema (entities "broker_host" and "broker_port"), so that
every response that names a broker is found, in every version. Each address that a response names gets a
listener when it is first seen, and keeps it, until others need its place: then the one that was named longest
ago is given up. A large response whose bytes end with one field, as a Fetch of one partition, has no room for
an address after it: its first bytes show that. Rules: there is a bound of such addresses, which leaves most
of the process's files to connections; a response that names more gets no listener; an address that is not
one, as beside an error, is left as it is; requests are never changed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import islice
from typing import Any, cast

from coordwire.client.settings import Address
from coordwire.codec.message import Message, Struct
from coordwire.codec.walk import FieldSelection, entity_field
from coordwire.errors import CoordwireError, DecodeError, Truncated, counted
from coordwire.frames import PREFIX, read_response
from coordwire.messages import find_message
from coordwire.messages.keys import FACTS
from coordwire.versions import ApiKey

MOST_BROKERS = 1_000

_LISTENERS = 4
"""One of so many files of the process may be a listener."""

_LEAST_ADDRESS = 6
"""The fewest bytes of an address: a length, a character, and a port."""

_ADDRESSES = FieldSelection(lambda field: field.entity in ("broker_host", "broker_port"))


class TooManyBrokers(CoordwireError):
    """Responses have named more addresses than there may be listeners."""


@lru_cache(maxsize=1_000)  # clients choose the version
def names_brokers(api_key: int, version: int) -> bool:
    """Whether the response of an API has places for addresses in a version; False for an unknown API."""
    return api_key in FACTS and bool(_ADDRESSES.fields(find_message(api_key, "response"), version))


def shows_no_address(head: bytes, api_key: int, version: int) -> bool:
    """Whether the first bytes of a response show that it names no broker.

    They do if no address comes before the field in which they end, and none has room after that field.
    """
    try:
        read_response(head[PREFIX:], api_key, version, strict=False)
    except Truncated as error:
        end, response = len(head) + error.missing, cast("Message", error.partial)
    except DecodeError:
        return False
    else:
        return False
    size = PREFIX + int.from_bytes(head[:PREFIX], "big", signed=True)
    return size - end < _LEAST_ADDRESS and not any(_ADDRESSES.places(response, version))


def most_brokers() -> int:
    """The most listeners that the process may have."""
    try:
        import resource  # which Windows lacks
    except ImportError:
        return MOST_BROKERS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_BROKERS if files == resource.RLIM_INFINITY else min(MOST_BROKERS, files // _LISTENERS)


class BrokerAddresses:
    """The brokers that are known. listen: makes a listener for a broker's address, and gives its own.
    stop_listening: ends it. permanent: brokers that keep their listeners."""

    def __init__(
        self,
        listen: Callable[[Address], Address],
        stop_listening: Callable[[Address], None],
        permanent: Iterable[Address] = (),
        *,
        most: int = MOST_BROKERS,
    ) -> None:
        self._listen = listen
        self._stop_listening = stop_listening
        self._permanent = frozenset(permanent)
        self._most = most
        self._local: OrderedDict[Address, Address] = OrderedDict()
        """The one that was named last is the last."""
        self._nodes: dict[Address, int] = {}

    def __len__(self) -> int:
        return len(self._local)

    def items(self) -> list[tuple[Address, Address]]:
        """The brokers' addresses with the local ones."""
        return list(self._local.items())

    def local(self, broker: Address) -> Address:
        """The local address that is given out for a broker's. Raises `OSError`."""
        known = self._local.get(broker)
        if known is None:
            known = self._local[broker] = self._listen(broker)
        return known

    def _make_room(self, named: dict[Address, None]) -> None:
        """Give up listeners for the brokers of a response. Raises `TooManyBrokers`."""
        needed = self._permanent.union(named)
        if len(needed) > self._most:
            raise TooManyBrokers(
                f"a response names more than {counted(self._most, 'broker')}, "
                "or than a quarter of the files that the process may open"
            )
        missing = 0
        for broker in named:
            if broker in self._local:
                self._local.move_to_end(broker)
            else:
                missing += 1
        surplus = len(self._local) + missing - self._most
        if surplus <= 0:
            return
        for broker in list(islice((broker for broker in self._local if broker not in needed), surplus)):
            del self._local[broker]
            self._nodes.pop(broker, None)
            self._stop_listening(broker)

    def node(self, broker: Address) -> int:
        """The id of the broker at an address, once a response has named it; else -1."""
        return self._nodes.get(broker, -1)

    def rewrite(self, response: Struct, version: int) -> bool:
        """Put local addresses in the place of brokers'; whether there were any. Raises as `local`."""
        owners = {id(place.owner): place.owner for place in _ADDRESSES.places(response, version)}
        named = [(owner, broker) for owner in owners.values() if (broker := _named(owner)) is not None]
        self._make_room(dict.fromkeys(broker for _, broker in named))
        return sum([self._rewrite(owner, broker) for owner, broker in named]) > 0

    def _rewrite(self, owner: Any, broker: Address) -> bool:
        """The same for one struct that names a broker."""
        cls: Any = type(owner)
        local = self.local(broker)
        node_name = entity_field(cls, "broker_id")
        if node_name is not None:
            self._nodes[broker] = getattr(owner, node_name)
        setattr(owner, str(entity_field(cls, "broker_host")), local[0])
        setattr(owner, str(entity_field(cls, "broker_port")), local[1])
        return local != broker


def _named(owner: Any) -> Address | None:
    """The broker that a struct names, if it names one."""
    cls: Any = type(owner)
    host_name, port_name = entity_field(cls, "broker_host"), entity_field(cls, "broker_port")
    if host_name is None or port_name is None:
        return None
    host, port = getattr(owner, host_name), getattr(owner, port_name)
    return (host, port) if host and 0 < port < 65536 else None


def narrowed(response: Any, must_read: Callable[[int], bool]) -> bool:
    """Lower the versions that an answer to ApiVersions offers to those that are known here, of the APIs that
    have to be read; whether any was lowered."""
    changed = False
    for offer in response.api_keys:
        facts = FACTS.get(offer.api_key)
        if facts is None or offer.api_key == ApiKey.API_VERSIONS or not must_read(offer.api_key):
            continue
        if offer.max_version > facts.last >= offer.min_version:
            offer.max_version = facts.last
            changed = True
    return changed
