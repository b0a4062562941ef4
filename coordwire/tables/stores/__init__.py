"""Where files are that the local disk does not have: stores, by the URIs that name them.

uris.py           paths and URIs as users write them
schemes.py        a URI to its store: pyarrow's file systems, or fsspec's
store.py          a store: what is there, reading, writing, what an object is known by
remote_stream.py  an object from its start to its end
store_errors.py   what stores raise, as one sentence
"""

from coordwire.tables.stores.remote_stream import RemoteStream
from coordwire.tables.stores.schemes import endpoint, is_there, store_of
from coordwire.tables.stores.store import Identity, Store
from coordwire.tables.stores.store_errors import Replaced, StoreError
from coordwire.tables.stores.uris import canonical, is_uri, local_path

__all__ = [
    "Identity",
    "RemoteStream",
    "Replaced",
    "Store",
    "StoreError",
    "canonical",
    "endpoint",
    "is_there",
    "is_uri",
    "local_path",
    "store_of",
]
