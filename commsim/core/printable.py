"""Text that came from a file or a command line, as it may be printed: on a terminal it must be nothing but text."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""Write what is not printable as the escape that Python has for it: control characters, directions, line ends.

    Examples
    --------
    >>> printable("ring\x1b[31m")
    'ring\\x1b[31m'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
