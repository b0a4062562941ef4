"""Where files are that the local disk does not have: stores, by the URIs that name them.

schemes.py   URIs as users write them, and the store of each: pyarrow's file systems, or fsspec's
store.py     a store: what is there, reading, writing, what identifies an object, and its errors
"""

from coordwire.tables.stores.schemes import (
    RemoteStream,
    canonical,
    endpoint,
    is_there,
    is_uri,
    local_path,
    store_of,
)
from coordwire.tables.stores.store import Identity, Replaced, Store, StoreError

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
