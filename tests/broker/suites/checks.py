"""What a suite finds: one check a line, passed or failed with its cause."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Checks:
    """The outcomes of one suite, printed as they come. failures: by the check's name, with the cause."""

    suite: str
    passed: list[str] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)

    def run(self, name: str, check: Callable[[], None]) -> bool:
        """Run one check, which raises where it fails; whether it passed."""
        start = time.monotonic()
        try:
            check()
        except Exception as error:
            cause = str(error).strip() or type(error).__name__
            self.failures[name] = f"{type(error).__name__}: {cause}"
        else:
            self.passed.append(name)
        outcome = "failed" if name in self.failures else "ok"
        print(f"{self.suite}: {name}: {outcome} ({time.monotonic() - start:.1f} s)", flush=True)
        if name in self.failures:
            print("    " + self.failures[name].replace("\n", "\n    "), file=sys.stderr, flush=True)
        return name in self.passed
