"""The store of a URI, by its scheme.

Strategy: pyarrow's file systems serve s3, gs, abfss and hdfs; for another scheme fsspec does, where that is
installed. Rules: a file system is made once for the same authority and environment; where none can be made,
the error is one sentence that names the URI and what to set or install.
"""

from __future__ import annotations

__all__ = ["endpoint", "is_there", "store_of"]

import errno
import os
from datetime import timedelta
from functools import lru_cache
from typing import Any

from coordwire.errors import CoordwireError
from coordwire.tables.stores.store import Store
from coordwire.tables.stores.store_errors import StoreError, as_store_error
from coordwire.tables.stores.uris import parts_of


def store_of(uri: str) -> tuple[Store, str]:
    """The store of a URI, and the path in it. Raises `CoordwireError` for a scheme that nothing here serves,
    `OSError` for a store that can't be used."""
    scheme, authority, rest = parts_of(uri)
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
    return store, (base + rest.rstrip("/")).strip("/") if base else rest.rstrip("/") or "/"


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

    container, found, host = authority.partition("@")
    account = host.partition(".")[0]
    if not found or not account:
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
