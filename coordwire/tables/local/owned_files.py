"""The folder that local tables are written into, and which files in it `coordwire decode` wrote.

Strategy: `coordwire-tables.json` has the size and the CRC-32C of each file that was written; a name is free
if there is no such file, and owned if its file still has that size and checksum. New files are written under
names that nothing else can have (random, created with O_EXCL), and get their own when all are complete: first
the list is written with what is to come, then each file takes its place. Rules: a file that isn't owned is
refused before anything is read or written; a name that is used meanwhile is refused too; no link below the
folder is followed (`LocalFolder`); what is left after a kill ends in `.part`.
"""

from __future__ import annotations

__all__ = ["LIST", "OwnedFiles"]

import json
from collections.abc import Iterable
from contextlib import suppress
from secrets import token_hex
from types import TracebackType

from coordwire.errors import CoordwireError
from coordwire.tables.storage.folders import PART, LocalFolder
from coordwire.tables.storage.manifest_file import Proof
from coordwire.tables.storage.names import NOTES, WRITING
from coordwire.tables.storage.unit_attempt import Sink, digest

LIST = "coordwire-tables.json"
MADE_BY = "coordwire decode"
FORMAT = 1
TOLD = 3
"""Names that an error lists."""


class OwnedFiles:
    """A context: new files until `publish`; its end removes what is not published."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._folder = LocalFolder(root)
        self._known = self._load()
        self._parts: dict[str, tuple[str, Sink]] = {}

    def __enter__(self) -> OwnedFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for part, sink in self._parts.values():
            sink.drop()
            with suppress(OSError, CoordwireError):
                self._folder.delete(part)

    def _load(self) -> dict[str, list[Proof]]:
        data = self._folder.read(LIST)
        if data is None:
            return {}
        try:
            form = json.loads(data)
            if (form["made_by"], form["format"]) == (MADE_BY, FORMAT):
                return {
                    str(name): [[int(size), int(crc)] for size, crc in proofs]
                    for name, proofs in form["files"].items()
                }
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            pass
        raise CoordwireError(
            f"{self.root}/{LIST} is not as coordwire decode writes it: expected its own list of tables; "
            "nothing was read or written; choose another --out"
        )

    def check(self, names: Iterable[str]) -> None:
        """Raises `CoordwireError` if a file of one of these names is not provably owned."""
        entries = set(self._folder.entries(""))
        foreign = [name for name in names if name in entries and not self._is_ours(name)]
        if foreign:
            suffix = f" and {len(foreign) - TOLD} more" if len(foreign) > TOLD else ""
            raise CoordwireError(
                f"{self.root} has files that coordwire decode did not write, or that changed since: "
                f"{', '.join(foreign[:TOLD])}{suffix}; nothing was overwritten; move them away, or choose "
                "another --out"
            )

    def _is_ours(self, name: str) -> bool:
        try:
            with self._folder.open(name) as stream:
                return digest(stream) in self._known.get(name, [])
        except (OSError, CoordwireError):  # a link, a folder, or not to be read
            return False

    def open(self, name: str) -> Sink:
        """Open a new file, which gets this name when it is published."""
        part = f".{name}.{token_hex(16)}{PART}"
        sink = Sink(self._folder.open_new(part))
        self._parts[name] = part, sink
        return sink

    def publish(self) -> None:
        """Give all files their names. Raises `CoordwireError` where one is in use by now."""
        new: dict[str, Proof] = {}
        for name, (_, sink) in self._parts.items():
            sink.close()
            new[name] = [sink.size, sink.crc]
        self._known = self._load()
        self.check(new)
        self._list({**self._known, **{name: [*self._known.get(name, []), new[name]] for name in new}})
        for name in new:
            self._place(name)
            self._known[name] = [new[name]]
        self._list(self._known)

    def _place(self, name: str) -> None:
        part, _ = self._parts[name]
        with suppress(FileNotFoundError):
            if self._is_ours(name):
                self._folder.delete(name)
        try:
            self._folder.move(part, name)
        except FileExistsError:
            raise CoordwireError(
                f"{self.root}/{name} appeared while the tables were written; nothing was overwritten"
            ) from None
        del self._parts[name]

    def _list(self, known: dict[str, list[Proof]]) -> None:
        form = {"made_by": MADE_BY, "format": FORMAT, "files": known}
        self._folder.write(LIST, json.dumps(form).encode() + b"\n")
        for folder in (WRITING, NOTES):  # where it was until it was whole; the pipeline's own are not empty
            self._folder.remove_folder(folder)
