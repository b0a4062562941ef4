"""The folder that the tables are in, on a disk or in a store."""

from __future__ import annotations

__all__ = ["Output"]

import os
import posixpath
import re

from coordwire.tables.storage.folders import Folder, LocalFolder, StoreFolder
from coordwire.tables.stores import is_uri, local_path, store_of

_GLOB = re.compile(r"([\\*?\[\]{}])")


class Output:
    """The folder that the tables are in: local, or a URI. uri: as Spark reads it, which takes it for a glob;
    place: as the user named it."""

    def __init__(self, root: str) -> None:
        self.place = root
        self.folder: Folder
        store = None
        if is_uri(root):
            store, path = store_of(root)
            if store.is_local:
                root, store = path, None
        self.local = store is None
        if store is None:
            self.root = os.path.abspath(local_path(root))
            self.folder = LocalFolder(self.root)
            self.uri = "file://" + _GLOB.sub(r"\\\1", self.root)
        else:
            self.root = path
            self.folder = StoreFolder(store, path)
            self.uri = _GLOB.sub(r"\\\1", root.rstrip("/"))

    def path(self, name: str) -> str:
        return posixpath.join(self.root, name)

    def write(self, name: str, data: bytes) -> None:
        """A small file, whole or not at all, in the place of any that is there."""
        self.folder.write(name, data)

    def create(self, name: str, data: bytes) -> bool:
        """A small file, whole or not at all, if there is none of this name; whether there was none."""
        return self.folder.create(name, data)

    def read(self, name: str) -> bytes | None:
        """A small file; None if it isn't there."""
        return self.folder.read(name)

    def names(self, folder: str) -> list[str]:
        """The files below a folder, by their paths from the root."""
        return sorted(name for name, _ in self.folder.files(folder))

    def delete(self, name: str) -> None:
        """Remove a file, if it is there."""
        self.folder.delete(name)
