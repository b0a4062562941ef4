"""The site of these pages: `pip install -e '.[docs]'`, then `sphinx-build -W docs site`; site/index.html.

Strategy: the pages are Markdown, as they are read on a forge too; what the code knows is generated when the
site is built (`_generate.py`): the Python API from docstrings, the command line from its own help, the
protocol from the field tables. For one who writes a page `sphinx-build -t quick -W docs site` leaves all of
that out, and links to it lead nowhere. Rule: the site needs no network to be read.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import _console  # noqa: E402
import _docstrings  # noqa: E402
import _generate  # noqa: E402
from coordwire import __version__  # noqa: E402

project = "coordwire"
author = "The coordwire maintainers"
project_copyright = "the coordwire maintainers, Apache-2.0"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
exclude_patterns = ["README.md", "**/data/**"]
myst_heading_anchors = 3
myst_enable_extensions = ["attrs_inline"]
# A fence of a language that no lexer knows is shown as it is.
# Some names are public in two modules: a link may lead to either.
suppress_warnings = ["misc.highlighting_failure", "ref.python"]
QUICK = tags.has("quick")  # type: ignore[name-defined]  # noqa: F821  # Sphinx gives `tags`
if QUICK:
    exclude_patterns += _generate.MADE
    suppress_warnings += ["myst.xref_missing", "toc.excluded", "toc.not_readable"]
highlight_language = "text"
pygments_style, pygments_dark_style = "tango", "github-dark"
default_role = "code"

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_display_short_literal_types = True
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = "coordwire"
# Above every page; with the first release on the Python Package Index this goes, and the sentences in
# README.md and index.md.
html_theme_options = {
    "announcement": "Not on the Python Package Index yet: for <code>pip install 'coordwire[…]'</code> use "
    "<code>pip install '.[…]'</code> in a clone."
}
html_static_path = ["static"]
html_css_files = ["site.css", "protocol.css"]
html_js_files = ["mermaid.min.js", "diagrams.js"]
html_copy_source = False
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True
copybutton_line_continuation_character = "\\"


def _docstring(app: Sphinx, what: str, name: str, item: object, options: object, lines: list[str]) -> None:
    lines[:] = _docstrings.as_restructured_text(lines)


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-docstring", _docstring)
    app.add_lexer("console", _console.ConsoleLexer)
    (_generate.little if QUICK else _generate.everything)(HERE)
    html_static_path.append(str(HERE / "_build" / "static"))
