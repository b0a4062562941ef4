"""A store that isn't the local disk: one of pyarrow's file systems, with what stores differ in.

Strategy: how a path becomes a URI again, whether a file appears whole when it is closed, and what an object
is known by. Rules: every error that pyarrow raises is explained (`store_errors`).
"""

from __future__ import annotations

__all__ = ["Identity", "Store"]

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from coordwire.errors import CoordwireError
from coordwire.tables.stores.store_errors import StoreError, as_store_error

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem


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
        """What is in a folder. missing: whether it need not be there."""
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

    def create(self, path: str) -> BinaryIO:
        """A file to write."""
        with self._explained(path):
            if not self.puts:
                self.system.create_dir(path.rpartition("/")[0], recursive=True)
            return cast(BinaryIO, _Writing(self, path))

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
        """Raises `StoreError` if the bucket or container of a path isn't there."""
        from pyarrow import fs

        bucket = path.strip("/").partition("/")[0]
        if self.puts and self.info(bucket).type == fs.FileType.NotFound:
            raise StoreError(errno.ENOENT, "the bucket does not exist", self.uri(path))

    def identity(self, path: str, file: Any = None) -> Identity:
        """What the object of this path is known by at present. file: it, if it was just opened."""
        with self._explained(path):
            found = self.system.open_input_file(path) if file is None else file
            size = found.size()
            said = _metadata(found)
            if file is None:
                found.close()
            changed = _seconds(said.get("last-modified"))
            if changed is None:
                changed = (self.system.get_file_info(path).mtime_ns or 0) // 1_000_000_000
            return Identity(size, changed, said.get("etag") or said.get("generation"))

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


class _Writing:
    """A file that is being written to a store; its errors are explained."""

    def __init__(self, store: Store, path: str) -> None:
        self._store = store
        self._path = path
        self._stream = store.system.open_output_stream(path)

    def write(self, data: Any) -> int:
        with self._store._explained(self._path):
            return int(self._stream.write(data))

    def flush(self) -> None:
        with self._store._explained(self._path):
            self._stream.flush()

    def close(self) -> None:
        with self._store._explained(self._path):
            self._stream.close()

    def __enter__(self) -> _Writing:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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
