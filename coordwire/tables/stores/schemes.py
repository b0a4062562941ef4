"""URIs as users write them, and the store of a URI by its scheme.

Strategy: pyarrow's file systems serve s3, gs, abfss and hdfs; for another scheme fsspec does, where that is
installed. Rules: the text after the authority is the path, character by character: keys may hold spaces, `%`,
`?` and `#`; s3a and s3n are s3, gcs is gs, so that a file has one name. A file system is made once for the
same authority and environment; where none can be made, the error is one sentence that names the URI and what
to set or install.
"""

from __future__ import annotations

__all__ = [
    "RemoteStream",
    "canonical",
    "endpoint",
    "is_there",
    "is_uri",
    "local_path",
    "parts_of",
    "store_of",
]

import errno
import io
import os
import re
from datetime import timedelta
from functools import lru_cache
from typing import Any

from coordwire.errors import CoordwireError
from coordwire.tables.stores.store import Replaced, Store, StoreError, as_store_error

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)(.*)", re.DOTALL)
_FILE = re.compile(r"file:(?://(?:localhost)?)?(?=/)|file://", re.IGNORECASE)
_ONE_SLASH = re.compile(r"(s3[an]?|gs|gcs|abfss?|hdfs|viewfs):(?!//)", re.IGNORECASE)
_SAME = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss"}
"""Schemes that name the same files as another."""


def is_uri(path: str) -> bool:
    """Whether it is not a path of the local disk."""
    return _URI.match(path) is not None and _FILE.match(path) is None


def local_path(path: str) -> str:
    """A path of the local disk without its scheme, if it has one. Raises `CoordwireError` for a URI that
    lacks a slash, unless there is such a file."""
    if (match := _ONE_SLASH.match(path)) and not os.path.lexists(path):
        raise CoordwireError(f"expected {match[1]}://…, got {path}")
    return _FILE.sub("", path, count=1) if _FILE.match(path) else path


def canonical(uri: str) -> str:
    """A URI by the one name that its scheme has here, without a slash at the end."""
    scheme, separator, path = uri.partition("://")
    scheme = scheme.lower()
    return f"{_SAME.get(scheme, scheme)}{separator}{path}".rstrip("/")


def parts_of(uri: str) -> tuple[str, str, str]:
    """A URI's scheme by its one name, its authority, and what follows. Raises `CoordwireError` for other
    text."""
    match = _URI.fullmatch(uri)
    if match is None:
        raise CoordwireError(f"expected a URI, got {uri!r}")
    scheme = match[1].lower()
    return _SAME.get(scheme, scheme), match[2], match[3]


def store_of(uri: str) -> tuple[Store, str]:
    """The store of a URI, and the path in it. Raises `CoordwireError` for a scheme that nothing here serves,
    `OSError` for a store that can't be used."""
    scheme, authority, path = parts_of(uri)
    if scheme in ("s3", "gs", "abfss") and not authority:
        raise CoordwireError(f"{uri} names no bucket: expected {scheme}://BUCKET/PATH")
    opener = {"s3": _s3, "gs": _gcs, "abfss": _azure, "hdfs": _hdfs, "viewfs": _hdfs}.get(scheme)
    if opener is None:
        return _fsspec(uri, scheme)
    try:
        store, base = opener(scheme, authority, _environment())
    except ImportError:
        raise CoordwireError(
            f"{uri}: this pyarrow was built without {scheme}://; install the wheel from PyPI"
        ) from None
    return store, (base + path.rstrip("/")).strip("/") if base else path.rstrip("/") or "/"


def is_there(uri: str) -> bool:
    """Whether a store has a file of this URI, as far as it can be seen."""
    from pyarrow import fs

    try:
        store, path = store_of(uri)
        return bool(store.info(path).type == fs.FileType.File)
    except (OSError, CoordwireError):
        return False


