"""Which local address is given out for which broker, and the places of addresses in responses.

Strategy: a field that is an address says so in its schema (entities "broker_host" and "broker_port"), so that
every response that names a broker is found, in every version. Each address that a response names gets a
listener when it is first seen, and keeps it. A large response whose bytes end with one field, as a Fetch of
one partition, has no room for an address after it: its first bytes show that. Rules: there is a bound of such
addresses; an address that is not one, as beside an error, is left as it is; requests are never changed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

from coordwire.client.settings import Address
from coordwire.codec.entities import entity_field
from coordwire.codec.message import Message, Struct
from coordwire.codec.walk import FieldSelection
from coordwire.errors import CoordwireError, DecodeError, Truncated, counted
from coordwire.frames import PREFIX, read_response
from coordwire.messages import find_message
from coordwire.messages.keys import FACTS
from coordwire.versions import ApiKey

__all__ = [
    "Address",
    "BrokerAddresses",
    "TooManyBrokers",
    "names_brokers",
    "shows_no_address",
]

MOST_BROKERS = 1_000

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


class BrokerAddresses:
    """The brokers that are known. listen: makes a listener for a broker's address, and gives its own."""

    def __init__(self, listen: Callable[[Address], Address], most: int = MOST_BROKERS) -> None:
        self._listen = listen
        self._most = most
        self._local: dict[Address, Address] = {}
        self._nodes: dict[Address, int] = {}

    def __len__(self) -> int:
        return len(self._local)

    def items(self) -> list[tuple[Address, Address]]:
        """The brokers' addresses with the local ones."""
        return list(self._local.items())

    def local(self, broker: Address) -> Address:
        """The local address that is given out for a broker's. Raises `TooManyBrokers`, `OSError`."""
        known = self._local.get(broker)
        if known is None:
            if len(self._local) >= self._most:
                raise TooManyBrokers(f"responses name more than {counted(self._most, 'broker')}")
            known = self._local[broker] = self._listen(broker)
        return known

    def node(self, broker: Address) -> int:
        """The id of the broker at an address, once a response has named it; else -1."""
        return self._nodes.get(broker, -1)

    def rewrite(self, response: Struct, version: int) -> bool:
        """Put local addresses in the place of brokers'; whether there were any. Raises as `local`."""
        owners = {id(place.owner): place.owner for place in _ADDRESSES.places(response, version)}
        return sum(self._rewrite(owner) for owner in owners.values()) > 0

    def _rewrite(self, owner: Any) -> bool:
        """The same for one struct that has an address."""
        cls: Any = type(owner)
        host_name, port_name = entity_field(cls, "broker_host"), entity_field(cls, "broker_port")
        if host_name is None or port_name is None:
            return False
        host, port = getattr(owner, host_name), getattr(owner, port_name)
        if not host or not 0 < port < 65536:
            return False
        broker: Address = (host, port)
        local = self.local(broker)
        node_name = entity_field(cls, "broker_id")
        if node_name is not None:
            self._nodes[broker] = getattr(owner, node_name)
        setattr(owner, host_name, local[0])
        setattr(owner, port_name, local[1])
        return local != broker


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
