"""A Sphinx extension: blocks of shell sessions are shown as they are, without guessing at the colours of output."""

from __future__ import annotations

from typing import Any

from pygments.lexers.special import TextLexer


def setup(app: Any) -> dict[str, bool]:
    """Tell Sphinx of it."""
    app.add_lexer("console", TextLexer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
