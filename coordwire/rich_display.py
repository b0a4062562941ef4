"""How Jupyter and IPython show an object: by `coordwire.notebook`, which is imported when it is first needed.

Rules: what is shown as HTML and as plain text has no secrets, no markup of anybody else, and a bounded size;
`repr` is left as it is.
"""

from __future__ import annotations

from importlib import import_module

__all__ = ["RichDisplay"]


class RichDisplay:
    """A base class of what can be shown."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        found: str = import_module("coordwire.notebook").html(self)
        return found

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        found: dict[str, str] = import_module("coordwire.notebook").mimebundle(self)
        return found
