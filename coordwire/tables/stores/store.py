"""A store that isn't the local disk: one of pyarrow's file systems, with what stores differ in.

Strategy: a store knows how a path becomes a URI again, whether a file appears complete when it is closed, and
what identifies an object. pyarrow and fsspec raise what their clients reported, sometimes pages of it;
`as_store_error` knows the usual causes by words in it. Rules: every error that pyarrow raises becomes one
sentence, which names the URI and what to set or install, with at most 500 characters of the client's text.
"""

from __future__ import annotations

__all__ = ["Identity", "Replaced", "Store", "StoreError", "as_store_error"]

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from coordwire.errors import CoordwireError

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem

_REQUEST_ID = re.compile(r"\s*\(Request ID: [^)]*\)")
_NAMED = re.compile(r"AWS Error ([A-Z_]+)")
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
    if code in (
        "ACCESS_DENIED",
        "INVALID_ACCESS_KEY_ID",
        "SIGNATURE_DOES_NOT_MATCH",
        "MISSING_AUTHENTICATION",
    ):
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

    def info(self, path: str) -> FileInfo:
        """What is there, if anything."""
        with self._explained(path):
            return self.system.get_file_info(path)

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
        from pyarrow import fs

        bucket = path.strip("/").partition("/")[0]
        if self.puts and self.info(bucket).type == fs.FileType.NotFound:
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
