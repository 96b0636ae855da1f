"""How Sphinx builds the site: ``make docs``. Pages are MyST; the reference is made of docstrings and registries."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
os.environ["NUMBA_DISABLE_JIT"] = "1"  # kernels are then functions, with docstrings
gc.set_threshold(50_000)  # trees of pages are large and stay: with Python's own, collections take a fifth of the time
os.environ["COLUMNS"] = "92"  # what --help wraps at
sys.path[:0] = [str(HERE / "_site"), str(HERE.parent)]

import gallery  # noqa: E402
import reference_pages  # noqa: E402
from sphinx.errors import PycodeError  # noqa: E402
from sphinx.pycode import ModuleAnalyzer  # noqa: E402

import commsim  # noqa: E402 - found by the line above

project = "commsim"
author = "the commsim developers"
copyright = f"2026, {author}"  # noqa: A001 - the name that Sphinx wants
version = release = commsim.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "mathml", "lexer_of_console"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 3
html_math_renderer = "mathml"  # made while building: pages need no script and no network
# A site that is only checked, by `make test`, is written as HTML, without furo's navigation and an index to search.
is_only_checked = os.environ.get("COMMSIM_SITE_PICTURES") == "empty"
html_theme = "basic" if is_only_checked else "furo"
html_title = f"commsim {release}"
html_static_path = ["_site/style"]
html_css_files = ["site.css"]
html_extra_path = ["data/validation.html"] if (HERE / "data" / "validation.html").exists() else []

exclude_patterns = ["_build", "_site", "changes.md"]  # the last is history
suppress_warnings = ["myst.header", "ref.python"]  # types in docstrings are words; a link where only one has the name
autodoc_use_type_comments = False  # there are none, and looking for them takes a tenth of the time
autodoc_typehints = "none"  # docstrings say more, with shapes and units
autodoc_member_order = "bysource"
toc_object_entries = False  # thousands, in the navigation of every page
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_param = False
python_use_unqualified_type_names = True

reference_pages.write(HERE)
if is_only_checked:
    gallery.write(HERE / reference_pages.GENERATED, are_drawn=False)
else:
    gallery.write_apart(HERE / reference_pages.GENERATED)


def order_unknown(module: str) -> ModuleAnalyzer:
    """Leave a module's tokens unread, of which members have their order and a comment after ``#:``."""
    raise PycodeError(f"{module}: not read")


if is_only_checked:  # a quarter of the time of pages that are made of docstrings
    ModuleAnalyzer.for_module = order_unknown


def setup(app: Any) -> None:
    """Fill the tables of collectives and topologies while pages are read: a page in the repository may lack a row."""
    from benchmarks.house.tables import filled

    def fill(_: Any, name: str, source: list[str]) -> None:
        source[0] = filled(name, source[0])

    def search_nothing(app: Any) -> None:
        app.builder.search = False

    app.connect("source-read", fill)
    if is_only_checked:
        app.connect("builder-inited", search_nothing)
