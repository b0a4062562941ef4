"""The hook by which objects show themselves in notebooks.

Strategy: Jupyter and IPython ask an object for its MIME bundle, and classes that answer derive from
`RichDisplay`. They know nothing of HTML: what renders them is the entry point of the group
`coordwire_display`, which is looked up when the first object is shown, so that a notebook needs no import of
`coordwire.notebook`. Rules: showing never raises, and never shows a secret by itself. Only this project's own
entry points are asked, those of each metadata that an installation has left; what can't be loaded is passed
over. Without a renderer, as in a tree that was never installed, an object shows that it has none and not its
`repr`, which has every secret; `repr` itself is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache

Renderer = Callable[[object], dict[str, str]]
"""Renders an object to texts by their MIME types."""

GROUP = "coordwire_display"
"""The entry points that render."""


@cache
def _renderer() -> Renderer | None:
    from importlib import metadata  # which takes as long as the rest of a decoder's imports

    for distribution in metadata.distributions(name="coordwire"):
        with suppress(Exception):  # of metadata that is older than the code, or damaged
            for point in distribution.entry_points.select(group=GROUP):
                renderer: Renderer = point.load()
                return renderer
    return None


class RichDisplay:
    """A base class of objects that notebooks show as HTML."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        return self._repr_mimebundle_().get("text/html")

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        renderer = _renderer()
        reason = "coordwire is not installed, or in another version"
        if renderer is not None:
            try:
                return renderer(self)
            except Exception as error:
                reason = type(error).__name__
        return {"text/plain": f"{type(self).__name__}: can't be shown ({reason}); `repr` has all of it"}
