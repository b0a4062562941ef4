"""Where files are that the local disk does not have: stores, by the URIs that name them.

Strategy: pyarrow's file systems serve s3, gs, abfss and hdfs; for another scheme fsspec does, where that is
installed. A store knows how a path becomes a URI again, whether a file appears complete when it is closed,
and what identifies an object. pyarrow and fsspec raise what their clients reported, sometimes pages of it;
`as_store_error` knows the usual causes by words in it. Rules: the text after the authority is the path,
character by character: keys may hold spaces, `%`, `?` and `#`; s3a and s3n are s3, gcs is gs, so that a file
has one name. A file system is made once for the same authority and environment. Every error becomes one
sentence, which names the URI and what to set or install, with at most 500 characters of the client's text.
"""

from __future__ import annotations

__all__ = [
    "RemoteStream", "Replaced", "Store", "StoreError", "StoreObject", "canonical", "endpoint", "is_there",
    "is_uri", "local_path", "store_of",
]  # fmt: skip

import errno
import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from coordwire.errors import CoordwireError

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem

# --- a store ---

_REQUEST_ID = re.compile(r"\s*\(Request ID: [^)]*\)")
_NAMED = re.compile(r"AWS Error ([A-Z_]+)")
_DENIED = (
    "ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH", "MISSING_AUTHENTICATION",
)  # fmt: skip
_NO_CREDENTIALS = {
    "OAuth2 access token": "Google's token can't be had; set GOOGLE_APPLICATION_CREDENTIALS, or run gcloud "
    "auth application-default login, and check the network",
    "AuthenticationException": "Azure's token can't be had; set AZURE_STORAGE_KEY, or AZURE_TENANT_ID, "
    "AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, or run az login, and check the network",
}
"""What the errors of stores contain where there are no credentials, and what to do then."""

_DETAIL = 120
"""Characters of their own text that are given with it."""


class Replaced(OSError):
    """An object is another one than it was when it was listed or when its reading began."""

    def __init__(self, uri: str) -> None:
        super().__init__(errno.ESTALE, "the object was replaced while it was read", uri)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.filename,)


class StoreError(OSError):
    """A store that can't be reached, read or written; its text is one sentence.

    lasting: whether it is about the file, as a missing permission; else another attempt may do better.
    """

    def __init__(self, number: int, reason: str, name: str) -> None:
        super().__init__(number, reason, name)
        self.lasting = number in (errno.ENOENT, errno.EACCES, errno.ENOTSUP)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.errno, self.strerror, self.filename)


def as_store_error(error: BaseException, uri: str) -> StoreError:
    """An error of pyarrow's or fsspec's about this URI."""
    sentence = _REQUEST_ID.sub("", " ".join(str(error).replace("\\n", " ").split()))
    named = _NAMED.search(sentence)
    code = named[1] if named else ""
    if code == "NO_SUCH_BUCKET":
        return StoreError(errno.ENOENT, "the bucket does not exist", uri)
    if code in _DENIED:
        reason = "access was denied; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
        return StoreError(errno.EACCES, f"{reason} ({code})", uri)
    if code == "NETWORK_CONNECTION":
        reason = "the store can't be reached; check the network, AWS_ENDPOINT_URL and AWS_REGION"
        detail = sentence[sentence.index(code) + len(code) :].partition("curlCode: ")[2]
        return StoreError(errno.EHOSTUNREACH, f"{reason} ({detail or code})"[:500], uri)
    for words, reason in _NO_CREDENTIALS.items():
        if words in sentence:
            return StoreError(errno.EACCES, f"{reason} ({sentence[:_DETAIL]} …)", uri)
    return StoreError(getattr(error, "errno", None) or errno.EIO, sentence[:500] or type(error).__name__, uri)


class Identity(NamedTuple):
    """What an object is known by while it is read. changed: in seconds since 1970, 0 if unknown; mark: its
    ETag or generation, None if the store gives none."""

    size: int
    changed: int
    mark: bytes | None


