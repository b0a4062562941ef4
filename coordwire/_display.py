"""The hook by which objects show themselves in notebooks.

Strategy: Jupyter and IPython ask an object for its MIME bundle, and classes that answer derive from
`RichDisplay`. They know nothing of HTML: what renders them is registered (`register`), as a function that
gives the renderer and is called when the first object is shown. Rules: `coordwire/__init__.py` registers
`coordwire.notebook`, so that a notebook needs no import of it; without a renderer an object shows its `repr`
as any other does; `repr` itself is left as it is.
"""

from __future__ import annotations

__all__ = ["Renderer", "RichDisplay", "register"]

from collections.abc import Callable

Renderer = Callable[[object], dict[str, str]]
"""Renders an object to texts by their MIME types."""

_find_renderer: Callable[[], Renderer] | None = None


def register(find_renderer: Callable[[], Renderer]) -> None:
    """Set what renders objects. find_renderer: gives the renderer; it may import it."""
    global _find_renderer
    _find_renderer = find_renderer


class RichDisplay:
    """A base class of objects that notebooks show as HTML."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        return self._repr_mimebundle_().get("text/html")

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {} if _find_renderer is None else _find_renderer()(self)