def endpoint() -> str | None:
    """The address of S3's server, where that is not Amazon's."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")


def _environment() -> tuple[str | None, ...]:
    """What a file system is made from beside its URI."""
    env = os.environ.get
    return (
        endpoint(),
        env("AWS_REGION") or env("AWS_DEFAULT_REGION"),
        env("AZURE_STORAGE_KEY"),
        env("AWS_PROFILE"),
    )


@lru_cache(64)
def _s3(scheme: str, bucket: str, environment: tuple[str | None, ...]) -> tuple[Store, str]:
    from pyarrow import fs

    server, region, _, _ = environment
    if region is None and server is None:
        try:
            region = fs.resolve_s3_region(bucket)
        except OSError:  # it isn't there, or isn't to be seen: what is tried next says which
            region = None
    # A small object is one put; a store with much to do may be silent for longer than the default of 3 s.
    options: dict[str, Any] = {"allow_delayed_open": True, "request_timeout": 60, "connect_timeout": 10}
    if region is not None:
        options["region"] = region
    if server is not None:
        options["endpoint_override"] = server
    return Store(fs.S3FileSystem(**options), "s3://", "", True), bucket


@lru_cache(64)
def _gcs(scheme: str, bucket: str, environment: tuple[str | None, ...]) -> tuple[Store, str]:
    from pyarrow.fs import GcsFileSystem

    # By default it tries for 15 minutes, also without a network or credentials.
    return Store(GcsFileSystem(retry_time_limit=timedelta(seconds=30)), "gs://", "", True), bucket


@lru_cache(64)
def _azure(scheme: str, authority: str, environment: tuple[str | None, ...]) -> tuple[Store, str]:
    from pyarrow.fs import AzureFileSystem

    container, separator, host = authority.partition("@")
    account = host.partition(".")[0]
    if not separator or not account:
        raise CoordwireError(
            f"abfss://{authority} names no account: expected abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH"
        )
    system = AzureFileSystem(account, account_key=environment[2])
    return Store(system, f"abfss://{authority}/", container, True), container


@lru_cache(64)
def _hdfs(scheme: str, authority: str, environment: tuple[str | None, ...]) -> tuple[Store, str]:
    from pyarrow.fs import HadoopFileSystem

    start = f"{scheme}://{authority}"
    try:
        system = HadoopFileSystem.from_uri(f"{start}/")
    except (OSError, ValueError) as error:
        first = str(error).splitlines()[0]
        raise StoreError(
            errno.ENOTSUP,
            "HDFS needs Hadoop's libhdfs and a Java: set JAVA_HOME, HADOOP_HOME (or ARROW_LIBHDFS_DIR) and "
            f'CLASSPATH="$(hadoop classpath --glob)" ({first})',
            start,
        ) from error
    return Store(system, f"{start}/", "", False), ""


def _fsspec(uri: str, scheme: str) -> tuple[Store, str]:
    from pyarrow import fs

    try:
        import fsspec

        inner, path = fsspec.core.url_to_fs(uri)
    except (ImportError, ValueError) as error:
        known = "s3, s3a, gs, abfss, hdfs and file"
        raise CoordwireError(
            f"{uri}: {scheme}:// is not known here; {known} are, and what an installed fsspec serves "
            f"({' '.join(str(error).split())})"
        ) from None
    except OSError as error:  # some connect when they are made
        raise as_store_error(error, uri) from error
    protocol = inner.protocol if isinstance(inner.protocol, str) else inner.protocol[0]
    if protocol in ("file", "local"):
        return Store(fs.LocalFileSystem(), "file://", "", False), path
    return Store(fs.PyFileSystem(fs.FSSpecHandler(inner)), f"{scheme}://", "", False), path


class RemoteStream(io.RawIOBase):
    """An object from its start to its end. Each block is given on when it is seen, after it was fetched, that
    the object is still the one that was opened: no reader gets bytes of two. Raises `Replaced`."""

    BLOCK = 8 << 20

    def __init__(self, uri: str) -> None:
        super().__init__()
        self._uri = uri
        self._store, self._path = store_of(uri)
        self._file = self._store.open(self._path)
        self._identity = self._store.identity(self._path, self._file)
        self._at = 0
        self._block = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._block:
            size = min(self.BLOCK, self._identity.size - self._at)
            if not size:
                return 0
            self._block = memoryview(self._fetch(size))
            self._at += size
        with memoryview(buffer) as memory, memory.cast("B") as target:
            count = min(len(target), len(self._block))
            target[:count] = self._block[:count]
        self._block = self._block[count:]
        return count

    def _fetch(self, size: int) -> bytes:
        try:
            data = self._store.read(self._file, self._path, size, self._at)
        except OSError:
            data = b""
            if self._store.identity(self._path) == self._identity:
                raise
        if len(data) != size or self._store.identity(self._path) != self._identity:
            raise Replaced(self._uri)
        return data

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()
