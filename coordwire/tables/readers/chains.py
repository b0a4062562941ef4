"""A chain of rotated files that may grow, in stages: what other units have, what is settled, the last file.

Strategy: the reader of a stage stops between two packets, before the next file, and the next stage's goes on
from its state, in this process or, by a checkpoint, in a later run. So a row that came out before a file's
end is what it would be if the whole chain were read at once; what only the chain's end shows belongs to the
last stage, which is read again when a file follows. Rules: no reader stops at the end of a file
that ends within a packet: its stage goes on to the chain's end, and no checkpoint is made (`is_exact`).
"""

from __future__ import annotations

__all__ = ["ChainReading", "ChainStage"]

from collections.abc import Iterator
from itertools import repeat
from typing import Literal, TypeAlias

from coordwire.capture.reader import Capture, ReaderState
from coordwire.capture.rotation import RotatedFiles
from coordwire.dialects import find_alternative, find_dialect
from coordwire.errors import CoordwireError
from coordwire.tables.options import Options
from coordwire.tables.readers.captures import Failed, Together, together
from coordwire.tables.readers.files import open_stream
from coordwire.tables.readers.splits import DealtFrames, Part

ChainStage: TypeAlias = Literal["known", "settled", "open"]


class ChainReading:
    """One reading of a chain.

    parts: the settled part, the open one, or both in this order. state: what a checkpoint has of the files
    before them; None where they are read again. name: what entries call the capture: its first file.
    """

    def __init__(
        self, parts: list[Part], options: Options, state: ReaderState | None = None, name: str = ""
    ) -> None:
        first = parts[0]
        self.name = name or first.stream_paths[0]
        self.state = state or ReaderState()
        self.is_exact = True
        self._options = options
        self._stages: list[tuple[ChainStage, tuple[str, ...]]] = []
        self._following = parts[-1].following
        if state is None and first.before:
            self._stages.append(("known", first.before))
        for part in parts:
            self._stages.append(("settled" if part.stage == "settled" else "open", part.paths))

    def lists(
        self, failed: Failed, share: DealtFrames | None = None
    ) -> Iterator[tuple[ChainStage, Together]]:
        """Everything in the files, in order; each stage begins with a list that is empty, before anything of
        it is read. failed: as for `RotatedFiles`; share: of the settled files' entries. Raises as
        `captures.entries` does, and `CoordwireError` for files before settled ones that are not as they were.
        """
        stages = self._stages
        for index, (stage, _) in enumerate(stages):
            yield stage, ([], [])
            paths = [path for _, own in stages[index:] for path in own]
            end = stages[index + 1][1][0] if index + 1 < len(stages) else self._following
            paths += [self._following] if index + 1 == len(stages) and self._following else []
            pauses = stage != "open"
            with RotatedFiles(
                paths, open_stream, failed, header=self.state.header, pause_before=end if pauses else None
            ) as files:
                capture = self._capture(files)
                batches = capture.batches(pause=files.go_on if pauses else None)
                if share is not None and stage == "settled":
                    batches = map(share.own, batches)
                yield from zip(repeat(stage), together(batches))
                if pauses and not files.is_paused:
                    if stage == "known" and stages[index + 1][0] == "settled":
                        raise CoordwireError(f"{self.name}: the files before are not as they were read")
                    self.is_exact = False
                    ends = capture.finish() if share is None else map(share.own, capture.finish())
                    yield from zip(repeat(stage), together(ends))
                    for later, _ in stages[index + 1 :]:
                        yield later, ([], [])
                    return

    def _capture(self, files: RotatedFiles) -> Capture:
        dialect = self._options.dialect
        return Capture(
            files, self.name, strict=self._options.strict, lazy=True, state=self.state,  # type: ignore[arg-type]
            dialect=find_dialect(dialect), alternative=find_alternative(dialect),
        )  # fmt: skip
