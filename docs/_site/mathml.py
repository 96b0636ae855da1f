"""A Sphinx extension: formulas as MathML, which browsers draw by themselves, without a script and without a network."""

from __future__ import annotations

from html import escape
from typing import Any

from docutils import nodes

SCROLLS = "overflow-x:auto;overflow-y:hidden;padding:.4em 0"


def inline(self: Any, node: nodes.math) -> None:
    """Write a formula in a line."""
    self.body.append(_mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def block(self: Any, node: nodes.math_block) -> None:
    """Write a formula that stands by itself."""
    anchor = f' id="{escape(node["ids"][0])}"' if node["ids"] else ""
    self.body.append(f'<div class="formula" style="{SCROLLS}"{anchor}>{_mathml(node.astext(), "block")}</div>\n')
    raise nodes.SkipNode


def _mathml(latex: str, display: str) -> str:
    from latex2mathml.converter import convert

    return str(convert(latex, display=display))


def setup(app: Any) -> dict[str, bool]:
    """Tell Sphinx of it."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