class Store:
    """A file system that isn't the local disk. system: pyarrow's; start: what its URIs begin with; base: what
    its paths begin with there. puts: whether a file appears whole or not at all when its stream is closed."""

    def __init__(self, system: FileSystem, start: str, base: str, puts: bool) -> None:
        self.system = system
        self.puts = puts
        self._start = start
        self._base = base

    @property
    def is_local(self) -> bool:
        """Whether it is the local disk by another name, as fsspec has some."""
        from pyarrow import fs

        return isinstance(self.system, fs.LocalFileSystem)

    def uri(self, path: str) -> str:
        """The URI of a path of this store."""
        return self._start + path.removeprefix(self._base).lstrip("/")

    def info(self, path: str) -> FileInfo | None:
        """What is there; None if nothing is."""
        from pyarrow import fs

        with self._explained(path):
            info = self.system.get_file_info(path)
        return None if info.type == fs.FileType.NotFound else info

    def below(self, path: str, *, recursive: bool, missing: bool = False) -> Iterator[FileInfo]:
        """The content of a folder. missing: whether it need not be there."""
        from pyarrow import fs

        with self._explained(path):
            selector = fs.FileSelector(path, recursive=recursive, allow_not_found=missing)
            yield from self.system.get_file_info(selector)

    def open(self, path: str) -> Any:
        """A file to read, with `read_at`."""
        with self._explained(path):
            return self.system.open_input_file(path)

    def read(self, file: Any, path: str, size: int, at: int) -> bytes:
        """Bytes of a file that `open` gave; fewer where it is shorter."""
        with self._explained(path):
            data: bytes = file.read_at(size, at)
            return data

    def put(self, path: str, data: bytes | memoryview) -> None:
        """Write a file."""
        with self._explained(path):
            if not self.puts:
                self.system.create_dir(path.rpartition("/")[0], recursive=True)
            with self.system.open_output_stream(path) as stream:
                stream.write(data)

    def move(self, path: str, to: str) -> None:
        with self._explained(to):
            if not self.puts:
                self.system.create_dir(to.rpartition("/")[0], recursive=True)
            self.system.move(path, to)

    def delete(self, path: str) -> None:
        with self._explained(path):
            self.system.delete_file(path)

    def delete_folder(self, path: str) -> None:
        """Remove the object that marks an empty folder."""
        with self._explained(path):
            self.system.delete_dir(path)

    def check_bucket(self, path: str) -> None:
        """Raises `StoreError` if the bucket or container of a path isn't there, or can't be asked for."""
        if self.puts and self.info(path.strip("/").partition("/")[0]) is None:
            raise StoreError(errno.ENOENT, "the bucket does not exist", self.uri(path))

    def identity(self, path: str, file: Any = None) -> Identity:
        """What the object of this path is known by at present. file: it, if it was just opened."""
        with self._explained(path):
            stream = self.system.open_input_file(path) if file is None else file
            size = stream.size()
            metadata = _metadata(stream)
            if file is None:
                stream.close()
            changed = _seconds(metadata.get("last-modified"))
            if changed is None:
                changed = (self.system.get_file_info(path).mtime_ns or 0) // 1_000_000_000
            return Identity(size, changed, metadata.get("etag") or metadata.get("generation"))

    @contextmanager
    def _explained(self, path: str) -> Iterator[None]:
        """Errors of pyarrow's and fsspec's as one sentence about the URI."""
        try:
            yield
        except (StoreError, CoordwireError):
            raise
        except FileNotFoundError as error:
            raise FileNotFoundError(errno.ENOENT, "there is no such file", self.uri(path)) from error
        except (OSError, ValueError, ImportError, NotImplementedError) as error:
            raise as_store_error(error, self.uri(path)) from error
        except Exception as error:
            if type(error).__module__ != "pyarrow.lib":  # ArrowException, as for what Azure's client raises
                raise
            raise as_store_error(error, self.uri(path)) from error


def _metadata(file: Any) -> dict[str, bytes]:
    """What a store says of an object that was opened, by lower-case names."""
    try:
        return {str(name).lower(): bytes(value) for name, value in (file.metadata() or {}).items()}
    except (OSError, TypeError, NotImplementedError, AttributeError):
        return {}


def _seconds(stamp: bytes | None) -> int | None:
    try:
        return None if stamp is None else int(datetime.fromisoformat(stamp.decode()).timestamp())
    except ValueError:
        return None


# --- URIs ---

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


def store_of(uri: str) -> tuple[Store, str]:
    """The store of a URI, and the path in it. Raises `CoordwireError` for a scheme that nothing here serves,
    `OSError` for a store that can't be used."""
    match = _URI.fullmatch(uri)
    if match is None:
        raise CoordwireError(f"expected a URI, got {uri!r}")
    scheme, authority, path = _SAME.get(match[1].lower(), match[1].lower()), match[2], match[3]
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
    try:
        store, path = store_of(uri)
        info = store.info(path)
        return info is not None and bool(info.is_file)
    except (OSError, CoordwireError):
        return False


def endpoint() -> str | None:
    """The address of S3's server, where that is not Amazon's."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")


def _environment() -> tuple[str | None, ...]:
    """What a file system is made from beside its URI."""
    env = os.environ.get
    region = env("AWS_REGION") or env("AWS_DEFAULT_REGION")
    return endpoint(), region, env("AZURE_STORAGE_KEY"), env("AWS_PROFILE")


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


# --- reading ---


class StoreObject:
    """An open object. What `read` gives counts only after `confirm`. Raises as `store_of`."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.store, self._path = store_of(uri)
        self._file = self.store.open(self._path)
        self.identity = self.store.identity(self._path, self._file)

    def read(self, start: int, end: int) -> bytes:
        """The bytes between two positions. Raises `Replaced` where there are fewer now."""
        try:
            data = self.store.read(self._file, self._path, end - start, start)
        except OSError:
            self.confirm()  # that it was replaced by a shorter one says more
            raise
        if len(data) != end - start:
            raise Replaced(self.uri)
        return data

    def confirm(self) -> None:
        """Raises `Replaced` if what was read so far may be of another object."""
        if self.store.identity(self._path) != self.identity:
            raise Replaced(self.uri)

    def close(self) -> None:
        self._file.close()


class RemoteStream(io.RawIOBase):
    """An object from its start to its end. Each block is given on when it is confirmed: no reader gets bytes
    of two. Raises `Replaced`."""

    BLOCK = 8 << 20

    def __init__(self, uri: str) -> None:
        super().__init__()
        self._object = StoreObject(uri)
        self._at = 0
        self._block = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._block:
            end = min(self._at + self.BLOCK, self._object.identity.size)
            if end == self._at:
                return 0
            self._block = memoryview(self._object.read(self._at, end))
            self._object.confirm()
            self._at = end
        with memoryview(buffer) as memory, memory.cast("B") as target:
            count = min(len(target), len(self._block))
            target[:count] = self._block[:count]
        self._block = self._block[count:]
        return count

    def close(self) -> None:
        if not self.closed:
            self._object.close()
        super().close()
